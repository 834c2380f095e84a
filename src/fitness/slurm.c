/* Read Slurm's notation for nodes and for numbers: node[01-03,7],login and 4(x2),2. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fitness/fitness.h"

typedef struct expansion {
    kl_host_list list;
    uint32_t names; /* number of names read so far, including repeated ones */
    char name[KL_LISTED_BYTES];
    kilter_error *error;
} expansion;

/* A range of numbers. Each number is written with at least as many digits as the first one has. */
typedef struct range {
    uint64_t lo, hi;
    int width;
} range;

static bool read_digits(const char **at, uint64_t *number) {
    size_t digits = strspn(*at, "0123456789");
    if (digits < 1 || digits > 12)
        return false;
    *number = strtoull(*at, NULL, 10);
    *at += digits;
    return true;
}

/* Read a number, such as 7, or a range, such as 01-03. */
static bool read_range(const char **at, range *r) {
    const char *first = *at;
    if (!read_digits(at, &r->lo))
        return false;
    r->width = (int)(*at - first);
    r->hi = r->lo;
    if (**at != '-')
        return true;
    (*at)++;
    return read_digits(at, &r->hi) && r->hi >= r->lo;
}

static kilter_status too_long(expansion *e) {
    return kl_fail(e->error, KILTER_ERR_INPUT, "'%.40s…' is too long for the name of a host", e->name);
}

static kilter_status expand(expansion *e, const char *at, size_t length);

/* Append each number of a range to the name, and continue with the text that follows the brackets. */
static kilter_status expand_range(expansion *e, const range *r, const char *rest, size_t length) {
    kilter_status status = KILTER_OK;
    for (uint64_t n = r->lo; status == KILTER_OK && n <= r->hi; n++) {
        int digits = snprintf(e->name + length, sizeof e->name - length, "%0*" PRIu64, r->width, n);
        size_t whole = length + (size_t)digits;
        status = whole < sizeof e->name ? expand(e, rest, whole) : too_long(e);
    }
    return status;
}

/* Add the names for each range in the brackets that begin at `at`. */
static kilter_status expand_brackets(expansion *e, const char *at, size_t length) {
    const char *close = strchr(at, ']');
    kilter_status status = KILTER_OK;
    bool good = close != NULL;
    while (good && status == KILTER_OK && at < close) {
        range r;
        at++; /* skip the opening bracket or a comma */
        good = read_range(&at, &r) && (*at == ',' || at == close);
        if (good)
            status = expand_range(e, &r, close + 1, length);
    }
    return good ? status
                : kl_fail(e->error, KILTER_ERR_INPUT, "numbers such as [1-3,7] are expected in brackets");
}

/* Append the text at `at`, up to the next comma, to e->name, which has `length` bytes so far. Then add the
 * name to the list. Brackets in the text give several names. */
static kilter_status expand(expansion *e, const char *at, size_t length) {
    size_t letters = strcspn(at, ",[");
    if (length + letters >= sizeof e->name)
        return too_long(e);
    memcpy(e->name + length, at, letters);
    e->name[length + letters] = '\0';
    if (at[letters] == '[')
        return expand_brackets(e, at + letters, length + letters);
    if (e->names++ == KL_LISTED_MOST)
        return kl_fail(e->error, KILTER_ERR_INPUT, "a list has at most %d hosts", KL_LISTED_MOST);
    return kl_host_list_add(&e->list, e->name, 0, e->error);
}

/* Return the position of the comma after a node's text, or the end of the list. */
static const char *end_of_node(const char *at) {
    for (int depth = 0; *at && (*at != ',' || depth > 0); at++)
        depth += *at == '[' ? 1 : *at == ']' ? -1 : 0;
    return at;
}

static kilter_status read_nodes(expansion *e, const char *nodes) {
    kilter_status status = KILTER_OK;
    for (const char *at = nodes; status == KILTER_OK; at++) {
        const char *end = end_of_node(at);
        status = expand(e, at, 0);
        at = end;
        if (!*at)
            break;
    }
    return status;
}

/* Read a list such as 4(x2),2, and return one number for each node. */
static kilter_status read_numbers(const char *at, kl_host_list *list, kilter_error *error) {
    size_t node = 0;
    for (bool more = true; more; at++) {
        uint64_t number = 0, times = 1;
        bool good = read_digits(&at, &number) && number >= 1 && number <= UINT32_MAX;
        if (good && strncmp(at, "(x", 2) == 0) {
            at += 2;
            good = read_digits(&at, &times) && *at == ')' && times >= 1;
            at += good;
        }
        more = *at == ',';
        if (!good || (*at && !more) || times > list->count - node)
            return kl_fail(error, KILTER_ERR_INPUT, "the numbers for %zu nodes are expected, such as 4(x2),2",
                           list->count);
        while (times-- > 0)
            list->at[node++].slots = (uint32_t)number;
    }
    return node == list->count ? KILTER_OK
                               : kl_fail(error, KILTER_ERR_INPUT, "the list has numbers for %zu of %zu nodes",
                                         node, list->count);
}

kilter_status kl_host_list_slurm(const char *nodes, const char *numbers, kl_host_list *list,
                                 kilter_error *error) {
    kilter_error why = {KILTER_OK, ""};
    expansion e = {.error = &why};
    kilter_status status = read_nodes(&e, nodes);
    if (status != KILTER_OK)
        kl_fail(error, status, "Slurm's list of nodes '%.100s': %s", nodes, why.text);
    if (status == KILTER_OK && numbers && *numbers) {
        status = read_numbers(numbers, &e.list, &why);
        if (status != KILTER_OK)
            kl_fail(error, status, "Slurm's numbers '%.100s': %s", numbers, why.text);
    }
    if (status == KILTER_OK)
        *list = e.list;
    else
        kl_host_list_free(&e.list);
    return status;
}
