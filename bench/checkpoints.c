/* checkpoints MB SAVES FOLDER: measure what checkpoints of a loop cost, on the ranks of mpirun. Print one
 * JSON object with these members:
 *
 *   plain_s       seconds in which the ranks write the same bytes into one file, without checkpoints
 *   written_s     seconds until a checkpoint is completely written, while the program does almost nothing
 *                 else
 *   stopped_s     seconds that a checkpoint stops the sweeps
 *   per_save_s    seconds by which each checkpoint slows the sweeps that run while it is written
 *   interval_s    Young's interval between checkpoints for one failure a day; the cost of a checkpoint is
 *                 the greater of stopped_s and per_save_s
 *   overhead      the greater of stopped_s and per_save_s, divided by interval_s
 *
 * Each value is the median over the saves, except for per_save_s. */
#include <fcntl.h>
#include <kilter/loop.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WORDS = 1 << 13, MOST_SAVES = 100, PATH_BYTES = 600 };

static const double DAY_S = 86400;
static int rank, ranks;
static kilter_error error;

static void must(kilter_status status) {
    if (status != KILTER_OK) {
        fprintf(stderr, "checkpoints: %s\n", error.text);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, by_value);
    return values[count / 2];
}

/* --- writing the same bytes without checkpoints --- */

/* Write into a new file, and afterwards remove the previous file, as checkpoints do. If the previous file
 * were removed first, the freed memory would make the plain write faster than a checkpoint. */
