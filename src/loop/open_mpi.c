/* A loop's beginning and end, and its arrays. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loop/loop_mpi.h"
#include "transport/launch_mpi.h"

static const double MEET_S = 30;      /* all ranks are there when this begins */
static const double TELL_AFTER_S = 1; /* of waiting */
static const double SPIN_S = 0.01;    /* a nap after that may last a part of it */
static const double LATE_S = 10;      /* ranks may be, after which those there say so */
static const double REST_MOST_S = 0.005;

/* --- failures --- */

void kl_loop_break(kilter_loop *l) {
    if (l->phase == KL_BROKEN)
        return;
    l->phase = KL_BROKEN;
    kl_watch_ask(l);
    kl_watch_give_up(l);
    kl_loop_record_end(l, &l->failure, NULL); /* now, as the program may exit without closing */
}

kilter_status kl_loop_failed(kilter_loop *l, kilter_status status, kilter_error *error) {
    kl_loop_break(l);
    if (error)
        *error = l->failure;
    return l->failure.status ? l->failure.status : status;
}

/* Every rank calls this with its own: *name, which differs, or NULL. */
static kilter_status agree(kilter_loop *l, const uint64_t *values, const char *const *names, size_t count,
                           const char **differs, kilter_error *error) {
    enum { MOST = 8 };
    uint64_t both[2 * MOST];
    for (size_t i = 0; i < count; i++) {
        both[i] = values[i];
        both[count + i] = ~values[i];
    }
    *differs = NULL;
    kilter_status status = kl_loop_least(l, both, 2 * count, error);
    for (size_t i = 0; i < count && status == KILTER_OK; i++)
        if (both[i] != ~both[count + i] && !*differs)
            *differs = names[i];
    return status;
}

static kilter_status agree_on_options(kilter_loop *l, kilter_error *error) {
    static const char *const names[] = {"iterations", "kind", "scattered", "inner", "block", "fixed", "deep"};
    const kilter_loop_options *o = &l->options;
    const uint64_t values[] = {o->iterations, (uint64_t)o->kind, o->scattered, o->inner,
                               o->block,      o->fixed,          o->deep};
    const char *differs;
    kilter_status status = agree(l, values, names, sizeof names / sizeof *names, &differs, error);
    if (status == KILTER_OK && differs)
        return kl_fail(error, KILTER_ERR_RANGE,
                       "opening loop '%s': the option '%s' differs between ranks; give all ranks the same",
                       l->name, differs);
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
    return wrong ? kl_fail(error, KILTER_ERR_RANGE, "opening loop '%s': %s", l->name, wrong) : KILTER_OK;
}

/* --- open --- */

static void free_loop(kilter_loop *l) {
    for (size_t a = 0; a < l->array_count; a++)
        kl_rows_release(&l->arrays[a].rows);
    free(l->arrays);
    kl_batch_free(&l->exchange);
    kl_batch_free(&l->coming);
    kl_batch_free(&l->going);
    kl_batch_free(&l->round.batch);
    free(l->round.heard);
    free(l->round.all);
    kl_legs_free(&l->legs);
    kl_steer_free(l->steer);
    kl_scatter_free(l->scatter);
    kl_batch_free(&l->steps.batch);
    free(l->invitations);
    free(l->bounds);
    free(l->target);
    free(l->goal);
    free(l->name);
    free(l);
}

static kilter_loop *new_loop(const kilter_loop_options *options, int rank, int ranks) {
    kilter_loop *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    l->options = *options;
    l->rank = rank;
    l->ranks = (uint32_t)ranks;
    l->clock = kl_clock_system();
    l->deepest = l->depth = 1;
    l->comm = MPI_COMM_NULL;
    l->name = kl_text("%s", options->name ? options->name : "loop");
    l->bounds = calloc((size_t)ranks + 1, sizeof *l->bounds);
    l->target = calloc((size_t)ranks + 1, sizeof *l->target);
    l->goal = calloc((size_t)ranks + 1, sizeof *l->goal);
    l->invitations = kl_watch_invitations(l);
    if (!l->name || !l->bounds || !l->target || !l->goal || !l->invitations) {
        free_loop(l);
        return NULL;
    }
    kl_mpi_wait_begin(&l->wait);
    l->wait.spin_s = SPIN_S;
    l->steps.tell_after_s = TELL_AFTER_S;
    return l;
}

