/* Test the messages between peers: a written message can be read, and malformed bytes are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "peer/note.h"

enum { TASKS = 1000 };

static kl_buffer a_report(void) {
    kl_note note = {.kind = KL_NOTE_REPORT,
                    .census = 3,
                    .round = 4,
                    .peers = 5,
                    .number = 6,
                    .rate = 7.5,
                    .closing = true,
                    .value = {"results", 7},
                    .held_value = {"reported", 8}};
    kl_buffer out = {0};
    assert_true(kl_ranges_add(&note.spans, (kl_span){0, 10}));
    assert_true(kl_ranges_add(&note.held, (kl_span){20, TASKS}));
    assert_true(kl_standings_add(&note.standings, (kl_standing){2, 3.5, 4.5}));
    assert_true(kl_orders_add(&note.orders, (kl_order){KL_NOBODY, 1, {5, 6}}));
    assert_true(kl_numbers_add(&note.gone, 9));
    kl_note_put(&out, &note);
    assert_false(out.failed);
    kl_note_free(&note);
    return out;
}

static void what_is_put_is_read(void **state) {
    (void)state;
    kl_buffer out = a_report(), again = {0};
    kl_note note = {0};
    assert_true(kl_note_get(out.data, out.size, TASKS, &note));
    assert_int_equal(note.kind, KL_NOTE_REPORT);
    assert_int_equal(note.round, 4);
    assert_true(note.closing && !note.over);
    assert_int_equal(note.held.at[0].hi, TASKS);
    assert_int_equal(note.orders.at[0].from, KL_NOBODY);
    assert_int_equal(note.value.size, 7);
    assert_memory_equal(note.value.data, "results", 7);
    assert_memory_equal(note.held_value.data, "reported", note.held_value.size);
    kl_note_put(&again, &note);
    assert_int_equal(again.size, out.size);
    assert_memory_equal(again.data, out.data, out.size);
    kl_note_free(&note);
    kl_buffer_free(&out);
    kl_buffer_free(&again);
}

static void a_part_of_a_message_is_refused(void **state) {
    (void)state;
    kl_buffer out = a_report();
    kl_note note = {0};
    for (size_t size = 0; size < out.size; size++)
        assert_false(kl_note_get(out.data, size, TASKS, &note));
    kl_put_u8(&out, 0);
    assert_false(kl_note_get(out.data, out.size, TASKS, &note));
    kl_note_free(&note);
    kl_buffer_free(&out);
}

static void tasks_that_are_not_of_the_run_are_refused(void **state) {
    (void)state;
    kl_buffer out = a_report();
    kl_note note = {0};
    assert_false(kl_note_get(out.data, out.size, TASKS - 1, &note));
    kl_note_free(&note);
    kl_buffer_free(&out);
}

/* A peer's number above the limit must be refused, because a peer uses memory in proportion to the largest
 * number that it knows. */
static void a_number_that_no_peer_can_have_is_refused(void **state) {
    (void)state;
    const kl_note bad[] = {
        {.kind = KL_NOTE_HURRY, .peers = KL_PEERS_MOST + 1},
        {.kind = KL_NOTE_VICTIM, .peer = KL_PEERS_MOST},
        {.kind = KL_NOTE_LOSS, .gone = {.at = (uint32_t[]){KL_PEERS_MOST}, .count = 1}},
        {.kind = KL_NOTE_PLAN, .orders = {.at = &(kl_order){0, KL_NOBODY, {0, 1}}, .count = 1}},
        {.kind = KL_NOTE_REPORT, .standings = {.at = &(kl_standing){.peer = KL_PEERS_MOST}, .count = 1}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        kl_buffer out = {0};
        kl_note note = {0};
        kl_note_put(&out, &bad[i]);
        assert_false(kl_note_get(out.data, out.size, TASKS, &note));
        kl_note_free(&note);
        kl_buffer_free(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_put_is_read),
        cmocka_unit_test(a_part_of_a_message_is_refused),
        cmocka_unit_test(tasks_that_are_not_of_the_run_are_refused),
        cmocka_unit_test(a_number_that_no_peer_can_have_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
