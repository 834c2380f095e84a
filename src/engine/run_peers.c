/* A run that the workers organise among themselves as peers, in a tree. The master is the root of this tree:
 * it does no tasks, tells workers each other's addresses, and counts results. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/master_private.h"

static kilter_status no_memory(kilter_error *error) {
    return kl_fail(error, KILTER_ERR_MEMORY, "organising a run among peers: memory ran out");
}

static bool takes_part(const member *one) {
    return one->stage == WORKING && !one->resting;
}

/* Send a message to a worker. It is no error if the worker has left, because the transport reports this with
 * its next event. */
static kilter_status send(kl_master *m, kl_peer peer, const kl_buffer *message, kilter_error *error) {
    kilter_status status = kl_send(m->transport, peer, message, error);
    return status == KILTER_ERR_PEER ? KILTER_OK : status;
}

static kilter_status post(kl_master *m, kl_peer peer, kl_buffer *message, kilter_error *error) {
    kilter_status status = send(m, peer, message, error);
    kl_buffer_free(message);
    return status;
}

/* --- results that peers report --- */

static kilter_status deliver_sum(kl_master *m, kilter_bytes sum, const kl_ranges *tasks,
                                 kilter_error *error) {
    kl_buffer *out = &m->peers.message;
    kl_buffer_clear(out);
    kl_wire_put_sum(out, tasks, sum);
    kl_delivery *d = out->failed ? NULL : malloc(sizeof *d + out->size);
    if (!d)
        return no_memory(error);
    *d = (kl_delivery){
        .lo = tasks->at[0].lo, .count = kl_ranges_sum(tasks), .size = out->size, .is_sum = true};
    memcpy(d->copy, out->data, out->size);
    d->results = d->copy;
    kl_delivery_list list = {.first = d, .end = &d->next};
    kl_delivery_append(&m->results, &list);
    return KILTER_OK;
}

static uint64_t read_failures(const member *as, kl_master *m, uint64_t task, kl_reader *results) {
    bool failed;
    kilter_bytes bytes;
    char text[KILTER_ERROR_TEXT_BYTES];
    kl_wire_next_result(results, &failed, &bytes);
    if (!failed)
        return 0;
    snprintf(text, sizeof text, "%.*s", (int)(bytes.size < sizeof text ? bytes.size : sizeof text - 1),
             bytes.size > 0 ? (const char *)bytes.data : "");
    kl_master_record_failure(m, as, (kl_trace_failure_row){.task = task, .final = true, .text = text});
    return 1;
}

/* Store the error that results of peers do not fit their tasks. At the end of its turn, the master ends the
 * run with this error. */
static kilter_status misfit(kl_master *m) {
    if (m->peers.failure.status == KILTER_OK)
        kl_fail(&m->peers.failure, KILTER_ERR_PEER, "the results of peers do not fit their tasks");
    return KILTER_OK;
}

/* Count the results of a segment and queue them for the user. A task that was counted before is left out. */
static kilter_status take_segment(kl_master *m, const kl_harvest_segment *s, kilter_error *error) {
    member as = {.number = s->worker};
    kl_reader results = kl_reader_of(s->results.data, s->results.size);
    kl_span rest = {s->lo, s->lo + s->count};
    kilter_status status = KILTER_OK;
    if (rest.hi > m->run.summary.tasks)
        return misfit(m);
    while (rest.lo < rest.hi && status == KILTER_OK) {
        bool done;
        kl_span alike = kl_ledger_alike(&m->balance.ledger, rest, &done);
        size_t at = results.at;
        uint64_t failures = 0;
        for (uint64_t task = alike.lo; task < alike.hi; task++)
            failures += read_failures(&as, m, task, &results);
        m->peers.twice += done ? alike.hi - alike.lo : 0;
        kilter_bytes bytes = {results.data + at, results.at - at};
        if (!done) {
            kl_master_count_done(m, alike, failures);
            status = kl_master_deliver(m, &as, alike, bytes, NULL, error);
        }
        rest.lo = alike.hi;
    }
    return status;
}

