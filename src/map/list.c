/* Read a list of commands that wait for each other. An entry has a line NAME: NAMES, and below it an indented
 * command. NAME is the name of this command. NAMES are the names of other commands, which must succeed before
 * this command begins. */
#include <stdlib.h>
#include <string.h>

#include "map/map.h"

typedef struct reading {
    kl_map_list *list;
    const char *file;
    uint64_t line; /* number of the line that is being read, from 1 on */
    kl_buffer
        needs; /* for all commands read so far: the names of the commands that they need, each ended by NUL */
    kilter_error *error;
} reading;

static kilter_status no_memory(const reading *r) {
    return kl_fail(r->error, KILTER_ERR_MEMORY, "%s: memory ran out", r->file);
}

static kilter_status refuse(const reading *r, uint64_t line, const char *what, const char *name) {
    return kl_fail(r->error, KILTER_ERR_INPUT, "%s: line %llu: %s%.100s", r->file, kl_ull(line), what, name);
}

static const char *name_of(const kl_map_list *list, uint64_t i) {
    return (const char *)list->text.data + list->at[i].name;
}

const char *kl_map_list_name(const kl_map_list *list, uint64_t i) {
    return name_of(list, i);
}

const char *kl_map_list_command(const kl_map_list *list, uint64_t i) {
    return (const char *)list->text.data + list->at[i].command;
}

/* --- lines --- */

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

static size_t word_size(const char *text, size_t size) {
    size_t i = 0;
    while (i < size && !is_blank(text[i]))
        i++;
    return i;
}

static kilter_status take_needs(reading *r, const char *text, size_t size) {
    kl_map_entry *e = &r->list->at[r->list->count - 1];
    for (size_t at = 0, word; at < size; at += word) {
        while (at < size && is_blank(text[at]))
            at++;
        word = word_size(text + at, size - at);
        if (word == 0)
            break;
        kl_put_bytes(&r->needs, text + at, word);
        kl_put_u8(&r->needs, 0);
        e->need_count++;
    }
    return r->needs.failed ? no_memory(r) : KILTER_OK;
}

/* End the text of the last entry's command. */
static kilter_status end_entry(reading *r) {
    kl_map_list *l = r->list;
    if (l->count == 0)
        return KILTER_OK;
    kl_map_entry *e = &l->at[l->count - 1];
    if (e->command == l->text.size)
        return refuse(r, e->line, "there is no command below the name ", name_of(l, l->count - 1));
    kl_put_u8(&l->text, 0);
    return l->text.failed ? no_memory(r) : KILTER_OK;
}

/* Take "name: needs". */
static kilter_status take_head(reading *r, const char *text, size_t size) {
    kl_map_list *l = r->list;
    const char *colon = memchr(text, ':', size);
    size_t length = colon ? (size_t)(colon - text) : 0;
    while (length > 0 && is_blank(text[length - 1]))
        length--;
    if (length == 0 || word_size(text, length) < length)
        return refuse(r, r->line, "not 'name:', and not an indented command", "");
    kilter_status status = end_entry(r);
    if (status != KILTER_OK)
        return status;
    kl_map_entry *at = kl_array_grow(l->at, &l->room, l->count + 1, sizeof *at);
    if (!at)
        return no_memory(r);
    l->at = at;
    at[l->count++] = (kl_map_entry){.name = l->text.size, .line = r->line};
    kl_put_bytes(&l->text, text, length);
    kl_put_u8(&l->text, 0);
    at[l->count - 1].command = l->text.size;
    return take_needs(r, colon + 1, size - (size_t)(colon + 1 - text));
}

static kilter_status take_command(reading *r, const char *text, size_t size) {
    kl_map_list *l = r->list;
    if (l->count == 0)
        return refuse(r, r->line, "a command before the first name", "");
    if (l->text.size > l->at[l->count - 1].command)
        kl_put_u8(&l->text, '\n');
    kl_put_bytes(&l->text, text, size);
    return l->text.failed ? no_memory(r) : KILTER_OK;
}

