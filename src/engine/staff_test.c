/* Test every order of fates of the workers and their replacements: each works, dies or never joins. In half
 * of the cases, another peer also joins and sends nothing. The farm must never hang: each run must end with
 * all results or with an error. The clock is simulated. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/master_private.h"
#include "engine/stepped.h"

enum { TASKS = 3, LIVES = 4, FATES = 4 };

/* The fate of each worker, in the order in which workers start. The initial workers, which all join, come
 * first, then their replacements. */
typedef enum fate {
    WORKS,
    DIES_IN_A_TASK,
    DIES_UNHEARD, /* the worker joins, and dies without having sent a message */
    NEVER_COMES,
} fate;

typedef struct staff {
    stepped_farm farm;
    fate fates[LIVES];
    /* next: index of the next entry in `fates`; coming: number of workers that are being started */
    uint32_t next, coming;
    double comes_s;
    kl_transport *mute; /* a peer that joins and sends nothing; NULL: there is none */
    uint8_t seen[TASKS];
} staff;

static const double REPLACED_AFTER_S = 0.02, TASK_S = 0.01, GREETING_S = 10;

static int work(const kilter_task *task, kilter_result *result, void *state) {
    stepped_actor *actor = state;
    stepped_spend(state, TASK_S);
    actor->killed = actor->user != NULL;
    return kilter_result_put(result, &task->index, sizeof task->index);
}

static void see(const kilter_outcome *o, void *user) {
    ((staff *)user)->seen[o->index]++;
}

/* Replace a lost worker some time later, as a farm does. `fates` says what happens to the replacement. */
static void replace(void *self, uint64_t pid, bool missed, char *how, size_t size) {
    staff *s = self;
    (void)pid, (void)how, (void)size;
    if (!missed || s->next + s->coming >= LIVES)
        return;
    s->comes_s = s->farm.master_actor.now_s + REPLACED_AFTER_S;
    kl_master_expect(s->farm.master, ++s->coming);
}

static void take_in(staff *s, bool first) {
    fate fate = s->fates[s->next++];
    stepped_farm *f = &s->farm;
    if (fate == NEVER_COMES)
        return;
    if (!first)
        stepped_join(f, work);
    stepped_actor *actor = &f->workers[first ? s->next - 1 : f->count - 1];
    actor->user = fate == DIES_IN_A_TASK ? s : NULL;
    if (fate == DIES_UNHEARD)
        actor->dies_s = actor->now_s;
}

static void replacement_comes(staff *s) {
    stepped_actor *master = &s->farm.master_actor;
    master->now_s = fmax(master->now_s, s->comes_s);
    s->coming--;
    take_in(s, false);
    kl_master_expect(s->farm.master, s->coming);
}

/* Let the next actor have a turn, or start the next replacement. Fail if no actor would ever have a turn
 * again. */
static kilter_status turn(staff *s, kilter_error *error) {
    double first_s;
    stepped_next(&s->farm, &first_s);
    if (s->coming > 0 && s->comes_s <= first_s) {
        replacement_comes(s);
        return KILTER_OK;
    }
    if (first_s == HUGE_VAL)
        fail_msg("all actors wait for each other: fates %d %d %d %d", s->fates[0], s->fates[1], s->fates[2],
                 s->fates[3]);
    return stepped_turn(&s->farm, error);
}

static void check_end(const staff *s, kilter_status status, const kilter_error *error) {
    if (status != KILTER_OK) {
        assert_int_equal(status, KILTER_ERR_NO_WORKER);
        assert_non_null(strstr(error->text, "no worker is left"));
    }
    for (int i = 0; i < TASKS; i++)
        assert_true(s->seen[i] == 1 || (s->seen[i] == 0 && status != KILTER_OK));
}

/* Run the farm until the first workers and the other peers have joined. */
static void await_first(staff *s, uint32_t peers) {
    while (s->farm.master->members.count < peers)
        assert_int_equal(stepped_turn(&s->farm, NULL), KILTER_OK);
}

