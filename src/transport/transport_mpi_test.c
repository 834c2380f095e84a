/* Run the tests that all transports share on the ranks of MPI_COMM_WORLD, then tests for MPI only. Start this
 * program by mpirun with up to SUITE_PEERS_MAX ranks. */
#include <mpi.h>
#include <signal.h>

#include "transport/transport.h"
#include "transport/transport_suite.h"

static kl_transport *open_endpoint(int *rank, int *size) {
    kl_transport *t;
    CHECK_OK(kl_mpi_open(0, rank, size, &t, error));
    return t;
}

static void run_case(const suite_case *its_case) {
    int rank, size;
    kl_transport *t = open_endpoint(&rank, &size);
    if (rank == 0) {
        kl_peer workers[SUITE_PEERS_MAX];
        suite_meet_workers(t, workers, (unsigned)size - 1);
        its_case->master(t, workers, (unsigned)size - 1);
    } else {
        kl_peer master = suite_meet_master(t, (unsigned)rank - 1);
        its_case->worker(t, master, (unsigned)rank - 1);
    }
    kl_transport_close(t);
}

/* Check that the program's own messages on MPI_COMM_WORLD do not disturb the transport, even with the same
 * tags. */
static void run_beside_other_traffic(void) {
    int rank, size, mine, theirs = -1;
    MPI_Request request;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    mine = rank;
    MPI_Isend(&mine, 1, MPI_INT, (rank + 1) % size, 1, MPI_COMM_WORLD, &request);
    run_case(&suite_cases[0]);
    MPI_Recv(&theirs, 1, MPI_INT, (rank + size - 1) % size, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(theirs == (rank + size - 1) % size);
}

/* Check that a message sent on one endpoint of a process does not arrive at another endpoint of this
 * process. */
static void run_two_at_once(void) {
    int rank, size;
    kl_transport *a = open_endpoint(&rank, &size), *b = open_endpoint(&rank, &size);
    kl_peer workers_a[SUITE_PEERS_MAX], workers_b[SUITE_PEERS_MAX];
    if (rank == 0) {
        suite_meet_workers(a, workers_a, (unsigned)size - 1);
        suite_meet_workers(b, workers_b, (unsigned)size - 1);
        for (int w = 0; w < size - 1; w++) {
            suite_send(b, workers_b[w], 2, 10000);
            suite_send(a, workers_a[w], 1, 10);
        }
    } else {
        kl_peer master_a = suite_meet_master(a, (unsigned)rank - 1);
        kl_peer master_b = suite_meet_master(b, (unsigned)rank - 1);
        suite_expect_message(a, master_a, 1, 10);
        suite_expect_message(b, master_b, 2, 10000);
    }
    kl_transport_close(b);
    kl_transport_close(a);
}

/* Send `messages` large messages to each worker. */
static void send_to_workers(kl_transport *t, int count, int messages) {
    kl_peer workers[SUITE_PEERS_MAX];
    suite_meet_workers(t, workers, (unsigned)count);
    for (int w = 0; w < count; w++)
        for (int i = 0; i < messages; i++)
            suite_send(t, workers[w], 1, 100000);
}

/* Check that a peer can close its endpoint although the other side has many messages queued for it. */
static void run_close_with_full_queues(void) {
    int rank, size;
    kl_transport *t = open_endpoint(&rank, &size);
    if (rank == 0) {
        send_to_workers(t, size - 1, 100);
        for (int w = 0; w < size - 1; w++)
            CHECK(suite_next(t).kind == KL_EVENT_LEFT);
        suite_expect_silence(t);
    } else {
        suite_meet_master(t, (unsigned)rank - 1);
    }
    kl_transport_close(t);
}

/* Check that both sides can close at the same time when each has more queued messages than MPI takes. */
static void run_close_against_close(void) {
    int rank, size;
    kl_transport *t = open_endpoint(&rank, &size);
    if (rank == 0) {
        send_to_workers(t, size - 1, 50);
    } else {
        kl_peer master = suite_meet_master(t, (unsigned)rank - 1);
        for (int i = 0; i < 50; i++)
            suite_send(t, master, 1, 100000);
    }
    kl_transport_close(t);
}

/* Check that a received message stays valid after its endpoint is closed. */
static void run_message_outlives(void) {
    int rank, size;
    kl_transport *t = open_endpoint(&rank, &size);
    kl_event event = {0};
    if (rank == 0) {
        kl_peer workers[SUITE_PEERS_MAX];
        suite_meet_workers(t, workers, (unsigned)size - 1);
        for (int w = 0; w < size - 1; w++)
            suite_send(t, workers[w], 4, 70000);
    } else {
        suite_meet_master(t, (unsigned)rank - 1);
        event = suite_next(t);
    }
    kl_transport_close(t);
    if (rank > 0)
        suite_check_message(&event.message, 4, 70000);
    kl_message_release(&event.message);
}

static void run_suite(void) {
    int rank, size, provided;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (unsigned c = 0; c < SUITE_CASES; c++) {
        if (rank == 0)
            printf("%s\n", suite_cases[c].name);
        run_case(&suite_cases[c]);
    }
    run_beside_other_traffic();
    run_two_at_once();
    run_close_with_full_queues();
    run_close_against_close();
    run_message_outlives();
    kl_transport *t = open_endpoint(&rank, &size);
    MPI_Query_thread(&provided);
    CHECK(t->ops->threads == (provided >= MPI_THREAD_MULTIPLE));
    kl_transport_close(t);
}

/* Check that the transport does not end MPI if the program itself has started MPI. */
static void run_in_a_program_with_mpi(int *argc, char ***argv, int threads) {
    int provided, finished = 1;
    MPI_Init_thread(argc, argv, threads, &provided);
    run_suite();
    MPI_Finalized(&finished);
    CHECK(!finished);
    MPI_Finalize();
}

/* Check that the transport starts and ends MPI if the program has not started MPI. */
static void run_in_a_program_without(void) {
    int rank, size, finished = 0;
    kl_transport *t;
    CHECK_OK(kl_mpi_open(0, &rank, &size, &t, error));
    for (int i = 0; i < (rank == 0 ? size - 1 : 1); i++)
        CHECK(suite_next(t).kind == KL_EVENT_JOINED);
    kl_transport_close(t);
    MPI_Finalized(&finished);
    CHECK(finished);
    kilter_error error = {0};
    CHECK(kl_mpi_open(0, &rank, &size, &t, &error) == KILTER_ERR_USAGE);
}

enum { LAST_WORDS = 50 };

static size_t last_words_size(unsigned index, unsigned i) {
    return index % 2 ? 100 + i : 300000 + i;
}

/* Receive messages while all workers but the last are killed in the middle of sending. The first messages of
 * each worker must arrive complete and in order, then LEFT must come once. The last worker must stay usable.
 */
static void watch_deaths(kl_transport *t, unsigned count) {
    kl_peer workers[SUITE_PEERS_MAX];
    unsigned heard[SUITE_PEERS_MAX] = {0}, left = 0;
    suite_meet_workers(t, workers, count);
    while (left < count - 1) {
        kl_event event = suite_next(t);
        unsigned w = suite_place(workers, count, event.peer);
        CHECK(w < count - 1 && heard[w] <= LAST_WORDS);
        if (event.kind == KL_EVENT_LEFT) {
            suite_expect_gone(t, workers[w]);
            heard[w] = LAST_WORDS + 1; /* no event of this worker may follow after LEFT */
            left++;
            continue;
        }
        CHECK(event.kind == KL_EVENT_MESSAGE && heard[w] < LAST_WORDS);
        suite_check_message(&event.message, heard[w], last_words_size(w, heard[w]));
        kl_message_release(&event.message);
        heard[w]++;
    }
    suite_expect_silence(t);
    suite_send(t, workers[count - 1], 7, 1000000);
    suite_expect_message(t, workers[count - 1], 8, 1000000);
}

static void run_with_deaths(void) {
    int rank, size;
    kl_transport *t;
    CHECK_OK(kl_mpi_open(0, &rank, &size, &t, error));
    if (rank == 0) {
        watch_deaths(t, (unsigned)size - 1);
    } else {
        unsigned index = (unsigned)rank - 1;
        kl_peer master = suite_meet_master(t, index);
        if (rank < size - 1) {
            for (unsigned i = 0; i < LAST_WORDS; i++)
                suite_send(t, master, i, last_words_size(index, i));
            raise(SIGKILL);
        }
        suite_expect_message(t, master, 7, 1000000);
        suite_send(t, master, 8, 1000000);
    }
    kl_transport_close(t);
    if (rank == 0)
        /* print this line, because the launcher's exit code does not show success if the launcher
         * lets ranks die */
        printf("as promised\n");
}

/* Kill the master. Each worker must get LEFT, and nothing after it. */
static void run_with_death_of_master(void) {
    int rank, size;
    kl_transport *t;
    CHECK_OK(kl_mpi_open(0, &rank, &size, &t, error));
    kl_peer workers[SUITE_PEERS_MAX];
    if (rank == 0) {
        suite_meet_workers(t, workers, (unsigned)size - 1);
        /* wait until all workers have joined, so that each gets LEFT when the master dies */
        for (int w = 0; w < size - 1; w++) {
            kl_event event = suite_next(t);
            suite_check_message(&event.message, 1, 10);
            kl_message_release(&event.message);
        }
        raise(SIGKILL);
    }
    kl_peer master = suite_meet_master(t, (unsigned)rank - 1);
    suite_send(t, master, 1, 10);
    suite_expect(t, KL_EVENT_LEFT, master);
    suite_expect_silence(t);
    suite_expect_gone(t, master);
    kl_transport_close(t);
    printf("as promised\n");
}

static void run_under_the_wrong_launcher(void) {
    int rank = -1, size = -1, finished = 0;
    kl_transport *t = NULL;
    kilter_error error = {0};
    CHECK(kl_mpi_open(0, &rank, &size, &t, &error) == KILTER_ERR_USAGE);
    CHECK(strstr(error.text, "mpirun") && !t && rank == -1 && size == -1);
    MPI_Finalized(&finished);
    CHECK(finished);
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    if (strcmp(how, "--own-mpi") == 0)
        run_in_a_program_without();
    else if (strcmp(how, "--deaths") == 0)
        run_with_deaths();
    else if (strcmp(how, "--death-of-master") == 0)
        run_with_death_of_master();
    else if (strcmp(how, "--expect-mismatch") == 0)
        run_under_the_wrong_launcher();
    else if (strcmp(how, "--single") == 0)
        run_in_a_program_with_mpi(&argc, &argv, MPI_THREAD_SINGLE);
    else
        run_in_a_program_with_mpi(&argc, &argv, MPI_THREAD_MULTIPLE);
    return 0;
}
