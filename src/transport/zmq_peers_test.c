#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/base.h"
#include "transport/zmq_peers.h"

static void expect_cut(kl_zmq_peers *peers, uint32_t id, kl_zmq_standing standing) {
    uint32_t cut;
    kl_zmq_standing stood;
    assert_true(kl_zmq_peers_forget_cut(peers, &cut, &stood));
    assert_int_equal(cut, id);
    assert_int_equal(stood, standing);
    assert_int_equal(kl_zmq_peers_get(peers, id), KL_ZMQ_UNKNOWN);
}

static void expect_none_cut(kl_zmq_peers *peers) {
    uint32_t cut;
    kl_zmq_standing stood;
    assert_false(kl_zmq_peers_forget_cut(peers, &cut, &stood));
}

static void a_peer_lives_as_long_as_its_connection(void **state) {
    (void)state;
    kl_zmq_peers p = {0};
    assert_int_equal(kl_zmq_peers_get(&p, 7), KL_ZMQ_UNKNOWN);
    kl_zmq_peers_opened(&p, 5);
    kl_zmq_peers_add(&p, 7, KL_ZMQ_LIVE, 5, true);
    assert_int_equal(kl_zmq_peers_get(&p, 7), KL_ZMQ_LIVE);
    assert_int_equal(p.live, 1);
    expect_none_cut(&p);
    kl_zmq_peers_closed(&p, 6); /* report the end of a connection that no peer has */
    expect_none_cut(&p);
    kl_zmq_peers_closed(&p, 5);
    assert_int_equal(kl_zmq_peers_get(&p, 7), KL_ZMQ_LIVE); /* the peer's last messages are not read yet */
    kl_zmq_peers_closed(&p, 5);
    expect_cut(&p, 7, KL_ZMQ_LIVE);
    expect_none_cut(&p);
    assert_int_equal(p.live, 0);
    kl_zmq_peers_free(&p);
}

static void who_is_ignored_is_kept_until_its_connection_ends(void **state) {
    (void)state;
    kl_zmq_peers p = {0};
    kl_zmq_peers_opened(&p, 3);
    kl_zmq_peers_opened(&p, 4);
    kl_zmq_peers_add(&p, 0, KL_ZMQ_LIVE, 3, true);
    kl_zmq_peers_add(&p, UINT32_MAX, KL_ZMQ_IGNORED, 4, true);
    kl_zmq_peers_ignore(&p, 0, false);
    kl_zmq_peers_ignore(&p, 0, false);
    kl_zmq_peers_ignore(&p, UINT32_MAX, false);
    kl_zmq_peers_ignore(&p, 12345, false); /* ignore a peer that does not exist */
    assert_int_equal(p.live, 0);
    assert_int_equal(kl_zmq_peers_get(&p, 0), KL_ZMQ_IGNORED);
    kl_zmq_peers_closed(&p, 3);
    expect_cut(&p, 0, KL_ZMQ_IGNORED);
    kl_zmq_peers_closed(&p, 4);
    expect_cut(&p, UINT32_MAX, KL_ZMQ_IGNORED);
    kl_zmq_peers_free(&p);
}

/* Close a descriptor and open it again before a message of its first owner is read. Then two peers claim the
 * descriptor. The peer that cannot be reached must be cut. */
static void a_descriptor_belongs_to_the_one_who_can_be_reached(void **state) {
    (void)state;
    enum { DEAD = 1, ALIVE = 2 };
    for (int dead_first = 0; dead_first < 2; dead_first++) {
        kl_zmq_peers p = {0};
        kl_zmq_peers_opened(&p, 5);
        kl_zmq_peers_closed(&p, 5);
        kl_zmq_peers_opened(&p, 5);
        if (dead_first)
            kl_zmq_peers_add(&p, DEAD, KL_ZMQ_LIVE, 5, false);
        kl_zmq_peers_add(&p, ALIVE, KL_ZMQ_LIVE, 5, true);
        if (!dead_first)
            kl_zmq_peers_add(&p, DEAD, KL_ZMQ_LIVE, 5, false);
        expect_cut(&p, DEAD, KL_ZMQ_LIVE);
        expect_none_cut(&p);
        assert_int_equal(kl_zmq_peers_get(&p, ALIVE), KL_ZMQ_LIVE);
        kl_zmq_peers_closed(&p, 5);
        expect_cut(&p, ALIVE, KL_ZMQ_LIVE);
        kl_zmq_peers_free(&p);
    }
}

static void who_has_no_connection_is_cut_at_once(void **state) {
    (void)state;
    kl_zmq_peers p = {0};
    kl_zmq_peers_add(&p, 1, KL_ZMQ_LIVE, -1, true); /* add a peer for which libzmq gave no descriptor */
    expect_cut(&p, 1, KL_ZMQ_LIVE);
    kl_zmq_peers_add(&p, 2, KL_ZMQ_LIVE, 1000, true); /* add a peer with a descriptor that was never opened */
    expect_cut(&p, 2, KL_ZMQ_LIVE);
    kl_zmq_peers_opened(&p, 9);
    kl_zmq_peers_closed(&p, 9);
    kl_zmq_peers_add(&p, 3, KL_ZMQ_LIVE, 9, true); /* add a peer with a descriptor that was closed again */
    expect_cut(&p, 3, KL_ZMQ_LIVE);
    kl_zmq_peers_free(&p);
}

static bool is_in_set(void *set, uint32_t id) {
    return *(unsigned *)set >> id & 1;
}