static void place(kilter_loop *l) {
    kl_equal_shares(l->options.iterations, l->ranks, l->target); /* for a moment, shares */
    kl_bounds_of_shares(l->ranks, l->target, l->bounds);
    memcpy(l->target, l->bounds, (l->ranks + 1) * sizeof *l->target);
    uint64_t first = (l->options.inner + 16 * l->ranks - 1) / (16 * l->ranks); /* until more is known */
    l->block = l->options.block > 0 ? l->options.block : first;
    l->opened_s = kl_loop_now_s(l);
}

/* --- a program that ends MPI before its loops --- */

/* MPI_Finalize() deletes what MPI_COMM_SELF has before it does anything else; so does kilter_loop_close(). */
static int on_finalize(MPI_Comm comm, int key, void *loop, void *nothing) {
    kilter_loop *l = loop;
    (void)comm, (void)key, (void)nothing;
    if (l->phase == KL_BROKEN || l->closing)
        return MPI_SUCCESS;
    kl_fail(&l->failure, KILTER_ERR_USAGE, "MPI_Finalize(): loop '%s' is open; close it first", l->name);
    fprintf(stderr, "rank %d: %s\n", l->rank, l->failure.text);
    kl_loop_break(l);
    return MPI_SUCCESS;
}

static void notice_finalize(kilter_loop *l) {
    l->key = MPI_KEYVAL_INVALID;
    if (kl_mpi_ranks_die &&
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_finalize, &l->key, NULL) == MPI_SUCCESS)
        MPI_Comm_set_attr(MPI_COMM_SELF, l->key, l);
}

static void ignore_finalize(kilter_loop *l) {
    if (l->key == MPI_KEYVAL_INVALID)
        return;
    MPI_Comm_delete_attr(MPI_COMM_SELF, l->key);
    MPI_Comm_free_keyval(&l->key);
}

/* --- open --- */

/* SMPI has no MPI_Comm_idup(). */
static kilter_status duplicate_one(kilter_loop *l, MPI_Comm comm, MPI_Comm *copy, kilter_error *error) {
    kl_batch batch = {0};
    MPI_Request request = MPI_REQUEST_NULL;
    int code = kl_mpi_ranks_die ? MPI_Comm_idup(comm, copy, &request) : MPI_Comm_dup(comm, copy);
    kilter_status status = kl_batch_join(&batch, code, request, error);
    if (status == KILTER_OK)
        status = kl_batch_await(l, &batch, error);
    kl_batch_free(&batch);
    if (status == KILTER_OK)
        MPI_Comm_set_errhandler(*copy, MPI_ERRORS_RETURN);
    return status;
}

/* In a simulation, which has thousands of ranks and no wrong use to find, one is enough. */
static kilter_status duplicate(kilter_loop *l, MPI_Comm comm, kilter_error *error) {
    kilter_status status = duplicate_one(l, comm, &l->comm, error);
    l->calls = l->comm;
    return status == KILTER_OK && kl_mpi_ranks_die ? duplicate_one(l, comm, &l->calls, error) : status;
}

static void free_communicators(kilter_loop *l) {
    if (l->calls != l->comm)
        MPI_Comm_free(&l->calls);
    MPI_Comm_free(&l->comm);
}

/* Ranks of one host find each other by a token. Without bells, as on several hosts, they nap. */
static kilter_status share_bells(kilter_loop *l, kilter_error *error) {
    kl_batch batch = {0};
    MPI_Request request = MPI_REQUEST_NULL;
    uint64_t *token = (uint64_t *)l->shared;
    *token = l->rank == 0 ? kl_token() : 0;
    if (!kl_mpi_ranks_die || l->ranks == 1)
        return KILTER_OK;
    int code = MPI_Ibcast(token, 1, MPI_UINT64_T, 0, l->comm, &request);
    kilter_status status = kl_batch_join(&batch, code, request, error);
    if (status == KILTER_OK)
        status = kl_batch_await(l, &batch, error);
    kl_batch_free(&batch);
    if (status == KILTER_OK)
        l->wait.bells = kl_bells_open(*token, l->ranks, (uint32_t)l->rank);
    return status;
}

/* All have opened theirs. */
static kilter_status settle_bells(kilter_loop *l, kilter_error *error) {
    uint64_t near = kl_bells_there(l->wait.bells) == l->ranks;
    kilter_status status = kl_loop_least(l, &near, 1, error);
    l->near = status == KILTER_OK && near;
    l->wait.crowded = kl_bells_crowded(l->wait.bells);
    return status;
}

