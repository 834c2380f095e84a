/* cluster-farm [NAME=VALUE]… [options of the farm]: a farm whose results can be checked, for tests with
 * faults.
 *
 * Every byte of a result depends on the run, the task and the worker's shared data. So the program notices
 * missing and wrong results, and results that arrive more than once. The program prints a line of JSON for
 * each run and exits with 0 if every result was right, else with 1. Master and workers get the same
 * arguments. The program uses public headers only, so it can be built against another release. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <kilter/kilter.h>

typedef struct settings {
    double tasks, runs;
    double task_s; /* CPU seconds of one task */
    /* every long_every-th task takes long_times as much CPU time as the other tasks; long_every 0: all tasks
     * take the same time */
    double long_every, long_times;
    double sleep_s;      /* additional seconds that a task sleeps */
    double result_bytes; /* bytes of a task's result, which consists of words of 8 bytes */
    double shared_bytes; /* bytes of the shared data of a run; 0: no shared data */
    double done_s;       /* CPU seconds that the master uses for each result */
    double poison;       /* number of the task that kills its worker; negative: no such task */
    /* after each `tell` results, the program prints the number of results so far */
    double tell;
    /* folder in which a worker makes a file with the name of its host when it gets a task */
    const char *marks;
    /* folder `hold`: while the folder has a file with the name of a host, workers on that host do not finish
     * tasks */
    const char *hold;
    double hold_from; /* number of the first task to which `hold` applies */
} settings;

static const settings DEFAULTS = {.tasks = 1000, .runs = 1, .task_s = 1e-3, .result_bytes = 8, .poison = -1};

/* --- the right results of tasks --- */

