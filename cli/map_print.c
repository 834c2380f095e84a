/* Print each output of a command as a whole. With --keep-order, print in the order of the commands. With
 * --results, store the outputs in a folder instead. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "map.h"
#include "sys/sys.h"

enum { PIECE = 1 << 16 };

/* An output of a command that is being printed to a descriptor. */
typedef struct target {
    kl_map_printer *printer;
    int fd;
    const kl_buffer *tag; /* text to print in front of each line of the output; NULL: none */
    bool inside;          /* true: the last byte was not the end of a line */
    const char *name;     /* name of the output in error messages */
} target;

static void fail(kl_map_printer *p, const char *what, const char *name) {
    int code = errno;
    if (p->error.status != KILTER_OK)
        return;
    p->closed = code == EPIPE;
    kl_fail(&p->error, KILTER_ERR_SYSTEM, "%s %s: %s%s", what, name, strerror(code),
            code == ENOSPC ? "; free some space on the disk" : "");
}

static void write_all(const target *t, const uint8_t *data, size_t size) {
    while (size > 0 && t->printer->error.status == KILTER_OK) {
        ssize_t wrote = write(t->fd, data, size);
        if (wrote < 0 && errno != EINTR)
            fail(t->printer, "writing to", t->name);
        size -= wrote > 0 ? (size_t)wrote : 0;
        data += wrote > 0 ? wrote : 0;
    }
}

/* Write bytes of an output. Begin each line with the tag. */
static void write_tagged(target *t, const uint8_t *data, size_t size) {
    kl_buffer text = {0};
    for (size_t i = 0; i < size; i++) {
        if (!t->inside)
            kl_put_bytes(&text, t->tag->data, t->tag->size);
        kl_put_u8(&text, data[i]);
        t->inside = data[i] != '\n';
    }
    errno = ENOMEM;
    if (text.failed)
        fail(t->printer, "writing to", t->name);
    write_all(t, text.data, text.size);
    kl_buffer_free(&text);
}

static void put(target *t, const uint8_t *data, size_t size) {
    if (t->tag)
        write_tagged(t, data, size);
    else
        write_all(t, data, size);
}

/* Print a whole output, which is in memory or in a file. */
static void copy(target *t, const char *file, kilter_bytes bytes) {
    static const char READING[] = "reading the output in";
    uint8_t piece[PIECE];
    ssize_t got = 1;
    if (!*file) {
        put(t, bytes.data, bytes.size);
        return;
    }
    int in = open(file, O_RDONLY | O_CLOEXEC);
    if (in < 0)
        fail(t->printer, READING, file);
    while (in >= 0 && got > 0 && t->printer->error.status == KILTER_OK) {
        got = read(in, piece, sizeof piece);
        if (got < 0)
            fail(t->printer, READING, file);
        put(t, piece, got > 0 ? (size_t)got : 0);
    }
    if (in >= 0)
        close(in);
}

void kl_map_drop_files(const kl_map_result *r) {
    if (*r->out_file)
        unlink(r->out_file);
    if (*r->err_file)
        unlink(r->err_file);
}

/* --- the folder of --results: FOLDER/1/value/2/value/stdout, with the names of GNU parallel --- */

/* Append a value as the name of a folder. */
static void put_name(kl_buffer *path, const char *value) {
    if (strcmp(value, ".") == 0 ||
        strcmp(value, "..") == 0) /* "." and ".." cannot be names of new folders, so they get a backslash */
        kl_put_u8(path, '\\');
    for (; *value; value++) {
        const char *name = *value == '/' ? "\\_" : *value == '\\' ? "\\\\" : *value == '\t' ? "\\t" : NULL;
        kl_put_bytes(path, name ? name : value, name ? 2 : 1);
    }
}

static void put_folder(const kl_map_printer *p, uint64_t number, kl_buffer *path) {
    kl_buffer values = {0};
    char column[24];
    kl_map_put_combination(p->sources, p->source_count, number - 1, &values);
    const char *value = (const char *)values.data;
    size_t count = kl_map_count_texts(value, values.size);
    kl_put_bytes(path, p->results, strlen(p->results));
    for (size_t i = 0; i < count; i++, value += strlen(value) + 1) {
        snprintf(column, sizeof column, "/%zu/", i + 1);
        kl_put_bytes(path, column, strlen(column));
        put_name(path, value);
    }
    kl_buffer_free(&values);
}

static void store(kl_map_printer *p, const kl_buffer *folder, const char *name, const char *file,
                  kilter_bytes bytes) {
    char *path = kl_text("%.*s/%s", (int)folder->size, (const char *)folder->data, name);
    int out = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : -1;
    target t = {.printer = p, .fd = out, .name = path};
    if (out < 0)
        fail(p, "creating", path ? path : p->results);
    else
        copy(&t, file, bytes);
    if (out >= 0 && close(out) != 0)
        fail(p, "writing to", path);
    free(path);
}

