/* Let workers come and go as in weeks of service. Check that the master removes workers that have left, and
 * keeps the sums of their work. The master is real, but the test only sends messages as workers would. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "engine/master_private.h"

enum { JOINS = 100000, TASKS = 200000, AT_ONCE = 8 };

/* --- a transport that delivers the events of the test, and keeps the last message that the master sent ---
 */

typedef struct wire {
    kl_transport base;
    kl_event next;
    bool woken; /* true: the next poll returns no event */
    bool gone;  /* true: sending a message to a peer fails */
    kl_buffer incoming, outgoing;
} wire;

static kilter_status wire_send(kl_transport *t, kl_peer peer, const void *data, size_t size,
                               kilter_error *error) {
    wire *w = (wire *)t;
    if (w->gone)
        return kl_fail(error, KILTER_ERR_PEER, "sending to peer %llu: the peer is gone",
                       (unsigned long long)peer);
    kl_buffer_clear(&w->outgoing);
    kl_put_bytes(&w->outgoing, data, size);
    return KILTER_OK;
}

static kilter_status wire_poll(kl_transport *t, double timeout_s, kl_event *event, kilter_error *error) {
    (void)timeout_s, (void)error;
    wire *w = (wire *)t;
    *event = w->woken ? (kl_event){0} : w->next;
    if (!w->woken)
        w->next = (kl_event){0};
    w->woken = false;
    return KILTER_OK;
}

static void wire_drop(kl_transport *t, kl_peer peer) {
    (void)t, (void)peer;
}

static double now_s(void *self) {
    return *(double *)self += 1e-6;
}

typedef struct scene {
    wire wire;
    double now_s;
    kl_master *master;
    kl_peer last_peer;
    uint64_t counted;
    uint8_t seen[TASKS];
} scene;

static void open_scene(scene *s) {
    static const kl_transport_ops ops = {
        .name = "test", .send = wire_send, .poll = wire_poll, .drop = wire_drop};
    s->wire.base.ops = &ops;
    const kl_master_options options = {.policy = kl_policy_find("fac2"),
                                       .program = "test",
                                       .may_join = true,
                                       .clock = {.now_s = now_s, .self = &s->now_s}};
    assert_int_equal(kl_master_new(&options, &s->wire.base, &s->master, NULL), KILTER_OK);
}

static void close_scene(scene *s) {
    kl_master_free(s->master);
    kl_buffer_free(&s->wire.incoming);
    kl_buffer_free(&s->wire.outgoing);
    free(s);
}

static void happens(scene *s, kl_event_kind kind, kl_peer peer) {
    s->wire.next = (kl_event){.kind = kind, .peer = peer};
    s->wire.next.message.data = s->wire.incoming.data;
    s->wire.next.message.size = s->wire.incoming.size;
    if (kind != KL_EVENT_MESSAGE)
        s->wire.next.message = (kl_message){0};
    kilter_error error = {KILTER_OK, ""};
    if (kl_master_turn(s->master, 0, &error) != KILTER_OK)
        fail_msg("%s", error.text);
    assert_int_equal(error.status, KILTER_OK);
    kl_buffer_clear(&s->wire.incoming);
}

/* --- the life of a worker --- */

static kl_peer join(scene *s) {
    kl_peer peer = ++s->last_peer;
    happens(s, KL_EVENT_JOINED, peer);
    return peer;
}

static void say_hello(scene *s, kl_peer peer) {
    kl_wire_put_hello(&s->wire.incoming,
                      &(kl_hello){.version = KL_WIRE_VERSION, .pid = peer, .host = "h", .program = "test"});
    happens(s, KL_EVENT_MESSAGE, peer);
}

static void say_ready(scene *s, kl_peer peer) {
    kl_wire_put_plain(&s->wire.incoming, KL_READY);
    happens(s, KL_EVENT_MESSAGE, peer);
}

