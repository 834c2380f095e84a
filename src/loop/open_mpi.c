/* A loop's beginning and end, and its arrays. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loop/loop_mpi.h"

static const double LOST_AFTER_S = 10; /* of silence of a host */
static const double MEET_S = 30;       /* all ranks are there when this begins */
static const double SPIN_S = 0.01;     /* a nap after that may last a part of it */

/* --- failures --- */

void kl_loop_break(kilter_loop *l) {
    if (l->phase == KL_BROKEN)
        return;
    l->phase = KL_BROKEN;
    kl_loop_give_up(l);
    kl_loop_record_end(l, &l->failure, NULL); /* now, as the program may exit without closing */
}

kilter_status kl_loop_failed(kilter_loop *l, kilter_status status, kilter_error *error) {
    kl_loop_break(l);
    if (error)
        *error = l->failure;
    return status;
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
    static const char *const names[] = {"iterations", "kind", "scattered", "inner", "block", "fixed"};
    const kilter_loop_options *o = &l->options;
    const uint64_t values[] = {o->iterations, (uint64_t)o->kind, o->scattered, o->inner, o->block, o->fixed};
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
    else if (o->kind == KILTER_DOACROSS && o->scattered)
        wrong = "scattered is for loops of kind KILTER_DOALL";
    else if (o->kind == KILTER_DOACROSS && o->inner == 0)
        wrong = "a loop of kind KILTER_DOACROSS needs inner, the elements of a row, at least 1";
    else if (o->kind == KILTER_DOALL && (o->inner > 0 || o->block > 0))
        wrong = "inner and block are for loops of kind KILTER_DOACROSS";
    else if (o->block > o->inner)
        wrong = "block must not be larger than inner";
    return wrong ? kl_fail(error, KILTER_ERR_RANGE, "opening loop '%s': %s", l->name, wrong) : KILTER_OK;
}

/* --- lifelines --- */

static void complain(const kilter_loop *l, uint64_t ranks) {
    fprintf(stderr, "loop '%s': %llu ranks have no connection to rank 0: their death will not be noticed\n",
            l->name, (unsigned long long)ranks);
}

enum { INVITATION_BYTES = 1024 };

static kilter_status invite(kilter_loop *l, uint8_t *invitations, kilter_error *error) {
    kilter_error why = {KILTER_OK, ""};
    if (l->rank == 0)
        kl_lifelines_listen(l->ranks - 1, LOST_AFTER_S, &l->lines, &why);
    for (uint32_t r = 1; r < l->ranks && l->lines && l->rank == 0; r++) {
        kl_buffer invitation = {0};
        kl_lifelines_invite(l->lines, r - 1, &invitation);
        if (!invitation.failed && invitation.size + 4 <= INVITATION_BYTES) {
            uint32_t size = (uint32_t)invitation.size;
            memcpy(invitations + r * INVITATION_BYTES, &size, 4);
            memcpy(invitations + r * INVITATION_BYTES + 4, invitation.data, invitation.size);
        }
        kl_buffer_free(&invitation);
    }
    kl_batch batch = {0};
    MPI_Request request = MPI_REQUEST_NULL;
    int code = MPI_Iscatter(invitations, INVITATION_BYTES, MPI_BYTE,
                            l->rank == 0 ? MPI_IN_PLACE : (void *)invitations, INVITATION_BYTES, MPI_BYTE, 0,
                            l->comm, &request);
    kilter_status status = kl_batch_join(&batch, code, request, error);
    if (status == KILTER_OK)
        status = kl_batch_await(l, &batch, error);
    kl_batch_free(&batch);
    return status;
}

/* Rank 0 takes in who connects while it waits for the ranks to say that they have. */
static kilter_status await_connections(kilter_loop *l, double *without, kilter_error *error) {
    kl_batch batch = {0};
    MPI_Request request = MPI_REQUEST_NULL;
    size_t which;
    double until_s = kl_monotonic_s() + MEET_S;
    int code = MPI_Iallreduce(MPI_IN_PLACE, without, 1, MPI_DOUBLE, MPI_SUM, l->comm, &request);
    kilter_status status = kl_batch_join(&batch, code, request, error);
    while (status == KILTER_OK && batch.open > 0) {
        status = kl_batch_look(l, &batch, error);
        if (l->lines && kl_lifelines_cut(l->lines, &which))
            status = kl_fail(error, KILTER_ERR_PEER, "opening loop '%s': rank %d is dead; start again",
                             l->name, l->rank == 0 ? (int)which + 1 : 0);
        else if (status == KILTER_OK && kl_monotonic_s() > until_s)
            status = kl_fail(error, KILTER_ERR_PEER,
                             "opening loop '%s': a rank is dead, or silent for %g s; start again", l->name,
                             MEET_S);
        if (batch.open > 0)
            kl_loop_rest(l);
    }
    kl_batch_free(&batch);
    return status;
}