static int by_worker(const void *a, const void *b) {
    const kl_run_peer *x = a, *y = b;
    return x->worker < y->worker ? -1 : x->worker > y->worker;
}

/* Find a peer of the run by the number of its worker. The list begins with the peers with which the run
 * began, sorted by these numbers. Peers that joined later come after them. */
static const kl_run_peer *peer_of_worker(const kl_run_peers *p, uint32_t worker) {
    kl_run_peer key = {.worker = worker};
    const kl_run_peer *found =
        p->first > 1 ? bsearch(&key, p->list + 1, p->first - 1, sizeof key, by_worker) : NULL;
    for (uint32_t i = p->first; i < p->count && !found; i++)
        found = p->list[i].worker == worker ? &p->list[i] : NULL;
    return found;
}

static void take_stat(kl_master *m, const kl_harvest_stat *s, double bytes) {
    const kl_run_peer *peer = peer_of_worker(&m->peers, s->worker);
    if (peer && peer->place < m->balance.snapshot.slots && m->balance.views[peer->place].number == s->worker)
        kl_balance_peer_report(&m->balance, peer->place, &s->task_s, bytes);
}

/* A peer's report came with a combination of the results of its successful tasks. Take over this combination.
 * failed: the failed tasks in the report, which are already counted. */
static kilter_status take_sum(kl_master *m, const kl_node_action *a, kilter_bytes sum,
                              const kl_ranges *failed, kilter_error *error) {
    kl_ranges tasks = {0}, good = {0};
    const uint8_t *at = m->peers.actions.bytes.data + a->at + a->size;
    bool fits = true;
    for (size_t i = 0; i < a->spans && fits; i++) {
        kl_span span;
        memcpy(&span, at + i * sizeof span, sizeof span);
        fits = kl_ranges_add(&tasks, span);
    }
    kl_ranges_tidy(&tasks);
    fits = fits && kl_ranges_without(&tasks, failed, &good);
    uint64_t count = kl_ranges_sum(&good);
    kilter_status status = fits ? KILTER_OK : no_memory(error);
    if (fits && (count + kl_ranges_sum(failed) != a->task || (count > 0) != (sum.size > 0)))
        status = misfit(m);
    else if (fits && count > 0)
        status = deliver_sum(m, sum, &good, error);
    m->run.done += count;
    m->run.finished += count;
    kl_ranges_free(&tasks);
    kl_ranges_free(&good);
    return status;
}

/* The action `a` brings the results of a->task tasks. Take these results. From now on, the tasks count as
 * done. */
static kilter_status take_value(kl_master *m, const kl_node_action *a, kilter_error *error) {
    kl_run_peers *p = &m->peers;
    kl_harvest h;
    kl_harvest_stat stat;
    kl_harvest_segment segment;
    kilter_status status = KILTER_OK;
    if (a->size == 0)
        return a->task == 0 ? KILTER_OK : misfit(m);
    if (!kl_harvest_read(p->actions.bytes.data + a->at, a->size, p->reaper.sum_bytes, &h))
        return misfit(m);
    uint64_t done = m->run.done;
    while (kl_harvest_next_stat(&h, &stat))
        take_stat(m, &stat, (double)a->size * (double)stat.task_s.count / fmax(1, (double)a->task));
    /* if the run combines its results, only failed tasks are in segments */
    kl_ranges tasks = {0};
    while (status == KILTER_OK && kl_harvest_next_segment(&h, &segment)) {
        status = take_segment(m, &segment, error);
        if (!kl_ranges_add(&tasks, (kl_span){segment.lo, segment.lo + segment.count}))
            status = no_memory(error);
    }
    bool reduces = p->reaper.sum_bytes > 0;
    kl_ranges_tidy(&tasks);
    if (status == KILTER_OK && p->failure.status == KILTER_OK) {
        if (p->twice > 0 || kl_node_state_of(p->root).twice > 0 ||
            (!reduces && m->run.done - done != a->task))
            status = misfit(m);
        else if (reduces)
            status = take_sum(m, a, h.sum, &tasks, error);
    }
    kl_ranges_free(&tasks);
    return status;
}

