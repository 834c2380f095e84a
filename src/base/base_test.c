#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "base/base.h"

static void values_survive_the_buffer(void **state) {
    (void)state;
    kl_buffer b = {0};
    kl_put_u8(&b, 7);
    kl_put_u32(&b, 0xdeadbeef);
    kl_put_u64(&b, UINT64_MAX - 1);
    kl_put_f64(&b, -0.1);
    kl_put_span(&b, "abc", 3);
    kl_put_span(&b, NULL, 0);
    kl_set_u32(&b, 1, 42);
    assert_false(b.failed);

    kl_reader r = kl_reader_of(b.data, b.size);
    size_t size;
    assert_int_equal(kl_get_u8(&r), 7);
    assert_int_equal(kl_get_u32(&r), 42);
    assert_true(kl_get_u64(&r) == UINT64_MAX - 1);
    assert_true(kl_get_f64(&r) == -0.1);
    assert_memory_equal(kl_get_span(&r, &size), "abc", 3);
    assert_int_equal(size, 3);
    kl_get_span(&r, &size);
    assert_int_equal(size, 0);
    assert_true(kl_reader_done(&r));
    kl_buffer_free(&b);
}

static void reading_past_the_end_is_bad_and_stays_bad(void **state) {
    (void)state;
    kl_buffer b = {0};
    kl_put_u32(&b, 1000); /* append a length of 1000 without the 1000 bytes that should follow */
    kl_put_u8(&b, 1);
    kl_reader r = kl_reader_of(b.data, b.size);
    size_t size;
    assert_null(kl_get_span(&r, &size));
    assert_int_equal(size, 0);
    assert_int_equal(kl_get_u8(&r), 0);
    assert_false(kl_reader_done(&r));
    kl_buffer_free(&b);
}

static void unread_bytes_are_not_done(void **state) {
    (void)state;
    kl_reader r = kl_reader_of("xy", 2);
    kl_get_u8(&r);
    assert_false(kl_reader_done(&r));
}

static void errors_carry_words_and_status(void **state) {
    (void)state;
    kilter_error error;
    assert_int_equal(kl_fail(&error, KILTER_ERR_INPUT, "reading %s: line %d", "a file", 3), KILTER_ERR_INPUT);
    assert_int_equal(error.status, KILTER_ERR_INPUT);
    assert_string_equal(error.text, "reading a file: line 3");
    assert_int_equal(kl_fail(NULL, KILTER_ERR_MEMORY, "nobody listens"), KILTER_ERR_MEMORY);
    assert_string_equal(kilter_status_text(KILTER_OK), "done");
    assert_string_equal(kilter_status_text((kilter_status)999), "not a status of this version");
}

static void bytes_are_aligned_by_copying_where_needed(void **state) {
    (void)state;
    _Alignas(max_align_t) char bytes[64] = "0123456789abcdefghij";
    kl_buffer scratch = {0};
    assert_ptr_equal(kl_aligned(&scratch, bytes, 10), bytes);
    for (size_t off = 1; off < _Alignof(max_align_t); off++) {
        const char *got = kl_aligned(&scratch, bytes + off, 10);
        assert_int_equal((uintptr_t)got % _Alignof(max_align_t), 0);
        assert_memory_equal(got, bytes + off, 10);
    }
    assert_non_null(kl_aligned(&scratch, bytes + 1, 0));
    kl_buffer_free(&scratch);
}

