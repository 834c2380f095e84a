/* Return tasks to the master: tasks that it has recalled, or all tasks when the worker leaves. */
#include "engine/worker_private.h"

/* Return to the master those tasks of the chunk at `place` that are not begun, but keep the tasks whose index
 * is below `keep`. First send the results that are ready. */
static kilter_status give_back(kl_worker *w, queued **place, uint64_t keep, kilter_error *error) {
    queued *chunk = *place;
    bool at_hand = w->hand.at_work && chunk == w->queue.first;
    kl_part part = {.chunk = chunk->head.chunk, .hi = chunk->head.lo + chunk->head.count};
    part.lo = chunk->head.lo + chunk->at + at_hand;
    if (part.lo < keep)
        part.lo = keep < part.hi ? keep : part.hi;
    kilter_status status = kl_has_results(&w->outbox) ? kl_worker_flush(w, false, error) : KILTER_OK;
    if (status != KILTER_OK)
        return status;
    kl_buffer out = {0};
    kl_wire_put_part(&out, KL_RETURN, &part);
    status = kl_worker_post(w, &out, error);
    w->queue.tasks -= part.hi - part.lo;
    chunk->head.count = part.lo - chunk->head.lo;
    if (chunk->at == chunk->head.count)
        kl_queue_remove(&w->queue, place);
    return status;
}

kilter_status kl_worker_on_recall(kl_worker *w, const kl_part *part, kilter_error *error) {
    queued **place = kl_queue_find(&w->queue, part->chunk);
    /* If the chunk is not in the queue, do nothing. The chunk is then done, and its results are being sent to
     * the master. */
    return *place ? give_back(w, place, part->lo, error) : KILTER_OK;
}

kilter_status kl_worker_give_all_back(kl_worker *w, kilter_error *error) {
    queue *q = &w->queue;
    kilter_status status = KILTER_OK;
    queued **place = w->hand.at_work ? &q->first->next : &q->first;
    if (w->hand.at_work && q->first->at + 1 < q->first->head.count)
        status = give_back(w, &q->first, 0, error);
    while (*place && status == KILTER_OK)
        if ((*place)->is_shared || (*place)->is_peers) {
            q->tasks -= (*place)->is_peers;
            kl_queue_remove(q, place);
        } else
            status = give_back(w, place, 0, error);
    return status;
}
