#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "move/move.h"

static void hello_survives(void **state) {
    (void)state;
    kl_hello sent = {.version = KL_WIRE_VERSION,
                     .pid = 4711,
                     .host = "node7",
                     .binding = "core 3",
                     .program = "prog",
                     .program_version = "1.2"},
             got;
    kl_buffer b = {0};
    kl_wire_put_hello(&b, &sent);
    assert_int_equal(kl_wire_type(b.data, b.size), KL_HELLO);
    assert_true(kl_wire_get_hello(b.data, b.size, &got));
    assert_int_equal(got.pid, 4711);
    assert_string_equal(got.host, "node7");
    assert_string_equal(got.binding, "core 3");
    assert_string_equal(got.program, "prog");
    assert_string_equal(got.program_version, "1.2");
    b.data[1] ^= 1; /* change the magic number */
    assert_false(kl_wire_get_hello(b.data, b.size, &got));
    kl_buffer_free(&b);
}

static void a_later_version_may_say_more_and_a_present_one_may_not(void **state) {
    (void)state;
    for (uint32_t version = KL_WIRE_VERSION; version <= KL_WIRE_VERSION + 1; version++) {
        kl_hello sent = {.version = version}, got;
        kl_buffer b = {0};
        kl_wire_put_hello(&b, &sent);
        kl_put_u64(&b, 99);
        assert_int_equal(kl_wire_get_hello(b.data, b.size, &got), version != KL_WIRE_VERSION);
        kl_buffer_free(&b);
    }
}

static void text_of_a_peer_cannot_steer_a_terminal(void **state) {
    (void)state;
    kl_hello sent = {.version = KL_WIRE_VERSION, .host = "a\033[2Jb\nc"}, got;
    kl_buffer b = {0};
    kl_wire_put_hello(&b, &sent);
    assert_true(kl_wire_get_hello(b.data, b.size, &got));
    assert_string_equal(got.host, "a?[2Jb?c");
    kl_buffer_free(&b);
}

static void shared_data_comes_with_its_hash(void **state) {
    (void)state;
    for (size_t size = 0; size < 20; size += 19) {
        kl_buffer b = {0};
        uint64_t hash;
        kilter_bytes got;
        kl_wire_put_shared(&b, "shared by everybody", size);
        assert_int_equal(kl_wire_type(b.data, b.size), KL_SHARED);
        assert_true(kl_wire_get_shared(b.data, b.size, &hash, &got));
        assert_int_equal(got.size, size);
        assert_memory_equal(size ? got.data : "", "shared by everybody", size);
        assert_true(hash == kl_hash(got.data, size, 0));
        assert_false(kl_wire_get_shared(b.data, 5, &hash, &got));
        kl_buffer_free(&b);
    }
}

static void parts_of_chunks_survive(void **state) {
    (void)state;
    const kl_part sent[] = {{7, 10, 20}, {UINT64_MAX, 5, 5}, {0, 9, 8}};
    for (int i = 0; i < 3; i++) {
        kl_buffer b = {0};
        kl_part got;
        kl_wire_put_part(&b, i ? KL_RETURN : KL_RECALL, &sent[i]);
        assert_int_equal(kl_wire_type(b.data, b.size), i ? KL_RETURN : KL_RECALL);
        assert_int_equal(kl_wire_get_part(b.data, b.size, &got),
                         i < 2); /* let the last span end before its beginning */
        assert_true(got.chunk == sent[i].chunk && got.lo == sent[i].lo && got.hi == sent[i].hi);
        assert_false(kl_wire_get_part(b.data, b.size - 1, &got));
        kl_put_u8(&b, 0);
        assert_false(kl_wire_get_part(b.data, b.size, &got));
        kl_buffer_free(&b);
    }
}

