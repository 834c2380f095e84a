/* A farm for tune_test.sh and drain_test.sh. The farm does runs until the file STOP_FILE exists. While the
 * file STOP_FILE.hold exists, no task ends.
 * usage: tune_test_farm STOP_FILE [--workers N] [--record FILE] … */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <kilter/kilter.h>

static int start(const kilter_worker *worker, void **state) {
    *state = worker->user;
    return 0;
}

static int work(const kilter_task *task, kilter_result *result, void *state) {
    char hold[512];
    snprintf(hold, sizeof hold, "%s.hold", (const char *)state);
    do
        nanosleep(&(struct timespec){.tv_nsec = 200 * 1000}, NULL);
    while (access(hold, F_OK) == 0);
    return kilter_result_put(result, &task->index, sizeof task->index);
}

int main(int argc, char **argv) {
    kilter_farm_options options = {.work = work, .start = start, .user = argc > 1 ? argv[1] : ""};
    kilter_farm *farm;
    kilter_error error;
    kilter_status status = kilter_farm_open(&options, &argc, argv, &farm, &error);
    if (status != KILTER_OK)
        return kilter_exit(argv[0], &error);
    if (argc != 2) {
        fprintf(stderr, "usage: %s STOP_FILE [--workers N] [--record FILE]\n", argv[0]);
        return 2;
    }
    while (status == KILTER_OK && access(argv[1], F_OK) != 0)
        status = kilter_farm_run(farm, &(kilter_run){.tasks = 120}, &error);
    kilter_status closed = kilter_farm_close(farm, status == KILTER_OK ? &error : NULL);
    return status == KILTER_OK && closed == KILTER_OK ? 0 : kilter_exit(argv[0], &error);
}