static kilter_status open_lines(kilter_loop *l, kilter_error *error) {
    if (!kl_mpi_ranks_die || l->ranks == 1)
        return KILTER_OK;
    uint8_t *invitations = calloc(l->rank == 0 ? l->ranks : 1, INVITATION_BYTES);
    uint64_t fits = invitations != NULL;
    kilter_status status = kl_loop_least(l, &fits, 1, error);
    if (status == KILTER_OK && !fits)
        status = kl_fail(error, KILTER_ERR_MEMORY, "opening loop '%s': memory ran out", l->name);
    if (status == KILTER_OK)
        status = invite(l, invitations, error);
    uint32_t size = 0;
    if (status == KILTER_OK && l->rank > 0)
        memcpy(&size, invitations, 4);
    if (size > 0 && size + 4 <= INVITATION_BYTES)
        kl_lifelines_connect(invitations + 4, size, LOST_AFTER_S, MEET_S / 2, &l->lines, NULL);
    double without = l->rank > 0 && !l->lines;
    if (status == KILTER_OK)
        status = await_connections(l, &without, error);
    if (status == KILTER_OK && without > 0 && l->rank == 0)
        complain(l, (uint64_t)without);
    free(invitations);
    return status;
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
    free(l->round.all);
    kl_legs_free(&l->legs);
    kl_steer_free(l->steer);
    kl_scatter_free(l->scatter);
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
    l->comm = MPI_COMM_NULL;
    l->name = kl_text("%s", options->name ? options->name : "loop");
    l->bounds = calloc((size_t)ranks + 1, sizeof *l->bounds);
    l->target = calloc((size_t)ranks + 1, sizeof *l->target);
    l->goal = calloc((size_t)ranks + 1, sizeof *l->goal);
    if (!l->name || !l->bounds || !l->target || !l->goal) {
        free_loop(l);
        return NULL;
    }
    kl_mpi_wait_begin(&l->wait);
    l->wait.spin_s = SPIN_S;
    return l;
}

static void place(kilter_loop *l) {
    kl_equal_shares(l->options.iterations, l->ranks, l->target); /* for a moment, shares */
    kl_bounds_of_shares(l->ranks, l->target, l->bounds);
    memcpy(l->target, l->bounds, (l->ranks + 1) * sizeof *l->target);
    uint64_t first = (l->options.inner + 16 * l->ranks - 1) / (16 * l->ranks);
    l->block = l->options.block > 0 ? l->options.block : first;
    l->opened_s = kl_loop_now_s(l);
}

static kilter_status open_on(kilter_loop *l, MPI_Comm comm, kilter_error *error) {
    int code = MPI_Comm_dup(comm, &l->comm);
    if (code != MPI_SUCCESS)
        return kl_mpi_failed(code, "opening a loop: duplicating the communicator", error);
    MPI_Comm_set_errhandler(l->comm, MPI_ERRORS_RETURN);
    kilter_status status = agree_on_options(l, error);
    if (status == KILTER_OK)
        status = check_options(l, error);
    if (status == KILTER_OK) {
        place(l);
        status = kl_loop_record_open(l, error);
    }
    return status == KILTER_OK ? open_lines(l, error) : status;
}

static kilter_status check_mpi(MPI_Comm comm, kilter_error *error) {
    int running = 0, over = 0;
    MPI_Initialized(&running);
    MPI_Finalized(&over);
    if (!running || over || comm == MPI_COMM_NULL)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "opening a loop: call MPI_Init() before, and give a communicator this rank is in");
    return KILTER_OK;
}

