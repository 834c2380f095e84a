/* Open and close a loop. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "loop/loop_mpi.h"
#include "transport/launch_mpi.h"

static const double MEET_S = 30; /* seconds to wait for ranks that have already begun to open the loop */
static const double TELL_AFTER_S =
    1; /* seconds that a rank waits before it sends its calls to the next rank */
static const double SPIN_S =
    0.01;                        /* seconds of spinning before naps, whose lengths are a part of this time */
static const double LATE_S = 10; /* seconds after which a missing rank is reported */
static const double REST_MOST_S = 0.005;

/* --- options --- */

static kilter_status agree_on_options(kilter_loop *l, kilter_error *error) {
    static const char *const names[] = {"iterations", "kind", "scattered", "inner", "block", "fixed", "deep"};
    const kilter_loop_options *o = &l->options;
    const uint64_t values[] = {o->iterations, (uint64_t)o->kind, o->scattered, o->inner,
                               o->block,      o->fixed,          o->deep};
    const char *differs;
    kilter_status status =
        kl_group_agree(&l->group, values, names, sizeof names / sizeof *names, &differs, error);
    if (status == KILTER_OK && differs)
        return kl_fail(error, KILTER_ERR_RANGE,
                       "opening loop '%s': the option '%s' differs between ranks; give all ranks the same",
                       l->group.name, differs);
    return status;
}

static kilter_status check_options(const kilter_loop *l, kilter_error *error) {
    const kilter_loop_options *o = &l->options;
    const char *wrong = NULL;
    if (o->kind != KILTER_DOALL && o->kind != KILTER_DOACROSS)
        wrong = "kind must be KILTER_DOALL or KILTER_DOACROSS";
    else if (o->iterations == 0 || o->iterations > UINT64_MAX / 4)
        wrong = "iterations must be at least 1, and at most 2^62";
    else if (o->inner > UINT64_MAX / 4)
        wrong = "inner must be at most 2^62";
    else if (o->kind == KILTER_DOACROSS && o->scattered)
        wrong = "scattered is for loops of kind KILTER_DOALL";
    else if (o->deep && (o->scattered || o->kind == KILTER_DOACROSS))
        wrong = "deep is for loops of kind KILTER_DOALL that are not scattered";
    else if (o->kind == KILTER_DOACROSS && o->inner == 0)
        wrong = "a loop of kind KILTER_DOACROSS needs inner, the elements of a row, at least 1";
    else if (o->kind == KILTER_DOALL && (o->inner > 0 || o->block > 0))
        wrong = "inner and block are for loops of kind KILTER_DOACROSS";
    else if (o->block > o->inner)
        wrong = "block must not be larger than inner";
    return wrong ? kl_fail(error, KILTER_ERR_RANGE, "opening loop '%s': %s", l->group.name, wrong)
                 : KILTER_OK;
}

/* --- a loop's parts --- */

static void free_loop(kilter_loop *l) {
    kl_rank *k = &l->rank;
    kl_set *sets[] = {&k->rounds.set, &k->exchange.set, &k->flow.coming, &k->flow.going};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        kl_loop_forget(sets[i]);
    kl_memory_free(&l->memory);
    kl_rank_free(k);
    kl_requests_free(&l->steps.requests);
    kl_detector_free(&l->detector);
    free(l->group.name);
    free(l);
}

/* Look for lost ranks and differing calls while the rank waits. */
static kilter_status look(void *loop, double now_s, kilter_error *error) {
    kilter_loop *l = loop;
    kilter_status status = kl_steps_look(&l->steps, now_s, error);
    return status == KILTER_OK ? kl_detector_look(&l->detector, now_s, error) : status;
}

static const kl_kind *kind_of(const kilter_loop_options *o, int ranks) {
    if (o->kind == KILTER_DOACROSS)
        return &kl_pipelined;
    return o->scattered && !o->fixed && ranks > 1 ? &kl_scattered : &kl_ranged;
}