static void open_staff(staff *s, uint32_t workers, uint32_t number, bool mute) {
    *s = (staff){.farm = {.room = LIVES, .lost = replace, .greeting_s = GREETING_S}};
    s->farm.user = s;
    for (int i = 0; i < LIVES; i++, number /= FATES)
        s->fates[i] = (fate)(number % FATES);
    stepped_open(&s->farm, "auto", workers, 50e-6, work);
    if (mute)
        assert_int_equal(kl_inproc_join(s->farm.hub, NULL, &s->mute, NULL), KILTER_OK);
    for (uint32_t i = 0; i < workers; i++)
        take_in(s, true);
    await_first(s, workers + mute);
}

static void play(uint32_t workers, uint32_t number, bool mute) {
    staff s;
    open_staff(&s, workers, number, mute);
    kilter_run run = {.tasks = TASKS, .done = see, .user = &s};
    kl_deliverer *deliverer;
    kilter_error error = {KILTER_OK, ""};
    assert_int_equal(kl_deliverer_new(&run, (kl_reducer){0}, &deliverer, &error), KILTER_OK);
    kilter_status status = kl_master_begin(s.farm.master, &run, &error);
    for (long turns = 0; status == KILTER_OK && kl_master_running(s.farm.master); turns++) {
        status = turn(&s, &error);
        assert_int_equal(kl_deliver(deliverer, kl_master_take(s.farm.master), NULL), KILTER_OK);
        assert_true(turns < 100000);
    }
    check_end(&s, status, &error);
    /* the run must end soon: nothing may wait long for a message that never comes */
    assert_true(s.farm.master_actor.now_s < (mute ? GREETING_S + 1 : 1));
    kl_deliverer_free(deliverer);
    kl_transport_close(s.mute);
    stepped_close(&s.farm);
}

static void every_run_ends_whoever_dies_and_whoever_comes(void **state) {
    (void)state;
    uint32_t orders = 1;
    for (int i = 0; i < LIVES; i++)
        orders *= FATES;
    for (uint32_t workers = 1; workers <= 2; workers++)
        for (int mute = 0; mute < 2; mute++)
            for (uint32_t number = 0; number < orders; number++)
                play(workers, number, mute);
}

typedef struct crowd {
    stepped_farm *farm;
    uint32_t coming;
} crowd;

static void let_others_join(const kilter_outcome *outcome, void *user) {
    crowd *c = user;
    for (; c->coming > 0; c->coming--)
        stepped_join(c->farm, work);
    assert_int_equal(outcome->status, KILTER_OK);
}

static void who_joins_the_first_run_beyond_the_advice_rests(void **state) {
    (void)state;
    stepped_farm f = {.seats = 2, .room = 3};
    stepped_open(&f, "static", 1, 50e-6, work);
    stepped_gather(&f);
    crowd c = {&f, 3};
    kilter_run run = {.tasks = 40, .done = let_others_join, .user = &c};
    assert_int_equal(stepped_run(&f, &run, NULL), KILTER_OK);
    assert_int_equal(f.master->members.resting, 2);
    assert_int_equal(f.master->members.ready, 4);
    stepped_close(&f);
}

static void who_joins_beyond_a_number_set_by_hand_rests(void **state) {
    (void)state;
    stepped_farm f = {.room = 3};
    stepped_open(&f, "static", 2, 50e-6, work);
    stepped_gather(&f);
    crowd c = {&f, 3};
    const kl_tuning two = {.set = KL_TUNE_WORKERS, .workers = 2};
    kilter_run first = {.tasks = 40}, run = {.tasks = 40, .done = let_others_join, .user = &c};
    assert_int_equal(stepped_run(&f, &first, NULL), KILTER_OK);
    assert_int_equal(kl_master_tune(f.master, &two, NULL), KILTER_OK);
    assert_int_equal(stepped_run(&f, &run, NULL), KILTER_OK);
    assert_int_equal(f.master->members.resting, 3);
    assert_int_equal(f.master->members.ready, 5);
    stepped_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_run_ends_whoever_dies_and_whoever_comes),
        cmocka_unit_test(who_joins_the_first_run_beyond_the_advice_rests),
        cmocka_unit_test(who_joins_beyond_a_number_set_by_hand_rests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
