/* Write and read the lines between a host's agent and the process that measures: words, and names followed
 * by values. Unknown names are ignored, so that two versions of Kilter understand each other. */
#include "hosts/lines.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char BEGIN[] = "kilter-host 1 ";
static const double PROBE_MOST_S = 10;

/* The numbers of a reading, in the order in which a line holds them. */
static const struct {
    const char *name;
    size_t offset;
    double most;
} numbers[] = {
    {"probe", offsetof(kl_reading, probe), 1},
    {"steps_per_s", offsetof(kl_reading, steps_per_s), 1e18},
    {"quota", offsetof(kl_reading, quota), 1e9},
    {"memory_left", offsetof(kl_reading, memory_left), 1e18},
    {"memory_total", offsetof(kl_reading, memory_total), 1e18},
    {"swap_free", offsetof(kl_reading, swap_free), 1e18},
    {"swap_total", offsetof(kl_reading, swap_total), 1e18},
    {"load", offsetof(kl_reading, load), 1e9},
    {"waits_cpu", offsetof(kl_reading, waits_cpu), 1},
    {"waits_memory", offsetof(kl_reading, waits_memory), 1},
    {"waits_io", offsetof(kl_reading, waits_io), 1},
};

static double *field_of(const kl_reading *reading, size_t i) {
    return (double *)(void *)((char *)(uintptr_t)reading + numbers[i].offset);
}

/* --- reading --- */

/* Take the next word from the line, and cut it if it is too long. false: the line has ended. */
static bool next_word(const char **at, char *word, size_t size) {
    *at += strspn(*at, " \t\r");
    size_t length = strcspn(*at, " \t\r");
    snprintf(word, size, "%.*s", (int)(length < size ? length : size - 1), *at);
    *at += length;
    return length > 0;
}

/* Read a whole number from 0 to `most`. false: the text is something else, and `count` does not change. */
static bool read_count(const char *text, uint64_t most, uint64_t *count) {
    char *end;
    errno = 0;
    uint64_t value = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0;
    if (*text < '0' || *text > '9' || *end || errno || value > most)
        return false;
    *count = value;
    return true;
}

/* Read a number from 0 to `most`. false: the text is something else, and `real` does not change. */
static bool read_real(const char *text, double most, double *real) {
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= 0 && value <= most))
        return false;
    *real = value;
    return true;
}

/* Read the addresses of an agent. They are passed on to another host, so only characters of addresses are
 * allowed. */
static void read_addresses(const char *value, kl_agent_address *address) {
    static const char ALLOWED[] = "0123456789abcdefABCDEF.:%,_-";
    if (value[strspn(value, ALLOWED)] == '\0')
        snprintf(address->addresses, sizeof address->addresses, "%s", value);
}

static void read_address(const char *name, const char *value, kl_agent_address *address) {
    uint64_t port;
    if (strcmp(name, "port") == 0 && read_count(value, 65535, &port))
        address->port = (uint32_t)port;
    else if (strcmp(name, "token") == 0)
        read_count(value, UINT64_MAX, &address->token);
    else if (strcmp(name, "addresses") == 0)
        read_addresses(value, address);
}

static void read_pair(const char *name, const char *value, kl_answer *answer) {
    uint64_t count;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(name, numbers[i].name) == 0)
            read_real(value, numbers[i].most, field_of(&answer->reading, i));
    if (strcmp(name, "cores") == 0 && read_count(value, 1000000, &count) && count > 0)
        answer->reading.cores = (uint32_t)count;
    else if (strcmp(name, "round") == 0 && read_count(value, UINT32_MAX, &count))
        answer->round = (uint32_t)count;
    else if (strcmp(name, "trip_s") == 0)
        read_real(value, 1e6, &answer->trip_s);
    else if (strcmp(name, "bytes_per_s") == 0)
        read_real(value, 1e18, &answer->bytes_per_s);
    read_address(name, value, &answer->address);
}