static uint64_t mix(uint64_t x) { /* splitmix64 */
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

static uint64_t hash(const uint64_t *words, size_t count) {
    uint64_t sum = count;
    for (size_t i = 0; i < count; i++)
        sum = mix(sum ^ words[i]);
    return sum;
}

static uint64_t result_word(uint64_t run, uint64_t task, uint64_t shared, size_t word) {
    return mix(mix(mix(run) ^ task) ^ shared ^ word);
}

static size_t words_of(double bytes) {
    return (size_t)bytes / sizeof(uint64_t);
}

/* --- worker --- */

typedef struct worker {
    const settings *set;
    uint64_t shared; /* hash of the shared data that the worker has */
    uint64_t *result;
    /* paths of the host's files in the folders `marks` and `hold`; NULL: no folder given */
    char *mark, *hold;
} worker;

/* Return the path FOLDER/HOST for this host; NULL: no folder was given. */
static char *file_of_host(const char *folder) {
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    size_t bytes = folder ? strlen(folder) + strlen(host) + 2 : 0;
    char *file = folder ? malloc(bytes) : NULL;
    if (file)
        snprintf(file, bytes, "%s/%s", folder, host);
    return file;
}

static int start(const kilter_worker *self, void **state) {
    worker *w = calloc(1, sizeof *w);
    if (!w)
        return 1;
    *state = w;
    w->set = self->user;
    w->result = calloc(words_of(w->set->result_bytes) + 1, sizeof *w->result);
    w->mark = file_of_host(w->set->marks);
    w->hold = file_of_host(w->set->hold);
    return !w->result;
}

static int take_shared(kilter_bytes shared, void *state) {
    ((worker *)state)->shared = hash(shared.data, shared.size / sizeof(uint64_t));
    return 0;
}

static void stop(void *state) {
    worker *w = state;
    free(w->result);
    free(w->mark);
    free(w->hold);
    free(w);
}

static double cpu_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void spend_s(double seconds) {
    double end_s = cpu_s() + seconds;
    while (cpu_s() < end_s)
        ;
}

static void sleep_for_s(double seconds) {
    struct timespec left = {.tv_sec = (time_t)seconds,
                            .tv_nsec = (long)(1e9 * (seconds - (double)(time_t)seconds))};
    while (nanosleep(&left, &left) != 0)
        ;
}

static void make_mark(const char *file) {
    int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
}

static int work(const kilter_task *task, kilter_result *result, void *state) {
    worker *w = state;
    const settings *set = w->set;
    if (w->mark)
        make_mark(w->mark);
    while (w->hold && (double)task->index >= set->hold_from && access(w->hold, F_OK) == 0)
        sleep_for_s(1e-3);
    if ((double)task->index == set->poison)
        raise(SIGKILL);
    bool is_long = set->long_every > 0 && (task->index + 1) % (uint64_t)set->long_every == 0;
    if (set->task_s > 0)
        spend_s(is_long ? set->task_s * set->long_times : set->task_s);
    if (set->sleep_s > 0)
        sleep_for_s(set->sleep_s);
    size_t words = words_of(set->result_bytes);
    for (size_t i = 0; i < words; i++)
        w->result[i] = result_word(task->run, task->index, w->shared, i);
    return kilter_result_put(result, w->result, words * sizeof *w->result);
}

/* --- master --- */

typedef struct tally {
    const settings *set;
    uint64_t run, shared;
    unsigned char *times; /* times[task]: number of results of this task that arrived, up to 255 */
    uint64_t here, right, wrong, twice, failed;
} tally;

static bool is_right(const tally *t, const kilter_outcome *outcome) {
    size_t words = words_of(t->set->result_bytes);
    const uint64_t *word = outcome->result.data;
    if (outcome->result.size != words * sizeof *word)
        return false;
    for (size_t i = 0; i < words; i++)
        if (word[i] != result_word(t->run, outcome->index, t->shared, i))
            return false;
    return true;
}

static void take(const kilter_outcome *outcome, void *user) {
    tally *t = user;
    if ((double)outcome->index >= t->set->tasks || t->times[outcome->index]) {
        t->twice++;
        return;
    }
    t->times[outcome->index] = 1;
    t->here++;
    if (outcome->status == KILTER_ERR_TASK)
        t->failed++;
    else if (is_right(t, outcome))
        t->right++;
    else
        t->wrong++;
    if (t->set->done_s > 0)
        spend_s(t->set->done_s);
    if (t->set->tell > 0 && t->here % (uint64_t)t->set->tell == 0) {
        printf("results %llu\n", (unsigned long long)t->here);
        fflush(stdout);
    }
}

static kilter_status run_once(kilter_farm *farm, const settings *set, uint64_t run, uint64_t *shared,
                              bool *good, kilter_error *error) {
    size_t words = words_of(set->shared_bytes);
    for (size_t i = 0; i < words; i++)
        shared[i] = mix(mix(run) + i);
    tally t = {.set = set, .run = run, .shared = words ? hash(shared, words) : 0};
    t.times = calloc((size_t)set->tasks + 1, 1);
    if (!t.times)
        return KILTER_ERR_MEMORY;
    kilter_run bag = {.tasks = (uint64_t)set->tasks, .done = take, .user = &t};
    if (words)
        bag.shared = (kilter_bytes){.data = shared, .size = words * sizeof *shared};
    kilter_status status = kilter_farm_run(farm, &bag, error);
    kilter_farm_summary summary;
    kilter_farm_summary_get(farm, &summary);
    printf("{\"run\":%llu,\"tasks\":%llu,\"right\":%llu,\"wrong\":%llu,\"twice\":%llu,\"missing\":%llu,"
           "\"failed\":%llu,"
           "\"workers\":%u,\"chunks\":%llu,\"elapsed_s\":%.9g,\"bound_s\":%.9g}\n",
           (unsigned long long)run, (unsigned long long)set->tasks, (unsigned long long)t.right,
           (unsigned long long)t.wrong, (unsigned long long)t.twice,
           (unsigned long long)set->tasks - (unsigned long long)t.here, (unsigned long long)t.failed,
           summary.workers, (unsigned long long)summary.chunks, summary.elapsed_s, summary.bound_s);
    fflush(stdout);
    *good = *good && t.right == (uint64_t)set->tasks && t.twice == 0;
    free(t.times);
    return status;
}

/* --- reading the command line --- */

/* Read the words NAME=VALUE and remove them from argv. The other arguments are for the farm. */
static int read_words(settings *set, int *argc, char **argv) {
    const struct {
        const char *name;
        double *number;
        const char **text;
    } names[] = {
        {"tasks", &set->tasks, NULL},
        {"runs", &set->runs, NULL},
        {"task_s", &set->task_s, NULL},
        {"long_every", &set->long_every, NULL},
        {"long_times", &set->long_times, NULL},
        {"sleep_s", &set->sleep_s, NULL},
        {"result_bytes", &set->result_bytes, NULL},
        {"shared_bytes", &set->shared_bytes, NULL},
        {"done_s", &set->done_s, NULL},
        {"poison", &set->poison, NULL},
        {"tell", &set->tell, NULL},
        {"hold_from", &set->hold_from, NULL},
        {"marks", NULL, &set->marks},
        {"hold", NULL, &set->hold},
    };
    int kept = 1;
    for (int i = 1; i < *argc; i++) {
        const char *equals = argv[i][0] == '-' ? NULL : strchr(argv[i], '=');
        size_t n = 0;
        while (equals && n < sizeof names / sizeof names[0] &&
               !(strlen(names[n].name) == (size_t)(equals - argv[i]) &&
                 strncmp(names[n].name, argv[i], (size_t)(equals - argv[i])) == 0))
            n++;
        if (!equals || n == sizeof names / sizeof names[0]) {
            argv[kept++] = argv[i];
            continue;
        }
        char *end = "";
        if (names[n].text)
            *names[n].text = equals + 1;
        else
            *names[n].number = strtod(equals + 1, &end);
        if (equals[1] == '\0' || *end) {
            fprintf(stderr, "%s: '%s': not a valid value\n", argv[0], argv[i]);
            return 2;
        }
    }
    argv[ *argc = kept] = NULL;
    return 0;
}

int main(int argc, char **argv) {
    settings set = DEFAULTS;
    kilter_farm *farm;
    kilter_error error;
    bool good = true;
    if (read_words(&set, &argc, argv) != 0)
        return 2;
    uint64_t *shared = calloc(words_of(set.shared_bytes) + 1, sizeof *shared);
    if (!shared)
        return 1;
    kilter_farm_options options = {.work = work,
                                   .start = start,
                                   .shared = take_shared,
                                   .stop = stop,
                                   .user = &set,
                                   .team = "all",
                                   .name = "cluster-farm"};
    kilter_status status = kilter_farm_open(&options, &argc, argv, &farm, &error);
    if (status != KILTER_OK) {
        free(shared);
        return kilter_exit(argv[0], &error);
    }
    if (argc != 1) {
        fprintf(stderr, "%s: unknown option '%s'\n", argv[0], argv[1]);
        kilter_farm_close(farm, NULL);
        free(shared);
        return 2;
    }
    for (uint64_t run = 0; run < (uint64_t)set.runs && (status == KILTER_OK || status == KILTER_ERR_TASK);
         run++)
        status = run_once(farm, &set, run, shared, &good, &error);
    free(shared);
    if (status != KILTER_OK)
        kilter_exit(argv[0], &error);
    if (kilter_farm_close(farm, &error) != KILTER_OK)
        return kilter_exit(argv[0], &error);
    return status == KILTER_OK && good ? 0 : 1;
}
