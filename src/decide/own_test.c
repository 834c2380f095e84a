/* The program's own policies: test the values that they see, the use of their answers, and the refusal of
 * wrong policies. The test deal_test.c checks that every task is dealt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "decide/decide.h"
#include "measure/crew_test_helper.h"

/* The answer that the policy under test gives, and the values that the policy saw. */
typedef struct script {
    uint64_t answer;
    const char *reason; /* reason that the policy gives; NULL: none */
    kilter_policy_view view;
    kilter_policy_worker asks, other;
    bool beyond; /* true: the policy got a worker for an index beyond the last place, which is an error */
} script;

static uint64_t follow(const kilter_policy_view *view, kilter_policy_reason *reason, void *user) {
    script *s = user;
    s->view = *view;
    s->asks = *view->asks;
    assert_true(kilter_policy_worker_get(view, 1, &s->other));
    s->beyond = kilter_policy_worker_get(view, view->places, &s->other);
    if (s->reason)
        kilter_policy_say(reason, "%s", s->reason);
    return s->answer;
}

/* Plan a chunk for the first of two workers. 90 of 100 tasks are left. */
static kl_plan ask(script *s, double queued_at_second) {
    kl_worker_view workers[2] = {{.number = 7, .present = true, .chunks = 1},
                                 {.number = 9,
                                  .present = true,
                                  .queued_tasks = queued_at_second > 0,
                                  .queued_units = queued_at_second}};
    kl_pace_add(&workers[0].pace, 2, 10, 0.5);
    kl_stat_add(&workers[0].unit_s, 0.1, 0);
    kl_stat_add(&workers[0].unit_s, 0.3, 0);
    kl_snapshot snapshot = {.now_s = 5,
                            .began_s = 3,
                            .run = 2,
                            .tasks = 100,
                            .left = 90,
                            .units = 200,
                            .left_units = 180,
                            .workers = workers,
                            .slots = 2,
                            .present = 2,
                            .message = {1e-5, 1e-9},
                            .answer_s = 2e-6,
                            .round_trip_s = 3e-5,
                            .task_bytes = 10,
                            .result_bytes = 20};
    kl_crew *crew = crew_of(&snapshot);
    kilter_policy policy = {.name = "script", .choose = follow, .user = s};
    const kilter_policy *const list[] = {&policy, NULL};
    kl_own_policies *own;
    assert_int_equal(kl_own_policies_new(list, &own, NULL), KILTER_OK);
    kl_dealer *dealer = kl_dealer_new(kl_own_policies_find(own, "script"), NULL);
    assert_non_null(dealer);
    assert_int_equal(kl_dealer_begin(dealer, &snapshot), KILTER_OK);
    kl_plan plan;
    kl_dealer_plan(dealer, &snapshot, 0, &plan);
    kl_dealer_free(dealer);
    kl_own_policies_free(own);
    kl_crew_free(crew);
    return plan;
}

static void a_policy_sees_the_run_and_its_workers(void **state) {
    (void)state;
    script s = {.answer = 5};
    ask(&s, 3);
    assert_true(s.view.run == 2 && s.view.tasks == 100 && s.view.left == 90 && s.view.chunks == 0);
    assert_true(s.view.units == 200 && s.view.left_units == 180 && s.view.elapsed_s == 2);
    assert_true(s.view.workers == 2 && s.view.began_workers == 2 && s.view.places == 2);
    assert_true(s.view.rate > 4.99 && s.view.rate < 5.01);
    assert_true(s.view.message_s == 1e-5 && s.view.byte_s == 1e-9 && s.view.answer_s == 2e-6);
    assert_true(s.view.round_trip_s == 3e-5 && s.view.task_bytes == 10 && s.view.result_bytes == 20);
    assert_true(s.asks.number == 7 && s.asks.present && s.asks.chunks == 1 && s.asks.queued_tasks == 0);
    assert_true(s.asks.rate > 4.99 && s.asks.rate < 5.01 && s.asks.unit_mean_s > 0.19);
    assert_true(s.asks.unit_sd_s > 0.14 && s.asks.unit_sd_s < 0.15);
    assert_true(s.other.number == 9 && s.other.queued_tasks == 1 && s.other.queued_units == 3);
    assert_true(s.other.rate == 0 && !s.beyond);
}