static kilter_status take_line(reading *r, const char *text, size_t size) {
    size_t blanks = 0;
    if (memchr(text, 0, size))
        return refuse(r, r->line, "it contains a zero byte", "");
    while (blanks < size && is_blank(text[blanks]))
        blanks++;
    if (blanks == size || text[blanks] == '#')
        return KILTER_OK;
    return blanks > 0 ? take_command(r, text + blanks, size - blanks) : take_head(r, text, size);
}

/* --- names --- */

typedef struct named {
    const char *name;
    uint64_t i;
} named;

static int compare(const void *a, const void *b) {
    const named *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : (x->i > y->i) - (x->i < y->i);
}

static uint64_t find(const named *sorted, uint64_t count, const char *name) {
    for (uint64_t lo = 0, hi = count; lo < hi;) {
        uint64_t middle = lo + (hi - lo) / 2;
        int order = strcmp(name, sorted[middle].name);
        if (order == 0)
            return sorted[middle].i;
        if (order < 0)
            hi = middle;
        else
            lo = middle + 1;
    }
    return UINT64_MAX;
}

static kilter_status find_needs(const reading *r, const named *sorted) {
    kl_map_list *l = r->list;
    const char *name = (const char *)r->needs.data;
    for (uint64_t i = 0, n = 0; i < l->count; i++) {
        l->at[i].needs = n;
        for (uint64_t k = 0; name && k < l->at[i].need_count; k++, name += strlen(name) + 1) {
            l->needs[n] = find(sorted, l->count, name);
            if (l->needs[n++] == UINT64_MAX)
                return refuse(r, l->at[i].line, "no command has the name ", name);
        }
    }
    return KILTER_OK;
}

static kilter_status resolve(const reading *r) {
    kl_map_list *l = r->list;
    uint64_t needs = kl_map_count_texts((const char *)r->needs.data, r->needs.size);
    named *sorted = calloc(l->count + 1, sizeof *sorted);
    l->needs = calloc(needs + 1, sizeof *l->needs);
    kilter_status status = sorted && l->needs ? KILTER_OK : no_memory(r);
    for (uint64_t i = 0; status == KILTER_OK && i < l->count; i++)
        sorted[i] = (named){name_of(l, i), i};
    if (status == KILTER_OK)
        qsort(sorted, l->count, sizeof *sorted, compare);
    for (uint64_t i = 1; status == KILTER_OK && i < l->count; i++)
        if (strcmp(sorted[i - 1].name, sorted[i].name) == 0)
            status = refuse(r, l->at[sorted[i].i].line, "there is already a command with the name ",
                            sorted[i].name);
    if (status == KILTER_OK)
        status = find_needs(r, sorted);
    free(sorted);
    return status;
}

/* --- refusing commands that wait for each other in a circle --- */

/* Report a circle. Every entry that is left waits for another entry that is left. Go from an entry to one for
 * which it waits, and repeat this as many times as the list has entries. The last entry reached is in a
 * circle. */
static kilter_status refuse_circle(const reading *r, const uint64_t *left, uint64_t first) {
    const kl_map_list *l = r->list;
    uint64_t at = first;
    for (uint64_t steps = 0; steps < l->count; steps++) {
        const kl_map_entry *e = &l->at[at];
        uint64_t k = 0;
        while (left[l->needs[e->needs + k]] == 0)
            k++;
        at = l->needs[e->needs + k];
    }
    return refuse(r, l->at[at].line,
                  "the command waits for itself, through others or directly: ", name_of(l, at));
}

