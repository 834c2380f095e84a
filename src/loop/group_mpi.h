/* Private to the folder loop: the ranks of a loop, their messages and reductions, and how they wait. */
#ifndef KL_GROUP_MPI_H
#define KL_GROUP_MPI_H

#include "loop/loop.h"
#include "rank/rank.h"
#include "sys/sys.h"
#include "transport/wait_mpi.h"

enum { KL_GROUP_WORDS = KILTER_SUM_WORDS + 2 }; /* greatest number of values in one reduction */

typedef struct kl_group {
    char *name;     /* the loop's name, for error messages */
    MPI_Comm comm;  /* communicator for rows and reports */
    MPI_Comm calls; /* communicator for the messages by which ranks compare their collective calls */
    int rank;
    uint32_t ranks;
    bool checks;   /* true: the ranks check their calls (checking mode); the same on all ranks */
    bool crowded;  /* true: some ranks share their cores with other ranks */
    bool near;     /* true: all ranks are on this host, and each has a bell (by which other ranks wake it) */
    bool outlives; /* true: the launcher lets the other ranks continue after a rank died */
    kl_clock clock;
    double opened_s;
    kl_mpi_wait wait;
    /* A function that is called now and then while the rank waits or works. It returns KILTER_OK if the loop
     * can continue. */
    kilter_status (*look)(void *loop, double now_s, kilter_error *error);
    void *loop;                     /* first argument of the function look() */
    double looked_s;                /* time at which the function look() was last called */
    int64_t shared[KL_GROUP_WORDS]; /* values of a collective call; after a failure MPI may write into them */
    int64_t partial[2][KL_GROUP_WORDS]; /* values that come from the two ranks below this rank in the tree */
} kl_group;

static inline double kl_group_now_s(const kl_group *g) {
    return kl_now_s(&g->clock);
}

/* --- sets of requests that a rank awaits together --- */

typedef struct kl_requests { /* A set of requests. All zero: no requests. */
    MPI_Request *requests;
    int *done;
    MPI_Status *statuses;
    /* receives: number of receives, which come first in the arrays; count: number of all requests; capacity:
     * room in the arrays */
    size_t receives, count, capacity;
    size_t open;     /* number of requests that are not complete */
    bool collective; /* true: the only request is that of a collective operation */
    /* true: the awaited messages do not wake this rank, because their senders do not ring its bell */
    bool silent;
} kl_requests;

/* Receive or send a message of any size. Large messages are split, because MPI counts bytes in an int. */
kilter_status kl_receive(kl_group *group, kl_requests *requests, kl_mail mail, kilter_error *error);
kilter_status kl_send(kl_group *group, kl_requests *requests, kl_mail mail, kilter_error *error);
/* Make a collective operation the only request of the set. code: the value that MPI returned when the
 * operation began. */
kilter_status kl_requests_join(kl_requests *requests, int code, MPI_Request request, kilter_error *error);
kilter_status kl_requests_look(kl_group *group, kl_requests *requests, kilter_error *error);
/* Wait until all requests are complete, or until group->look() fails. */
kilter_status kl_requests_await(kl_group *group, kl_requests *requests, kilter_error *error);
void kl_requests_free(kl_requests *requests);

/* Sleep for a short time while messages are awaited. rings: true if the senders wake this rank by its
 * doorbell. */
void kl_group_rest(kl_group *group, bool rings);
/* Call group->look(), at most every 5 ms. now_s: the present time, as the caller has read it. */
kilter_status kl_group_look(kl_group *group, double now_s, kilter_error *error);
kilter_status kl_mpi_failed(int code, const char *doing, kilter_error *error);

/* --- operations of all ranks together --- */

/* Wait for a collective operation. code: the value that MPI returned when the operation began. */
kilter_status kl_group_await(kl_group *group, int code, MPI_Request request, kilter_error *error);
/* Begin to send the first `bytes` bytes of each rank's report to all ranks. `all` gets the reports in the
 * order of ranks. */
kilter_status kl_group_share(kl_group *group, kl_requests *requests, const void *mine, void *all,
                             size_t bytes, kilter_error *error);
typedef struct kl_reduction {
    MPI_Comm comm;
    MPI_Datatype type; /* an MPI type with values of 8 bytes */
    MPI_Op op;
    size_t count; /* number of values, at most KL_GROUP_WORDS */
} kl_reduction;

/* Reduce the values of all ranks, and replace `values` by the result on each rank. */
kilter_status kl_group_reduce(kl_group *group, kl_reduction how, void *values, kilter_error *error);
/* Replace each value by the smallest or largest value of all ranks. */
kilter_status kl_group_least(kl_group *group, uint64_t *values, size_t count, kilter_error *error);
kilter_status kl_group_most_f64(kl_group *group, double *values, size_t count, kilter_error *error);
/* Compare at most 24 values on all ranks. *differs: the name of a value that differs; NULL: no value differs.
 * Collective. */
kilter_status kl_group_agree(kl_group *group, const uint64_t *values, const char *const *names, size_t count,
                             const char **differs, kilter_error *error);

/* Pass a message from rank 0 to all ranks along a tree, in two steps. First each rank but 0 receives the
 * message. Then the ranks that have others below them in the tree send it on. Other work may come between
 * the steps. The mail's peer is ignored. */
kilter_status kl_group_hear(kl_group *group, kl_requests *requests, kl_mail mail, kilter_error *error);
kilter_status kl_group_pass_on(kl_group *group, kl_requests *requests, kl_mail mail, kilter_error *error);
/* Do kl_group_hear() and kl_group_pass_on(), and wait until the message is sent. Collective. */
kilter_status kl_group_tell(kl_group *group, kl_requests *requests, kl_mail mail, kilter_error *error);

#endif