static void a_hash_notices_every_flipped_bit_and_another_length(void **state) {
    (void)state;
    uint8_t bytes[100] = {0};
    for (size_t size = 0; size <= sizeof bytes; size++) {
        uint64_t hash = kl_hash(bytes, size, 7);
        assert_true(size == 0 || hash != kl_hash(bytes, size - 1, 7));
        assert_true(hash != kl_hash(bytes, size, 8));
        for (size_t bit = 0; bit < 8 * size; bit++) {
            bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
            assert_true(hash != kl_hash(bytes, size, 7));
            bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        assert_true(hash == kl_hash(bytes, size, 7));
    }
}

/* The hash must never change, because files and messages contain it. It must not depend on the address of
 * the bytes. */
static void a_hash_is_the_same_everywhere(void **state) {
    (void)state;
    uint8_t bytes[64];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)i;
    assert_true(kl_hash(NULL, 0, 0) == 0xc047ce1cb05ab02eu);
    assert_true(kl_hash(bytes, 63, 0) == 0x114cce6a79b2325au);
    memmove(bytes + 1, bytes, 63);
    assert_true(kl_hash(bytes + 1, 63, 0) == kl_hash(memmove(bytes, bytes + 1, 63), 63, 0));
}

/* --- members --- */

typedef struct told {
    uint32_t a;
    uint64_t b;
    double c, since_s;
    bool d;
    char exact[4], shown[4];
} told;

#define TOLD(X) X(u32, a) X(u64, b) X(f64, c) X(time, since_s) X(flag, d) X(text, exact) X(label, shown)

static bool tell(const told *m, told *heard) {
    kl_buffer buffer = {0}, *out = &buffer;
    TOLD(KL_PUT_MEMBER)
    kl_reader reader = kl_reader_of(buffer.data, buffer.size), *r = &reader;
    memset(heard, 0x55, sizeof *heard);
    {
        told *m = heard;
        TOLD(KL_GET_MEMBER)
    }
    bool done = kl_reader_done(r);
    for (size_t cut = 0; cut < buffer.size; cut++) { /* a message that was cut at any place must be refused */
        told part, *m = &part;
        reader = kl_reader_of(buffer.data, cut);
        TOLD(KL_GET_MEMBER)
        assert_true(reader.bad);
        assert_true(memchr(part.exact, 0, sizeof part.exact) && memchr(part.shown, 0, sizeof part.shown));
    }
    kl_buffer_free(&buffer);
    return done;
}

static void members_come_back(void **state) {
    (void)state;
    told heard, sent = {1, UINT64_MAX, -0.5, 2.5, true, "abc", "x\ny"};
    assert_true(tell(&sent, &heard));
    assert_true(heard.a == 1 && heard.b == UINT64_MAX && heard.c == -0.5 && heard.since_s == 2.5 && heard.d);
    assert_string_equal(heard.exact, "abc");
    assert_string_equal(heard.shown, "x?y");
    static const double wrong[] = {-1, (double)NAN, (double)INFINITY};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        sent.since_s = wrong[i];
        assert_false(tell(&sent, &heard));
    }
}

static void texts_that_do_not_fit(void **state) {
    (void)state;
    char text[4], label[4];
    kl_buffer buffer = {0};
    kl_put_text(&buffer, "abcd");
    kl_reader r = kl_reader_of(buffer.data, buffer.size);
    kl_read_label(&r, label, sizeof label);
    assert_true(kl_reader_done(&r));
    assert_string_equal(label, "abc");
    r = kl_reader_of(buffer.data, buffer.size);
    kl_read_text(&r, text, sizeof text);
    assert_true(r.bad && !*text);
    kl_buffer_clear(&buffer);
    kl_put_span(&buffer, "a\0b", 3);
    r = kl_reader_of(buffer.data, buffer.size);
    kl_read_text(&r, text, sizeof text);
    assert_true(r.bad && !*text);
    kl_buffer_free(&buffer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_come_back),
        cmocka_unit_test(texts_that_do_not_fit),
        cmocka_unit_test(values_survive_the_buffer),
        cmocka_unit_test(reading_past_the_end_is_bad_and_stays_bad),
        cmocka_unit_test(unread_bytes_are_not_done),
        cmocka_unit_test(errors_carry_words_and_status),
        cmocka_unit_test(bytes_are_aligned_by_copying_where_needed),
        cmocka_unit_test(a_hash_notices_every_flipped_bit_and_another_length),
        cmocka_unit_test(a_hash_is_the_same_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