void kl_answer_read(const char *line, kl_answer *answer) {
    char word[40], value[KL_ADDRESSES_BYTES];
    const char *at = line + strlen(BEGIN);
    *answer = (kl_answer){.kind = KL_LINE_NOISE, .reading = kl_reading_none()};
    if (strncmp(line, BEGIN, strlen(BEGIN)) == 0 && next_word(&at, word, sizeof word))
        answer->kind = strcmp(word, "reading") == 0 ? KL_LINE_READING
                       : strcmp(word, "link") == 0  ? KL_LINE_LINK
                                                    : KL_LINE_NOISE;
    if (answer->kind == KL_LINE_NOISE)
        kl_copy_label(answer->noise, sizeof answer->noise, (const uint8_t *)line, strlen(line));
    else
        while (next_word(&at, word, sizeof word) && next_word(&at, value, sizeof value))
            read_pair(word, value, answer);
}

void kl_request_read(const char *line, kl_request *request) {
    char word[40], value[KL_ADDRESSES_BYTES];
    const char *at = line;
    uint64_t round;
    *request = (kl_request){.kind = KL_REQUEST_UNKNOWN};
    if (!next_word(&at, word, sizeof word))
        return;
    request->kind = strcmp(word, "look") == 0   ? KL_REQUEST_LOOK
                    : strcmp(word, "link") == 0 ? KL_REQUEST_LINK
                                                : KL_REQUEST_UNKNOWN;
    while (next_word(&at, word, sizeof word) && next_word(&at, value, sizeof value)) {
        if (strcmp(word, "probe_s") == 0)
            read_real(value, PROBE_MOST_S, &request->probe_s);
        else if (strcmp(word, "round") == 0 && read_count(value, UINT32_MAX, &round))
            request->round = (uint32_t)round;
        read_address(word, value, &request->partner);
    }
}

/* --- writing --- */

/* Append the name and the value of a number to a line of `at` bytes. A value that is not finite is left out.
 * Return the new length. */
static size_t put(char line[KL_LINE_BYTES], size_t at, const char *name, double value) {
    int more = isfinite(value) ? snprintf(line + at, KL_LINE_BYTES - at, " %s %.17g", name, value) : 0;
    size_t end = at + (size_t)more;
    return end < KL_LINE_BYTES ? end : at;
}

static void put_address(char *line, size_t at, const kl_agent_address *address) {
    snprintf(line + at, KL_LINE_BYTES - at, " port %u token %" PRIu64 " addresses %s\n", address->port,
             address->token, *address->addresses ? address->addresses : "-");
}

void kl_answer_reading(char line[KL_LINE_BYTES], const kl_reading *reading, const kl_agent_address *address) {
    size_t at = (size_t)snprintf(line, KL_LINE_BYTES, "%sreading cores %u", BEGIN, reading->cores);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        at = put(line, at, numbers[i].name, *field_of(reading, i));
    put_address(line, at, address);
}

void kl_answer_link(char line[KL_LINE_BYTES], uint32_t round, const kl_link *link) {
    snprintf(line, KL_LINE_BYTES, "%slink round %u trip_s %.9g bytes_per_s %.9g\n", BEGIN, round,
             link->trip_s, link->bytes_per_s);
}

void kl_request_look(char line[KL_LINE_BYTES], double probe_s) {
    snprintf(line, KL_LINE_BYTES, "look probe_s %.9g\n", probe_s);
}

void kl_request_link(char line[KL_LINE_BYTES], uint32_t round, const kl_agent_address *partner) {
    size_t at = (size_t)snprintf(line, KL_LINE_BYTES, "link round %u", round);
    put_address(line, at, partner);
}

/* --- streams --- */

ssize_t kl_liner_fill(kl_liner *liner, int fd) {
    ssize_t got = read(fd, liner->text + liner->size, sizeof liner->text - liner->size);
    if (got > 0)
        liner->size += (size_t)got;
    return got;
}

bool kl_liner_next(kl_liner *liner, char line[KL_LINE_BYTES]) {
    char *newline = memchr(liner->text, '\n', liner->size);
    size_t length = newline ? (size_t)(newline - liner->text) : liner->size;
    bool whole = newline && length < KL_LINE_BYTES;
    if (!whole && length < KL_LINE_BYTES)
        return false;
    length = length < KL_LINE_BYTES ? length : KL_LINE_BYTES - 1;
    for (size_t i = 0; i < length; i++)
        line[i] = liner->text[i] ? liner->text[i] : '?';
    line[length] = '\0';
    liner->size -= length + whole;
    memmove(liner->text, liner->text + length + whole, liner->size);
    return true;
}
