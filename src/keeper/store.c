/* Store the keeper's state as text, from which another keeper continues. The text leaves out clock times, and
 * a planned move whose outcome is not known yet. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "keeper/keeper_private.h"

static const double LEAST = 1e-100;
#define MOST 1e100

static const char *const RESULTS[] = {[KL_KEEPER_GOES_ON] = "goes-on",
                                      [KL_KEEPER_DONE] = "done",
                                      [KL_KEEPER_STOPPED] = "stopped",
                                      [KL_KEEPER_GAVE_UP] = "gave-up"};

static bool is_worth_a_line(const kl_keeper_host *h) {
    return h->ranks > 0 || h->drained || h->failures > 0;
}

/* Write a value, unless it is 0. */
static void put_count(kl_buffer *text, const char *name, uint64_t value) {
    if (value > 0)
        kl_put_field_count(text, name, value);
}

static void put_number(kl_buffer *text, const char *name, double value) {
    if (value > 0)
        kl_put_field_number(text, name, value);
}

static void put_host(kl_buffer *text, const kl_keeper_host *h) {
    kl_put_field(text, "host", h->name);
    put_count(text, "host_slots", h->slots);
    put_count(text, "host_ranks", h->ranks);
    put_count(text, "host_drained", h->drained);
    put_count(text, "host_failures", h->failures);
    put_number(text, "host_pace", h->launch_pace);
}

/* the numbers that are stored under their names; a number above `most` counts as not known */
static const struct {
    const char *name;
    size_t at; /* place in kl_keeper */
    double most;
} NUMBERS[] = {{"stop_s", offsetof(kl_keeper, costs.stop_s), MOST},
               {"launch_s", offsetof(kl_keeper, costs.launch_s), MOST},
               {"row_s", offsetof(kl_keeper, costs.row_s.value), MOST},
               {"row_counted_s", offsetof(kl_keeper, costs.row_s.counted_s), MOST},
               {"row_change", offsetof(kl_keeper, costs.row_s.change.usual), KL_KEEPER_CHANGE_MOST},
               {"sweep_rows", offsetof(kl_keeper, costs.sweep_rows.value), MOST},
               {"sweep_counted_s", offsetof(kl_keeper, costs.sweep_rows.counted_s), MOST},
               {"sweep_change", offsetof(kl_keeper, costs.sweep_rows.change.usual), KL_KEEPER_CHANGE_MOST},
               {"move_change", offsetof(kl_keeper, evidence.change.usual), KL_KEEPER_CHANGE_MOST},
               {"stay_change", offsetof(kl_keeper, evidence.stay.usual), KL_KEEPER_CHANGE_MOST},
               {"doubt", offsetof(kl_keeper, costs.doubt), KL_KEEPER_DOUBT_MOST}};
enum { NUMBER_COUNT = sizeof NUMBERS / sizeof *NUMBERS };

void kl_keeper_store(const kl_keeper *k, kl_buffer *text) {
    kl_put_field(text, "state", kl_keeper_state_name(k->state));
    kl_put_field(text, "cause", kl_keeper_cause_name(k->cause));
    kl_put_field(text, "result", RESULTS[k->result]);
    put_count(text, "attempt", k->tally.attempt);
    put_count(text, "saved", k->tally.saved);
    put_count(text, "saved_then", k->tally.saved_then);
    put_count(text, "idle", k->tally.idle);
    put_count(text, "reported", k->tally.reported);
    put_count(text, "by_hand", k->tally.by_hand);
    put_count(text, "asked", k->asked);
    put_count(text, "decisions", k->decisions);
    put_count(text, "stops", k->wish.stop);
    for (size_t i = 0; i < NUMBER_COUNT; i++)
        put_number(text, NUMBERS[i].name, *(const double *)((const char *)k + NUMBERS[i].at));
    for (uint64_t i = 0; i < k->count; i++)
        if (is_worth_a_line(&k->hosts[i]))
            put_host(text, &k->hosts[i]);
}

/* --- reading the stored state --- */

static void take_names(kl_keeper *k, const kl_field *f) {
    for (int i = 0; kl_field_is(f, "state") && i < KL_KEEPER_STATES; i++)
        if (strcmp(f->value, kl_keeper_state_name((kl_keeper_state)i)) == 0)
            k->state = (kl_keeper_state)i;
    for (int i = 0; kl_field_is(f, "cause") && i < KL_KEEPER_CAUSES; i++)
        if (strcmp(f->value, kl_keeper_cause_name((kl_keeper_cause)i)) == 0)
            k->cause = (kl_keeper_cause)i;
    for (int i = KL_KEEPER_GOES_ON; kl_field_is(f, "result") && i <= KL_KEEPER_GAVE_UP; i++)
        if (strcmp(f->value, RESULTS[i]) == 0)
            k->result = (kl_keeper_result)i;
}

