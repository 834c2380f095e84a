/* The lock of a record's writer. SQLite's own locks are not enough: they let several processes write in
 * turn, and closing any other descriptor of the file drops them. */
#include <fcntl.h>
#include <unistd.h>

#include "trace/trace.h"

enum { LOCK_BYTE = 0x40000400 }; /* position of the locked byte, after those that SQLite locks */

static struct flock lock_of(short type) {
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = LOCK_BYTE, .l_len = 1};
}

bool kl_record_lock(int file) {
    struct flock lock = lock_of(F_WRLCK);
    return fcntl(file, F_OFD_SETLK, &lock) == 0;
}

/* Unlock explicitly. Closing the file is not enough, because a child that was forked meanwhile may have it
 * open, too. */
void kl_record_unlock(int file) {
    struct flock lock = lock_of(F_UNLCK);
    fcntl(file, F_OFD_SETLK, &lock);
}

bool kl_record_is_locked(int file) {
    struct flock lock = lock_of(F_WRLCK);
    return fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}
