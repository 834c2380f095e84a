/* bag: a farm whose tasks use memory heavily, for measurements on shared machines.
 *
 *   bag --tasks N --work E [--idle S] [options of a farm]
 *
 * Each task updates E numbers of an array of 1 MB and returns 64 bytes. A first run of N/10 tasks is a
 * warm-up and not measured. Then the program runs N tasks and prints their time. Then the farm is idle for S
 * seconds and does one more task.
 */
#include <kilter/kilter.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NUMBERS = 1 << 17 };

static uint64_t work;

static int sweep(const kilter_task *task, kilter_result *result, void *state) {
    static double a[NUMBERS];
    double out[8] = {(double)task->index};
    (void)state;
    for (uint64_t done = 0; done < work; done++)
        a[done % NUMBERS] = 0.5 * a[done % NUMBERS] + (double)task->index;
    out[1] = a[task->index % NUMBERS];
    return kilter_result_put(result, out, sizeof out);
}

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void wait_s(double seconds) {
    struct timespec left = {.tv_sec = (time_t)seconds, .tv_nsec = (long)(1e9 * fmod(seconds, 1))};
    nanosleep(&left, NULL);
}

/* The master and the workers all run this program, and each reads its own command line. */
static double read_number(int argc, char **argv, const char *name, double otherwise) {
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0) {
            char *end = NULL;
            double value = i + 1 < argc ? strtod(argv[i + 1], &end) : -1;
            if (!end || *end || !(value >= 0 && value < 1e15)) {
                fprintf(stderr, "bag: %s needs a number\n", name);
                exit(2);
            }
            return value;
        }
    return otherwise;
}

int main(int argc, char **argv) {
    uint64_t tasks = (uint64_t)read_number(argc, argv, "--tasks", 1000);
    double idle_s = read_number(argc, argv, "--idle", 0);
    work = (uint64_t)read_number(argc, argv, "--work", 1e5);
    kilter_farm *farm;
    kilter_error error;
    if (kilter_farm_open(&(kilter_farm_options){.work = sweep}, &argc, argv, &farm, &error) ||
        kilter_farm_run(farm, &(kilter_run){.tasks = 1 + tasks / 10}, &error))
        return kilter_exit(argv[0], &error);
    double begun_s = now_s();
    if (kilter_farm_run(farm, &(kilter_run){.tasks = tasks}, &error))
        return kilter_exit(argv[0], &error);
    printf("{\"tasks\":%llu,\"elapsed_s\":%.9g}\n", (unsigned long long)tasks, now_s() - begun_s);
    fflush(stdout);
    wait_s(idle_s);
    if (idle_s > 0 && kilter_farm_run(farm, &(kilter_run){.tasks = 1}, &error))
        return kilter_exit(argv[0], &error);
    kilter_farm_close(farm, NULL);
}
