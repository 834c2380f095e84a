/* Test single steps of a peer: which messages it sends, and which tasks it keeps. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "peer/peer_private.h"

enum { TASKS = 100 };

typedef struct alone { /* a single peer; the test sends it the messages of all other peers */
    kl_node *node;
    kl_node_actions out;
    kl_note note;
} alone;

static alone peer_of(uint32_t number, uint32_t peers, const char *help, kl_span share) {
    kl_node_options options = {.number = number,
                               .peers = peers,
                               .tasks = TASKS,
                               .share = share,
                               .help = kl_help_find(help),
                               .attends = true};
    alone a = {.node = kl_node_new(&options)};
    assert_non_null(a.node);
    kl_node_step(a.node, &(kl_node_event){.kind = KL_NODE_STARTS}, 0, &a.out);
    return a;
}

static void let_go(alone *a) {
    kl_node_free(a->node);
    kl_node_actions_free(&a->out);
    kl_note_free(&a->note);
}

static void hears(alone *a, uint32_t from, const kl_note *note, double now_s) {
    kl_buffer bytes = {0};
    kl_note_put(&bytes, note);
    kl_node_step(
        a->node,
        &(kl_node_event){.kind = KL_NODE_HEARS, .peer = from, .data = bytes.data, .size = bytes.size}, now_s,
        &a->out);
    assert_false(a->out.failed);
    kl_buffer_free(&bytes);
}

static void loses(alone *a, uint32_t peer, double now_s) {
    kl_node_step(a->node, &(kl_node_event){.kind = KL_NODE_LOSES, .peer = peer}, now_s, &a->out);
}

/* Return the first message of this kind that the peer sent in the last step; NULL: it sent none. */
static const kl_note *sent(alone *a, kl_note_kind kind) {
    for (size_t i = 0; i < a->out.count; i++) {
        const kl_node_action *action = &a->out.items[i];
        if (action->kind == KL_NODE_SEND &&
            kl_note_get(a->out.bytes.data + action->at, action->size, TASKS, &a->note) &&
            a->note.kind == kind)
            return &a->note;
    }
    return NULL;
}

static bool held(alone *a, uint64_t task) {
    const kl_note *report = sent(a, KL_NOTE_REPORT);
    assert_non_null(report);
    for (size_t i = 0; i < report->held.count; i++)
        if (task >= report->held.at[i].lo && task < report->held.at[i].hi)
            return true;
    return false;
}

static kl_note call_of(uint32_t round) {
    return (kl_note){.kind = KL_NOTE_CALL, .census = round, .round = round, .peers = 3};
}

/* If a gift arrives after the receiver has reported, the giver must report the tasks of the gift. If the gift
 * arrives earlier, the receiver reports these tasks, or has given them to another peer. */
static void a_report_waits_for_acknowledgements_of_gifts(void **state) {
    (void)state;
    for (uint32_t receiver_census = 0; receiver_census <= 2; receiver_census += 2) {
        alone a = peer_of(1, 3, "steal", (kl_span){0, 10});
        hears(&a, 2, &(kl_note){.kind = KL_NOTE_ASK, .rate = 1}, 1);
        kl_note call = call_of(2);
        uint64_t number = sent(&a, KL_NOTE_GIFT)->number, last = a.note.spans.at[0].hi - 1;
        hears(&a, 0, &call, 1);
        assert_null(sent(&a, KL_NOTE_REPORT));
        hears(&a, 2, &(kl_note){.kind = KL_NOTE_GOT, .census = receiver_census, .number = number}, 1);
        assert_int_equal(held(&a, last), receiver_census == 2);
        assert_true(held(&a, 0));
        call.round = call.census = 3;
        hears(&a, 0, &call, 1);
        assert_false(held(&a, last));
        let_go(&a);
    }
}

/* If a census does not know that the receiver of a gift is dead, it counts the tasks that the receiver has
 * done. So the giver must not report in this census, but only in one that knows of the death. */
static void a_gift_stays_open_until_a_census_knows_that_its_receiver_is_gone(void **state) {
    (void)state;
    alone a = peer_of(1, 3, "steal", (kl_span){0, 10});
    hears(&a, 2, &(kl_note){.kind = KL_NOTE_ASK, .rate = 1}, 1);
    loses(&a, 2, 1);
    kl_note call = call_of(2);
    hears(&a, 0, &call, 1);
    assert_null(sent(&a, KL_NOTE_REPORT));
    call.round = call.census = 3;
    assert_true(kl_numbers_add(&call.gone, 2));
    hears(&a, 0, &call, 1);
    assert_false(held(&a, 9));
    kl_note_free(&call);
    let_go(&a);
}

