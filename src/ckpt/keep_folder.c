#include "ckpt/keep_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckpt/json.h"
#include "sys/sys.h"

static const char PROGRESS[] = "progress", REQUEST[] = "request";
static const double NANOSECONDS = 1e9;

/* Members of the file `progress` that have a single value, grouped by type. Both the writer and the reader of
 * the file use these lists. */
#define COUNTS(X) X(attempt) X(sweeps) X(expected) X(saved_sweeps) X(saves) X(answered)
#define TIMES(X)  X(elapsed_s) X(sweep_s) X(longest_s) X(save_s) X(write_s) X(load_s)
#define TEXTS(X)  X(host) X(error)
#define TRUTHS(X) X(stopped) X(done)

/* --- writing a progress or a request as text --- */

static void print(kl_buffer *out, const char *format, ...) KILTER_PRINTF(2, 3);
static void print(kl_buffer *out, const char *format, ...) {
    char text[128];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    kl_put_bytes(out, text, (size_t)length);
}

static void print_lists(const kl_keep_progress *p, kl_buffer *out) {
    print(out, ",\"hosts\":[");
    for (uint32_t r = 0; r < p->ranks; r++) {
        print(out, "%s", r > 0 ? "," : "");
        kl_json_put_text(out, p->hosts[r]);
    }
    print(out, "],\"rates\":[");
    for (uint32_t r = 0; r < p->ranks; r++)
        print(out, "%s%.17g", r > 0 ? "," : "", p->rates[r]);
    print(out, "]");
}

