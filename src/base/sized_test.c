/* Structs of programs that were compiled with an older or a newer Kilter: check which bytes are copied and
 * which do not change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

enum { OWN = 24, LONGEST = 3 * OWN, GUARD = 0xA5 };

/* For every length of the program's struct, the common bytes must be copied, and the other bytes of the
 * library's struct must be zero. */
static void what_both_have_comes_in(void **state) {
    (void)state;
    for (size_t bytes = 0; bytes <= LONGEST; bytes++) {
        unsigned char theirs[LONGEST] = {0}, own[OWN];
        memset(own, GUARD, sizeof own);
        for (size_t i = 0; i < bytes && i < OWN; i++)
            theirs[i] = (unsigned char)(i + 1);
        assert_int_equal(kl_struct_in((kl_struct){"some", own, OWN}, theirs, bytes, NULL), KILTER_OK);
        for (size_t i = 0; i < OWN; i++)
            assert_int_equal(own[i], i < bytes ? i + 1 : 0);
    }
}

/* A single byte that is not 0, after the members that the library knows, must be enough for an error. */
static void what_only_a_newer_one_has_is_refused(void **state) {
    (void)state;
    for (size_t set = OWN; set < LONGEST; set++) {
        unsigned char theirs[LONGEST] = {0}, own[OWN];
        memset(own, GUARD, sizeof own);
        theirs[set] = 1;
        kilter_error error = {KILTER_OK, ""};
        assert_int_equal(kl_struct_in((kl_struct){"some", own, OWN}, theirs, LONGEST, &error),
                         KILTER_ERR_USAGE);
        assert_non_null(strstr(error.text, "some: the program sets a member"));
        for (size_t i = 0; i < OWN; i++)
            assert_int_equal(own[i], GUARD);
    }
}

static void what_goes_out_ends_where_theirs_ends(void **state) {
    (void)state;
    unsigned char own[OWN];
    for (size_t i = 0; i < OWN; i++)
        own[i] = (unsigned char)(i + 1);
    for (size_t bytes = 0; bytes < LONGEST; bytes++) {
        unsigned char theirs[LONGEST];
        memset(theirs, GUARD, sizeof theirs);
        kl_struct_out(theirs, bytes, (kl_struct){"some", own, OWN});
        for (size_t i = 0; i < LONGEST; i++)
            assert_int_equal(theirs[i], i >= bytes ? GUARD : i < OWN ? own[i] : 0);
    }
}

static void zeros_lie_behind_what_is_handed_over(void **state) {
    (void)state;
    struct small {
        uint64_t value;
    } given = {UINT64_MAX};
    const struct small *handed = KL_HAND(struct small, given);
    unsigned char seen[sizeof given + KL_LATER_BYTES];
    memcpy(seen, handed, sizeof seen);
    for (size_t i = 0; i < sizeof seen; i++)
        assert_int_equal(seen[i], i < sizeof given ? UINT8_MAX : 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_both_have_comes_in),
        cmocka_unit_test(what_only_a_newer_one_has_is_refused),
        cmocka_unit_test(what_goes_out_ends_where_theirs_ends),
        cmocka_unit_test(zeros_lie_behind_what_is_handed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
