/* cluster-loop FOLDER EXECUTIONS ITERATION_S: run a loop over the ranks of mpirun and check its result, for
 * tests with faults. At the end, each rank writes to the file FOLDER/said.RANK: its number of rows, or the
 * reason why the loop ended early. The file FOLDER/at-work appears when rank 0 has done 20 sweeps. The
 * program uses public headers only. */
#include <kilter/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { ROWS = 200, WIDTH = 1000 };

static FILE *said;

static _Noreturn void end(kilter_status status, const kilter_error *error) {
    fprintf(said, "failed: %s\n", error->text);
    fclose(said);
    _exit(status == KILTER_ERR_PEER ? 3
                                    : 1); /* end without MPI_Finalize(), which would wait for dead ranks */
}

static double cpu_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void compute(uint64_t i, double (*from)[WIDTH], double (*to)[WIDTH], double cost_s) {
    double until_s = cpu_s() + cost_s;
    for (int j = 0; j < WIDTH; j++)
        to[i][j] =
            0.5 * from[i][j] + 0.25 * ((i > 0 ? from[i - 1][j] : 1) + (i + 1 < ROWS ? from[i + 1][j] : 0));
    while (cpu_s() < until_s)
        ;
}

static int check(double (*whole)[WIDTH], int executions) {
    static double u[2][ROWS][WIDTH];
    for (int e = 0; e < executions; e++)
        for (uint64_t i = 0; i < ROWS; i++)
            compute(i, u[e % 2], u[1 - e % 2], 0);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < WIDTH; j++)
            if (whole[i][j] != u[executions % 2][i][j])
                return 1;
    return 0;
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    if (count != 4)
        return 2;
    int rank, executions = atoi(words[2]), wrong = 0;
    double cost_s = strtod(words[3], NULL);
    char path[512];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(path, sizeof path, "%s/said.%d", words[1], rank);
    said = fopen(path, "w");
    kilter_loop *loop;
    kilter_error error;
    kilter_status status;
    double(*u[2])[WIDTH];
    kilter_loop_options options = {.iterations = ROWS, .name = "cluster"};
    if (!said || (status = kilter_loop_open(MPI_COMM_WORLD, &options, &loop, &error)) != KILTER_OK)
        end(said ? status : KILTER_ERR_SYSTEM, &error);
    for (int a = 0; a < 2; a++)
        if ((status = kilter_loop_array(loop, sizeof *u[a], 1, (void **)&u[a], &error)) != KILTER_OK)
            end(status, &error);
    for (int e = 0; e < executions; e++) {
        if ((status = kilter_loop_begin(loop, &error)) != KILTER_OK)
            end(status, &error);
        for (kilter_range r; kilter_loop_next(loop, &r);)
            for (uint64_t i = r.lo; i < r.hi; i++)
                compute(i, u[e % 2], u[1 - e % 2], cost_s);
        if ((status = kilter_loop_end(loop, &error)) != KILTER_OK)
            end(status, &error);
        if (rank == 0 && e == 20) {
            snprintf(path, sizeof path, "%s/at-work", words[1]);
            fclose(fopen(path, "w"));
        }
    }
    double(*whole)[WIDTH] = calloc(ROWS, sizeof *whole);
    kilter_range own = {0, 0};
    kilter_loop_mine(loop, 0, &own);
    if ((status = kilter_loop_gather(loop, u[executions % 2], 0, whole, &error)) != KILTER_OK)
        end(status, &error);
    wrong = rank == 0 && check(whole, executions);
    fprintf(said, "%s rows %d\n", wrong ? "wrong:" : "right:", (int)(own.hi - own.lo));
    fclose(said);
    free(whole);
    kilter_loop_close(loop, &error);
    MPI_Finalize();
    return wrong;
}