static void a_gift_to_a_peer_that_is_gone_is_for_the_census(void **state) {
    (void)state;
    alone a = peer_of(1, 3, "steal", (kl_span){0, 10});
    hears(&a, 2, &(kl_note){.kind = KL_NOTE_ASK, .rate = 1}, 1);
    uint64_t last = sent(&a, KL_NOTE_GIFT)->spans.at[0].hi - 1;
    kl_note call = call_of(2);
    assert_true(kl_numbers_add(&call.gone, 2));
    hears(&a, 0, &call, 1);
    assert_false(held(&a, last));
    kl_note_free(&call);
    let_go(&a);
}

/* A gift must wait if its sender was called to a census before this peer. If it were taken at once, its tasks
 * would be counted twice. */
static void a_message_from_behind_the_cut_waits(void **state) {
    (void)state;
    alone a = peer_of(1, 3, "steal", (kl_span){0, 10});
    kl_note gift = {.kind = KL_NOTE_GIFT, .census = 2, .number = 1}, call = call_of(2);
    assert_true(kl_ranges_add(&gift.spans, (kl_span){50, 60}));
    hears(&a, 2, &gift, 1);
    assert_null(sent(&a, KL_NOTE_GOT));
    assert_int_equal(kl_node_left(a.node), 9);
    hears(&a, 0, &call, 1);
    assert_false(held(&a, 50));
    assert_non_null(sent(&a, KL_NOTE_GOT));
    assert_int_equal(kl_node_left(a.node), 19);
    kl_note_free(&gift);
    let_go(&a);
}

static void tasks_of_a_round_that_was_not_committed_are_reported_again(void **state) {
    (void)state;
    for (uint32_t committed = 0; committed <= 2; committed += 2) {
        alone a = peer_of(1, 3, "steal", (kl_span){0, 10});
        kl_node_step(a.node, &(kl_node_event){.kind = KL_NODE_ENDED}, 1, &a.out);
        kl_note call = call_of(2);
        hears(&a, 0, &call, 1);
        assert_int_equal(sent(&a, KL_NOTE_REPORT)->spans.count, 1);
        call.round = call.census = 3;
        call.number = committed;
        hears(&a, 0, &call, 1);
        assert_int_equal(sent(&a, KL_NOTE_REPORT)->spans.count, committed ? 0 : 1);
        let_go(&a);
    }
}

/* If a task ends after its peer has reported, its result must be sent to the parent at once in a LATE
 * message. If a census follows, the next report must contain the task again. */
static void tasks_done_after_the_report_go_up_twice_if_a_census_comes(void **state) {
    (void)state;
    alone a = peer_of(1, 3, "steal", (kl_span){0, 1});
    kl_note gift = {.kind = KL_NOTE_GIFT, .number = 1}, call = call_of(2);
    assert_true(kl_ranges_add(&gift.spans, (kl_span){50, 51}));
    kl_node_step(a.node, &(kl_node_event){.kind = KL_NODE_ENDED}, 1, &a.out);
    assert_int_equal(kl_ranges_sum(&sent(&a, KL_NOTE_REPORT)->spans), 1);
    hears(&a, 2, &gift, 2);
    kl_node_step(a.node, &(kl_node_event){.kind = KL_NODE_ENDED}, 3, &a.out);
    assert_int_equal(sent(&a, KL_NOTE_LATE)->spans.at[0].lo, 50);
    kl_node_step(a.node, &(kl_node_event){.kind = KL_NODE_REACHED}, 4, &a.out);
    assert_null(sent(&a, KL_NOTE_LATE));
    call.number = 1; /* the root has committed round 1, so the first report counts */
    hears(&a, 0, &call, 5);
    assert_int_equal(kl_ranges_sum(&sent(&a, KL_NOTE_REPORT)->spans), 1);
    assert_int_equal(a.note.spans.at[0].lo, 50);
    kl_note_free(&gift);
    let_go(&a);
}

/* All peers have reported, but nobody has task 99. The root must wait for it as a late task first, and then
 * call a census, which finds that the task is lost. */