static kilter_loop *new_loop(const kilter_loop_options *options, int rank, int ranks) {
    kilter_loop *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    kl_group *g = &l->group;
    l->options = *options;
    *g = (kl_group){.name = kl_text("%s", options->name ? options->name : "loop"),
                    .comm = MPI_COMM_NULL,
                    .rank = rank,
                    .ranks = (uint32_t)ranks,
                    .clock = kl_clock_system(),
                    .look = look,
                    .loop = l};
    l->steps = (kl_steps){.group = g, .tell_after_s = TELL_AFTER_S};
    l->memory.layout = &l->rank.layout;
    const kl_rank_options told = {.iterations = options->iterations,
                                  .rank = (uint32_t)rank,
                                  .ranks = g->ranks,
                                  .inner = options->inner,
                                  .block = options->block,
                                  .fixed = options->fixed};
    bool fits = kl_rank_init(&l->rank, kind_of(options, ranks), &told);
    fits &= kl_detector_init(&l->detector, g);
    l->rank.meter.core = &g->wait.core;
    l->rank.meter.simulated = g->clock.simulated;
    if (!fits || !g->name) {
        free_loop(l);
        return NULL;
    }
    kl_mpi_wait_begin(&g->wait);
    g->wait.spin_s = SPIN_S;
    return l;
}

/* --- a program that ends MPI before its loops --- */

/* End the loop if it is open. MPI_Finalize() first deletes the attributes of MPI_COMM_SELF, and
 * kilter_loop_close() deletes this attribute, too. */
static int on_finalize(MPI_Comm comm, int key, void *loop, void *nothing) {
    kilter_loop *l = loop;
    (void)comm, (void)key, (void)nothing;
    if (l->phase == KL_BROKEN || l->closing)
        return MPI_SUCCESS;
    kl_fail(&l->failure, KILTER_ERR_USAGE, "MPI_Finalize(): loop '%s' is open; close it first",
            l->group.name);
    fprintf(stderr, "rank %d: %s\n", l->group.rank, l->failure.text);
    kl_loop_break(l);
    return MPI_SUCCESS;
}

static void ignore_finalize(kilter_loop *l) {
    if (l->key == MPI_KEYVAL_INVALID)
        return;
    MPI_Comm_delete_attr(MPI_COMM_SELF, l->key);
    MPI_Comm_free_keyval(&l->key);
}

/* --- open --- */

/* Duplicate a communicator. SMPI has no MPI_Comm_idup(). */
static kilter_status duplicate_one(kl_group *g, MPI_Comm comm, MPI_Comm *copy, kilter_error *error) {
    MPI_Request request = MPI_REQUEST_NULL;
    int code = kl_mpi_ranks_die ? MPI_Comm_idup(comm, copy, &request) : MPI_Comm_dup(comm, copy);
    kilter_status status = kl_group_await(g, code, request, error);
    if (status == KILTER_OK)
        MPI_Comm_set_errhandler(*copy, MPI_ERRORS_RETURN);
    return status;
}

/* Duplicate the communicator for rows and for calls. A simulation has thousands of ranks and no wrong calls,
 * so one copy is enough there. */
static kilter_status duplicate(kl_group *g, MPI_Comm comm, kilter_error *error) {
    kilter_status status = duplicate_one(g, comm, &g->comm, error);
    g->calls = g->comm;
    return status == KILTER_OK && kl_mpi_ranks_die ? duplicate_one(g, comm, &g->calls, error) : status;
}

static void free_communicators(kl_group *g) {
    if (g->calls != g->comm)
        MPI_Comm_free(&g->calls);
    MPI_Comm_free(&g->comm);
}

/* Share a token by which ranks of one host find each other's bells. Ranks without bells nap. */
static kilter_status share_bells(kl_group *g, kilter_error *error) {
    MPI_Request request = MPI_REQUEST_NULL;
    uint64_t *token = (uint64_t *)g->shared;
    *token = g->rank == 0 ? kl_token() : 0;
    if (!kl_mpi_ranks_die || g->ranks == 1)
        return KILTER_OK;
    int code = MPI_Ibcast(token, 1, MPI_UINT64_T, 0, g->comm, &request);
    kilter_status status = kl_group_await(g, code, request, error);
    if (status == KILTER_OK)
        g->wait.bells = kl_bells_open(*token, g->ranks, (uint32_t)g->rank);
    return status;
}

/* Check which ranks have bells. All ranks have opened their bells by now. */
static kilter_status settle_bells(kl_group *g, kilter_error *error) {
    uint64_t near = kl_bells_there(g->wait.bells) == g->ranks;
    kilter_status status = kl_group_least(g, &near, 1, error);
    g->near = status == KILTER_OK && near;
    g->wait.crowded = kl_bells_crowded(g->wait.bells);
    return status;
}

