#include "transport/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include "sys/sys.h"

enum { KEY_FILE_BYTES_MAX = 4096 };
static const char FIRST_LINE[] = "kilter-key 1";

typedef struct entry {
    const char *name;
    size_t offset; /* offset in kl_key of the member for this line */
} entry;

static const entry ENTRIES[] = {
    {"server-public", offsetof(kl_key, server_public)},
    {"server-secret", offsetof(kl_key, server_secret)},
    {"worker-public", offsetof(kl_key, worker_public)},
    {"worker-secret", offsetof(kl_key, worker_secret)},
};
enum { ENTRY_COUNT = sizeof ENTRIES / sizeof ENTRIES[0], SERVER_SECRET = 1 };

static char *value_of(const kl_key *key, size_t entry) {
    return (char *)key + ENTRIES[entry].offset;
}

kilter_status kl_key_make(kl_key *key, kilter_error *error) {
    *key = (kl_key){0};
    if (zmq_curve_keypair(key->server_public, key->server_secret) != 0 ||
        zmq_curve_keypair(key->worker_public, key->worker_secret) != 0)
        return kl_fail(error, KILTER_ERR_SYSTEM,
                       "making a farm's key: %s; install a libzmq that was built with CURVE",
                       zmq_strerror(errno));
    return KILTER_OK;
}

void kl_key_write(const kl_key *key, bool for_master, kl_buffer *out) {
    char line[100];
    int size = snprintf(line, sizeof line, "%s\n", FIRST_LINE);
    kl_put_bytes(out, line, (size_t)size);
    for (size_t i = 0; i < ENTRY_COUNT; i++) {
        if (i == SERVER_SECRET && !for_master)
            continue;
        size = snprintf(line, sizeof line, "%s %s\n", ENTRIES[i].name, value_of(key, i));
        kl_put_bytes(out, line, (size_t)size);
    }
}

/* --- reading --- */

static bool is_key(const char *text, size_t size) {
    uint8_t bytes[KL_KEY_CHARS]; /* zmq_z85_decode() writes 32 bytes */
    char copy[KL_KEY_CHARS + 1];
    if (size != KL_KEY_CHARS || memchr(text, '\0', size))
        return false;
    memcpy(copy, text, size);
    copy[size] = '\0';
    return zmq_z85_decode(bytes, copy) != NULL;
}

/* Read a line "NAME VALUE" of a key file and store the value in the key. */
static kilter_status take_line(const char *line, size_t size, unsigned number, kl_key *key,
                               kilter_error *error) {
    size_t name_size = 0;
    while (name_size < size && line[name_size] != ' ')
        name_size++;
    size_t i = 0;
    while (i < ENTRY_COUNT &&
           !(strlen(ENTRIES[i].name) == name_size && memcmp(ENTRIES[i].name, line, name_size) == 0))
        i++;
    if (i == ENTRY_COUNT)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "%s:%u: the line must begin with server-public, server-secret, worker-public or "
                       "worker-secret; copy the master's key file again",
                       key->file, number);
    if (*value_of(key, i))
        return kl_fail(error, KILTER_ERR_USAGE, "%s:%u: %s is given twice; copy the master's key file again",
                       key->file, number, ENTRIES[i].name);
    if (!is_key(line + name_size + 1, size > name_size ? size - name_size - 1 : 0))
        return kl_fail(
            error, KILTER_ERR_USAGE,
            "%s:%u: %s must be followed by a key of %d characters; copy the master's key file again",
            key->file, number, ENTRIES[i].name, KL_KEY_CHARS);
    memcpy(value_of(key, i), line + name_size + 1, KL_KEY_CHARS);
    return KILTER_OK;
}

static bool belong_together(const char *public, const char *secret) {
    char derived[KL_KEY_CHARS + 1];
    return zmq_curve_public(derived, secret) == 0 && strcmp(derived, public) == 0;
}

static kilter_status check_whole(const kl_key *key, kilter_error *error) {
    for (size_t i = 0; i < ENTRY_COUNT; i++)
        if (i != SERVER_SECRET && !*value_of(key, i))
            return kl_fail(error, KILTER_ERR_USAGE, "%s: %s is missing; copy the master's key file again",
                           key->file, ENTRIES[i].name);
    if ((*key->server_secret && !belong_together(key->server_public, key->server_secret)) ||
        !belong_together(key->worker_public, key->worker_secret))
        return kl_fail(error, KILTER_ERR_USAGE,
                       "%s: a secret key does not match its public key; copy the master's key file again",
                       key->file);
    return KILTER_OK;
}

kilter_status kl_key_parse(const char *text, size_t size, const char *file, kl_key *key,
                           kilter_error *error) {
    kl_key read = {0};
    snprintf(read.file, sizeof read.file, "%s", file);
    unsigned number = 0;
    kilter_status status = KILTER_OK;
    for (size_t at = 0; at < size && status == KILTER_OK;) {
        const char *line = text + at, *end = memchr(line, '\n', size - at);
        size_t length = end ? (size_t)(end - line) : size - at;
        at += length + 1;
        number++;
        if (number == 1) {
            if (length != strlen(FIRST_LINE) || memcmp(line, FIRST_LINE, length) != 0)
                status = kl_fail(error, KILTER_ERR_USAGE,
                                 "%s:1: the file must begin with \"%s\"; this is not a farm's key file", file,
                                 FIRST_LINE);
        } else if (length > 0 && *line != '#') {
            status = take_line(line, length, number, &read, error);
        }
    }
    if (status == KILTER_OK && number == 0)
        status = kl_fail(error, KILTER_ERR_USAGE, "%s: the file is empty; copy the master's key file", file);
    if (status == KILTER_OK)
        status = check_whole(&read, error);
    if (status == KILTER_OK)
        *key = read;
    return status;
}