static void heartbeats_survive(void **state) {
    (void)state;
    const kl_heartbeat sent[] = {
        {3, 17, 0.5, 0.25, 0.9, 7}, {3, 17, -1, 0, 0, 7}, {3, 17, 1, NAN, 0, 7}, {3, 17, 1, 1, INFINITY, 7}};
    for (int i = 0; i < 4; i++) {
        kl_buffer b = {0};
        kl_heartbeat got;
        kl_wire_put_heartbeat(&b, &sent[i]);
        assert_int_equal(kl_wire_type(b.data, b.size), KL_HEARTBEAT);
        assert_int_equal(kl_wire_get_heartbeat(b.data, b.size, &got), i == 0);
        assert_true(i > 0 || (got.chunk == 3 && got.task == 17 && got.elapsed_s == 0.5 && got.cpu_s == 0.25 &&
                              got.usual_share == 0.9 && got.memory == 7));
        kl_buffer_free(&b);
    }
}

static void put_chunk(kl_buffer *b, uint64_t count, bool weighted, bool inputs) {
    kl_chunk_head head = {
        .run = 1, .chunk = 2, .lo = 10, .count = count, .shared = 77, .lead_s = 0.001, .held_s = 0.25};
    head.weighted = weighted;
    head.inputs = inputs;
    head.quiet = count % 2;
    kl_wire_put_chunk(b, &head);
    for (uint64_t i = 0; weighted && i < count; i++)
        kl_put_f64(b, 1.5 + (double)i);
    for (uint64_t i = 0; inputs && i < count; i++)
        kl_put_span(b, "abc", i % 4);
}

static void chunks_survive(void **state) {
    (void)state;
    for (int variant = 0; variant < 4; variant++) {
        kl_buffer b = {0};
        put_chunk(&b, 5, variant & 1, variant & 2);
        kl_chunk_head head;
        kl_reader weights, inputs;
        assert_true(kl_wire_get_chunk(b.data, b.size, &head, &weights, &inputs));
        assert_true(head.run == 1 && head.chunk == 2 && head.lo == 10 && head.count == 5 &&
                    head.shared == 77 && head.lead_s == 0.001 && head.held_s == 0.25 && head.quiet);
        for (int i = 0; head.weighted && i < 5; i++)
            assert_true(kl_get_f64(&weights) == 1.5 + i);
        for (size_t i = 0, size; head.inputs && i < 5; i++) {
            kl_get_span(&inputs, &size);
            assert_int_equal(size, i % 4);
        }
        kl_buffer_free(&b);
    }
}

/* Write a message of two segments, the second of which has a failed task. */
static void put_results(kl_buffer *b) {
    kl_segment one = {.chunk = 7, .lo = 3, .began_s = 1, .last = true};
    kl_wire_begin_results(b);
    for (int k = 0; k < 2; k++) {
        size_t at = b->size;
        kl_wire_begin_segment(b, &one);
        for (int i = 0; i < 3; i++) {
            size_t result_at = kl_wire_begin_result(b);
            kl_put_bytes(b, "result", (size_t)i);
            kl_wire_end_result(b, result_at, k == 1 && i == 2);
            kl_stat_add(&one.unit_s, i, 2);
            one.count = (uint64_t)i + 1;
        }
        one.ended_s = 2;
        kl_wire_end_segment(b, at, &one);
        one = (kl_segment){.chunk = 8, .lo = 100, .began_s = 2};
    }
    kl_wire_end_results(b, &(kl_results_head){.segments = 2,
                                              .more = true,
                                              .sent_s = 2.5,
                                              .cpu_s = 1.5,
                                              .delay_s = 0.5,
                                              .round_trip_s = 0.125,
                                              .round_trip_bytes = 300});
}