static kilter_status open_on(kilter_loop *l, MPI_Comm comm, kilter_error *error) {
    kilter_status status = kl_watch_open(l, comm, error);
    if (status == KILTER_OK)
        status = duplicate(l, comm, error);
    if (status == KILTER_OK)
        status = share_bells(l, error);
    if (status == KILTER_OK)
        status = agree_on_options(l, error);
    if (status == KILTER_OK && kl_mpi_ranks_die)
        status = settle_bells(l, error);
    if (status == KILTER_OK)
        status = check_options(l, error);
    kl_bells_settle(l->wait.bells);
    if (status != KILTER_OK)
        return status;
    place(l);
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

/* Nothing tells of a death yet: whoever is late is waited for as long as when MPI starts. */
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
            fprintf(stderr, "opening a loop: not all ranks are there after %g s; waiting on\n", LATE_S);
            warn_s = HUGE_VAL;
        }
        if (!there)
            kl_mpi_rest(&wait, false, REST_MOST_S);
    }
    kl_mpi_wait_end(&wait);
    return status;
}

/* What ranks know of each other before there is a loop: the least of each counts. */
typedef struct muster {
    int given, fits, patient, unchecked;
} muster;
enum { MUSTER_INTS = sizeof(muster) / sizeof(int) };

static kilter_status reject(const muster *all, kilter_error *error) {
    if (!all->given)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "opening a loop: a rank gave NULL as options, or as the place for the loop");
    if (!all->fits)
        return kl_fail(error, KILTER_ERR_MEMORY, "opening a loop: memory ran out on a rank");
    if (!all->patient)
        return kl_fail(
            error, KILTER_ERR_USAGE,
            "opening a loop: KILTER_MPI_START_S of a rank, which says so itself, is not a number of "
            "seconds");
    return KILTER_OK;
}

/* The first thing that ranks do together. */
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
        return status; /* MPI may still write into what is shared */
    *all = *shared;
    free(shared);
    return reject(all, error);
}

/* What all ranks find wrong alike leaves nothing under way. */
static kilter_status give_back(kilter_loop *l, kilter_error *error) {
    kilter_status status = l->failure.status;
    if (error)
        *error = l->failure;
    kl_watch_close(l);
    free_communicators(l);
    kl_mpi_wait_end(&l->wait);
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
    l->checks = !all.unchecked && kl_mpi_ranks_die;
    l->outlives = kl_mpi_hint() == NULL;
    l->patience_s = patience_s > 0 ? fmin(patience_s, MEET_S) : MEET_S;
    status = open_on(l, comm, &l->failure);
    if (status == KILTER_ERR_RANGE || status == KILTER_ERR_RECORD)
        return give_back(l, error);
    if (status != KILTER_OK)
        return kl_loop_failed(l, status, error);
    l->until_s = 0;
    notice_finalize(l);
    *loop = l;
    return KILTER_OK;
}

/* --- arrays --- */

static kilter_status check_array(const kilter_loop *l, size_t bytes, uint64_t ghost, void **base,
                                 kilter_error *error) {
    const char *wrong = NULL;
    if (bytes == 0)
        wrong = "rows must have at least 1 byte";
    else if (ghost > 0 && l->options.scattered)
        wrong = "a scattered loop's arrays have no ghost rows";
    else if (kl_loop_pipelined(l) && (bytes % l->options.inner != 0 || ghost > 1))
        wrong = "in a loop of kind KILTER_DOACROSS bytes must be a multiple of inner, and ghost at most 1";
    else if (!base)
        wrong = "NULL is no place for its address";
    return wrong ? kl_fail(error, KILTER_ERR_RANGE, "attaching array %zu to loop '%s': %s", l->array_count,
                           l->name, wrong)
                 : KILTER_OK;
}

static kilter_status agree_on_array(kilter_loop *l, size_t bytes, uint64_t ghost, void **base,
                                    kilter_error *error) {
    static const char *const names[] = {"bytes", "ghost", "base (NULL)"};
    const uint64_t values[] = {bytes, ghost, base == NULL};
    const char *differs;
    kl_step(l, KL_CALL_ARRAY, l->array_count, 0);
    kilter_status status = kl_steps_meet(l, NULL, error);
    if (status == KILTER_OK)
        status = agree(l, values, names, sizeof names / sizeof *names, &differs, error);
    if (status == KILTER_OK && differs)
        return kl_fail(
            error, KILTER_ERR_RANGE,
            "attaching array %zu to loop '%s': '%s' differs between ranks (here: bytes %zu, ghost %llu)",
            l->array_count, l->name, differs, bytes, (unsigned long long)ghost);
    return status;
}

