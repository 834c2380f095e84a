/* The list of commands of kilter map --after, and the order in which the commands may begin. */
#include <stdlib.h>
#include <string.h>

#include "map.h"

enum { LOOK_EVERY = 256 };

kilter_status kl_map_order_open(const kl_map_list *list, kl_map_order **order, kilter_error *error) {
    kl_map_order *o = calloc(1, sizeof *o);
    if (o)
        o->skipped = calloc(list->count + 1, sizeof *o->skipped);
    if (!o || !o->skipped || kl_map_waits_open(list, &o->waits) != KILTER_OK) {
        kl_map_order_close(o);
        return kl_fail(error, KILTER_ERR_MEMORY, "--after: memory ran out");
    }
    *order = o;
    return KILTER_OK;
}

void kl_map_order_close(kl_map_order *o) {
    if (!o)
        return;
    kl_map_waits_free(&o->waits);
    free(o->skipped);
    free(o);
}

uint64_t kl_map_order_failed(kl_map_order *o, uint64_t i) {
    return kl_map_waits_failed(&o->waits, i, o->skipped);
}

bool kl_map_order_next(kl_map_order *o, uint64_t *i) {
    const kl_map_waits *w = &o->waits;
    while (o->given < w->ready_count && w->over[w->ready[o->given]])
        o->given++;
    if (o->given == w->ready_count)
        return false;
    *i = w->ready[o->given++];
    return true;
}

/* Return the number of commands in the longest chain that is left. In a chain, each command waits for the
 * command before it. A search of a long list takes time, so search only at every LOOK_EVERY-th call. */
uint64_t kl_map_order_chain(kl_map_order *o) {
    const kl_map_waits *w = &o->waits;
    if (o->looks++ % LOOK_EVERY != 0 && w->list->count > LOOK_EVERY)
        return o->chain;
    o->chain = 0;
    for (uint64_t i = 0; i < w->list->count; i++)
        if (!w->over[i] && w->list->at[i].chain > o->chain)
            o->chain = w->list->at[i].chain;
    return o->chain;
}

uint64_t kl_map_order_waiting(const kl_map_order *o) {
    return o->waits.list->count - o->waits.ready_count;
}

/* Use the command lines of the list as values. */
static kilter_status take_commands(kl_map_request *q, kilter_error *error) {
    q->sources = calloc(1, sizeof *q->sources);
    bool good = q->sources;
    q->source_count = good;
    for (uint64_t i = 0; good && i < q->list.count; i++) {
        const char *command = kl_map_list_command(&q->list, i);
        good = kl_map_source_begin(q->sources);
        kl_put_bytes(&q->sources->text, command, strlen(command) + 1);
    }
    return good && !q->sources->text.failed
               ? KILTER_OK
               : kl_fail(error, KILTER_ERR_MEMORY, "%s: memory ran out", q->after);
}

kilter_status kl_map_read_after(kl_map_request *q, kilter_error *error) {
    kl_buffer text = {0};
    kilter_status status = kl_map_read_bytes(q->after, &text, error);
    if (status == KILTER_OK)
        status =
            kl_map_list_parse(q->after, text.data ? (const char *)text.data : "", text.size, &q->list, error);
    if (status == KILTER_OK)
        status = take_commands(q, error);
    kl_buffer_free(&text);
    return status;
}
