/* Open and close a loop. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "loop/loop_mpi.h"
#include "transport/launch_mpi.h"

/* seconds for which a rank waits for ranks that are late to open the loop */
static const double MEET_S = 30;

/* --- opening a loop that does not follow another loop --- */

static void free_loop(kilter_loop *l) {
    kl_bundle *a = l->bundle;
    kl_loop_saver_free(l);
    kl_memory_free(&a->memory);
    kl_loop_free_handle(l);
    kl_loop_free_bundle(a);
}

static kilter_loop *new_loop(const kilter_loop_options *options, int rank, int ranks) {
    kl_bundle *a = kl_loop_new_bundle(rank, ranks);
    kilter_loop *l = a ? kl_loop_new_handle(options, a) : NULL;
    if (l) {
        a->leader = l;
        a->group.name = l->name;
        a->memory.layout = &l->rank.layout;
    } else if (a) {
        kl_loop_free_bundle(a);
    }
    return l;
}

/* --- loops that are open when the program ends MPI --- */

/* End the loop if it is still open. MPI calls this function when the attribute is deleted, by MPI_Finalize()
 * or by kilter_loop_close(). */
static int on_finalize(MPI_Comm comm, int key, void *loop, void *nothing) {
    kilter_loop *l = loop;
    (void)comm, (void)key, (void)nothing;
    if (l->bundle->phase == KL_BROKEN || l->bundle->closing || (l->saver && l->saver->stopped))
        return MPI_SUCCESS;
    kl_fail(&l->bundle->failure, KILTER_ERR_USAGE, "MPI_Finalize(): loop '%s' is open; close it first",
            l->name);
    fprintf(stderr, "rank %d: %s\n", l->bundle->group.rank, l->bundle->failure.text);
    kl_loop_break(l);
    return MPI_SUCCESS;
}

static void ignore_finalize(kilter_loop *l) {
    if (l->bundle->key == MPI_KEYVAL_INVALID)
        return;
    MPI_Comm_delete_attr(MPI_COMM_SELF, l->bundle->key);
    MPI_Comm_free_keyval(&l->bundle->key);
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

/* Duplicate the communicator, once for rows and once for comparing calls. A simulation has thousands of
 * ranks and makes no wrong calls, so there one copy is enough. */
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

/* Share a token by which ranks of one host find each other's bells. A bell wakes a sleeping rank. Ranks
 * without bells sleep only for short times. */
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

/* Check whether all ranks have found each other's bells, which wake sleeping ranks, and whether ranks share
 * cores. */
static kilter_status settle_bells(kl_group *g, kilter_error *error) {
    uint64_t near = kl_bells_there(g->wait.bells) == g->ranks;
    kilter_status status = kl_group_least(g, &near, 1, error); /* now all ranks have opened their bells */
    g->near = status == KILTER_OK && near;
    g->wait.shares_cores = kl_bells_crowded(g->wait.bells);
    uint64_t alone = !g->wait.shares_cores;
    if (status == KILTER_OK)
        status = kl_group_least(g, &alone, 1, error);
    g->crowded = status == KILTER_OK && !alone;
    return status;
}

static kilter_status open_on(kilter_loop *l, MPI_Comm comm, bool *refused, kilter_error *error) {
    kl_group *g = &l->bundle->group;
    kilter_status status = kl_detector_open(&l->bundle->detector, comm, error);
    if (status == KILTER_OK)
        status = duplicate(g, comm, error);
    if (status == KILTER_OK)
        status = share_bells(g, error);
    if (status == KILTER_OK)
        status = kl_loop_agree_on_options(l, error);
    if (status == KILTER_OK && kl_mpi_ranks_die)
        status = settle_bells(g, error);
    const char *wrong = kl_loop_wrong_option(&l->options);
    if (status == KILTER_OK && wrong)
        status = kl_fail(error, KILTER_ERR_RANGE, "opening loop '%s': %s", l->name, wrong);
    kl_bells_settle(g->wait.bells);
    if (status != KILTER_OK)
        return status;
    g->opened_s = l->rank.meter.opened_s = kl_loop_now_s(l);
    l->rank.meter.shares_cores = g->wait.shares_cores;
    l->rank.meter.cores_left = kl_bells_cores_left(g->wait.bells);
    l->rank.meter.waits_first = g->crowded && g->near;
    l->rank.meter.seldom = g->crowded;
    l->rank.meter.pin = &g->wait.pin;
    g->wait.may_pin = !g->crowded && !l->options.fixed && kl_bells_cores(g->wait.bells) > 1;
    l->rank.looks_yield = g->wait.mpi_yields && l->rank.meter.waits_first;
    status = kl_loop_saver_open(l, refused, error);
    return status == KILTER_OK ? kl_loop_record_open(l, error) : status;
}

static kilter_status check_mpi(MPI_Comm comm, kilter_error *error) {
    int running = 0, over = 0, between = 0;
    kilter_status status = kl_mpi_check_library("opening a loop", error);
    if (status != KILTER_OK)
        return status;
    MPI_Initialized(&running);
    MPI_Finalized(&over);
    if (!running || over || comm == MPI_COMM_NULL)
        return kl_fail(
            error, KILTER_ERR_USAGE,
            "opening a loop: call MPI_Init() first, and give a communicator that contains this rank");
    MPI_Comm_test_inter(comm, &between);
    if (between)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "opening a loop: this communicator is between two groups; merge them with "
                       "MPI_Intercomm_merge()");
    return kl_mpi_check_world("opening a loop", error);
}

/* Values that the ranks compare before there is a loop. The smallest value of all ranks counts. */
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
                       "opening a loop: KILTER_MPI_START_S of a rank is not a number of seconds; see the "
                       "message of that rank");
    return KILTER_OK;
}