static void answer_probe(scene *s) {
    assert_int_equal(kl_wire_type(s->wire.outgoing.data, s->wire.outgoing.size), KL_PROBE);
    kl_wire_put_bytes(&s->wire.incoming, KL_ECHO, s->wire.outgoing.data + 1, s->wire.outgoing.size - 1);
    happens(s, KL_EVENT_MESSAGE, s->last_peer);
}

static void answer_probes(scene *s, kl_peer peer) {
    assert_true(peer == s->last_peer);
    while (kl_master_find(s->master, peer)->stage == PROBING)
        answer_probe(s);
}

/* Report the first `tasks` tasks of the peer's oldest chunk as done. Each task takes 1 ms. The clock has
 * already advanced by already_s of these seconds before this call. The message travels for way_s seconds. */
static void report_slowly(scene *s, kl_peer peer, uint64_t tasks, bool more, double already_s, double way_s) {
    kl_chunk chunk = kl_master_find(s->master, peer)->chunks[0];
    kl_segment segment = {.chunk = chunk.id, .lo = chunk.at, .count = tasks};
    segment.last = chunk.at + tasks == chunk.hi;
    segment.busy_s = 1e-3 * (double)tasks;
    s->now_s += segment.busy_s - already_s;
    for (uint64_t i = 0; i < tasks; i++)
        kl_stat_add(&segment.unit_s, 1e-3, s->now_s);
    segment.began_s = s->now_s - segment.busy_s;
    segment.ended_s = s->now_s;
    kl_buffer *out = &s->wire.incoming;
    kl_wire_begin_results(out);
    size_t at = out->size;
    kl_wire_begin_segment(out, &segment);
    for (uint64_t i = 0; i < tasks; i++)
        kl_wire_end_result(out, kl_wire_begin_result(out), false);
    kl_wire_end_segment(out, at, &segment);
    kl_wire_end_results(out, &(kl_results_head){.segments = 1, .more = more, .sent_s = s->now_s});
    s->now_s += way_s;
    happens(s, KL_EVENT_MESSAGE, peer);
}

static void report(scene *s, kl_peer peer, uint64_t tasks, bool more) {
    report_slowly(s, peer, tasks, more, 0, 0);
}

static void leave(scene *s, kl_peer peer) {
    while (kl_master_find(s->master, peer)->chunk_count > 0) {
        kl_chunk chunk = kl_master_find(s->master, peer)->chunks[0];
        kl_wire_put_part(&s->wire.incoming, KL_RETURN, &(kl_part){chunk.id, chunk.at, chunk.hi});
        happens(s, KL_EVENT_MESSAGE, peer);
    }
    kl_wire_put_bytes(&s->wire.incoming, KL_LEAVE, "enough", 6);
    happens(s, KL_EVENT_MESSAGE, peer);
}

static bool has_work(const scene *s, kl_peer peer) {
    const member *one = kl_master_find(s->master, peer);
    return one && one->stage == WORKING && one->chunk_count > 0;
}

/* Let a worker join, go through some of the stages, and then leave or be lost. */
static void come_and_go(scene *s, uint64_t chance) {
    kl_peer peer = join(s);
    uint64_t how_far = chance % 8;
    if (how_far > 0)
        say_hello(s, peer);
    if (how_far > 1)
        say_ready(s, peer);
    if (how_far > 2)
        answer_probes(s, peer);
    if (how_far > 3 && has_work(s, peer))
        report(s, peer, 1, chance & 64);
    if (how_far > 2 && (chance / 8) % 16 > 0)
        leave(s, peer);
    else
        happens(s, KL_EVENT_LEFT, peer);
}

/* --- the memory that the master needs for workers that are gone --- */

static void take_results(scene *s) {
    kl_delivery_list list = kl_master_take(s->master);
    for (kl_delivery *d = list.first; d;) {
        kl_delivery *next = d->next;
        for (uint64_t i = 0; i < d->count; i++)
            assert_int_equal(s->seen[d->lo + i]++, 0);
        s->counted += d->count;
        kl_delivery_free(d);
        d = next;
    }
}