static kilter_status open_on(kilter_loop *l, MPI_Comm comm, kilter_error *error) {
    kl_group *g = &l->group;
    kilter_status status = kl_detector_open(&l->detector, comm, error);
    if (status == KILTER_OK)
        status = duplicate(g, comm, error);
    if (status == KILTER_OK)
        status = share_bells(g, error);
    if (status == KILTER_OK)
        status = agree_on_options(l, error);
    if (status == KILTER_OK && kl_mpi_ranks_die)
        status = settle_bells(g, error);
    if (status == KILTER_OK)
        status = check_options(l, error);
    kl_bells_settle(g->wait.bells);
    if (status != KILTER_OK)
        return status;
    g->opened_s = l->rank.meter.opened_s = kl_loop_now_s(l);
    l->rank.meter.crowded = g->wait.crowded;
    l->rank.meter.waits_first = g->wait.crowded && g->near;
    return kl_loop_record_open(l, error);
}

static kilter_status check_mpi(MPI_Comm comm, kilter_error *error) {
    int running = 0, over = 0, between = 0;
    kilter_status status = kl_mpi_check_library("opening a loop", error);
    if (status != KILTER_OK)
        return status;
    MPI_Initialized(&running);
    MPI_Finalized(&over);
    if (!running || over || comm == MPI_COMM_NULL)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "opening a loop: call MPI_Init() before, and give a communicator this rank is in");
    MPI_Comm_test_inter(comm, &between);
    if (between)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "opening a loop: this communicator is between two groups; merge them with "
                       "MPI_Intercomm_merge()");
    return kl_mpi_check_world("opening a loop", error);
}

/* Wait for late ranks as long as at the start of MPI, because there is no failure detector yet. */
static kilter_status await_ranks(MPI_Request *request, double patience_s, kilter_error *error) {
    kl_mpi_wait wait;
    double began_s = kl_monotonic_s(), warn_s = began_s + LATE_S;
    int there = 0;
    kilter_status status = KILTER_OK;
    kl_mpi_wait_begin(&wait);
    while (status == KILTER_OK && !there) {
        int code = kl_mpi_look_collective(&wait, request, !kl_mpi_ranks_die, &there);
        double now_s = kl_monotonic_s();
        if (code != MPI_SUCCESS)
            status = kl_mpi_failed(code, "opening a loop", error);
        else if (!there && patience_s > 0 && now_s - began_s > patience_s)
            status =
                kl_fail(error, KILTER_ERR_PEER,
                        "opening a loop: not all ranks are there after %g s: one may have died before it "
                        "could say so; start again (KILTER_MPI_START_S sets how long to wait)",
                        patience_s);
        else if (!there && now_s > warn_s) {
            fprintf(stderr, "opening a loop: not all ranks are there after %g s; still waiting\n", LATE_S);
            warn_s = HUGE_VAL;
        }
        if (!there)
            kl_mpi_rest(&wait, false, REST_MOST_S);
    }
    kl_mpi_wait_end(&wait);
    return status;
}

/* Values that the ranks compare before there is a loop; the least value on any rank counts. */
typedef struct muster {
    int given, fits, patient, unchecked;
} muster;
enum { MUSTER_INTS = sizeof(muster) / sizeof(int) };

static kilter_status reject(const muster *all, kilter_error *error) {
    if (!all->given)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "opening a loop: a rank gave NULL as options, or as the pointer for the loop");
    if (!all->fits)
        return kl_fail(error, KILTER_ERR_MEMORY, "opening a loop: memory ran out on a rank");
    if (!all->patient)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "opening a loop: KILTER_MPI_START_S of a rank is not a number of seconds; see that "
                       "rank's own message");
    return KILTER_OK;
}

/* Do the ranks' first collective operation. */
static kilter_status gather_ranks(MPI_Comm comm, double patience_s, muster *all, kilter_error *error) {
    MPI_Request request;
    muster *shared = malloc(sizeof *shared);
    if (!shared)
        return kl_fail(error, KILTER_ERR_MEMORY, "opening a loop: memory ran out");
    *shared = *all;
    int code = MPI_Iallreduce(MPI_IN_PLACE, shared, MUSTER_INTS, MPI_INT, MPI_MIN, comm, &request);
    if (code != MPI_SUCCESS)
        return kl_mpi_failed(code, "opening a loop", error);
    kilter_status status = await_ranks(&request, patience_s, error);
    if (status != KILTER_OK)
        return status; /* MPI may still write into these values */
    *all = *shared;
    free(shared);
    return reject(all, error);
}