static void results_survive(void **state) {
    (void)state;
    kl_buffer b = {0};
    put_results(&b);
    kl_results_head head;
    assert_true(kl_wire_check_results(b.data, b.size, &head));
    assert_true(head.more && head.segments == 2 && head.sent_s == 2.5);
    assert_true(head.cpu_s == 1.5 && head.delay_s == 0.5);
    assert_true(head.round_trip_s == 0.125 && head.round_trip_bytes == 300);
    kl_reader r = kl_wire_read_results(b.data, b.size);
    for (uint32_t k = 0; k < 2; k++) {
        kl_segment s;
        assert_true(kl_wire_next_segment(&r, &s));
        assert_true(s.chunk == 7 + k && s.count == 3 && s.last == (k == 0) && s.ended_s == 2);
        assert_true(s.unit_s.count == 3 && s.unit_s.mean == 1 && s.unit_s.max == 2);
        for (size_t i = 0; i < 3; i++) {
            bool failed;
            kilter_bytes bytes;
            assert_true(kl_wire_next_result(&r, &failed, &bytes));
            assert_int_equal(bytes.size, i);
            assert_memory_equal(bytes.data, "result", i);
            assert_int_equal(failed, k == 1 && i == 2);
        }
    }
    kl_buffer_free(&b);
}

typedef bool (*decoder)(const void *data, size_t size);

static bool decode_results(const void *data, size_t size) {
    kl_results_head head;
    return kl_wire_check_results(data, size, &head);
}

static bool decode_chunk(const void *data, size_t size) {
    kl_chunk_head head;
    kl_reader weights, inputs;
    return kl_wire_get_chunk(data, size, &head, &weights, &inputs);
}

/* Decode a copy of the bytes that has exactly their size, so that the sanitizers notice a read even one byte
 * past the end. */
static bool decode_copy(decoder decode, const uint8_t *data, size_t size) {
    uint8_t *copy = malloc(size ? size : 1);
    memcpy(copy, data, size);
    bool good = decode(copy, size);
    free(copy);
    return good;
}

static void sums_survive_and_are_no_results(void **state) {
    (void)state;
    kl_buffer b = {0}, result = {0};
    kl_ranges tasks = {0};
    kl_wire_sum sum;
    bool failed;
    kilter_bytes bytes;
    assert_true(kl_ranges_add(&tasks, (kl_span){3, 5}) && kl_ranges_add(&tasks, (kl_span){9, 10}));
    kl_wire_put_sum(&b, &tasks, (kilter_bytes){"value", 5});
    assert_true(kl_wire_read_sum(b.data, b.size, &sum));
    assert_int_equal(sum.spans, 2);
    assert_int_equal(kl_wire_sum_span(&sum, 0).hi, 5);
    assert_int_equal(kl_wire_sum_span(&sum, 1).lo, 9);
    assert_memory_equal(sum.value.data, "value", 5);
    for (size_t size = 0; size <= b.size - 5; size++)
        assert_false(kl_wire_read_sum(b.data, size, &sum));
    kl_reader r = kl_reader_of(b.data, b.size);
    assert_false(kl_wire_next_result(&r, &failed, &bytes));
    kl_store_u64(b.data + 8, 6); /* let a span end before it begins */
    assert_false(kl_wire_read_sum(b.data, b.size, &sum));
    kl_put_u32(&result, 5);
    kl_put_bytes(&result, "value", 5);
    assert_false(kl_wire_read_sum(result.data, result.size, &sum));
    kl_ranges_free(&tasks);
    kl_buffer_free(&b);
    kl_buffer_free(&result);
}

static void every_shortened_or_lengthened_message_is_refused(void **state) {
    (void)state;
    kl_buffer results = {0}, chunk = {0};
    put_results(&results);
    put_chunk(&chunk, 4, true, true);
    struct {
        kl_buffer *b;
        decoder decode;
    } cases[] = {{&results, decode_results}, {&chunk, decode_chunk}};
    for (int c = 0; c < 2; c++) {
        kl_buffer *b = cases[c].b;
        assert_true(decode_copy(cases[c].decode, b->data, b->size));
        for (size_t size = 0; size < b->size; size++)
            assert_false(decode_copy(cases[c].decode, b->data, size));
        kl_put_u8(b, 0);
        assert_false(decode_copy(cases[c].decode, b->data, b->size));
        kl_buffer_free(b);
    }
}

