/* The worker as a peer in a run that workers organise. It carries out the actions that the folder peer asks
 * for, and does one task after the other. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/worker_private.h"

/* Number of tasks whose inputs a peer requests at once. */
enum { BLOCK_TASKS = 64 };

/* Greatest number of bytes of messages for runs that have not begun at this worker. A peer that sends more
 * is disconnected. */
enum { EARLY_BYTES = 64 << 20 };

static kilter_status no_memory(kilter_error *error) {
    return kl_fail(error, KILTER_ERR_MEMORY, "working as a peer: memory ran out");
}

static kilter_status malformed(kilter_error *error) {
    return kl_fail(
        error, KILTER_ERR_PEER,
        "a message about peers cannot be read: start master and workers from the same version of Kilter");
}

static void drop_block(block *b) {
    kl_message_release(&b->message);
    *b = (block){0};
}

static void drop_early(peering *p, uint64_t before) {
    early **place = &p->early;
    while (*place) {
        early *one = *place;
        kl_note_head head;
        kilter_bytes note;
        kl_wire_get_note(one->data, one->size, &head, &note);
        if (head.run < before) {
            *place = one->next;
            p->early_bytes -= one->size;
            free(one);
        } else {
            place = &one->next;
        }
    }
}

/* Release the message with the inputs of several tasks. The task at hand may still read its input in this
 * message, so its queue item keeps the message. */
static void let_go_of_block(kl_worker *w) {
    block *b = &w->peers->block;
    queued *first = w->hand.at_work ? w->queue.first : NULL;
    if (first && first->is_peers && first->head.run == w->peers->run.run) {
        first->message = b->message;
        b->message = (kl_message){0};
    }
    drop_block(b);
}

void kl_peering_stop(kl_worker *w, uint64_t before) {
    peering *p = w->peers;
    if (!p)
        return;
    p->next_run = before > p->next_run ? before : p->next_run;
    drop_early(p, p->next_run);
    if (!p->node || p->run.run >= before)
        return;
    kl_signals_end(w);
    kl_node_free(p->node);
    p->node = NULL;
    p->wake_s = HUGE_VAL;
    p->task = UINT64_MAX;
    kl_mates_clear(&p->mates);
    kl_buffer_clear(&p->self);
    let_go_of_block(w);
    for (queued **place = &w->queue.first; *place;) /* keep the task that the worker does now, although the
                                                       result of this task will be dropped */
        if ((*place)->is_peers && !(place == &w->queue.first && w->hand.at_work)) {
            w->queue.tasks--;
            kl_queue_remove(&w->queue, place);
        } else {
            place = &(*place)->next;
        }
}

void kl_peering_free(peering *p) {
    if (!p)
        return;
    drop_early(p, UINT64_MAX);
    kl_node_free(p->node);
    kl_reaper_free(&p->reaper);
    kl_node_actions_free(&p->actions);
    kl_mates_free(&p->mates);
    kl_buffer_free(&p->self);
    kl_buffer_free(&p->value);
    kl_buffer_free(&p->message);
    drop_block(&p->block);
    free(p);
}

static peering *peers_of(kl_worker *w) {
    if (!w->peers && (w->peers = calloc(1, sizeof *w->peers))) {
        w->peers->wake_s = HUGE_VAL;
        w->peers->task = UINT64_MAX;
    }
    return w->peers;
}

/* --- the tasks of a peer and their inputs --- */

/* Find the input of the task in the block of inputs. false: the block does not contain it. */
static bool find_input(block *b, uint64_t task, kl_reader *input) {
    if (task < b->tasks.lo || task >= b->tasks.hi)
        return false;
    if (task < b->next) {
        b->next = b->tasks.lo;
        b->reader = b->first;
    }
    for (size_t size; b->next < task; b->next++)
        kl_get_span(&b->reader, &size);
    *input = b->reader;
    return true;
}

