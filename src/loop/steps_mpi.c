/* Find collective calls that differ between ranks, and name them. In a call with a reduction, two more
 * numbers are reduced, which show whether all ranks are at the same call. In other calls, a rank that waits
 * for long sends the list of its calls to the next rank, which reports a difference. Any difference shows
 * between two neighbours in this ring of ranks. In checking mode all calls have a reduction. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loop/steps_mpi.h"

enum { KEY_BITS = 24, NAME_BYTES = 100 };

/* if more seconds than this lie between two checks, the rank was not waiting in between */
static const double APART_S = 0.5;
/* least seconds between two checks for the list of another rank, if such a check gives the core away */
static const double YIELDS_APART_S = 0.25;

bool kl_loop_checks(void) {
    const char *set = getenv("KILTER_CHECK");
#ifdef NDEBUG
    return set && strcmp(set, "1") == 0;
#else
    return !set || strcmp(set, "0") != 0;
#endif
}

/* --- names of calls that are packed into numbers --- */

static void name_call(uint64_t packed, char text[NAME_BYTES]) {
    static const char *const names[KL_CALLS_END] = {"",      "array",  "begin",   "sum",     "gather",
                                                    "close", "rows",   "deliver", "resumed", "open",
                                                    "share", "reduce", "scatter"};
    kl_call call = (kl_call)(packed >> 36 & 0xf);
    unsigned array = packed >> 28 & 0xff, root = packed >> 16 & 0xfff;
    char details[40] = "";
    if (call == KL_CALL_ARRAY)
        snprintf(details, sizeof details, " for array %u", array);
    else if (call == KL_CALL_SUM || call == KL_CALL_SHARE || call == KL_CALL_REDUCE)
        snprintf(details, sizeof details, " of array %u", array);
    else if (call == KL_CALL_GATHER)
        snprintf(details, sizeof details, " of array %u to rank %u", array, root);
    else if (call == KL_CALL_SCATTER)
        snprintf(details, sizeof details, " of array %u from rank %u", array, root);
    else if (array > 0)
        snprintf(details, sizeof details, " of follower %u", array);
    snprintf(text, NAME_BYTES, "kilter_loop_%s()%s (sweeps so far: %u)",
             call < KL_CALLS_END ? names[call] : "?", details, (unsigned)(packed >> 40));
}

static kilter_status out_of_step(const kl_steps *s, uint64_t one, int rank, uint64_t other, int other_rank,
                                 kilter_error *error) {
    char texts[2][NAME_BYTES];
    name_call(one, texts[0]);
    name_call(other, texts[1]);
    return kl_fail(error, KILTER_ERR_USAGE,
                   "collective calls of loop '%s' are out of step: rank %d is in %s, rank %d in %s; all "
                   "ranks must make the same calls in the same order",
                   s->group->name, rank, texts[0], other_rank, texts[1]);
}

/* --- calls in which all ranks reduce values --- */

void kl_step(kl_steps *s, kl_call call, uint64_t sweeps, size_t array, int root) {
    /* Pack a call into a number, so that calls can be compared and named. The number holds sweep, call,
     * array or follower, and root. The lowest 16 bits stay free for the number of a rank. */
    s->recent[s->number++ % KL_STEPS] = (sweeps & 0xffffff) << 40 | (uint64_t)call << 36 |
                                        (array & 0xff) << 28 | ((uint64_t)root & 0xfff) << 16;
}

static uint64_t last_step(const kl_steps *s) {
    return s->recent[(s->number - 1) % KL_STEPS];
}

/* Report two calls that differ. At this point all ranks know that their calls differ. */
static kilter_status name_difference(kl_steps *s, kilter_error *error) {
    uint64_t mine = last_step(s) | ((uint64_t)s->group->rank & 0xffff), ends[2] = {mine, ~mine};
    kilter_status status =
        kl_group_reduce(s->group, (kl_reduction){s->group->calls, MPI_UINT64_T, MPI_MIN, 2}, ends, error);
    if (status != KILTER_OK)
        return status;
    uint64_t first = ends[0], last = ~ends[1];
    return out_of_step(s, first, (int)(first & 0xffff), last, (int)(last & 0xffff), error);
}