/* --- steps of the root, and the actions that they return --- */

static kilter_status send_note(kl_master *m, const kl_node_action *a, kilter_error *error) {
    kl_run_peers *p = &m->peers;
    const uint8_t *note = p->actions.bytes.data + a->at;
    if (a->peer == 0) {
        kl_put_span(&p->self, note, a->size);
        return p->self.failed ? no_memory(error) : KILTER_OK;
    }
    if (a->peer >= p->count || p->list[a->peer].gone)
        return KILTER_OK;
    kl_note_head head = {.run = m->run.number};
    kl_buffer_clear(&p->message);
    kl_wire_put_note(&p->message, &head, note, a->size);
    return send(m, p->list[a->peer].peer, &p->message, error);
}

static kilter_status step_once(kl_master *m, const kl_node_event *event, kilter_error *error) {
    kl_run_peers *p = &m->peers;
    kilter_status status = KILTER_OK;
    kl_node_step(p->root, event, kl_now_s(&m->options.clock), &p->actions);
    p->wake_s = p->actions.wake_s;
    p->malformed |= p->actions.malformed;
    if (p->actions.failed || (p->actions.malformed && event->peer == 0))
        return no_memory(error);
    for (size_t i = 0; i < p->actions.count && status == KILTER_OK; i++) {
        const kl_node_action *a = &p->actions.items[i];
        if (a->kind == KL_NODE_SEND)
            status = send_note(m, a, error);
        else if (a->kind == KL_NODE_COUNTS)
            status = take_value(m, a, error);
        else if (a->kind == KL_NODE_OVER && m->run.done < m->run.summary.tasks)
            status = misfit(m);
    }
    return status;
}

static kilter_status tell_number(kl_master *m, kl_peer peer, kl_message_type type, uint64_t number,
                                 kilter_error *error) {
    kl_buffer out = {0};
    kl_wire_put_number(&out, type, number);
    return post(m, peer, &out, error);
}

/* Remove from the run the peers that others have reported as gone, and give their tasks to other peers. */
static kilter_status send_out_gone(kl_master *m, kilter_error *error) {
    kl_run_peers *p = &m->peers;
    kilter_status status = KILTER_OK;
    p->seen_deaths = kl_node_state_of(p->root).deaths;
    for (uint32_t i = 1; i < p->count && status == KILTER_OK; i++) {
        kl_run_peer *one = &p->list[i];
        if (one->gone || !kl_node_counts_gone(p->root, i))
            continue;
        one->gone = one->reported = true;
        p->deaths++;
        member *who = kl_master_find(m, one->peer);
        if (who && who->part.number == i)
            who->part.number = 0;
        status = tell_number(m, one->peer, KL_DISBAND, m->run.number, error);
    }
    return status;
}

static kilter_status deal_rest(kl_master *m, const char *why, kilter_error *error);

static bool may_deal(const kl_master *m) {
    const kl_run_peers *p = &m->peers;
    return p->root && p->failure.status == KILTER_OK && m->run.done < m->run.summary.tasks;
}

/* Return whether the master should deal the remaining tasks, because too many peers died. Perhaps workers
 * cannot reach each other, or one task kills its workers. A master that deals tasks finds such a task,
 * because it counts the attempts of each task. */
static bool too_many_deaths(const kl_master *m) {
    const kl_run_peers *p = &m->peers;
    return may_deal(m) && p->deaths > m->options.attempts + p->count / 10;
}