bool kl_keep_progress_print(const kl_keep_progress *p, kl_buffer *out) {
    print(out, "{\"version\":%d,\"pid\":%lld,\"ranks\":%u", KL_KEEP_VERSION, (long long)p->pid, p->ranks);
#define PRINT_COUNT(name) print(out, ",\"" #name "\":%llu", kl_ull(p->name));
#define PRINT_TIME(name)  print(out, ",\"" #name "\":%.17g", p->name);
#define PRINT_TRUTH(name) print(out, ",\"" #name "\":%s", p->name ? "true" : "false");
#define PRINT_TEXT(name)                                                                                     \
    print(out, ",\"" #name "\":");                                                                           \
    kl_json_put_text(out, p->name);
    COUNTS(PRINT_COUNT)
    TIMES(PRINT_TIME)
    TRUTHS(PRINT_TRUTH)
    TEXTS(PRINT_TEXT)
    print_lists(p, out);
    print(out, "}\n");
    return !out->failed;
}

bool kl_keep_request_print(const kl_keep_request *r, kl_buffer *out) {
    print(out, "{\"version\":%d,\"number\":%llu,\"what\":\"%s\"}\n", KL_KEEP_VERSION, kl_ull(r->number),
          r->what == KL_KEEP_STOP ? "stop" : "save");
    return !out->failed;
}

/* --- reading a progress or a request from text --- */

static bool is_time(const kl_json_value *v) {
    return v->type == KL_JSON_NUMBER && v->number >= 0;
}

static void copy_text(char *to, size_t room, const kl_json_value *v) {
    kl_copy_label(to, room, (const uint8_t *)v->text, strlen(v->text));
}

typedef struct reading { /* what was read so far of a file `progress` */
    kl_keep_progress *p;
    uint64_t version, pid, ranks;
    uint64_t hosts, rates; /* number of values read so far of the lists `hosts` and `rates` */
    uint64_t host_room, rate_room;
    bool no_memory;
} reading;

static bool take_host(reading *r, uint64_t index, const kl_json_value *v) {
    kl_keep_host *more = kl_array_grow(r->p->hosts, &r->host_room, index + 1, sizeof *more);
    r->no_memory |= !more;
    if (!more)
        return false;
    r->p->hosts = more;
    if (v->type != KL_JSON_TEXT || index != r->hosts)
        return false;
    copy_text(more[r->hosts++], sizeof *more, v);
    return true;
}

static bool take_rate(reading *r, uint64_t index, const kl_json_value *v) {
    double *more = kl_array_grow(r->p->rates, &r->rate_room, index + 1, sizeof *more);
    r->no_memory |= !more;
    if (!more)
        return false;
    r->p->rates = more;
    if (!is_time(v) || index != r->rates)
        return false;
    more[r->rates++] = v->number;
    return true;
}

static bool take_count(uint64_t *to, const kl_json_value *v) {
    *to = v->count;
    return v->type == KL_JSON_NUMBER && v->is_count;
}

static bool take_single(reading *r, const char *name, const kl_json_value *v) {
    kl_keep_progress *p = r->p;
#define TAKE_COUNT(member)                                                                                   \
    if (strcmp(name, #member) == 0)                                                                          \
        return take_count(&p->member, v);
#define TAKE_TIME(member)                                                                                    \
    if (strcmp(name, #member) == 0)                                                                          \
        return is_time(v) && (p->member = v->number, true);
#define TAKE_TRUTH(member)                                                                                   \
    if (strcmp(name, #member) == 0)                                                                          \
        return v->type == KL_JSON_TRUTH && (p->member = v->truth, true);
#define TAKE_TEXT(member)                                                                                    \
    if (strcmp(name, #member) == 0)                                                                          \
        return v->type == KL_JSON_TEXT && (copy_text(p->member, sizeof p->member, v), true);
    COUNTS(TAKE_COUNT)
    TIMES(TAKE_TIME)
    TRUTHS(TAKE_TRUTH)
    TEXTS(TAKE_TEXT)
    return true;
}

static bool take_progress(void *user, const char *name, uint64_t index, const kl_json_value *v) {
    reading *r = user;
    if (strcmp(name, "hosts") == 0)
        return take_host(r, index, v);
    if (strcmp(name, "rates") == 0)
        return take_rate(r, index, v);
    if (strcmp(name, "version") == 0)
        return take_count(&r->version, v);
    if (strcmp(name, "pid") == 0)
        return take_count(&r->pid, v);
    if (strcmp(name, "ranks") == 0)
        return take_count(&r->ranks, v);
    return take_single(r, name, v);
}

static kilter_status refuse(const char *file, uint64_t version, kilter_error *error) {
    if (version > KL_KEEP_VERSION)
        return kl_fail(error, KILTER_ERR_INPUT,
                       "the file '%s' of the keep folder has version %llu, but this Kilter reads version %d; "
                       "use the same Kilter for the program and its keeper",
                       file, kl_ull(version), KL_KEEP_VERSION);
    return kl_fail(error, KILTER_ERR_INPUT, "the file '%s' of the keep folder is malformed; remove it", file);
}

kilter_status kl_keep_progress_parse(const char *text, size_t size, kl_keep_progress *progress,
                                     kilter_error *error) {
    kl_keep_progress p = {.ranks = 0};
    reading r = {.p = &p};
    bool read = kl_json_read(text, size, KL_KEEP_RANKS_MOST, take_progress, &r);
    bool whole = read && r.version == KL_KEEP_VERSION && r.ranks > 0 && r.ranks <= KL_KEEP_RANKS_MOST &&
                 r.hosts == r.ranks && r.rates == r.ranks && r.pid <= INT32_MAX;
    p.ranks = (uint32_t)r.ranks;
    p.pid = (int64_t)r.pid;
    if (whole) {
        *progress = p;
        return KILTER_OK;
    }
    kl_keep_progress_free(&p);
    if (r.no_memory)
        return kl_fail(error, KILTER_ERR_MEMORY, "reading the keep folder: memory ran out");
    return refuse(PROGRESS, r.version, error);
}

typedef struct request_reading {
    kl_keep_request request;
    uint64_t version;
} request_reading;

static bool take_request(void *user, const char *name, uint64_t index, const kl_json_value *v) {
    request_reading *r = user;
    (void)index;
    if (strcmp(name, "version") == 0)
        return take_count(&r->version, v);
    if (strcmp(name, "number") == 0)
        return take_count(&r->request.number, v);
    if (strcmp(name, "what") != 0)
        return true;
    r->request.what = strcmp(v->text, "save") == 0   ? KL_KEEP_SAVE
                      : strcmp(v->text, "stop") == 0 ? KL_KEEP_STOP
                                                     : KL_KEEP_NOTHING;
    return r->request.what != KL_KEEP_NOTHING;
}

kilter_status kl_keep_request_parse(const char *text, size_t size, kl_keep_request *request,
                                    kilter_error *error) {
    request_reading r = {.version = 0};
    bool read = kl_json_read(text, size, KL_KEEP_RANKS_MOST, take_request, &r);
    if (!read || r.version != KL_KEEP_VERSION || r.request.number == 0 || r.request.what == KL_KEEP_NOTHING)
        return refuse(REQUEST, r.version, error);
    *request = r.request;
    return KILTER_OK;
}

void kl_keep_progress_free(kl_keep_progress *p) {
    free(p->hosts);
    free(p->rates);
    p->hosts = NULL;
    p->rates = NULL;
}

/* --- files --- */

static bool write_all(int descriptor, const kl_buffer *text) {
    for (size_t at = 0; at < text->size;) {
        ssize_t written = write(descriptor, text->data + at, text->size - at);
        if (written < 0 && errno != EINTR)
            return false;
        at += written > 0 ? (size_t)written : 0;
    }
    return true;
}

/* Write a complete file, or leave the old one. The file is not synchronised with the disk, because after a
 * crash of the host nobody needs it. */
static bool replace(const char *folder, const char *name, const kl_buffer *text) {
    char *path = kl_text("%s/%s", folder, name);
    char *part = kl_text("%s/%s.%lld", folder, name, (long long)getpid());
    errno = ENOMEM;
    int descriptor = path && part ? open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : -1;
    bool written = descriptor >= 0 && write_all(descriptor, text);
    if (descriptor >= 0)
        written = close(descriptor) == 0 && written && rename(part, path) == 0;
    int why = errno;
    if (descriptor >= 0 && !written)
        unlink(part);
    free(path);
    free(part);
    errno = why;
    return written;
}

static kilter_status put_file(const char *folder, const char *name, bool printed, kl_buffer *text,
                              kilter_error *error) {
    bool written = printed && replace(folder, name, text);
    int why = printed ? errno : ENOMEM;
    kl_buffer_free(text);
    if (!written)
        return kl_fail(error, why == ENOMEM ? KILTER_ERR_MEMORY : KILTER_ERR_SYSTEM,
                       "writing '%.200s/%s': %s", folder, name, strerror(why));
    return KILTER_OK;
}

kilter_status kl_keep_progress_write(const char *folder, const kl_keep_progress *progress,
                                     kilter_error *error) {
    kl_buffer text = {.size = 0};
    bool printed = kl_keep_progress_print(progress, &text);
    return put_file(folder, PROGRESS, printed, &text, error);
}

kilter_status kl_keep_request_write(const char *folder, const kl_keep_request *request, kilter_error *error) {
    kl_buffer text = {.size = 0};
    bool printed = kl_keep_request_print(request, &text);
    return put_file(folder, REQUEST, printed, &text, error);
}

static bool read_all(int descriptor, kl_buffer *text) {
    uint8_t piece[4096];
    for (;;) {
        ssize_t got = read(descriptor, piece, sizeof piece);
        if (got == 0)
            return true;
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 || text->size + (size_t)got > KL_KEEP_FILE_BYTES) {
            errno = got < 0 ? errno : EFBIG;
            return false;
        }
        kl_put_bytes(text, piece, (size_t)got);
        if (text->failed) {
            errno = ENOMEM;
            return false;
        }
    }
}

/* Read a file. *there: false if it does not exist. The caller frees the text. */
static kilter_status get_file(const char *folder, const char *name, kl_buffer *text, bool *there,
                              kilter_error *error) {
    char *path = kl_text("%s/%s", folder, name);
    errno = ENOMEM;
    int descriptor = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    bool read = descriptor >= 0 && read_all(descriptor, text);
    int why = errno;
    if (descriptor >= 0)
        close(descriptor);
    free(path);
    *there = descriptor >= 0;
    if (read || (descriptor < 0 && why == ENOENT))
        return KILTER_OK;
    kl_buffer_free(text);
    return kl_fail(error, why == ENOMEM ? KILTER_ERR_MEMORY : KILTER_ERR_SYSTEM, "reading '%.200s/%s': %s",
                   folder, name, strerror(why));
}

kilter_status kl_keep_progress_read(const char *folder, kl_keep_progress *progress, bool *there,
                                    kilter_error *error) {
    kl_buffer text = {.size = 0};
    kilter_status status = get_file(folder, PROGRESS, &text, there, error);
    if (status == KILTER_OK && *there)
        status = kl_keep_progress_parse((const char *)text.data, text.size, progress, error);
    kl_buffer_free(&text);
    return status;
}

kilter_status kl_keep_request_read(const char *folder, kl_keep_request *request, bool *there,
                                   kilter_error *error) {
    kl_buffer text = {.size = 0};
    kilter_status status = get_file(folder, REQUEST, &text, there, error);
    if (status == KILTER_OK && *there)
        status = kl_keep_request_parse((const char *)text.data, text.size, request, error);
    kl_buffer_free(&text);
    return status;
}

bool kl_keep_request_changed(const char *folder, kl_keep_seen *seen) {
    struct stat is;
    char *path = kl_text("%s/%s", folder, REQUEST);
    bool there = path && stat(path, &is) == 0;
    free(path);
    if (!there)
        return false;
    int64_t modified_ns = (int64_t)is.st_mtim.tv_sec * (int64_t)NANOSECONDS + is.st_mtim.tv_nsec;
    if (modified_ns == seen->modified_ns && is.st_ino == seen->file)
        return false;
    *seen = (kl_keep_seen){modified_ns, is.st_ino};
    return true;
}