/* Create a folder and all missing folders above it. */
static bool make_folders(char *path) {
    for (char *at = path + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        bool made = mkdir(path, 0777) == 0 || errno == EEXIST;
        *at = '/';
        if (!made)
            return false;
    }
    return mkdir(path, 0777) == 0 || errno == EEXIST;
}

kilter_status kl_map_make_results(const char *folder, kilter_error *error) {
    char *path = kl_text("%s/1", folder);
    bool made = path && make_folders(path) && access(path, W_OK | X_OK) == 0;
    int code = path ? errno : ENOMEM;
    free(path);
    return made ? KILTER_OK
                : kl_fail(error, KILTER_ERR_USAGE, "--results: making folders in %s: %s", folder,
                          strerror(code));
}

static void keep_results(kl_map_printer *p, const kl_map_result *r) {
    kl_buffer folder = {0};
    char number[24];
    put_folder(p, r->number, &folder);
    kl_put_u8(&folder, 0);
    folder.size -= !folder.failed;
    snprintf(number, sizeof number, "%llu", kl_ull(r->number));
    errno = ENOMEM;
    if (folder.failed || !make_folders((char *)folder.data)) {
        fail(p, "making the folder", folder.failed ? p->results : (const char *)folder.data);
    } else {
        store(p, &folder, "stdout", r->out_file, r->out);
        store(p, &folder, "stderr", r->err_file, r->err);
        store(p, &folder, "seq", "", (kilter_bytes){number, strlen(number)});
    }
    kl_buffer_free(&folder);
}

/* --- printing --- */

static void put_tag(const kl_map_printer *p, uint64_t number, kl_buffer *tag) {
    kl_buffer values = {0};
    kl_map_put_combination(p->sources, p->source_count, number - 1, &values);
    for (size_t i = 0; i + 1 < values.size; i++)
        kl_put_u8(tag, values.data[i] ? values.data[i] : ' ');
    kl_put_u8(tag, '\t');
    kl_buffer_free(&values);
}

static void print_one(kl_map_printer *p, const kl_map_result *r) {
    kl_buffer tag = {0};
    if (r->end == KL_MAP_STOPPED)
        return;
    if (p->tag)
        put_tag(p, r->number, &tag);
    target out = {p, STDOUT_FILENO, p->tag ? &tag : NULL, false, "the standard output"};
    target err = {p, STDERR_FILENO, p->tag ? &tag : NULL, false, "the standard error"};
    if (p->results) {
        keep_results(p, r);
    } else {
        copy(&out, r->out_file, r->out);
        copy(&err, r->err_file, r->err);
    }
    kl_map_drop_files(r);
    kl_buffer_free(&tag);
}

/* With --keep-order, keep a result until all earlier commands are printed. */
static void keep(kl_map_printer *p, const kl_map_result *r) {
    kilter_bytes *waiting = p->waiting;
    uint64_t before = p->waiting_room;
    kl_buffer bytes = {0};
    if (r->number > before) {
        waiting = kl_array_grow(waiting, &p->waiting_room, r->number, sizeof *waiting);
        if (waiting)
            memset(waiting + before, 0, (p->waiting_room - before) * sizeof *waiting);
        p->waiting = waiting ? waiting : p->waiting;
    }
    kl_map_put_result(&bytes, r);
    if (waiting && !bytes.failed) {
        waiting[r->number - 1] = (kilter_bytes){bytes.data, bytes.size};
        return;
    }
    errno = ENOMEM;
    fail(p, "keeping", "an output");
    kl_buffer_free(&bytes);
}

static void free_bytes(kilter_bytes *bytes) {
    free((void *)(uintptr_t)bytes->data);
    *bytes = (kilter_bytes){0};
}

void kl_map_print(kl_map_printer *p, const kl_map_result *r) {
    kl_map_result next;
    if (!p->keep || r->number == p->next) {
        print_one(p, r);
        p->next += p->keep;
    } else {
        keep(p, r);
    }
    while (p->keep && p->next <= p->waiting_room && p->waiting[p->next - 1].data) {
        if (kl_map_get_result(p->waiting[p->next - 1], &next))
            print_one(p, &next);
        free_bytes(&p->waiting[p->next++ - 1]);
    }
}

void kl_map_print_rest(kl_map_printer *p) {
    kl_map_result one;
    for (uint64_t i = p->next > 0 ? p->next - 1 : 0; i < p->waiting_room; i++) {
        if (p->waiting[i].data && kl_map_get_result(p->waiting[i], &one))
            print_one(p, &one);
        free_bytes(&p->waiting[i]);
    }
}

void kl_map_printer_free(kl_map_printer *p) {
    for (uint64_t i = 0; i < p->waiting_room; i++)
        free_bytes(&p->waiting[i]);
    free(p->waiting);
}