static double write_plainly(const char *folder, const double *rows, size_t bytes) {
    static int generation;
    char path[PATH_BYTES], older[PATH_BYTES];
    snprintf(older, sizeof older, "%s/plain.%d", folder, generation);
    snprintf(path, sizeof path, "%s/plain.%d", folder, ++generation);
    MPI_Barrier(MPI_COMM_WORLD);
    double began_s = MPI_Wtime();
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    for (size_t at = 0; at < bytes && file >= 0;) {
        ssize_t written =
            pwrite(file, (const char *)rows + at, bytes - at, (off_t)(bytes * (size_t)rank + at));
        if (written <= 0)
            break;
        at += (size_t)written;
    }
    if (file < 0 || fdatasync(file) != 0 || close(file) != 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    double took_s = MPI_Wtime() - began_s;
    if (rank == 0)
        unlink(older);
    return took_s;
}

/* --- a loop --- */

typedef struct program {
    kilter_loop *loop;
    double (*u)[WORDS];
} program;

static void begin(program *p, uint64_t rows, const char *checkpoint, double interval_s) {
    uint64_t done;
    const kilter_loop_options options = {.iterations = rows,
                                         .fixed = true,
                                         .checkpoint = checkpoint,
                                         .checkpoint_s = interval_s,
                                         .name = "bench"};
    must(kilter_loop_open(MPI_COMM_WORLD, &options, &p->loop, &error));
    must(kilter_loop_array(p->loop, sizeof *p->u, 0, (void **)&p->u, &error));
    must(kilter_loop_resumed(p->loop, &done, &error));
}

static void sweep(program *p, int times) {
    kilter_range r;
    must(kilter_loop_begin(p->loop, &error));
    while (kilter_loop_next(p->loop, &r))
        for (uint64_t i = r.lo; i < r.hi; i++)
            for (int t = 0; t < times; t++)
                for (int k = 0; k < WORDS; k++)
                    p->u[i][k] = 0.5 * p->u[i][k] + (double)(i + 1);
    must(kilter_loop_end(p->loop, &error));
}

static kilter_loop_summary summary_of(const program *p) {
    kilter_loop_summary s;
    kilter_loop_summary_get(p->loop, &s);
    MPI_Bcast(&s.saves, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &s.saving_s, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return s;
}

/* Return the number with this name from the JSON object in the file `progress`. Rank 0 writes this file to
 * report its progress (KILTER_KEEP). */
static double progress(const char *folder, const char *name) {
    char path[PATH_BYTES], text[1 << 14] = "", key[40];
    snprintf(path, sizeof path, "%s/progress", folder);
    snprintf(key, sizeof key, "\"%s\":", name);
    FILE *file = fopen(path, "r");
    size_t bytes = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    text[bytes] = '\0';
    const char *at = strstr(text, key);
    return at ? strtod(at + strlen(key), NULL) : NAN;
}

/* Write checkpoints one after the other, with hardly any work of the program between them. Before each
 * checkpoint, write the same bytes without a checkpoint. Both kinds of writes are alternated because many
 * disks are fast only for the first seconds. */
static void measure_saves(const char *folder, uint64_t rows, int saves, double *stopped_s, double *written_s,
                          double *plain_s) {
    char checkpoint[PATH_BYTES];
    double stops[MOST_SAVES], writes[MOST_SAVES], plains[MOST_SAVES], before_s = 0;
    size_t bytes = rows / (uint64_t)ranks * sizeof(double[WORDS]);
    double *own = calloc(bytes, 1);
    memset(own, 1, bytes);
    program p;
    snprintf(checkpoint, sizeof checkpoint, "%s/bench", folder);
    begin(&p, rows, checkpoint, 1e-6);
    sweep(&p, 1); /* touches the memory of the rows for the first time */
    /* the first save is not measured: it allocates memory for the copy of the rows */
    for (int n = -1; n < saves; n++) {
        if (n >= 0)
            plains[n] = write_plainly(folder, own, bytes);
        uint64_t saved = summary_of(&p).saves;
        while (summary_of(&p).saves == saved) { /* the ranks hardly compute, so the cores are free for the
                                                 * threads that write */
            sweep(&p, 0);
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        }
        kilter_loop_summary s = summary_of(&p);
        if (n >= 0) {
            stops[n] = s.saving_s - before_s;
            writes[n] = rank == 0 ? progress(folder, "write_s") : 0;
        }
        before_s = s.saving_s;
    }
    must(kilter_loop_close(p.loop, &error));
    free(own);
    *plain_s = median(plains, saves);
    *stopped_s = median(stops, saves);
    *written_s = median(writes, saves);
}

/* Measure the seconds that sweeps of a computing program take, with or without checkpoints. Set *saves to the
 * number of checkpoints written. */
static double measure_sweeps(const char *checkpoint, uint64_t rows, double interval_s, uint64_t *saves) {
    enum { SWEEPS = 200, TIMES = 4 };
    program p;
    begin(&p, rows, checkpoint, interval_s);
    sweep(&p, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    double began_s = MPI_Wtime();
    for (int n = 0; n < SWEEPS; n++)
        sweep(&p, TIMES);
    MPI_Barrier(MPI_COMM_WORLD);
    double took_s = MPI_Wtime() - began_s;
    *saves = summary_of(&p).saves;
    must(kilter_loop_close(p.loop, &error));
    return took_s;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 4) {
        fprintf(stderr, "usage: checkpoints MB SAVES FOLDER\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const char *folder = argv[3];
    uint64_t rows = strtoull(argv[1], NULL, 10) * 1000000 / (WORDS * sizeof(double)) / (uint64_t)ranks;
    int saves = atoi(argv[2]) < MOST_SAVES ? atoi(argv[2]) : MOST_SAVES;
    size_t bytes = rows * WORDS * sizeof(double);
    double plain, stopped_s, written_s;
    char path[PATH_BYTES];
    rows *= (uint64_t)ranks;
    setenv("KILTER_KEEP", folder, 1);
    measure_saves(folder, rows, saves, &stopped_s, &written_s, &plain);
    snprintf(path, sizeof path, "%s/beside", folder);
    uint64_t none, some;
    double alone_s = measure_sweeps("none", rows, 0, &none);
    double beside_s = measure_sweeps(path, rows, alone_s / 6, &some);
    alone_s = fmin(alone_s, measure_sweeps("none", rows, 0, &none));
    double cost_s = some > 0 ? fmax(beside_s - alone_s, 0) / (double)some : 0;
    double interval_s = sqrt(2 * fmax(cost_s, stopped_s) * DAY_S);
    if (rank == 0)
        printf("{\"ranks\":%d,\"bytes\":%zu,\"plain_s\":%.4g,\"written_s\":%.4g,\"written_to_plain\":%.3g,"
               "\"stopped_s\":%.4g,\"stopped_to_written\":%.3g,\"sweeps_s\":%.4g,\"saves\":%llu,"
               "\"per_save_s\":%.4g,\"interval_s\":%.4g,\"overhead\":%.3g}\n",
               ranks, bytes * (size_t)ranks, plain, written_s, written_s / plain, stopped_s,
               stopped_s / written_s, alone_s, (unsigned long long)some, cost_s, interval_s,
               fmax(cost_s, stopped_s) / interval_s);
    MPI_Finalize();
    return 0;
}