static kilter_status want_inputs(kl_worker *w, uint64_t task, kilter_error *error) {
    const kl_peers_head *run = &w->peers->run;
    uint64_t most = run->tasks - task < BLOCK_TASKS ? run->tasks - task : BLOCK_TASKS;
    /* request inputs of at most `most` tasks; the master may answer with fewer */
    kl_wanted wanted = {run->run, task, task + most};
    kl_buffer out = {0};
    kl_wire_put_wanted(&out, KL_WANT, &wanted);
    return kl_worker_post(w, &out, error);
}

/* Put the task into the queue. If its input is not there yet, request the input first. */
static kilter_status begin(kl_worker *w, uint64_t task, kilter_error *error) {
    peering *p = w->peers;
    kl_reader input = {0};
    p->task = UINT64_MAX;
    if (p->run.inputs && !find_input(&p->block, task, &input)) {
        p->task = task;
        return want_inputs(w, task, error);
    }
    queued *item = calloc(1, sizeof *item);
    kl_message none = {0};
    if (!item)
        return no_memory(error);
    item->is_peers = true;
    item->inputs = input;
    item->head = (kl_chunk_head){.run = p->run.run,
                                 .chunk = UINT64_MAX,
                                 .lo = task,
                                 .count = 1,
                                 .shared = p->run.shared,
                                 .result_bytes = p->run.result_bytes,
                                 .inputs = p->run.inputs};
    w->queue.tasks++;
    kl_queue_put(&w->queue, item, &none);
    return KILTER_OK;
}

/* --- steps of the peer, and the actions that they return --- */

static kilter_status send_note(kl_worker *w, const kl_node_action *a, kilter_error *error) {
    peering *p = w->peers;
    const uint8_t *note = p->actions.bytes.data + a->at;
    if (a->peer == p->run.number) {
        kl_put_span(&p->self, note, a->size);
        return p->self.failed ? no_memory(error) : KILTER_OK;
    }
    kl_note_head head = {.run = p->run.run, .from = p->run.number, .worker = w->index};
    kl_buffer_clear(&p->message);
    kl_wire_put_note(&p->message, &head, note, a->size);
    if (p->message.failed)
        return no_memory(error);
    if (a->peer > 0)
        return kl_mates_send(w, a->peer, &p->message, error);
    kilter_status status = kl_send(w->transport, w->master, &p->message, error);
    return status == KILTER_ERR_PEER ? KILTER_OK : status;
}

static kilter_status step_once(kl_worker *w, const kl_node_event *event, bool *over, kilter_error *error) {
    peering *p = w->peers;
    kilter_status status = KILTER_OK;
    kl_node_step(p->node, event, kl_now_s(&w->options->clock), &p->actions);
    p->wake_s = p->actions.wake_s;
    if (p->actions.failed)
        return no_memory(error);
    if (p->actions.malformed && event->peer == 0)
        return malformed(error);
    for (size_t i = 0; i < p->actions.count && status == KILTER_OK; i++) {
        const kl_node_action *a = &p->actions.items[i];
        if (a->kind == KL_NODE_BEGIN)
            status = begin(w, a->task, error);
        else if (a->kind == KL_NODE_OVER)
            *over = true;
        else if (a->kind == KL_NODE_SEND || !kl_signals_act(w, a)) /* send the offer as a message, because it
                                                                      cannot be written to the folder */
            status = send_note(w, a, error);
    }
    return status;
}

/* Pass an event to the node, which is this worker's part in the run. Then pass the messages that the node
 * sends to itself, and carry out the actions that the node wants. */
static kilter_status step(kl_worker *w, const kl_node_event *event, kilter_error *error) {
    peering *p = w->peers;
    bool over = false;
    kilter_status status = step_once(w, event, &over, error);
    while (status == KILTER_OK && p->self.size > 0) {
        kl_buffer own = p->self;
        p->self = (kl_buffer){0};
        kl_reader r = kl_reader_of(own.data, own.size);
        while (status == KILTER_OK && r.at < r.size) {
            kl_node_event hears = {.kind = KL_NODE_HEARS, .peer = p->run.number};
            hears.data = kl_get_span(&r, &hears.size);
            status = step_once(w, &hears, &over, error);
        }
        kl_buffer_free(&own);
    }
    if (over)
        kl_peering_stop(w, p->run.run + 1);
    return status;
}