static kilter_status check_owner(int fd, const char *path, kilter_error *error) {
    struct stat found;
    if (fstat(fd, &found) != 0)
        return kl_fail(error, KILTER_ERR_SYSTEM, "reading the key file %s: %s", path, strerror(errno));
    if (!S_ISREG(found.st_mode))
        return kl_fail(error, KILTER_ERR_USAGE, "reading the key file %s: not a plain file; name another",
                       path);
    if (found.st_uid != geteuid() && found.st_uid != 0)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "reading the key file %s: it belongs to another user; make a copy of your own", path);
    if (found.st_mode & 077)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "reading the key file %s: others may read or write it; run chmod 600 on it, or remove "
                       "it to get a new key if others may have read it",
                       path);
    return KILTER_OK;
}

static kilter_status parse_stream(int fd, const char *file, kl_key *key, kilter_error *error) {
    char text[KEY_FILE_BYTES_MAX + 1];
    size_t size = 0;
    for (ssize_t got = 1; got > 0 && size < sizeof text;) {
        got = read(fd, text + size, sizeof text - size);
        if (got < 0 && errno == EINTR)
            got = 1;
        else if (got < 0)
            return kl_fail(error, KILTER_ERR_SYSTEM, "reading the key file %s: %s", file, strerror(errno));
        else
            size += (size_t)got;
    }
    if (size > KEY_FILE_BYTES_MAX)
        return kl_fail(error, KILTER_ERR_USAGE, "%s: more than %d bytes, so this is not a farm's key file",
                       file, KEY_FILE_BYTES_MAX);
    return kl_key_parse(text, size, file, key, error);
}

kilter_status kl_key_read(const char *path, kl_key *key, kilter_error *error) {
    if (strcmp(path, "-") == 0)
        return parse_stream(STDIN_FILENO, "the standard input", key, error);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "reading the key file %s: %s; copy the master's key file to this place, or name "
                       "another with --key",
                       path, strerror(errno));
    kilter_status status = check_owner(fd, path, error);
    if (status == KILTER_OK)
        status = parse_stream(fd, path, key, error);
    close(fd);
    return status;
}

/* --- making --- */

static kilter_status make_folder_of(const char *path, kilter_error *error) {
    char *folder = strdup(path);
    if (!folder)
        return kl_fail(error, KILTER_ERR_MEMORY, "making the key file %s: memory ran out", path);
    char *slash = strrchr(folder, '/');
    kilter_status status = KILTER_OK;
    if (slash && slash != folder) {
        *slash = '\0';
        status = kl_make_dirs(folder, error);
    }
    free(folder);
    return status;
}

static bool write_all(int fd, const kl_buffer *text) {
    for (size_t at = 0; at < text->size;) {
        ssize_t put = write(fd, text->data + at, text->size - at);
        if (put < 0 && errno != EINTR)
            return false;
        at += put > 0 ? (size_t)put : 0;
    }
    return fsync(fd) == 0;
}

/* Make a key file. Write it under a temporary name first, so that no process reads an incomplete file. If
 * another master has made the file meanwhile, use that file. */
static kilter_status make_file(const char *path, kilter_error *error) {
    kl_key key;
    kl_buffer text = {0};
    kilter_status status = kl_key_make(&key, error);
    if (status == KILTER_OK)
        status = make_folder_of(path, error);
    if (status != KILTER_OK)
        return status;
    char *draft = kl_text("%s.XXXXXX", path);
    kl_key_write(&key, true, &text);
    if (!draft || text.failed) {
        status = kl_fail(error, KILTER_ERR_MEMORY, "making the key file %s: memory ran out", path);
    } else {
        int fd = mkstemp(draft); /* mode 0600 */
        bool made = fd >= 0 && write_all(fd, &text) && (link(draft, path) == 0 || errno == EEXIST);
        if (!made)
            status = kl_fail(error, KILTER_ERR_SYSTEM, "making the key file %s: %s; name another with --key",
                             path, strerror(errno));
        if (fd >= 0) {
            close(fd);
            unlink(draft);
        }
    }
    kl_buffer_free(&text);
    free(draft);
    return status;
}

kilter_status kl_key_read_or_make(const char *path, kl_key *key, kilter_error *error) {
    kilter_status status = KILTER_OK;
    if (strcmp(path, "-") != 0 && access(path, F_OK) != 0 && errno == ENOENT)
        status = make_file(path, error);
    if (status == KILTER_OK)
        status = kl_key_read(path, key, error);
    if (status == KILTER_OK && !*key->server_secret)
        status = kl_fail(
            error, KILTER_ERR_USAGE,
            "%s: it has no server-secret, so it is a worker's copy; name the master's file with --key",
            key->file);
    return status;
}

kilter_status kl_key_default_path(char **path, kilter_error *error) {
    char *folder;
    kilter_status status = kl_record_dir(&folder, error);
    if (status != KILTER_OK)
        return status;
    char *made = kl_text("%s/farm.key", folder);
    free(folder);
    if (!made)
        return kl_fail(error, KILTER_ERR_MEMORY, "finding the key file: memory ran out");
    *path = made;
    return KILTER_OK;
}