kilter_status kl_map_waits_open(const kl_map_list *list, kl_map_waits *w) {
    uint64_t needs = 0;
    *w = (kl_map_waits){.list = list};
    for (uint64_t i = 0; i < list->count; i++)
        needs += list->at[i].need_count;
    w->missing = calloc(list->count + 1, sizeof *w->missing);
    w->begins = calloc(list->count + 2, sizeof *w->begins);
    w->users = calloc(needs + 1, sizeof *w->users);
    w->ready = calloc(list->count + 1, sizeof *w->ready);
    w->over = calloc(list->count + 1, sizeof *w->over);
    if (!w->missing || !w->begins || !w->users || !w->ready || !w->over)
        return KILTER_ERR_MEMORY;
    for (uint64_t i = 0; i < needs; i++)
        w->begins[list->needs[i] + 2]++;
    for (uint64_t i = 2; i < list->count + 2; i++)
        w->begins[i] += w->begins[i - 1];
    for (uint64_t i = 0; i < list->count; i++) {
        w->missing[i] = list->at[i].need_count;
        for (uint64_t k = 0; k < list->at[i].need_count; k++)
            w->users[w->begins[list->needs[list->at[i].needs + k] + 1]++] = i;
        if (w->missing[i] == 0)
            w->ready[w->ready_count++] = i;
    }
    return KILTER_OK;
}

void kl_map_waits_free(kl_map_waits *w) {
    free(w->missing);
    free(w->begins);
    free(w->users);
    free(w->ready);
    free(w->over);
    *w = (kl_map_waits){0};
}

void kl_map_waits_succeeded(kl_map_waits *w, uint64_t i) {
    w->over[i] = true;
    for (uint64_t k = w->begins[i]; k < w->begins[i + 1]; k++)
        if (--w->missing[w->users[k]] == 0 && !w->over[w->users[k]])
            w->ready[w->ready_count++] = w->users[k];
}

uint64_t kl_map_waits_failed(kl_map_waits *w, uint64_t i, uint64_t *skipped) {
    uint64_t count = 0, done = 0;
    w->over[i] = true;
    for (uint64_t from = i;; from = skipped[done++]) {
        for (uint64_t k = w->begins[from]; k < w->begins[from + 1]; k++)
            if (!w->over[w->users[k]]) {
                w->over[w->users[k]] = true;
                skipped[count++] = w->users[k];
            }
        if (done == count)
            return count;
    }
}

/* Check that no commands wait in a circle. Repeatedly remove a command that waits for no remaining command.
 * If some commands can never be removed, there is a circle. Then compute for each command the length of the
 * longest chain that begins with it, in the reverse order of removal. */
static kilter_status check_circles(const reading *r) {
    kl_map_list *l = r->list;
    kl_map_waits w;
    kilter_status status = kl_map_waits_open(l, &w) == KILTER_OK ? KILTER_OK : no_memory(r);
    uint64_t taken = 0;
    while (status == KILTER_OK && taken < w.ready_count)
        kl_map_waits_succeeded(&w, w.ready[taken++]);
    for (uint64_t i = 0; status == KILTER_OK && i < l->count; i++)
        if (w.missing[i] > 0)
            status = refuse_circle(r, w.missing, i);
    while (status == KILTER_OK && taken-- > 0) {
        uint64_t i = w.ready[taken], longest = 0;
        for (uint64_t k = w.begins[i]; k < w.begins[i + 1]; k++)
            longest = l->at[w.users[k]].chain > longest ? l->at[w.users[k]].chain : longest;
        l->at[i].chain = longest + 1;
    }
    kl_map_waits_free(&w);
    return status;
}

kilter_status kl_map_list_parse(const char *file, const char *text, size_t size, kl_map_list *list,
                                kilter_error *error) {
    reading r = {.list = list, .file = file, .error = error};
    kilter_status status = KILTER_OK;
    *list = (kl_map_list){0};
    for (size_t at = 0; at < size && status == KILTER_OK;) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t length = end ? (size_t)(end - text) - at : size - at;
        r.line++;
        status = take_line(&r, text + at, length);
        at += length + 1;
    }
    if (status == KILTER_OK)
        status = end_entry(&r);
    if (status == KILTER_OK)
        status = resolve(&r);
    if (status == KILTER_OK)
        status = check_circles(&r);
    kl_buffer_free(&r.needs);
    if (status != KILTER_OK)
        kl_map_list_free(list);
    return status;
}

void kl_map_list_free(kl_map_list *list) {
    kl_buffer_free(&list->text);
    free(list->at);
    free(list->needs);
    *list = (kl_map_list){0};
}