static kilter_status lose(kl_worker *w, uint32_t number, kilter_error *error) {
    bool concerns = number != UINT32_MAX && w->peers->node;
    return concerns ? step(w, &(kl_node_event){.kind = KL_NODE_LOSES, .peer = number}, error) : KILTER_OK;
}

kilter_status kl_peering_left(kl_worker *w, kl_peer peer, kilter_error *error) {
    return w->peers ? lose(w, kl_mates_lose(&w->peers->mates, peer), error) : KILTER_OK;
}

double kl_peering_due_s(const kl_worker *w) {
    return w->peers && w->peers->node ? fmin(w->peers->wake_s, kl_signals_due_s(w)) : HUGE_VAL;
}

static kilter_status look_for_signals(kl_worker *w, kilter_error *error) {
    kilter_status status = KILTER_OK;
    kl_node_event event;
    kl_signals_look(w);
    while (status == KILTER_OK && w->peers->node && kl_signals_next(w, &event))
        status = step(w, &event, error);
    return status;
}

kilter_status kl_peering_look(kl_worker *w, kilter_error *error) {
    const peering *p = w->peers;
    double now_s = kl_now_s(&w->options->clock);
    kilter_status status = KILTER_OK;
    if (now_s < kl_peering_due_s(w))
        return KILTER_OK;
    if (now_s >= p->wake_s)
        status = step(w, &(kl_node_event){.kind = KL_NODE_REACHED}, error);
    return status == KILTER_OK && p->node && now_s >= kl_signals_due_s(w) ? look_for_signals(w, error)
                                                                          : status;
}

static void account(kl_worker *w, double seconds, double now_s) {
    hand *h = &w->hand;
    h->done++;
    h->task_s += (seconds - h->task_s) / (h->task_s > 0 ? 8 : 1);
    w->outbox.last_end_s = now_s;
    if (w->core)
        w->core->since.busy_s += seconds;
    kl_account_share(&w->share, &w->attendance, seconds);
}

kilter_status kl_peering_end_task(kl_worker *w, int code, kilter_error *error) {
    hand *h = &w->hand;
    peering *p = w->peers;
    const queued *item = w->queue.first;
    double now_s = kl_now_s(&w->options->clock);
    h->at_work = false;
    kl_check_result(h, code, (size_t)item->head.result_bytes);
    account(w, now_s - h->began_s, now_s);
    kl_harvest_segment task = {.lo = item->head.lo,
                               .worker = w->index,
                               .count = 1,
                               .results = {h->making.data + h->result.at, h->making.size - h->result.at}};
    bool counts = p && p->node && item->head.run == p->run.run;
    if (counts)
        kl_harvest_task(&p->value, &p->reaper, &task, fmax(now_s - h->began_s, 0));
    w->queue.tasks--;
    kl_queue_remove(&w->queue, &w->queue.first);
    if (w->leaving.failed != KILTER_OK)
        return kl_task_failure(&w->leaving, error);
    if (!counts)
        return KILTER_OK;
    if (p->value.failed)
        return no_memory(error);
    return step(w, &(kl_node_event){.kind = KL_NODE_ENDED, .data = p->value.data, .size = p->value.size},
                error);
}

/* --- messages from the master and from other peers --- */

static kilter_status on_open(kl_worker *w, const kl_message *m, kilter_error *error) {
    if (!kl_wire_get_plain(m->data, m->size))
        return malformed(error);
    char address[KL_ADDRESS_BYTES] = "";
    kilter_error why = {KILTER_OK, ""};
    bool opens = w->transport->ops->open && kl_open_to_workers(w->transport, address, &why) == KILTER_OK;
    kl_buffer out = {0};
    kl_put_u8(&out, KL_ADDRESS);
    kl_put_u8(&out, opens);
    const char *text = opens ? address : why.text;
    kl_put_bytes(&out, text, strlen(text));
    return kl_worker_post(w, &out, error);
}