static void answers_are_bounded_and_have_a_reason(void **state) {
    (void)state;
    static const struct {
        uint64_t answer;
        const char *said;
        double queued_at_second;
        uint64_t count;
        const char *reason;
    } table[] = {
        {5, "five at a time", 0, 5, "five at a time"},
        {5, NULL, 0, 5, "policy script"},
        {90, "all", 0, 90, "all"},
        {91, "all", 0, 90, "policy script chose 91 tasks, but only 90 are left"},
        {UINT64_MAX, NULL, 0, 90, "policy script chose 18446744073709551615 tasks, but only 90 are left"},
        {0, "not yet", 3, 0, "not yet"},
        {0, NULL, 3, 0, "policy script"},
        {0, "not yet", 0, 1,
         "policy script chose no task although no worker has one, so one of 90 tasks is dealt"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        script s = {.answer = table[i].answer, .reason = table[i].said};
        kl_plan plan = ask(&s, table[i].queued_at_second);
        assert_int_equal(plan.decision.count, table[i].count);
        assert_string_equal(plan.decision.reason, table[i].reason);
    }
}

static void a_long_reason_is_cut(void **state) {
    (void)state;
    char text[1000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    script s = {.answer = 1, .reason = text};
    kl_plan plan = ask(&s, 0);
    assert_int_equal(strlen(plan.decision.reason), KL_REASON_BYTES - 1);
}

static void policies_that_cannot_be_used_are_refused(void **state) {
    (void)state;
    static int something;
    static const char wrong_name[] = "1 to 31 characters";
    static const struct {
        kilter_policy policy;
        const char *says;
    } table[] = {
        {{.name = NULL, .choose = follow}, wrong_name},
        {{.name = "", .choose = follow}, wrong_name},
        {{.name = "Upper", .choose = follow}, wrong_name},
        {{.name = "a b", .choose = follow}, wrong_name},
        {{.name = "abcdefghijklmnopqrstuvwxyz012345", .choose = follow}, wrong_name},
        {{.name = "auto", .choose = follow}, "Kilter has a policy of this name"},
        {{.name = "mine"}, "`choose` is NULL"},
        {{.name = "mine", .choose = follow, .later = {&something}}, "newer Kilter"},
        {{.name = "first", .choose = follow}, "two policies have this name"},
    };
    kilter_policy first = {.name = "first", .choose = follow};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const kilter_policy *const list[] = {&first, &table[i].policy, NULL};
        kl_own_policies *own = NULL;
        kilter_error error = {KILTER_OK, ""};
        assert_int_equal(kl_own_policies_new(list, &own, &error), KILTER_ERR_USAGE);
        assert_non_null(strstr(error.text, table[i].says));
        assert_non_null(strstr(error.text, "policies[1]"));
        assert_null(own);
    }
}

static void names_are_looked_up_in_both_lists(void **state) {
    (void)state;
    kilter_policy mine = {.name = "mine", .summary = "a line", .choose = follow};
    const kilter_policy *const list[] = {&mine, NULL};
    kl_own_policies *own, *none;
    assert_int_equal(kl_own_policies_new(list, &own, NULL), KILTER_OK);
    assert_int_equal(kl_own_policies_new(NULL, &none, NULL), KILTER_OK);
    assert_string_equal(kl_policy_name(kl_own_policies_find(own, "mine")), "mine");
    assert_string_equal(kl_policy_summary(kl_own_policies_find(own, "mine")), "a line");
    assert_ptr_equal(kl_own_policies_find(own, "ect"), kl_policy_find("ect"));
    assert_ptr_equal(kl_own_policies_find(none, "ect"), kl_policy_find("ect"));
    assert_null(kl_own_policies_find(own, "other"));
    assert_null(kl_own_policies_find(none, "mine"));
    kl_own_policies_free(own);
    kl_own_policies_free(none);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_policy_sees_the_run_and_its_workers),
        cmocka_unit_test(answers_are_bounded_and_have_a_reason),
        cmocka_unit_test(a_long_reason_is_cut),
        cmocka_unit_test(policies_that_cannot_be_used_are_refused),
        cmocka_unit_test(names_are_looked_up_in_both_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
