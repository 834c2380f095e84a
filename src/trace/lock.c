/* The lock that the writer of a record holds. SQLite's own locks are not enough. Several processes
 * can hold SQLite's lock in turn, and a process loses SQLite's lock when it closes any other
 * descriptor of the file. */
#include <fcntl.h>
#include <unistd.h>

#include "trace/trace.h"

enum { LOCK_BYTE = 0x40000400 }; /* position of the byte that is locked, behind the bytes that SQLite locks */

static struct flock lock_of(short type) {
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = LOCK_BYTE, .l_len = 1};
}

bool kl_record_lock(int file) {
    struct flock lock = lock_of(F_WRLCK);
    return fcntl(file, F_OFD_SETLK, &lock) == 0;
}

/* Release the lock. Closing the file would not be enough, because a child process that was forked meanwhile
 * may have the file open, too. */
void kl_record_unlock(int file) {
    struct flock lock = lock_of(F_UNLCK);
    fcntl(file, F_OFD_SETLK, &lock);
}

bool kl_record_is_locked(int file) {
    struct flock lock = lock_of(F_WRLCK);
    return fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}