kilter_status kl_steps_meet(kl_steps *s, int64_t *words, kilter_error *error) {
    int64_t all[KL_GROUP_WORDS] = {0}, key = (int64_t)(kl_mix64(last_step(s)) >> (64 - KEY_BITS));
    if (words)
        memcpy(all, words, KILTER_SUM_WORDS * sizeof *all);
    all[KILTER_SUM_WORDS] = key;
    all[KILTER_SUM_WORDS + 1] = key * key;
    kilter_status status = kl_group_reduce(
        s->group, (kl_reduction){s->group->calls, MPI_INT64_T, MPI_SUM, KL_GROUP_WORDS}, all, error);
    if (status != KILTER_OK)
        return status;
    int64_t ranks = (int64_t)s->group->ranks;
    if (all[KILTER_SUM_WORDS] != ranks * key || all[KILTER_SUM_WORDS + 1] != ranks * key * key)
        return name_difference(s, error);
    if (words)
        memcpy(words, all, KILTER_SUM_WORDS * sizeof *all);
    return KILTER_OK;
}

/* --- calls in which ranks wait for messages --- */

/* Compare the list of calls of another rank with this rank's list, for the calls that are in both lists. */
static kilter_status compare(const kl_steps *s, const kl_steps_word *theirs, int rank, kilter_error *error) {
    uint64_t mine = s->number, both = mine < theirs->number ? mine : theirs->number;
    uint64_t longer = mine < theirs->number ? theirs->number : mine;
    for (uint64_t k = longer > KL_STEPS ? longer - KL_STEPS : 0; k < both; k++)
        if (s->recent[k % KL_STEPS] != theirs->recent[k % KL_STEPS])
            return out_of_step(s, s->recent[k % KL_STEPS], s->group->rank, theirs->recent[k % KL_STEPS], rank,
                               error);
    return KILTER_OK;
}

static kilter_status hear(kl_steps *s, kilter_error *error) {
    int before = (s->group->rank + (int)s->group->ranks - 1) % (int)s->group->ranks;
    kilter_status status = KILTER_OK;
    for (int there = 1; there && status == KILTER_OK;) {
        kl_steps_word word;
        int code = MPI_Iprobe(before, KL_TAG_STEPS, s->group->calls, &there, MPI_STATUS_IGNORE);
        if (code == MPI_SUCCESS && there)
            code = MPI_Recv(&word, sizeof word, MPI_BYTE, before, KL_TAG_STEPS, s->group->calls,
                            MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS)
            return kl_mpi_failed(code, "comparing the calls of a loop's ranks", error);
        if (there) {
            s->heard_last = word.last;
            status = compare(s, &word, before, error);
        }
    }
    return status;
}

static kilter_status tell(kl_steps *s, bool last, kilter_error *error) {
    s->told = s->number;
    s->word.number = s->number;
    s->word.last = last;
    memcpy(s->word.recent, s->recent, sizeof s->recent);
    return kl_send(s->group, &s->requests,
                   (kl_mail){.data = &s->word,
                             .bytes = sizeof s->word,
                             .peer = (s->group->rank + 1) % (int)s->group->ranks,
                             .tag = KL_TAG_STEPS,
                             .calls = true,
                             .silent = true},
                   error);
}

kilter_status kl_steps_look(kl_steps *s, double now_s, kilter_error *error) {
    if (s->number == 0 || s->group->ranks == 1) /* the number is 0 while the loop is being opened */
        return KILTER_OK;
    if (now_s - s->looked_s > APART_S)
        s->waits_s = now_s;
    s->looked_s = now_s;
    kilter_status status = KILTER_OK;
    if (!s->group->wait.mpi_yields || now_s - s->heard_s > YIELDS_APART_S) {
        s->heard_s = now_s;
        status = hear(s, error);
    }
    if (status == KILTER_OK)
        status = kl_requests_look(s->group, &s->requests, error);
    bool due = now_s - s->waits_s > s->tell_after_s && s->told != s->number && s->requests.open == 0;
    return status == KILTER_OK && due ? tell(s, false, error) : status;
}

/* End the exchange of call lists: no message may be on its way when the communicator is freed. The messages
 * of a rank arrive in the order of sending. */
kilter_status kl_steps_close(kl_steps *s, kilter_error *error) {
    if (!kl_mpi_ranks_die || s->group->ranks == 1)
        return KILTER_OK;
    kilter_status status = kl_requests_await(s->group, &s->requests, error);
    if (status == KILTER_OK)
        status = tell(s, true, error);
    while (status == KILTER_OK && !s->heard_last) {
        status = hear(s, error);
        if (status == KILTER_OK)
            status = kl_group_look(s->group, kl_monotonic_s(), error);
        if (!s->heard_last)
            kl_group_rest(s->group, false);
    }
    return status == KILTER_OK ? kl_requests_await(s->group, &s->requests, error) : status;
}