static void the_root_calls_a_census_for_tasks_that_do_not_come(void **state) {
    (void)state;
    alone a = peer_of(0, 2, "steal", (kl_span){0, 1});
    kl_note report = {.kind = KL_NOTE_REPORT, .round = 1, .peers = 2};
    assert_true(kl_ranges_add(&report.spans, (kl_span){1, 99}));
    kl_node_step(a.node, &(kl_node_event){.kind = KL_NODE_ENDED}, 1, &a.out);
    hears(&a, 1, &report, 1);
    assert_null(sent(&a, KL_NOTE_CALL));
    double patient_until_s = a.out.wake_s;
    assert_true(patient_until_s > 2 && patient_until_s < 100);
    kl_node_step(a.node, &(kl_node_event){.kind = KL_NODE_REACHED}, patient_until_s, &a.out);
    assert_non_null(sent(&a, KL_NOTE_CALL));
    report.round = 2;
    report.spans.count = 0;
    hears(&a, 1, &report, patient_until_s);
    assert_true(a.node->work.hand.on);
    assert_int_equal(a.node->work.hand.task, 99);
    kl_note_free(&report);
    let_go(&a);
}

/* A parent must report the results of a dead child from the last copy that the child sent, unless they are
 * committed. Peer 1 is the parent of peer 13. */
static void a_parent_reports_what_a_child_saved_before_it_died(void **state) {
    (void)state;
    for (uint32_t committed = 0; committed <= 2; committed++) {
        alone a = peer_of(1, 14, "steal", (kl_span){0});
        kl_note save = {.kind = KL_NOTE_SAVE, .round = 1}, call = call_of(4);
        assert_true(kl_ranges_add(&save.spans, (kl_span){20, 25}) &&
                    kl_ranges_add(&save.held, (kl_span){10, 15}) && kl_numbers_add(&call.gone, 13));
        hears(&a, 13, &save, 1);
        call.number = committed;
        hears(&a, 0, &call, 1);
        static const uint64_t counted[] = {10, 5, 0};
        assert_int_equal(kl_ranges_sum(&sent(&a, KL_NOTE_REPORT)->spans), counted[committed]);
        kl_note_free(&save);
        kl_note_free(&call);
        let_go(&a);
    }
}

/* Peer 157, which is below peers 1 and 13, has lost the connection to peer 13. So it has sent copies of its
 * results to both of these peers. Only its heir must report them: peer 13, or peer 1 if peer 13 is gone,
 * too. */
static void only_the_heir_reports_what_a_peer_saved_before_it_died(void **state) {
    (void)state;
    for (uint32_t deaths = 1; deaths <= 2; deaths++) {
        alone a = peer_of(1, 158, "steal", (kl_span){0});
        kl_note save = {.kind = KL_NOTE_SAVE, .round = 1}, call = call_of(4);
        call.peers = 158;
        assert_true(kl_ranges_add(&save.spans, (kl_span){20, 25}) && kl_numbers_add(&call.gone, 157) &&
                    (deaths == 1 || kl_numbers_add(&call.gone, 13)));
        hears(&a, 157, &save, 1);
        hears(&a, 0, &call, 1);
        assert_int_equal(kl_ranges_sum(&a.node->work.sent.tasks), deaths == 2 ? 5 : 0);
        kl_note_free(&save);
        kl_note_free(&call);
        let_go(&a);
    }
}

/* A peer that has joined must not take part before the root knows of it. Otherwise a census would miss its
 * tasks if its parent died. */
static void a_new_peer_takes_part_when_the_root_knows_of_it(void **state) {
    (void)state;
    alone a = peer_of(1, 13, "steal", (kl_span){0, 10});
    for (uint32_t peer = 13; peer < 15; peer++) {
        hears(&a, peer, &(kl_note){.kind = KL_NOTE_HURRY}, 1);
        assert_int_equal(sent(&a, KL_NOTE_HURRY)->peers, peer + 1);
    }
    kl_note call = call_of(2);
    call.peers = 13;
    hears(&a, 0, &call, 1);
    assert_null(sent(&a, KL_NOTE_CALL));
    call = call_of(3);
    call.peers = 15;
    hears(&a, 0, &call, 1);
    assert_non_null(sent(&a, KL_NOTE_CALL));
    let_go(&a);
}