static double units_counted(const kl_master *m) {
    double units = 0;
    for (uint32_t i = 0; i < m->balance.snapshot.slots; i++)
        units += m->balance.views[i].units;
    return units;
}

static void check_small(const kl_master *m, uint32_t places) {
    assert_true(m->members.room <= 16 && m->members.count <= AT_ONCE + 1);
    assert_true(m->balance.snapshot.slots <= places);
    assert_true(m->balance.places.gone_count <= m->balance.snapshot.slots);
}

static void without_a_run_few_places_are_enough(void **state) {
    (void)state;
    scene *s = calloc(1, sizeof *s);
    open_scene(s);
    uint32_t highest = 0;
    for (uint64_t i = 0; i < JOINS; i++) {
        come_and_go(s, kl_mix64(i));
        uint32_t named = s->master->balance.places.next_number;
        assert_true(named == highest || named == highest + 1); /* no number of a worker is used again */
        highest = named;
        check_small(s->master, 2);
    }
    assert_true(highest > JOINS / 2 && highest < JOINS);
    assert_int_equal(kl_master_ready(s->master), 0);
    close_scene(s);
}

/* Let workers come and go in one long run. Check that the master removes them, but keeps their work in its
 * sums. */
static void in_a_run_those_gone_are_counted_and_forgotten(void **state) {
    (void)state;
    scene *s = calloc(1, sizeof *s);
    open_scene(s);
    assert_int_equal(kl_master_begin(s->master, &(kilter_run){.tasks = TASKS}, NULL), KILTER_OK);
    for (uint64_t i = 0; i < JOINS; i++) {
        come_and_go(s, kl_mix64(i));
        check_small(s->master, 1024 + 3);
        take_results(s);
        assert_true(i % 64 || units_counted(s->master) == (double)s->counted);
    }
    assert_true(s->counted > 1024 && s->counted < TASKS);
    uint32_t before = s->master->balance.snapshot.slots;
    kl_peer last = join(s);
    say_hello(s, last);
    say_ready(s, last);
    answer_probes(s, last);
    while (has_work(s, last)) {
        const kl_chunk *chunk = kl_master_find(s->master, last)->chunks;
        report(s, last, chunk->hi - chunk->at, true);
        take_results(s);
    }
    assert_false(kl_master_running(s->master));
    assert_int_equal(s->counted, TASKS);
    kilter_farm_summary sum;
    kl_master_summary(s->master, &sum);
    assert_true(sum.failed == 0 && sum.workers > 1024 && sum.workers <= before);
    assert_int_equal(kl_master_begin(s->master, &(kilter_run){.tasks = 1}, NULL), KILTER_OK);
    close_scene(s);
}

/* Let the sending of a message to a worker fail. Check that this worker counts as lost, and that the master
 * continues. */
static void whose_end_is_noticed_in_sending_is_dealt_nothing_and_lost(void **state) {
    (void)state;
    for (int greeted = 0; greeted < 2; greeted++) {
        scene *s = calloc(1, sizeof *s);
        assert_non_null(s);
        open_scene(s);
        assert_int_equal(kl_master_begin(s->master, &(kilter_run){.tasks = TASKS}, NULL), KILTER_OK);
        kl_peer peer = join(s);
        s->wire.gone = !greeted;
        say_hello(s, peer);
        if (greeted) {
            say_ready(s, peer);
            answer_probes(s, peer);
            uint64_t tasks = kl_master_find(s->master, peer)->chunks[0].hi;
            s->wire.gone = true;
            report(s, peer, tasks, true);
            /* the worker is not lost before LEFT comes, because it may have sent more messages */
            const member *one = kl_master_find(s->master, peer);
            assert_true(one && one->chunk_count == 0 && !one->hungry);
            happens(s, KL_EVENT_LEFT, peer);
        }
        assert_null(kl_master_find(s->master, peer));
        take_results(s);
        close_scene(s);
    }
}