static kilter_status step(kl_master *m, const kl_node_event *event, kilter_error *error) {
    kl_run_peers *p = &m->peers;
    kilter_status status = step_once(m, event, error);
    while (status == KILTER_OK && p->self.size > 0) {
        kl_buffer own = p->self;
        p->self = (kl_buffer){0};
        kl_reader r = kl_reader_of(own.data, own.size);
        while (status == KILTER_OK && r.at < r.size) {
            kl_node_event hears = {.kind = KL_NODE_HEARS};
            hears.data = kl_get_span(&r, &hears.size);
            status = step_once(m, &hears, error);
        }
        kl_buffer_free(&own);
    }
    if (status == KILTER_OK && kl_node_state_of(p->root).deaths != p->seen_deaths)
        status = send_out_gone(m, error);
    if (status == KILTER_OK && too_many_deaths(m))
        status = deal_rest(m, "too many workers were lost", error);
    return status;
}

double kl_run_peers_due_s(const kl_master *m) {
    return m->peers.root ? m->peers.wake_s : HUGE_VAL;
}

kilter_status kl_run_peers_look(kl_master *m, kilter_error *error) {
    return kl_now_s(&m->options.clock) >= kl_run_peers_due_s(m)
               ? step(m, &(kl_node_event){.kind = KL_NODE_REACHED}, error)
               : KILTER_OK;
}

kilter_status kl_run_peers_hear(kl_master *m, member *one, kilter_bytes note, kilter_error *error) {
    if (!m->peers.root)
        return KILTER_OK;
    m->peers.malformed = false;
    kl_node_event hears = {
        .kind = KL_NODE_HEARS, .peer = one->part.number, .data = note.data, .size = note.size};
    return step(m, &hears, error);
}

/* --- the beginning of a run --- */

static kl_run_peer *add_peer(kl_run_peers *p) {
    kl_run_peer *list = kl_array_grow(p->list, &p->room, (uint64_t)p->count + 1, sizeof *list);
    if (!list)
        return NULL;
    p->list = list;
    list[p->count] = (kl_run_peer){0};
    return &list[p->count++];
}

/* Put the tasks that are done into `done`, and the other tasks into `rest`. false: memory ran out. */
static bool split(const kl_master *m, kl_ranges *done, kl_ranges *rest) {
    bool ok = true;
    for (kl_span all = {0, m->run.summary.tasks}; all.lo < all.hi && ok;) {
        bool is_done;
        kl_span alike = kl_ledger_alike(&m->balance.ledger, all, &is_done);
        ok = kl_ranges_add(is_done ? done : rest, alike);
        all.lo = alike.hi;
    }
    return ok;
}

/* Add the next `count` tasks of `rest` to `out`. *i: index of the present span in `rest`; *at: the part of
 * this span that no call has added yet. false: memory ran out. */
static bool cut(const kl_ranges *rest, kl_span *at, size_t *i, uint64_t count, kl_ranges *out) {
    bool ok = true;
    while (count > 0 && *i < rest->count && ok) {
        uint64_t part = at->hi - at->lo < count ? at->hi - at->lo : count;
        ok = kl_ranges_add(out, (kl_span){at->lo, at->lo + part});
        at->lo += part;
        count -= part;
        if (at->lo == at->hi && ++*i < rest->count)
            *at = rest->at[*i];
    }
    return ok;
}

static kilter_status tell_peer(kl_master *m, member *one, const kl_ranges *tasks, kilter_error *error) {
    const kl_run_peers *p = &m->peers;
    const char *policy = (m->options.help ? m->options.help : kl_help_at(0))->name;
    kl_peers_head head = {.run = m->run.number,
                          .tasks = m->run.summary.tasks,
                          .number = one->part.number,
                          .peers = p->first,
                          .shared = m->balance.shared_hash,
                          .result_bytes = m->balance.result_bytes,
                          .reduces = p->reaper.sum_bytes > 0,
                          .inputs = m->balance.data.inputs,
                          .seed = kl_mix64(m->run.number + 1)};
    kl_buffer out = {0};
    snprintf(head.policy, sizeof head.policy, "%s", policy);
    snprintf(head.signals, sizeof head.signals, "%s", m->options.signals ? m->options.signals : "");
    kilter_status status = kl_master_send_shared(m, one, error);
    kl_wire_put_peers(&out, &head, tasks);
    if (status == KILTER_OK || status == KILTER_ERR_PEER)
        return post(m, one->peer, &out, error);
    kl_buffer_free(&out);
    return status;
}