static void messages_of_a_peer_that_is_gone_are_not_heard(void **state) {
    (void)state;
    alone a = peer_of(1, 3, "steal", (kl_span){0, 10});
    kl_note gift = {.kind = KL_NOTE_GIFT, .number = 1};
    assert_true(kl_ranges_add(&gift.spans, (kl_span){50, 60}));
    loses(&a, 2, 1);
    assert_int_equal(sent(&a, KL_NOTE_LOSS)->gone.at[0], 2);
    hears(&a, 2, &gift, 1);
    assert_int_equal(kl_node_left(a.node), 9);
    kl_note_free(&gift);
    let_go(&a);
}

/* The first death must be reported at once. Later deaths must be reported together, after a pause. */
static void deaths_go_up_together(void **state) {
    (void)state;
    alone a = peer_of(1, 40, "help", (kl_span){0, 10});
    hears(&a, 0, &(kl_note){.kind = KL_NOTE_PLAN, .round = 1, .peers = 40, .next_s = 100}, 1);
    loses(&a, 17, 1);
    assert_int_equal(sent(&a, KL_NOTE_LOSS)->gone.count, 1);
    for (uint32_t peer = 18; peer < 21; peer++) {
        loses(&a, peer, 1.5);
        assert_null(sent(&a, KL_NOTE_LOSS));
    }
    loses(&a, 17, 1.5); /* the death of peer 17 was reported already */
    kl_node_step(a.node, &(kl_node_event){.kind = KL_NODE_REACHED}, 4, &a.out);
    const kl_note *loss = sent(&a, KL_NOTE_LOSS);
    assert_int_equal(loss->gone.count, 3);
    assert_int_equal(loss->gone.at[2], 20);
    let_go(&a);
}

/* The report of a death may be lost with the parent. So a peer must report it again if the root does not know
 * of the death when it calls a census. */
static void a_death_that_a_census_does_not_know_is_reported_again(void **state) {
    (void)state;
    alone a = peer_of(1, 3, "steal", (kl_span){0, 10});
    loses(&a, 2, 1);
    assert_non_null(sent(&a, KL_NOTE_LOSS));
    kl_note call = call_of(2);
    hears(&a, 0, &call, 2);
    const kl_note *loss = sent(&a, KL_NOTE_LOSS);
    assert_non_null(loss);
    assert_int_equal(loss->gone.count, 1);
    assert_int_equal(loss->gone.at[0], 2);
    call.round = call.census = 3;
    assert_true(kl_numbers_add(&call.gone, 2));
    hears(&a, 0, &call, 3);
    assert_null(sent(&a, KL_NOTE_LOSS));
    kl_note_free(&call);
    let_go(&a);
}

static void malformed_bytes_lose_their_sender(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 200; i++) {
        alone a = peer_of(0, 3, "help", (kl_span){0, 10});
        uint64_t bytes[4] = {kl_mix64(i), kl_mix64(i + 1), kl_mix64(i + 2), kl_mix64(i + 3)};
        kl_node_step(
            a.node,
            &(kl_node_event){.kind = KL_NODE_HEARS, .peer = 1, .data = bytes, .size = i % sizeof bytes}, 0,
            &a.out);
        assert_false(a.out.failed);
        assert_true(a.out.malformed);
        assert_true(kl_node_counts_gone(a.node, 1));
        assert_false(kl_node_counts_gone(a.node, 2));
        let_go(&a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_report_waits_for_acknowledgements_of_gifts),
        cmocka_unit_test(a_gift_stays_open_until_a_census_knows_that_its_receiver_is_gone),
        cmocka_unit_test(a_gift_to_a_peer_that_is_gone_is_for_the_census),
        cmocka_unit_test(a_message_from_behind_the_cut_waits),
        cmocka_unit_test(tasks_of_a_round_that_was_not_committed_are_reported_again),
        cmocka_unit_test(tasks_done_after_the_report_go_up_twice_if_a_census_comes),
        cmocka_unit_test(the_root_calls_a_census_for_tasks_that_do_not_come),
        cmocka_unit_test(a_parent_reports_what_a_child_saved_before_it_died),
        cmocka_unit_test(only_the_heir_reports_what_a_peer_saved_before_it_died),
        cmocka_unit_test(a_new_peer_takes_part_when_the_root_knows_of_it),
        cmocka_unit_test(messages_of_a_peer_that_is_gone_are_not_heard),
        cmocka_unit_test(deaths_go_up_together),
        cmocka_unit_test(a_death_that_a_census_does_not_know_is_reported_again),
        cmocka_unit_test(malformed_bytes_lose_their_sender),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
