/* Fuzz target: read any text as the stored state of a keeper, as the end of an attempt, and as output of
 * Slurm's commands. If a keeper accepts a state, a second keeper must accept the state that the first one
 * stores. This keeper and a new one must then handle further events without a crash: the bytes of the text
 * choose measurements, reports, requests and ends. */
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "keeper/keeper.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The bytes that choose events. After the last byte, all bytes are 0. */
typedef struct choices {
    const uint8_t *at, *end;
} choices;

static uint8_t choose(choices *c) {
    return c->at < c->end ? *c->at++ : 0;
}

static double seconds(choices *c) {
    static const double values[] = {0, 1e-9, 0.5, 3, 1e6, 1e300, DBL_MAX};
    return values[choose(c) % (sizeof values / sizeof *values)];
}

/* Tell the keeper a report with extreme values. */
static void report(kl_keeper *k, choices *c, uint64_t attempt, double now_s) {
    static const char *const names[] = {"a", "b", "", "elsewhere"};
    enum { MOST = 4 };
    const char *hosts[MOST];
    double rates[MOST];
    for (int i = 0; i < MOST; i++) {
        hosts[i] = names[choose(c) % MOST];
        rates[i] = seconds(c);
    }
    uint64_t counts[4];
    for (int i = 0; i < 4; i++) {
        counts[i] = choose(c);
        counts[i] <<= choose(c) % 57;
    }
    double times[4];
    for (int i = 0; i < 4; i++)
        times[i] = seconds(c);
    uint8_t flags = choose(c), ranks = choose(c);
    const kl_keeper_report r = {.attempt = attempt + (flags & 1),
                                .ranks = 1 + ranks % MOST,
                                .hosts = flags & 2 ? hosts : NULL,
                                .rates = flags & 4 ? rates : NULL,
                                .sweeps = counts[0],
                                .expected = counts[1],
                                .saved = counts[2],
                                .sweep_s = times[0],
                                .longest_s = times[1],
                                .write_s = times[2],
                                .load_s = times[3],
                                .answered = counts[3],
                                .error = flags & 8 ? "the disk is full" : "",
                                .stopped = flags & 16,
                                .done = flags & 32};
    kl_keeper_step(k, &(kl_keeper_event){.kind = KL_KEEPER_REPORT, .report = &r}, now_s);
}

/* Carry out what the keeper asks for. Return the last attempt that it started. */
static uint64_t obey(kl_keeper *k, choices *c, uint64_t attempt, double now_s) {
    kl_keeper_action action;
    while (kl_keeper_take(k, &action)) {
        if (action.act == KL_KEEPER_START)
            attempt = action.attempt;
        if (action.act == KL_KEEPER_KILL || (action.act == KL_KEEPER_START && choose(c) % 2 == 0))
            kl_keeper_step(
                k, &(kl_keeper_event){.kind = KL_KEEPER_ENDED, .end = {attempt, KL_KEEPER_EXITED, 1}}, now_s);
    }
    return attempt;
}

static void live(kl_keeper *k, choices *c) {
    const kl_keeper_view views[] = {{.name = "a", .slots = 2, .qos = 1, .why = ""},
                                    {.name = "b", .slots = 2, .qos = 0.5, .why = ""}};
    enum { LEAST_EVENTS = 20 };
    uint64_t attempt = k->tally.attempt;
    for (int i = 0; i < LEAST_EVENTS || c->at < c->end; i++) {
        uint8_t kind = choose(c);
        double now_s = 10 + i, limit_s = now_s + seconds(c);
        uint32_t code = choose(c) % 4;
        kl_keeper_event event = {.kind = (kl_keeper_event_kind)(kind % KL_KEEPER_EVENTS),
                                 .views = views,
                                 .count = 2,
                                 .end = {attempt, (kl_keeper_how)(kind / 16 % (KL_KEEPER_REFUSED + 1)), code},
                                 .limit_s = limit_s,
                                 .pending = kind & 64,
                                 .names = kind & 32 ? "b" : NULL};
        if (event.kind == KL_KEEPER_DRAIN)
            event.names = kind & 32 ? "b" : "a";
        if (event.kind == KL_KEEPER_REPORT)
            report(k, c, attempt, now_s);
        else
            kl_keeper_step(k, &event, now_s);
        attempt = obey(k, c, attempt, now_s);
    }
}

static const kl_keeper_options OPTIONS = {
    .ranks = 3, .least = 1, .tries = 3, .hang_s = 10, .wait_s = 60, .look_s = 5};

static void begin(const char *text, size_t size) {
    kl_keeper k;
    kl_keeper_init(&k, &OPTIONS);
    live(&k, &(choices){(const uint8_t *)text, (const uint8_t *)text + size});
    kl_keeper_free(&k);
}

static void restore(const char *text, size_t size) {
    kl_keeper k, again;
    kl_buffer first = {0}, second = {0};
    kl_keeper_init(&k, &OPTIONS);
    kl_keeper_init(&again, &OPTIONS);
    if (kl_keeper_restore(&k, text, size, size % 2, 1, NULL) == KILTER_OK) {
        kl_keeper_store(&k, &first);
        if (kl_keeper_restore(&again, (const char *)first.data, first.size, true, 1, NULL) != KILTER_OK)
            __builtin_trap();
        kl_keeper_store(&again, &second);
        live(&k, &(choices){(const uint8_t *)text, (const uint8_t *)text + size});
    }
    kl_buffer_free(&first);
    kl_buffer_free(&second);
    kl_keeper_free(&k);
    kl_keeper_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    kl_keeper_end end;
    kl_slurm_job job;
    kl_slurm_node node;
    uint32_t least, most;
    begin(text, size);
    restore(text, size);
    kl_get_end(text, size, &end);
    kl_slurm_job_read(text, &job);
    kl_slurm_nodes_wanted(text, &least, &most);
    kl_buffer names = {0};
    char name[KL_SLURM_NAME_BYTES], number[KL_SLURM_JOB_BYTES];
    kl_slurm_expand(text, &names);
    kl_buffer_free(&names);
    kl_slurm_refused(text);
    kl_slurm_name(text, text, size, name);
    kl_slurm_number(text, number);
    kl_slurm_has_features(text, text);
    kl_slurm_time_s(text);
    for (const char *at = text; kl_slurm_node_read(&at, &node);)
        if (node.load < 0)
            __builtin_trap();
    kl_launcher_of_program(text, size);
    kl_launcher_of_version(text);
    free(text);
    return 0;
}