static kilter_status get_rows(kilter_loop *l, size_t bytes, uint64_t ghost, kl_rows *rows,
                              kilter_error *error) {
    kilter_error why = {KILTER_OK, "another rank has no memory for its rows"};
    kilter_status status = kl_rows_reserve(rows, l->options.iterations, bytes, &why);
    if (status == KILTER_OK)
        status = kl_rows_take(rows, kl_loop_with_ghosts(l, kl_loop_own(l), ghost), &why);
    uint64_t fits = status == KILTER_OK;
    status = kl_loop_least(l, &fits, 1, error);
    if (status != KILTER_OK || fits)
        return status;
    kl_rows_release(rows);
    return kl_fail(error, why.status == KILTER_OK ? KILTER_ERR_MEMORY : why.status, "loop '%s': %s", l->name,
                   why.text);
}

static kilter_status attach(kilter_loop *l, size_t bytes, uint64_t ghost, void **base, kilter_error *error) {
    kilter_status status = agree_on_array(l, bytes, ghost, base, error);
    if (status == KILTER_OK)
        status = check_array(l, bytes, ghost, base, error);
    if (status != KILTER_OK)
        return status;
    ghost = ghost < l->options.iterations ? ghost : l->options.iterations;
    kl_rows rows = {0};
    kl_array *more = realloc(l->arrays, (l->array_count + 1) * sizeof *more);
    if (more)
        l->arrays = more;
    uint64_t fits = more != NULL;
    status = kl_loop_least(l, &fits, 1, error);
    if (status == KILTER_OK && !fits)
        return kl_fail(error, KILTER_ERR_MEMORY, "attaching an array to loop '%s': memory ran out", l->name);
    if (status == KILTER_OK)
        status = get_rows(l, bytes, ghost, &rows, error);
    if (status != KILTER_OK)
        return status;
    kl_loop_record_array(l, bytes, ghost);
    l->arrays[l->array_count++] = (kl_array){.rows = rows, .ghost = ghost, .room = ghost};
    l->ghost = ghost > l->ghost ? ghost : l->ghost;
    *base = rows.base;
    kl_guard(l);
    return KILTER_OK;
}

/* What all ranks find wrong alike leaves the loop as it was; other failures end it. */
kilter_status kilter_loop_array(kilter_loop *l, size_t bytes, uint64_t ghost, void **base,
                                kilter_error *error) {
    if (l->phase == KL_BROKEN)
        return kl_loop_failed(l, l->failure.status, error);
    if (l->phase == KL_WITHIN || l->execution > 0)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "attaching an array to loop '%s': it has begun; attach arrays before the first "
                       "kilter_loop_begin()",
                       l->name);
    kilter_error why = {KILTER_OK, ""};
    kilter_status status = attach(l, bytes, ghost, base, &why);
    if (status == KILTER_OK)
        return KILTER_OK;
    if (status == KILTER_ERR_PEER || status == KILTER_ERR_MPI || status == KILTER_ERR_USAGE) {
        l->failure = why;
        return kl_loop_failed(l, status, error);
    }
    if (error)
        *error = why;
    return status;
}

/* --- close --- */

static kilter_status say_goodbye(kilter_loop *l, kilter_error *error) {
    l->closing = true;
    kl_step(l, KL_CALL_CLOSE, 0, 0);
    kilter_status status = kl_round_close(l, error);
    if (status == KILTER_OK)
        status = kl_loop_record_ranks(l, error);
    if (status == KILTER_OK)
        status = kl_steps_meet(l, NULL, error);
    return status == KILTER_OK ? kl_steps_close(l, error) : status;
}

/* Of a loop that failed, MPI may still write into what is here: it stays. */
kilter_status kilter_loop_close(kilter_loop *l, kilter_error *error) {
    if (!l)
        return KILTER_OK;
    kilter_status status = l->phase == KL_BROKEN ? l->failure.status : KILTER_OK;
    if (l->phase == KL_WITHIN)
        status =
            kl_fail(&l->failure, KILTER_ERR_USAGE,
                    "closing loop '%s': an execution is under way; call kilter_loop_end() first", l->name);
    else if (l->phase == KL_BETWEEN)
        status = say_goodbye(l, &l->failure);
    if (status != KILTER_OK)
        status = kl_loop_failed(l, status, error);
    kl_watch_close(l);
    kl_unguard(l);
    ignore_finalize(l);
    kl_mpi_wait_end(&l->wait);
    if (l->phase == KL_BROKEN)
        return status;
    status = kl_loop_record_end(l, NULL, error);
    free_communicators(l);
    free_loop(l);
    return status;
}