/* Give each peer a part of the tasks. If all speeds are known, a peer's part is in proportion to its speed.
 * Otherwise all parts are equal. */
static kilter_status share_out(kl_master *m, const kl_ranges *rest, kilter_error *error) {
    const kl_run_peers *p = &m->peers;
    double all = 0, before = 0, tasks = (double)kl_ranges_sum(rest);
    bool known = true;
    for (uint32_t i = 1; i < p->count; i++) {
        double rate = kl_balance_rate(&m->balance, p->list[i].place);
        known &= rate > 0;
        all += rate;
    }
    kl_span at = rest->count > 0 ? rest->at[0] : (kl_span){0};
    size_t next = 0;
    uint64_t given = 0;
    kilter_status status = KILTER_OK;
    for (uint32_t i = 1; i < p->count && status == KILTER_OK; i++) {
        member *one = kl_master_find(m, p->list[i].peer);
        kl_ranges part = {0};
        before += known ? kl_balance_rate(&m->balance, p->list[i].place) / all : 1.0 / (p->count - 1);
        uint64_t until = i + 1 == p->count ? (uint64_t)tasks : (uint64_t)(before * tasks);
        if (!cut(rest, &at, &next, until > given ? until - given : 0, &part))
            status = no_memory(error);
        given = until > given ? until : given;
        if (status == KILTER_OK && one)
            status = tell_peer(m, one, &part, error);
        kl_ranges_free(&part);
    }
    return status;
}

static kl_node *new_root(kl_master *m, const kl_ranges *done) {
    kl_run_peers *p = &m->peers;
    p->reaper.reducer = m->options.reducer;
    p->reaper.sum_bytes = m->organising.sum_bytes;
    return kl_node_new(&(kl_node_options){.peers = p->first,
                                          .tasks = m->run.summary.tasks,
                                          .done = done,
                                          .root_rests = true,
                                          .help = m->options.help ? m->options.help : kl_help_at(0),
                                          .combine = {kl_harvest_add, kl_harvest_check, &p->reaper},
                                          .attends = true,
                                          .least_s = KL_PEER_LEAST_S,
                                          .seed = kl_mix64(m->run.number + 1)});
}

static void give_number(member *one, uint32_t run_number) {
    one->part.number = run_number;
    one->part.had = true;
}

static kilter_status list_peers(kl_master *m, kilter_error *error) {
    kl_run_peers *p = &m->peers;
    p->count = 0;
    if (!add_peer(p)) /* the master is peer 0 */
        return no_memory(error);
    for (size_t i = 0; i < m->members.count; i++) {
        const member *one = &m->members.list[i];
        kl_run_peer *peer = takes_part(one) ? add_peer(p) : NULL;
        if (takes_part(one) && !peer)
            return no_memory(error);
        if (peer)
            *peer = (kl_run_peer){.peer = one->peer, .place = one->worker, .worker = one->number};
    }
    p->first = p->count;
    if (p->count > 2)
        qsort(p->list + 1, p->count - 1, sizeof *p->list, by_worker);
    for (uint32_t i = 1; i < p->count; i++)
        give_number(kl_master_find(m, p->list[i].peer), i);
    return KILTER_OK;
}

static kilter_status start(kl_master *m, kilter_error *error) {
    kl_run_peers *p = &m->peers;
    kl_ranges done = {0}, rest = {0};
    kilter_status status = list_peers(m, error);
    if (status == KILTER_OK && !split(m, &done, &rest))
        status = no_memory(error);
    if (status == KILTER_OK) {
        p->deaths = p->seen_deaths = 0;
        p->twice = 0;
        p->root = new_root(m, &done);
        if (p->root)
            kl_node_bound(p->root, p->count);
        status = p->root ? share_out(m, &rest, error) : no_memory(error);
    }
    kl_ranges_free(&done);
    kl_ranges_free(&rest);
    return status == KILTER_OK ? step(m, &(kl_node_event){.kind = KL_NODE_STARTS}, error) : status;
}