static void a_chunk_took_no_less_time_than_its_tasks(void **state) {
    (void)state;
    scene *s = calloc(1, sizeof *s);
    assert_non_null(s);
    open_scene(s);
    assert_int_equal(kl_master_begin(s->master, &(kilter_run){.tasks = TASKS}, NULL), KILTER_OK);
    kl_peer peer = join(s);
    say_hello(s, peer);
    say_ready(s, peer);
    answer_probes(s, peer);
    report_slowly(s, peer, 1000, false, 0, 0.5);
    report_slowly(s, peer, 1000, false, 0.5, 0);
    const kl_chunk *chunk = &kl_master_find(s->master, peer)->chunks[0];
    assert_true(chunk->at == 2000 && chunk->at < chunk->hi && chunk->busy_s == 2);
    assert_true(chunk->ended_s - chunk->began_s > 2 - 1e-9);
    assert_true(chunk->began_s >= chunk->dealt_s);
    take_results(s);
    close_scene(s);
}

static void who_has_just_come_is_told_of_the_end(void **state) {
    (void)state;
    scene *s = calloc(1, sizeof *s);
    assert_non_null(s);
    open_scene(s);
    s->wire.woken = true; /* let the first poll return no event, as when the farm is closed */
    s->wire.next = (kl_event){.kind = KL_EVENT_JOINED, .peer = 1};
    kl_master_end(s->master);
    assert_true(s->wire.outgoing.size > 0);
    assert_int_equal(kl_wire_type(s->wire.outgoing.data, s->wire.outgoing.size), KL_END);
    close_scene(s);
}

/* Let workers join from other hosts. Check that four of them measure the link, one after the other. If one
 * of them dies meanwhile, another worker must replace it. */
static void the_link_is_measured_by_the_first_workers(void **state) {
    (void)state;
    scene *s = calloc(1, sizeof *s);
    assert_non_null(s);
    open_scene(s);
    const kl_traffic *traffic = &s->master->balance.traffic;
    for (uint32_t i = 0; i < 6; i++) {
        kl_peer peer = join(s);
        say_hello(s, peer);
        say_ready(s, peer);
        bool dies = i == 1;
        /* let the worker die after 9 echoes, of which two belong to its first burst of messages */
        for (int echo = 0; dies && echo < 9; echo++)
            answer_probe(s);
        if (dies)
            happens(s, KL_EVENT_LEFT, peer);
        else
            answer_probes(s, peer);
        assert_int_equal(traffic->links_measured, i == 0 ? 1 : i < 4 ? i : 4);
    }
    assert_true(traffic->link_byte_s > 0 && s->master->members.probing == 0);
    close_scene(s);
}

/* Times of runs by 4 peers say nothing about runs by 32 peers, so their mean begins anew. */
static void a_mean_begins_anew_with_another_number_of_peers(void **state) {
    (void)state;
    kl_master *m = calloc(1, sizeof *m);
    assert_non_null(m);
    m->members.ready = 4;
    kl_master_note_peers(m, 10, 80);
    kl_master_note_peers(m, 10, 60);
    assert_true(m->organising.with_peers.task_s == 7);
    m->members.ready = 32;
    kl_master_note_peers(m, 10, 10);
    assert_true(m->organising.with_peers.task_s == 1);
    free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mean_begins_anew_with_another_number_of_peers),
        cmocka_unit_test(without_a_run_few_places_are_enough),
        cmocka_unit_test(in_a_run_those_gone_are_counted_and_forgotten),
        cmocka_unit_test(whose_end_is_noticed_in_sending_is_dealt_nothing_and_lost),
        cmocka_unit_test(a_chunk_took_no_less_time_than_its_tasks),
        cmocka_unit_test(who_has_just_come_is_told_of_the_end),
        cmocka_unit_test(the_link_is_measured_by_the_first_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