/* Close a loop whose options all ranks refuse. No messages are on their way. */
static kilter_status give_back(kilter_loop *l, kilter_error *error) {
    kilter_status status = l->failure.status;
    if (error)
        *error = l->failure;
    kl_detector_close(&l->detector);
    free_communicators(&l->group);
    kl_mpi_wait_end(&l->group.wait);
    free_loop(l);
    return status;
}

kilter_status kl_loop_open(MPI_Comm comm, const kilter_loop_options *options, kilter_loop **loop,
                           kilter_error *error) {
    int rank, ranks;
    double patience_s;
    kilter_error impatience = {KILTER_OK, ""};
    kilter_status status = check_mpi(comm, error);
    if (status != KILTER_OK)
        return status;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    kilter_loop *l = options && loop ? new_loop(options, rank, ranks) : NULL;
    kl_mpi_patience_s(&patience_s, &impatience);
    muster all = {.given = options && loop,
                  .fits = l != NULL,
                  .patient = impatience.status == KILTER_OK,
                  .unchecked = !kl_loop_checks()};
    status = gather_ranks(comm, patience_s, &all, error);
    if (status == KILTER_ERR_USAGE && impatience.status != KILTER_OK && error)
        *error = impatience;
    if (status != KILTER_OK || !l) {
        if (l)
            free_loop(l);
        return status;
    }
    l->group.checks = !all.unchecked && kl_mpi_ranks_die;
    l->group.outlives = kl_mpi_hint() == NULL;
    l->detector.patience_s = patience_s > 0 ? fmin(patience_s, MEET_S) : MEET_S;
    status = open_on(l, comm, &l->failure);
    if (status == KILTER_ERR_RANGE || status == KILTER_ERR_RECORD)
        return give_back(l, error);
    if (status != KILTER_OK)
        return kl_loop_failed(l, status, error);
    l->detector.until_s = 0;
    l->key = MPI_KEYVAL_INVALID;
    if (kl_mpi_ranks_die &&
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_finalize, &l->key, NULL) == MPI_SUCCESS)
        MPI_Comm_set_attr(MPI_COMM_SELF, l->key, l);
    *loop = l;
    return KILTER_OK;
}

/* --- close --- */

static kilter_status close_rounds(kilter_loop *l, kilter_error *error) {
    kl_requests *reports = l->rank.rounds.set.requests;
    return reports ? kl_requests_await(&l->group, reports, error) : KILTER_OK;
}

static kilter_status say_goodbye(kilter_loop *l, kilter_error *error) {
    l->closing = true;
    kl_step(&l->steps, KL_CALL_CLOSE, kl_meter_sweep(&l->rank.meter), 0, 0);
    kilter_status status = close_rounds(l, error);
    if (status == KILTER_OK)
        status = kl_loop_record_ranks(l, error);
    if (status == KILTER_OK)
        status = kl_steps_meet(&l->steps, NULL, error);
    return status == KILTER_OK ? kl_steps_close(&l->steps, error) : status;
}

/* Close a loop. A loop that failed keeps its memory, because MPI may still write into this memory. */
kilter_status kilter_loop_close(kilter_loop *l, kilter_error *error) {
    kilter_loop_summary summary;
    if (!l)
        return KILTER_OK;
    kilter_status status = l->phase == KL_BROKEN ? l->failure.status : KILTER_OK;
    if (l->phase == KL_WITHIN)
        status =
            kl_fail(&l->failure, KILTER_ERR_USAGE,
                    "closing loop '%s': a sweep is under way; call kilter_loop_end() first", l->group.name);
    else if (l->phase == KL_BETWEEN)
        status = say_goodbye(l, &l->failure);
    if (status != KILTER_OK)
        status = kl_loop_failed(l, status, error);
    kl_detector_close(&l->detector);
    kl_unguard(l);
    ignore_finalize(l);
    kl_mpi_wait_end(&l->group.wait);
    if (l->phase == KL_BROKEN)
        return status;
    kl_loop_summary_get(l, &summary);
    status = kl_loop_record_end(l, &summary, NULL, error);
    free_communicators(&l->group);
    free_loop(l);
    return status;
}