static const char *why_not(const member *one) {
    return one->reach.why_not && *one->reach.why_not ? one->reach.why_not
                                                     : "the worker has no address for other workers";
}

/* Other workers cannot reach the worker `one`. If the user asked for peers, end the run with an error.
 * Otherwise the master deals the run's tasks. */
static kilter_status cannot_reach(kl_master *m, const member *one, kilter_error *error) {
    kl_run_peers *p = &m->peers;
    if (m->options.organise == KL_ORGANISE_PEERS) {
        kl_fail(&p->failure, KILTER_ERR_USAGE,
                "--organise peers: other workers cannot reach worker %u on %s: %s; use --organise auto",
                one->number, one->host ? one->host : "an unknown host", why_not(one));
        return KILTER_OK;
    }
    char why[KILTER_ERROR_TEXT_BYTES];
    snprintf(why, sizeof why, "workers cannot reach each other: %s", why_not(one));
    return deal_rest(m, why, error);
}

/* Begin the run if the addresses of all workers are known. Ask the workers whose address is missing. */
static kilter_status start_if_ready(kl_master *m, kilter_error *error) {
    kilter_status status = KILTER_OK;
    uint32_t waits = 0, ready = 0;
    for (size_t i = 0; i < m->members.count && status == KILTER_OK; i++) {
        member *one = &m->members.list[i];
        if (!takes_part(one))
            continue;
        if (one->reach.address && !*one->reach.address)
            return cannot_reach(m, one, error);
        ready++;
        waits += !one->reach.address;
        if (!one->reach.address && !one->reach.asked) {
            kl_buffer out = {0};
            one->reach.asked = true;
            kl_wire_put_plain(&out, KL_OPEN);
            status = post(m, one->peer, &out, error);
        }
    }
    return status == KILTER_OK && waits == 0 && ready > 0 ? start(m, error) : status;
}

kilter_status kl_run_peers_begin(kl_master *m, kilter_error *error) {
    kl_run_peers *p = &m->peers;
    p->on = true;
    p->wake_s = HUGE_VAL;
    p->failure = (kilter_error){KILTER_OK, ""};
    p->warned = false;
    return start_if_ready(m, error);
}

/* --- workers that join or leave during a run --- */

/* Let a worker take part in the run that is in progress. */
static kilter_status join(kl_master *m, member *one, kilter_error *error) {
    kl_run_peers *p = &m->peers;
    kl_run_peer *peer = p->count < KL_PEERS_MOST - 1 ? add_peer(p) : NULL;
    kl_ranges none = {0};
    if (!peer)
        return no_memory(error);
    *peer = (kl_run_peer){.peer = one->peer, .place = one->worker, .worker = one->number};
    give_number(one, p->count - 1);
    kl_node_bound(p->root, p->count);
    return tell_peer(m, one, &none, error);
}

/* Return whether there are workers, but none of them is a peer of this run. */
static bool has_only_others(const kl_master *m) {
    bool others = false;
    for (size_t i = 0; i < m->members.count; i++) {
        const member *one = &m->members.list[i];
        if (one->part.number > 0)
            return false;
        others |= takes_part(one) && one->reach.address;
    }
    return others;
}

static kilter_status deal_if_needed(kl_master *m, kilter_error *error) {
    return may_deal(m) && has_only_others(m) ? deal_rest(m, "no peer of this run is left", error) : KILTER_OK;
}

/* Leave a worker that joins late out of the run, because others cannot reach it. */
static kilter_status leave_out(kl_master *m, const member *one, kilter_error *error) {
    char text[KILTER_ERROR_TEXT_BYTES];
    snprintf(text, sizeof text,
             "worker %u on %s has no part in this run: other workers cannot reach it: ", one->number,
             one->host ? one->host : "an unknown host");
    if (m->options.warn && !m->peers.warned)
        m->options.warn(m->options.self, text, why_not(one));
    m->peers.warned = true;
    return deal_if_needed(m, error);
}