static void counts_beyond_the_message_are_refused_at_once(void **state) {
    (void)state;
    kl_buffer b = {0};
    kl_chunk_head head = {.count = UINT64_MAX, .weighted = true, .inputs = true};
    kl_wire_put_chunk(&b, &head);
    assert_false(decode_chunk(b.data, b.size));
    kl_buffer_clear(&b);
    head = (kl_chunk_head){.lo = UINT64_MAX - 1, .count = 5}; /* let the end of the tasks exceed 64 bits */
    kl_wire_put_chunk(&b, &head);
    assert_false(decode_chunk(b.data, b.size));
    kl_buffer_free(&b);
}

static void weights_and_times_must_be_numbers(void **state) {
    (void)state;
    kl_buffer b = {0};
    put_chunk(&b, 1, true, false);
    assert_true(decode_chunk(b.data, b.size));
    memset(b.data + b.size - 8, 0xff, 8); /* replace a weight by NaN */
    assert_false(decode_chunk(b.data, b.size));
    for (size_t number = 0; number < 3; number++) { /* replace one of the times in the head of RESULTS by
                                                       NaN */
        kl_buffer_clear(&b);
        put_results(&b);
        assert_true(decode_results(b.data, b.size));
        memset(b.data + 6 + 8 * number, 0xff, 8);
        assert_false(decode_results(b.data, b.size));
    }
    kl_buffer_free(&b);
}

static void signals_survive_and_shortened_ones_are_refused(void **state) {
    (void)state;
    static const uint64_t numbers[] = {0, 1, 9, 10, UINT32_MAX, UINT64_MAX};
    for (int i = 0; i < 12; i++) {
        kl_signal s = {.offers = i % 2,
                       .run = numbers[i % 6],
                       .peer = (uint32_t)numbers[(i + 1) % 6],
                       .to = (uint32_t)numbers[(i + 2) % 6],
                       .left = numbers[(i + 3) % 6],
                       .rate = i < 6 ? 0.25 * i : 1e8};
        kl_signal got;
        char text[KL_SIGNAL_BYTES], name[KL_SIGNAL_BYTES], prefix[KL_SIGNAL_BYTES];
        size_t size = kl_signal_put(&s, text);
        assert_true(size < sizeof text);
        assert_true(kl_signal_get(text, size, &got));
        assert_true(got.offers == s.offers && got.run == s.run && got.peer == s.peer && got.to == s.to &&
                    got.left == s.left && got.rate == s.rate);
        for (size_t cut = 0; cut < size; cut++)
            assert_false(kl_signal_get(text, cut, &got));
        assert_false(kl_signal_get(text, size + 1,
                                   &got)); /* the byte 0 after the text does not belong to the signal */
        kl_signal_name(&s, name);
        kl_signal_prefix(&s, prefix);
        assert_memory_equal(name, prefix, strlen(prefix));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hello_survives),
        cmocka_unit_test(a_later_version_may_say_more_and_a_present_one_may_not),
        cmocka_unit_test(text_of_a_peer_cannot_steer_a_terminal),
        cmocka_unit_test(shared_data_comes_with_its_hash),
        cmocka_unit_test(parts_of_chunks_survive),
        cmocka_unit_test(heartbeats_survive),
        cmocka_unit_test(chunks_survive),
        cmocka_unit_test(results_survive),
        cmocka_unit_test(sums_survive_and_are_no_results),
        cmocka_unit_test(every_shortened_or_lengthened_message_is_refused),
        cmocka_unit_test(counts_beyond_the_message_are_refused_at_once),
        cmocka_unit_test(weights_and_times_must_be_numbers),
        cmocka_unit_test(signals_survive_and_shortened_ones_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
