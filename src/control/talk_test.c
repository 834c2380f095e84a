#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "control/talk.h"

static uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Return a state of a farm in which each field has a different value. */
static kl_control_state some_state(uint32_t workers) {
    kl_control_state s = {.program = "squares",
                          .transport = "zmq",
                          .running = true,
                          .policy = "AUTO",
                          .waiting = "policy DAF from iteration 4 on",
                          .decision = "3 of 4 workers: the fourth would gain 1 % and cost 33 %",
                          .worker_count = workers};
    uint64_t next = 1;
#define SET_COUNT(name)  s.name = next++;
#define SET_NUMBER(name) s.name = 0.25 * (double)next++;
    KL_CONTROL_COUNTS(SET_COUNT)
    KL_CONTROL_NUMBERS(SET_NUMBER)
    s.index = NAN;
    for (uint32_t i = 0; i < workers; i++)
        s.workers[i] =
            (kl_control_worker){i, (kl_control_activity)(i % KL_CONTROL_ACTIVITIES), i / 3.0, NAN, i, 2 * i};
    s.host_count = workers < KL_CONTROL_HOSTS_MOST ? workers : KL_CONTROL_HOSTS_MOST;
    for (uint32_t i = 0; i < s.host_count; i++) {
        s.hosts[i] =
            (kl_control_host){.drained = i % 2, .workers = i, .idle = i + 1, .working = i + 2, .lost = 3};
        memset(s.hosts[i].name, 'n', sizeof s.hosts[i].name - 1);
    }
    return s;
}

static void a_state_arrives_as_it_was_sent(void **unused) {
    (void)unused;
    const uint32_t counts[] = {0, 1, 7, KL_CONTROL_WORKERS_MOST};
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        kl_control_state sent = some_state(counts[k]), got;
        kl_buffer out = {0};
        kl_talk_put_state(&out, &sent);
        assert_true(out.size <= KL_REPLY_BYTES_MOST);
        assert_true(kl_talk_get_state(out.data, out.size, &got));
        assert_string_equal(got.program, sent.program);
        assert_string_equal(got.transport, sent.transport);
        assert_string_equal(got.policy, sent.policy);
        assert_string_equal(got.waiting, sent.waiting);
        assert_string_equal(got.decision, sent.decision);
        assert_true(got.running && !got.chooses);
#define SAME_COUNT(name)  assert_int_equal(got.name, sent.name);
#define SAME_NUMBER(name) assert_int_equal(bits_of(got.name), bits_of(sent.name));
        KL_CONTROL_COUNTS(SAME_COUNT)
        KL_CONTROL_NUMBERS(SAME_NUMBER)
        assert_int_equal(got.worker_count, counts[k]);
        for (uint32_t i = 0; i < counts[k]; i++) {
            assert_int_equal(got.workers[i].worker, i);
            assert_int_equal(got.workers[i].activity, sent.workers[i].activity);
            assert_int_equal(bits_of(got.workers[i].rate_units_per_s), bits_of(i / 3.0));
            assert_true(isnan(got.workers[i].busy_s));
            assert_int_equal(got.workers[i].chunks, i);
            assert_int_equal(got.workers[i].queued_tasks, 2 * i);
        }
        assert_int_equal(got.host_count, sent.host_count);
        for (uint32_t i = 0; i < got.host_count; i++) {
            assert_string_equal(got.hosts[i].name, sent.hosts[i].name);
            assert_true(got.hosts[i].drained == i % 2 && got.hosts[i].workers == i &&
                        got.hosts[i].idle == i + 1 && got.hosts[i].working == i + 2 &&
                        got.hosts[i].lost == 3);
        }
        kl_buffer_free(&out);
    }
}

static void a_setting_arrives_as_it_was_sent(void **unused) {
    (void)unused;
    for (int given = 0; given < 8; given++) {
        kl_control_setting sent = {given & 1, given & 2, given & 4, "fsc", 0.3, 12}, got;
        kl_buffer out = {0};
        kl_talk_put_set(&out, &sent);
        assert_true(out.size <= KL_REQUEST_BYTES_MOST);
        assert_true(kl_talk_get_set(out.data, out.size, &got));
        assert_int_equal(got.policy_given, sent.policy_given);
        assert_int_equal(got.factor_given, sent.factor_given);
        assert_int_equal(got.workers_given, sent.workers_given);
        assert_string_equal(got.policy, "fsc");
        assert_true(got.factor == 0.3);
        assert_int_equal(got.workers, 12);
        kl_buffer_free(&out);
    }
}

typedef struct drain_case {
    kl_control_drain drain;
    bool well_formed;
} drain_case;