kilter_status kl_run_peers_ready(kl_master *m, member *one, kilter_error *error) {
    kl_run_peers *p = &m->peers;
    if (!p->on || !m->run.running || !takes_part(one) || one->part.had)
        return KILTER_OK;
    if (!p->root)
        return start_if_ready(m, error);
    if (one->reach.address)
        return *one->reach.address ? join(m, one, error) : leave_out(m, one, error);
    if (one->reach.asked)
        return KILTER_OK;
    kl_buffer out = {0};
    one->reach.asked = true;
    kl_wire_put_plain(&out, KL_OPEN);
    return post(m, one->peer, &out, error);
}

/* Handle that a worker has left by itself, which does not count as a death. If another peer has reported this
 * worker as gone, the master has counted a death. Subtract this death from the count. */
static void forgive(kl_run_peers *p, kl_peer peer) {
    for (uint32_t i = 1; i < p->count; i++)
        if (p->list[i].peer == peer && p->list[i].reported) {
            p->list[i].reported = false;
            p->deaths--;
        }
}

kilter_status kl_run_peers_lose(kl_master *m, member *one, bool is_lost, kilter_error *error) {
    kl_run_peers *p = &m->peers;
    kilter_status status = KILTER_OK;
    for (size_t i = 0; one->reach.address && i < m->members.count && status == KILTER_OK; i++) {
        const member *other = &m->members.list[i];
        if (other != one && other->stage != GONE && other->reach.address)
            status = tell_number(m, other->peer, KL_GONE, one->number, error);
    }
    uint32_t number = one->part.number;
    one->part.number = 0;
    if (!p->on || status != KILTER_OK)
        return status;
    if (!p->root)
        return start_if_ready(m, error);
    if (!is_lost)
        forgive(p, one->peer);
    if (number > 0 && !p->list[number].gone) {
        p->list[number].gone = true;
        p->deaths += is_lost;
        status = step(m, &(kl_node_event){.kind = KL_NODE_LOSES, .peer = number}, error);
    }
    return status == KILTER_OK ? deal_if_needed(m, error) : status;
}

/* --- the end of a run --- */

static void disband(kl_master *m) {
    for (size_t i = 0; i < m->members.count; i++) {
        member *one = &m->members.list[i];
        if (one->stage != GONE && one->part.number > 0)
            tell_number(m, one->peer, KL_DISBAND, m->run.number, NULL);
    }
}

static void forget(kl_master *m) {
    kl_run_peers *p = &m->peers;
    for (size_t i = 0; i < m->members.count; i++) {
        m->members.list[i].part.number = 0;
        m->members.list[i].part.had = false;
    }
    kl_node_free(p->root);
    p->root = NULL;
    p->count = p->first = 0;
    kl_buffer_clear(&p->self);
}

void kl_run_peers_end(kl_master *m, bool early) {
    if (early)
        disband(m);
    forget(m);
}

/* Let the master deal the tasks of the run that have no counted result yet. */
static kilter_status deal_rest(kl_master *m, const char *why, kilter_error *error) {
    kl_run_peers *p = &m->peers;
    const kl_ranges *counted = p->root ? kl_node_counted(p->root) : NULL;
    kilter_status status = KILTER_OK;
    if (counted)
        status = kl_balance_take_over(&m->balance, (kl_spans){counted->at, counted->count}, error);
    if (m->options.warn)
        m->options.warn(m->options.self, "the master deals the remaining tasks of the run, because ", why);
    disband(m);
    forget(m);
    p->on = false;
    kl_master_use_anew(m);
    m->feeding.all = true;
    return status;
}

void kl_run_peers_free(kl_run_peers *p) {
    kl_node_free(p->root);
    kl_reaper_free(&p->reaper);
    kl_node_actions_free(&p->actions);
    kl_buffer_free(&p->self);
    kl_buffer_free(&p->message);
    free(p->list);
}
