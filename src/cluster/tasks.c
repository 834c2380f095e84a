/* Read a task SPEC into the number of tasks and their times. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/cluster.h"
#include "cluster/scan.h"
#include "report/report.h"

static const uint64_t MOST_TASKS = 10000000000;
static const double MOST_TASK_S = 1e9, MOST_CV = 100;

/* Read the law of the task times: LAW(MEAN[,CV]). */
static void read_law(kl_scan *s, kl_tasks *tasks) {
    static const struct {
        const char *name;
        kl_law law;
        double most_cv; /* greatest value of the law's second argument; 0: the law has no second argument */
    } laws[] = {{"const(", KL_LAW_CONST, 0},
                /* with the greatest value, √(1/3), times lie between 0 and double the mean */
                {"uniform(", KL_LAW_UNIFORM, 0.577350269},
                {"normal(", KL_LAW_NORMAL, 1},
                {"exp(", KL_LAW_EXP, 0},
                {"lognormal(", KL_LAW_LOGNORMAL, MOST_CV}};
    for (size_t i = 0; i < sizeof laws / sizeof *laws; i++)
        if (kl_scan_take(s, laws[i].name)) {
            tasks->law = laws[i].law;
            tasks->mean_s = kl_scan_time_s(s, "the mean", 0, MOST_TASK_S);
            if (laws[i].most_cv > 0) {
                kl_scan_need(s, ",", "the mean");
                tasks->cv = kl_scan_number(s, "the deviation over the mean", 0, laws[i].most_cv);
            }
            kl_scan_need(s, ")", "the law's arguments");
            return;
        }
    kl_scan_fail(
        s, s->at, KILTER_ERR_INPUT,
        "const(MEAN), uniform(MEAN,CV), normal(MEAN,CV), exp(MEAN) or lognormal(MEAN,CV) must follow '@'");
}

typedef struct reading {
    kl_tasks tasks;
    bool failed;
    double work_s;
} reading;

static void add_span(reading *r, uint64_t hi, double task_s) {
    kl_tasks *t = &r->tasks;
    /* enlarge the array when it holds 1, 3, 7, 15 … elements */
    if ((t->span_count & (t->span_count + 1)) == 0) {
        kl_task_span *spans = realloc(t->spans, (2 * t->span_count + 1) * sizeof *spans);
        r->failed |= !spans;
        t->spans = spans ? spans : t->spans;
    }
    if (r->failed)
        return;
    t->spans[t->span_count++] = (kl_task_span){hi, task_s};
    r->work_s += (double)(hi - t->count) * task_s;
    t->count = hi;
}

/* Store the mean time of the tasks of a recorded chunk. Tasks between the previous chunk and this one get the
 * same time. */
static void take_times(void *context, uint64_t lo, uint64_t hi, double task_s) {
    reading *r = context;
    (void)lo;
    if (hi > r->tasks.count && task_s >= 0 && task_s <= MOST_TASK_S)
        add_span(r, hi, task_s);
}

static kilter_status read_record(const char *path, kl_tasks *tasks, kilter_error *error) {
    reading r = {.tasks = {.law = KL_LAW_RECORDED}};
    kilter_status status = kl_report_task_times(path, -1, take_times, &r, error);
    if (status == KILTER_OK && r.failed)
        status = kl_fail(error, KILTER_ERR_MEMORY, "taking task times from '%s': memory ran out", path);
    if (status == KILTER_OK && (r.tasks.count == 0 || r.tasks.count > MOST_TASKS))
        status = kl_fail(error, KILTER_ERR_INPUT,
                         "taking task times from '%s': its times or task numbers are not valid", path);
    if (status != KILTER_OK) {
        kl_tasks_free(&r.tasks);
        return status;
    }
    r.tasks.mean_s = r.work_s / (double)r.tasks.count;
    *tasks = r.tasks;
    return KILTER_OK;
}

static double recorded_s(const kl_tasks *tasks, uint64_t index) {
    size_t low = 0, high = tasks->span_count - 1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (tasks->spans[middle].hi <= index)
            low = middle + 1;
        else
            high = middle;
    }
    return tasks->spans[low].task_s;
}

kilter_status kl_tasks_parse(const char *spec, kl_tasks *tasks, kilter_error *error) {
    if (strncmp(spec, "file=", 5) == 0)
        return read_record(spec + 5, tasks, error);
    kl_scan s = kl_scan_of("tasks", spec, error);
    kl_tasks t = {.count = kl_scan_count(&s, "the number of tasks", 1, MOST_TASKS)};
    kl_scan_need(&s, "@", "the number of tasks");
    read_law(&s, &t);
    if (!kl_scan_done(&s))
        kl_scan_fail(&s, s.at, KILTER_ERR_INPUT, "not understood from here on");
    if (!kl_scan_ok(&s))
        return s.status;
    *tasks = t;
    return KILTER_OK;
}

void kl_tasks_free(kl_tasks *tasks) {
    free(tasks->spans);
    *tasks = (kl_tasks){0};
}

/* Return a random number in (0, 1) that depends only on `key`. */
static double random_of(uint64_t key) {
    return ((double)(kl_mix64(key) >> 11) + 0.5) * 0x1p-53;
}

static double normal_of(uint64_t key) {
    return sqrt(-2 * log(random_of(key))) * cos(2 * 3.14159265358979323846 * random_of(key + 1));
}

double kl_task_s(const kl_tasks *tasks, uint64_t run, uint64_t index) {
    uint64_t key = kl_mix64(tasks->seed + run * 1000003) + 2 * index;
    double mean_s = tasks->mean_s, cv = tasks->cv;
    switch (tasks->law) {
    case KL_LAW_UNIFORM:
        return mean_s * (1 + cv * sqrt(3) * (2 * random_of(key) - 1));
    case KL_LAW_NORMAL: /* a normal law can give a time below 0, which is set to 0 */
        return fmax(0, mean_s * (1 + cv * normal_of(key)));
    case KL_LAW_EXP:
        return -mean_s * log(random_of(key));
    case KL_LAW_LOGNORMAL: {
        double variance = log1p(cv * cv);
        return mean_s * exp(sqrt(variance) * normal_of(key) - variance / 2);
    }
    case KL_LAW_RECORDED:
        return recorded_s(tasks, index);
    case KL_LAW_CONST:
        break;
    }
    return mean_s;
}