static void a_drain_arrives_as_it_was_sent_or_not_at_all(void **unused) {
    (void)unused;
    const drain_case cases[] = {
        {{.worker_count = 1, .workers = {7}}, true},
        {{.all = true, .worker_count = 3, .workers = {2, 2, UINT32_MAX}}, true},
        {{.worker_count = KL_CONTROL_DRAINED_MOST}, true},
        {{.host = "node1"}, true},
        {{.all = true, .host = "node1"}, true},
        {{.all = true}, true},
        {{.all = false}, false},
        {{.host = "node1", .worker_count = 1}, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const kl_control_drain *sent = &cases[i].drain;
        kl_control_drain got;
        kl_buffer out = {0};
        kl_talk_put_drain(&out, sent);
        assert_true(out.size <= KL_REQUEST_BYTES_MOST);
        assert_int_equal(kl_talk_get_drain(out.data, out.size, &got), cases[i].well_formed);
        kl_buffer_free(&out);
        if (!cases[i].well_formed)
            continue;
        assert_int_equal(got.all, sent->all);
        assert_string_equal(got.host, sent->host);
        assert_int_equal(got.worker_count, sent->worker_count);
        assert_memory_equal(got.workers, sent->workers, sizeof got.workers);
    }
}

static void a_drain_of_too_many_is_none(void **unused) {
    (void)unused;
    kl_control_drain drain = {.worker_count = KL_CONTROL_DRAINED_MOST}, got;
    kl_buffer out = {0};
    kl_talk_put_drain(&out, &drain);
    kl_set_u32(&out, out.size - 4 * (KL_CONTROL_DRAINED_MOST + 1), KL_CONTROL_DRAINED_MOST + 1);
    kl_put_u32(&out, 0);
    assert_false(kl_talk_get_drain(out.data, out.size, &got));
    kl_buffer_free(&out);
}

static void answers_and_refusals_arrive(void **unused) {
    (void)unused;
    char answer[KL_CONTROL_ANSWER_BYTES];
    kilter_error sent, got;
    kl_buffer out = {0};
    kl_talk_put_taken(&out, "factor 0.3 from the next batch on");
    assert_true(kl_talk_get_taken(out.data, out.size, answer));
    assert_string_equal(answer, "factor 0.3 from the next batch on");
    kl_buffer_clear(&out);
    kl_fail(&sent, KILTER_ERR_RANGE, "12 workers: there are 4");
    kl_talk_put_refused(&out, &sent);
    assert_true(kl_talk_get_refused(out.data, out.size, &got));
    assert_int_equal(got.status, KILTER_ERR_RANGE);
    assert_string_equal(got.text, sent.text);
    kl_buffer_clear(&out);
    sent.status = KILTER_OK;
    kl_talk_put_refused(&out, &sent);
    /* a message that refuses a request must contain the status of an error */
    assert_false(kl_talk_get_refused(out.data, out.size, &got));
    kl_buffer_free(&out);
}

static bool any_reads(const uint8_t *data, size_t size) {
    kl_control_setting setting;
    kl_control_drain drain;
    kl_control_state state;
    char answer[KL_CONTROL_ANSWER_BYTES];
    kilter_error why;
    return kl_talk_get_look(data, size) || kl_talk_get_set(data, size, &setting) ||
           kl_talk_get_drain(data, size, &drain) || kl_talk_get_state(data, size, &state) ||
           kl_talk_get_taken(data, size, answer) || kl_talk_get_refused(data, size, &why);
}

/* Read messages that are cut, that have one byte too many, or that have another version. All must be refused,
 * but the version must be readable in each of them. */
static void what_is_not_exactly_a_message_is_none(void **unused) {
    (void)unused;
    kl_control_state state = some_state(3);
    kl_control_setting setting = {.policy = "daf"};
    kl_control_drain drain = {.worker_count = 3};
    kilter_error why;
    kl_fail(&why, KILTER_ERR_RANGE, "no");
    for (int kind = 0; kind < 6; kind++) {
        kl_buffer out = {0};
        kind == 0   ? kl_talk_put_look(&out)
        : kind == 1 ? kl_talk_put_set(&out, &setting)
        : kind == 2 ? kl_talk_put_state(&out, &state)
        : kind == 3 ? kl_talk_put_taken(&out, "yes")
        : kind == 4 ? kl_talk_put_drain(&out, &drain)
                    : kl_talk_put_refused(&out, &why);
        assert_true(any_reads(out.data, out.size));
        for (size_t size = 0; size < out.size; size++)
            assert_false(any_reads(out.data, size));
        out.data[4]++; /* change the message's version */
        uint32_t version;
        assert_false(any_reads(out.data, out.size));
        assert_int_equal(kl_talk_kind(out.data, out.size, &version), KL_TALK_NONE);
        assert_int_equal(version, KL_CONTROL_VERSION + 1);
        out.data[4]--;
        kl_put_u8(&out, 0);
        assert_false(any_reads(out.data, out.size));
        kl_buffer_free(&out);
    }
}

/* Change single bytes of a message. The changed message may be accepted or refused; the sanitizers check
 * that nothing after its end is read. */
static void changed_bytes_do_no_harm(void **unused) {
    (void)unused;
    kl_control_state state = some_state(KL_CONTROL_WORKERS_MOST);
    kl_buffer out = {0};
    kl_talk_put_state(&out, &state);
    for (uint64_t i = 0; i < 20000; i++) {
        size_t at = kl_mix64(i) % out.size;
        uint8_t kept = out.data[at];
        out.data[at] = (uint8_t)kl_mix64(i + 1);
        any_reads(out.data, out.size);
        out.data[at] = kept;
    }
    assert_true(any_reads(out.data, out.size));
    kl_buffer_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_state_arrives_as_it_was_sent),
        cmocka_unit_test(a_setting_arrives_as_it_was_sent),
        cmocka_unit_test(a_drain_arrives_as_it_was_sent_or_not_at_all),
        cmocka_unit_test(a_drain_of_too_many_is_none),
        cmocka_unit_test(answers_and_refusals_arrive),
        cmocka_unit_test(what_is_not_exactly_a_message_is_none),
        cmocka_unit_test(changed_bytes_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