static kilter_status hear_note(kl_worker *w, kl_peer from, const kl_note_head *head, kilter_bytes note,
                               kilter_error *error) {
    if (from != w->master && (head->from == 0 || head->from == w->peers->run.number))
        /* ignore this note (message between peers), because its sender states a wrong number for itself */
        return KILTER_OK;
    kilter_status status = from == w->master ? KILTER_OK : kl_mates_heard(w, head, from, error);
    kl_node_event hears = {.kind = KL_NODE_HEARS,
                           .peer = from == w->master ? 0 : head->from,
                           .data = note.data,
                           .size = note.size};
    return status == KILTER_OK ? step(w, &hears, error) : status;
}

static kilter_status keep_early(kl_worker *w, kl_peer from, const kl_message *m, kilter_error *error) {
    peering *p = w->peers;
    if (m->size > EARLY_BYTES - p->early_bytes) {
        kl_drop(w->transport, from);
        return kl_peering_left(w, from, error);
    }
    early *one = malloc(sizeof *one + m->size), **end = &p->early;
    if (!one)
        return no_memory(error);
    p->early_bytes += m->size;
    *one = (early){.peer = from, .size = m->size};
    memcpy(one->data, m->data, m->size);
    while (*end)
        end = &(*end)->next;
    *end = one;
    return KILTER_OK;
}

static kilter_status on_note(kl_worker *w, kl_peer from, const kl_message *m, kilter_error *error) {
    peering *p = peers_of(w);
    kl_note_head head;
    kilter_bytes note;
    if (!p)
        return no_memory(error);
    if (!kl_wire_get_note(m->data, m->size, &head, &note) || head.from >= KL_PEERS_MOST ||
        head.worker >= KL_PEERS_MOST)
        return from == w->master ? malformed(error) : KILTER_OK;
    if (p->node && head.run == p->run.run)
        return hear_note(w, from, &head, note, error);
    return from == w->master || head.run < p->next_run ? KILTER_OK : keep_early(w, from, m, error);
}

static kilter_status hear_early(kl_worker *w, kilter_error *error) {
    peering *p = w->peers;
    kilter_status status = KILTER_OK;
    early *kept = p->early; /* take the list first, because on_note() stores messages of later runs again */
    p->early = NULL;
    p->early_bytes = 0;
    while (kept) {
        early *one = kept;
        kl_message m = {.data = one->data, .size = one->size};
        kept = one->next;
        if (status == KILTER_OK)
            status = on_note(w, one->peer, &m, error);
        free(one);
    }
    return status;
}

static kl_node *new_node(kl_worker *w, const kl_ranges *tasks) {
    peering *p = w->peers;
    p->reaper.reducer = (kl_reducer){w->options->combine, w->options->user};
    p->reaper.sum_bytes = p->run.reduces ? (size_t)p->run.result_bytes : 0;
    return kl_node_new(&(kl_node_options){.number = p->run.number,
                                          .peers = p->run.peers,
                                          .tasks = p->run.tasks,
                                          .more = tasks,
                                          .root_rests = true,
                                          .help = kl_help_find(p->run.policy),
                                          .combine = {kl_harvest_add, kl_harvest_check, &p->reaper},
                                          .attends = w->attendance.works != NULL,
                                          .signals = *p->run.signals,
                                          .least_s = KL_PEER_LEAST_S,
                                          .seed = p->run.seed});
}