kilter_status kilter_loop_open(MPI_Comm comm, const kilter_loop_options *options, kilter_loop **loop,
                               kilter_error *error) {
    int rank, ranks;
    kilter_status status = check_mpi(comm, error);
    if (status != KILTER_OK)
        return status;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    kilter_loop *l = new_loop(options, rank, ranks);
    if (!l)
        return kl_fail(error, KILTER_ERR_MEMORY, "opening a loop over %d ranks: memory ran out", ranks);
    status = open_on(l, comm, &l->failure);
    if (status == KILTER_OK) {
        *loop = l;
        return KILTER_OK;
    }
    if (error)
        *error = l->failure;
    kl_lifelines_close(l->lines);
    kl_loop_record_end(l, &l->failure, NULL);
    if (status == KILTER_ERR_RANGE || status == KILTER_ERR_RECORD) { /* on all ranks: nothing is under way */
        MPI_Comm_free(&l->comm);
        kl_mpi_wait_end(&l->wait);
        free_loop(l);
    }
    return status;
}

void kl_loop_force(kilter_loop *l, uint64_t seed) {
    l->forced = true;
    l->seed = kl_mix64(seed);
}

/* --- arrays --- */

static kilter_status check_array(const kilter_loop *l, size_t bytes, uint64_t ghost, kilter_error *error) {
    const char *wrong = NULL;
    if (bytes == 0)
        wrong = "rows must have at least 1 byte";
    else if (ghost > 0 && l->options.scattered)
        wrong = "a scattered loop's arrays have no ghost rows";
    else if (kl_loop_pipelined(l) && (bytes % l->options.inner != 0 || ghost > 1))
        wrong = "in a loop of kind KILTER_DOACROSS bytes must be a multiple of inner, and ghost at most 1";
    return wrong ? kl_fail(error, KILTER_ERR_RANGE, "attaching an array to loop '%s': %s", l->name, wrong)
                 : KILTER_OK;
}

static kilter_status agree_on_array(kilter_loop *l, size_t bytes, uint64_t ghost, kilter_error *error) {
    static const char *const names[] = {"bytes", "ghost"};
    const uint64_t values[] = {bytes, ghost};
    const char *differs;
    kilter_status status = agree(l, values, names, 2, &differs, error);
    if (status == KILTER_OK && differs)
        return kl_fail(
            error, KILTER_ERR_RANGE,
            "attaching an array to loop '%s': '%s' differs between ranks (here: bytes %zu, ghost %llu)",
            l->name, differs, bytes, (unsigned long long)ghost);
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
    kilter_status status = agree_on_array(l, bytes, ghost, error);
    if (status == KILTER_OK)
        status = check_array(l, bytes, ghost, error);
    if (status != KILTER_OK)
        return status;
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
    l->arrays[l->array_count++] = (kl_array){.rows = rows, .ghost = ghost};
    l->ghost = ghost > l->ghost ? ghost : l->ghost;
    *base = rows.base;
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
    if (error)
        *error = why;
    if (status == KILTER_ERR_PEER || status == KILTER_ERR_MPI) {
        l->failure = why;
        kl_loop_break(l);
    }
    return status;
}

/* --- close --- */

static kilter_status say_goodbye(kilter_loop *l, kilter_error *error) {
    kl_batch batch = {0};
    MPI_Request request = MPI_REQUEST_NULL;
    l->closing = true;
    kilter_status status = kl_round_close(l, error);
    if (status == KILTER_OK)
        status = kl_loop_record_ranks(l, error);
    if (status == KILTER_OK) {
        int code = MPI_Ibarrier(l->comm, &request);
        status = kl_batch_join(&batch, code, request, error);
    }
    if (status == KILTER_OK)
        status = kl_batch_await(l, &batch, error);
    kl_batch_free(&batch);
    return status;
}

/* Of a loop that failed, MPI may still write into what is here: it stays. */
kilter_status kilter_loop_close(kilter_loop *l, kilter_error *error) {
    if (!l)
        return KILTER_OK;
    kilter_status status = KILTER_OK;
    if (l->phase == KL_WITHIN)
        status =
            kl_fail(&l->failure, KILTER_ERR_USAGE,
                    "closing loop '%s': an execution is under way; call kilter_loop_end() first", l->name);
    else if (l->phase == KL_BETWEEN)
        status = say_goodbye(l, &l->failure);
    if (status != KILTER_OK)
        kl_loop_failed(l, status, error);
    kl_lifelines_close(l->lines);
    l->lines = NULL;
    if (l->phase == KL_BROKEN)
        return status;
    status = kl_loop_record_end(l, NULL, error);
    kl_mpi_wait_end(&l->wait);
    MPI_Comm_free(&l->comm);
    free_loop(l);
    return status;
}