/* Close a descriptor and open it again, while libzmq still accepts messages for the dead peer. No peer may
 * be cut until one of them cannot be reached. */
static void of_two_that_can_be_reached_neither_is_cut_until_one_cannot(void **state) {
    (void)state;
    enum { DEAD = 1, ALIVE = 2, BOTH = 1 << DEAD | 1 << ALIVE, ONE = 1 << ALIVE };
    for (int dead_first = 0; dead_first < 2; dead_first++) {
        kl_zmq_peers p = {0};
        unsigned reachable = BOTH;
        kl_zmq_peers_opened(&p, 5);
        kl_zmq_peers_closed(&p, 5);
        kl_zmq_peers_opened(&p, 5);
        kl_zmq_peers_add(&p, dead_first ? DEAD : ALIVE, KL_ZMQ_LIVE, 5, true);
        kl_zmq_peers_add(&p, dead_first ? ALIVE : DEAD, KL_ZMQ_LIVE, 5, true);
        for (int i = 0; i < 3; i++)
            kl_zmq_peers_settle(&p, is_in_set, &reachable);
        expect_none_cut(&p);
        assert_int_equal(p.rival_count, 1);
        reachable = ONE;
        kl_zmq_peers_settle(&p, is_in_set, &reachable);
        expect_cut(&p, DEAD, KL_ZMQ_LIVE);
        expect_none_cut(&p);
        assert_int_equal(p.rival_count, 0);
        assert_int_equal(kl_zmq_peers_get(&p, ALIVE), KL_ZMQ_LIVE);
        kl_zmq_peers_closed(&p, 5);
        expect_cut(&p, ALIVE, KL_ZMQ_LIVE);
        kl_zmq_peers_free(&p);
    }
}

static void the_end_of_a_connection_ends_all_who_claim_it(void **state) {
    (void)state;
    kl_zmq_peers p = {0};
    kl_zmq_peers_opened(&p, 8);
    kl_zmq_peers_opened(&p, 9);
    for (uint32_t id = 0; id < 6; id++)
        kl_zmq_peers_add(&p, id, KL_ZMQ_LIVE, 8 + (int)(id % 2), true);
    assert_int_equal(p.rival_count, 4);
    kl_zmq_peers_closed(&p, 9);
    assert_int_equal(p.rival_count, 2);
    for (uint32_t id = 5; id < 6; id -= 2)
        expect_cut(&p, id, KL_ZMQ_LIVE);
    expect_none_cut(&p);
    /* three peers claim descriptor 8, and only the last of them can be reached */
    unsigned reachable = 1 << 4;
    kl_zmq_peers_settle(&p, is_in_set, &reachable);
    assert_int_equal(p.rival_count, 0);
    expect_cut(&p, 0, KL_ZMQ_LIVE);
    expect_cut(&p, 2, KL_ZMQ_LIVE);
    assert_int_equal(p.live, 1);
    kl_zmq_peers_free(&p);
}

/* Let thousands of peers come and go in any order, and compare the table with a plain array. */
static void the_table_knows_everybody(void **state) {
    (void)state;
    enum { IDS = 300, STEPS = 20000 };
    for (uint64_t seed = 1; seed <= 5; seed++) {
        kl_zmq_peers p = {0};
        kl_zmq_standing expected[IDS] = {KL_ZMQ_UNKNOWN};
        for (uint64_t step = 0; step < STEPS; step++) {
            uint64_t draw = kl_mix64(seed << 32 | step);
            int i = (int)(draw % IDS);
            /* use ids around the value at which libzmq's count of ids wraps to zero */
            uint32_t id = (uint32_t)(UINT32_MAX - IDS / 2 + (uint32_t)i);
            if (expected[i] == KL_ZMQ_UNKNOWN) {
                expected[i] = draw >> 40 & 1 ? KL_ZMQ_LIVE : KL_ZMQ_IGNORED;
                kl_zmq_peers_opened(&p, i);
                kl_zmq_peers_add(&p, id, expected[i], i, true);
            } else if (expected[i] == KL_ZMQ_LIVE && draw >> 41 & 1) {
                expected[i] = KL_ZMQ_IGNORED;
                kl_zmq_peers_ignore(&p, id, false);
            } else {
                kl_zmq_peers_closed(&p, i);
                expect_cut(&p, id, expected[i]);
                expected[i] = KL_ZMQ_UNKNOWN;
            }
            int other = (int)((draw >> 20) % IDS);
            assert_int_equal(kl_zmq_peers_get(&p, (uint32_t)(UINT32_MAX - IDS / 2 + (uint32_t)other)),
                             expected[other]);
        }
        size_t live = 0, used = 0;
        for (int i = 0; i < IDS; i++) {
            live += expected[i] == KL_ZMQ_LIVE;
            used += expected[i] != KL_ZMQ_UNKNOWN;
        }
        assert_int_equal(p.live, live);
        assert_int_equal(p.used, used);
        assert_false(p.failed);
        kl_zmq_peers_free(&p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_peer_lives_as_long_as_its_connection),
        cmocka_unit_test(who_is_ignored_is_kept_until_its_connection_ends),
        cmocka_unit_test(a_descriptor_belongs_to_the_one_who_can_be_reached),
        cmocka_unit_test(who_has_no_connection_is_cut_at_once),
        cmocka_unit_test(of_two_that_can_be_reached_neither_is_cut_until_one_cannot),
        cmocka_unit_test(the_end_of_a_connection_ends_all_who_claim_it),
        cmocka_unit_test(the_table_knows_everybody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