/* Compare the ranks' values (muster) in their first collective operation. */
static kilter_status gather_ranks(MPI_Comm comm, double patience_s, muster *all, kilter_error *error) {
    MPI_Request request;
    muster *shared = malloc(sizeof *shared);
    if (!shared)
        return kl_fail(error, KILTER_ERR_MEMORY, "opening a loop: memory ran out");
    *shared = *all;
    int code = MPI_Iallreduce(MPI_IN_PLACE, shared, MUSTER_INTS, MPI_INT, MPI_MIN, comm, &request);
    if (code != MPI_SUCCESS)
        return kl_mpi_failed(code, "opening a loop", error);
    kilter_status status = kl_mpi_await_ranks(&request, "opening a loop", patience_s, error);
    if (status != KILTER_OK)
        return status; /* not freed after a failure, because MPI may still write into these values */
    *all = *shared;
    free(shared);
    return reject(all, error);
}

/* Free a loop whose options all ranks refuse. No messages are under way. */
static kilter_status give_back(kilter_loop *l, kilter_error *error) {
    kilter_status status = l->bundle->failure.status;
    if (error)
        *error = l->bundle->failure;
    kl_detector_close(&l->bundle->detector);
    free_communicators(&l->bundle->group);
    kl_mpi_wait_end(&l->bundle->group.wait);
    free_loop(l);
    return status;
}

kilter_status kl_loop_open(MPI_Comm comm, const kilter_loop_options *options, kilter_loop **loop,
                           kilter_error *error) {
    int rank, ranks;
    double patience_s;
    kilter_error impatience = {KILTER_OK, ""};
    if (options && options->follows)
        return kl_loop_follow(options, loop, error);
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
    l->bundle->group.checks = !all.unchecked && kl_mpi_ranks_die;
    l->bundle->group.outlives = kl_mpi_hint() == NULL;
    l->bundle->detector.patience_s = patience_s > 0 ? fmin(patience_s, MEET_S) : MEET_S;
    bool refused = false;
    status = open_on(l, comm, &refused, &l->bundle->failure);
    if (status == KILTER_ERR_RANGE || status == KILTER_ERR_RECORD || refused)
        return give_back(l, error);
    if (status != KILTER_OK)
        return kl_loop_failed(l, status, error);
    l->bundle->detector.until_s = 0;
    l->bundle->key = MPI_KEYVAL_INVALID;
    if (kl_mpi_ranks_die &&
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_finalize, &l->bundle->key, NULL) == MPI_SUCCESS)
        MPI_Comm_set_attr(MPI_COMM_SELF, l->bundle->key, l);
    *loop = l;
    return KILTER_OK;
}

/* --- close --- */

static kilter_status close_rounds(kilter_loop *l, kilter_error *error) {
    kl_requests *reports = l->rank.rounds.set.requests;
    return reports ? kl_requests_await(&l->bundle->group, reports, error) : KILTER_OK;
}

static kilter_status say_goodbye(kilter_loop *l, kilter_error *error) {
    l->bundle->closing = true;
    kl_loop_step(l, KL_CALL_CLOSE);
    kilter_status status = close_rounds(l, error);
    if (status == KILTER_OK)
        status = kl_loop_saver_close(l, error);
    if (status == KILTER_OK)
        status = kl_loop_record_ranks(l, error);
    if (status == KILTER_OK)
        status = kl_steps_meet(&l->bundle->steps, NULL, error);
    return status == KILTER_OK ? kl_steps_close(&l->bundle->steps, error) : status;
}

/* Return why the loop cannot be closed yet. Return NULL if it can be closed. */
static const char *too_early(const kilter_loop *l) {
    if (l->bundle->phase == KL_WITHIN)
        return "a sweep is under way; call kilter_loop_end()";
    if (l->bundle->phase == KL_BETWEEN && l->posts.count > 0)
        return "posted messages are left; call kilter_loop_deliver()";
    if (l->bundle->phase == KL_BETWEEN && kl_loop_leads(l) && l->bundle->followers > 0)
        return "loops that follow it are open; close them";
    return NULL;
}

/* Let all ranks leave the loop in the same call, and free the loop. */
static kilter_status close_leader(kilter_loop *l, kilter_error *error) {
    kilter_loop_summary summary;
    kl_loop_summary_get(l, &summary);
    kl_loop_progress_end(l);
    kilter_status status = kl_loop_record_end(l, &summary, NULL, error);
    free_communicators(&l->bundle->group);
    free_loop(l);
    return status;
}

static void end_waiting(kilter_loop *l) {
    kl_detector_close(&l->bundle->detector);
    kl_unguard(l);
    ignore_finalize(l);
    kl_mpi_wait_end(&l->bundle->group.wait);
}

/* Close a loop. If the loop failed, its memory is kept, because MPI may still write into it. */
kilter_status kilter_loop_close(kilter_loop *l, kilter_error *error) {
    if (!l)
        return KILTER_OK;
    kl_bundle *a = l->bundle;
    if (a->calls_program)
        return kl_loop_enter(l, "kilter_loop_close()", error);
    kilter_status status = a->phase == KL_BROKEN ? a->failure.status : KILTER_OK;
    const char *wrong = too_early(l);
    if (wrong)
        status = kl_fail(&a->failure, KILTER_ERR_USAGE, "closing loop '%s': %s first", l->name, wrong);
    else if (a->phase == KL_BETWEEN && kl_loop_leads(l))
        status = say_goodbye(l, &a->failure);
    if (status != KILTER_OK)
        status = kl_loop_failed(l, status, error);
    if (!kl_loop_leads(l))
        return a->phase == KL_BROKEN ? status : kl_loop_unfollow(l, error);
    end_waiting(l);
    return a->phase == KL_BROKEN ? status : close_leader(l, error);
}