static void take_counts(kl_keeper *k, const kl_field *f) {
    const struct {
        const char *name;
        uint64_t *count;
    } counts[] = {{"attempt", &k->tally.attempt},
                  {"saved", &k->tally.saved},
                  {"saved_then", &k->tally.saved_then},
                  {"asked", &k->asked},
                  {"decisions", &k->decisions}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (kl_field_is(f, counts[i].name))
            *counts[i].count = kl_field_count(f);
    const struct {
        const char *name;
        bool *on;
    } switches[] = {
        {"reported", &k->tally.reported}, {"by_hand", &k->tally.by_hand}, {"stops", &k->wish.stop}};
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
        if (kl_field_is(f, switches[i].name))
            *switches[i].on = kl_field_count(f) > 0;
    if (kl_field_is(f, "idle"))
        k->tally.idle = (uint32_t)kl_field_count(f);
}

/* Return a number of the state; 0: the number makes no sense. */
static double positive(const kl_field *f) {
    double value = kl_field_number(f);
    return value > LEAST && value < MOST ? value : 0;
}

static void take_numbers(kl_keeper *k, const kl_field *f) {
    for (size_t i = 0; i < NUMBER_COUNT; i++)
        if (kl_field_is(f, NUMBERS[i].name))
            *(double *)((char *)k + NUMBERS[i].at) = positive(f) <= NUMBERS[i].most ? positive(f) : 0;
    k->costs.doubt = fmax(1, k->costs.doubt);
}

/* Read a line that describes the host `h`. An earlier line "host" has named this host. */
static void take_host(kl_keeper_host *h, const kl_field *f) {
    if (kl_field_is(f, "host_slots"))
        h->slots = (uint32_t)kl_field_count(f);
    else if (kl_field_is(f, "host_ranks"))
        h->ranks = (uint32_t)kl_field_count(f);
    else if (kl_field_is(f, "host_drained"))
        h->drained = kl_field_count(f) > 0;
    else if (kl_field_is(f, "host_failures"))
        h->failures = (uint32_t)kl_field_count(f);
    else if (kl_field_is(f, "host_pace"))
        h->launch_pace = positive(f) < 1 ? positive(f) : 1;
}

static kilter_status take_all(kl_keeper *k, const char *text, size_t size, kilter_error *error) {
    kl_fields fields = kl_fields_of(text, size);
    kl_keeper_host *host = NULL;
    kl_field f;
    bool bad;
    while (kl_fields_next(&fields, &f, &bad)) {
        if (kl_field_is(&f, "host")) {
            if (!kl_keeper_take_views(k, &(kl_keeper_view){.name = f.value, .slots = 1}, 1))
                return kl_fail(error, KILTER_ERR_MEMORY, "reading the keeper's state: memory ran out");
            host = kl_keeper_find(k, f.value);
        }
        if (host)
            take_host(host, &f);
        take_names(k, &f);
        take_counts(k, &f);
        take_numbers(k, &f);
    }
    return bad ? kl_fail(error, KILTER_ERR_INPUT, "line %u is not a name, a space and a value", fields.line)
               : KILTER_OK;
}

/* Begin a new series of attempts, after a run that was stopped or given up. */
static void begin_again(kl_keeper *k) {
    k->wish.stop = false;
    k->result = KL_KEEPER_GOES_ON;
    k->tally.idle = 0;
    for (uint64_t i = 0; i < k->count; i++)
        k->hosts[i].failures = 0;
    k->state = KL_KEEPER_NEW;
}

/* Treat hosts in use as fit, because they are not measured while they are in use. */
static void trust_hosts_in_use(kl_keeper *k) {
    for (uint64_t i = 0; i < k->count; i++) {
        kl_keeper_host *h = &k->hosts[i];
        h->next = 0; /* the hosts that the old keeper had chosen for the next attempt are not stored */
        h->qos = h->ranks > 0 ? 1 : 0;
        h->pace = h->launch_pace > 0 ? h->launch_pace : h->qos;
    }
}

static void go_on(kl_keeper *k, bool alive) {
    bool ran = k->state >= KL_KEEPER_STARTING && k->state <= KL_KEEPER_KILLING;
    trust_hosts_in_use(k);
    if (k->state == KL_KEEPER_IS_OVER && k->result != KL_KEEPER_DONE)
        begin_again(k);
    else if (k->state == KL_KEEPER_RUNNING)
        kl_keeper_set(
            k, KL_KEEPER_STARTING); /* the state is STARTING until the program reports to this keeper */
    else if (k->state == KL_KEEPER_KILLING && alive)
        kl_keeper_kill(k, k->cause);
    else if (!ran && k->state != KL_KEEPER_IS_OVER)
        k->state = KL_KEEPER_NEW;
    k->since_s = k->watch.started_s = k->now_s;
    if (ran && alive)
        kl_keeper_look(k, true); /* measure the other hosts now: the text has only hosts with ranks, drained
                                    hosts, and hosts with failures */
}

kilter_status kl_keeper_restore(kl_keeper *k, const char *text, size_t size, bool alive, double now_s,
                                kilter_error *error) {
    kilter_status status = take_all(k, text, size, error);
    k->now_s = now_s;
    if (status == KILTER_OK)
        go_on(k, alive);
    return status;
}