static kilter_status on_peers(kl_worker *w, const kl_message *m, kilter_error *error) {
    peering *p = peers_of(w);
    kl_ranges tasks = {0};
    kl_peers_head head;
    if (!p)
        return no_memory(error);
    bool good = w->ready && kl_wire_get_peers(m->data, m->size, &head, &tasks) && kl_help_find(head.policy) &&
                head.peers <= KL_PEERS_MOST && head.number < KL_PEERS_MOST;
    if (good && head.reduces && !w->options->combine) {
        kl_ranges_free(&tasks);
        return kl_worker_refuse(w, error, "the worker has no combine function, but the master has one");
    }
    if (good) {
        kl_peering_stop(w, head.run);
        /* make the data of this peer only once, although the master may send this message again */
        if (!p->node) {
            p->run = head;
            p->next_run = head.run;
            p->node = new_node(w, &tasks);
        }
    }
    kl_ranges_free(&tasks);
    if (!good)
        return malformed(error);
    if (!p->node)
        return no_memory(error);
    kilter_status status = kl_signals_begin(w, error);
    if (status == KILTER_OK)
        status = step(w, &(kl_node_event){.kind = KL_NODE_STARTS}, error);
    return status == KILTER_OK ? hear_early(w, error) : status;
}

static kilter_status on_peer(kl_worker *w, const kl_message *m, kilter_error *error) {
    kl_where where;
    bool gone = false;
    if (!w->peers || !kl_wire_get_where(m->data, m->size, &where))
        return malformed(error);
    if (!w->peers->node || where.run != w->peers->run.run)
        return KILTER_OK;
    kilter_status status = kl_mates_found(w, &where, &gone, error);
    if (status == KILTER_ERR_USAGE || status == KILTER_ERR_SYSTEM)
        return kl_worker_refuse(w, error, "the worker cannot reach another worker: %.150s",
                                error ? error->text : "");
    return status == KILTER_OK && gone ? lose(w, where.number, error) : status;
}

static kilter_status on_gone(kl_worker *w, const kl_message *m, kilter_error *error) {
    uint64_t worker;
    if (!kl_wire_get_number(m->data, m->size, &worker))
        return malformed(error);
    return w->peers ? lose(w, kl_mates_lose_worker(w, worker), error) : KILTER_OK;
}

static kilter_status on_inputs(kl_worker *w, kl_message *m, kilter_error *error) {
    peering *p = w->peers;
    kl_wanted tasks;
    kl_reader inputs;
    if (!p || !kl_wire_get_inputs(m->data, m->size, &tasks, &inputs))
        return malformed(error);
    if (!p->node || tasks.run != p->run.run || p->task == UINT64_MAX)
        return KILTER_OK;
    drop_block(&p->block);
    p->block = (block){.message = *m, .tasks = tasks, .next = tasks.lo, .first = inputs, .reader = inputs};
    *m = (kl_message){0};
    return p->task >= tasks.lo && p->task < tasks.hi ? begin(w, p->task, error) : malformed(error);
}

static kilter_status on_disband(kl_worker *w, const kl_message *m, kilter_error *error) {
    uint64_t run;
    if (!kl_wire_get_number(m->data, m->size, &run))
        return malformed(error);
    kl_peering_stop(w, run + 1);
    return KILTER_OK;
}

kilter_status kl_peering_message(kl_worker *w, kl_peer from, kl_message *m, kilter_error *error) {
    kl_message_type type = kl_wire_type(m->data, m->size);
    /* from other workers, accept only notes (messages between peers) */
    if (from != w->master && type != KL_NOTE)
        return KILTER_OK;
    if (!w->ready)
        return malformed(error);
    switch (type) {
    case KL_OPEN:
        return on_open(w, m, error);
    case KL_PEERS:
        return on_peers(w, m, error);
    case KL_NOTE:
        return on_note(w, from, m, error);
    case KL_PEER:
        return on_peer(w, m, error);
    case KL_GONE:
        return on_gone(w, m, error);
    case KL_INPUTS:
        return on_inputs(w, m, error);
    case KL_DISBAND:
        return on_disband(w, m, error);
    default:
        return malformed(error);
    }
}
