/* Workers that the master starts itself: processes of this machine, or threads of its own. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "farm/farm_private.h"

static const double FINISH_PATIENCE_S = 5; /* local workers get so long to end, all together */

typedef struct local_worker {
    const kilter_farm *farm;
    uint32_t number;
} local_worker;

static int local_worker_process(void *arg) {
    const local_worker *local = arg;
    char binding[KL_BINDING_BYTES];
    kl_bind_core(local->number, binding);
    kilter_error error = {KILTER_OK, ""};
    kilter_status status = kl_farm_join(&local->farm->settings, local->farm->socket, binding, &error);
    /* what else went wrong the master has seen, and says */
    if (status != KILTER_ENDED && status != KILTER_ERR_PEER && status != KILTER_ERR_TASK)
        return kilter_exit(local->farm->settings.name, &error);
    return status == KILTER_ENDED ? 0 : 1;
}

static void *thread_worker_main(void *arg) {
    thread_worker *self = arg;
    kl_serve(&self->farm->settings, self->transport, "", -1, NULL);
    kl_transport_close(self->transport);
    return NULL;
}

kilter_status kl_farm_start_processes(kilter_farm *f, kilter_error *error) {
    kilter_status status = kl_allow_files((uint64_t)f->workers + KL_OTHER_FILES, error);
    if (status == KILTER_OK)
        status = kl_private_dir(&f->socket_dir, error);
    if (status != KILTER_OK)
        return status;
    f->socket = kl_text("ipc://%s/master", f->socket_dir);
    f->processes = calloc(f->workers, sizeof *f->processes);
    if (!f->socket || !f->processes)
        return kl_fail(error, KILTER_ERR_MEMORY, "starting %u local workers: memory ran out", f->workers);
    if (kl_zmq_check(f->socket, error) != KILTER_OK)
        return KILTER_ERR_USAGE;
    for (uint32_t i = 0; i < f->workers && status == KILTER_OK; i++) {
        local_worker local = {.farm = f, .number = i};
        status = kl_process_start(local_worker_process, &local, &f->processes[i], error);
        f->process_count += status == KILTER_OK;
    }
    return status == KILTER_OK ? kl_zmq_listen(f->socket, NULL, &f->transport, error) : status;
}

kilter_status kl_farm_start_threads(kilter_farm *f, kilter_error *error) {
    kilter_status status = kl_inproc_new(NULL, &f->hub, error);
    if (status == KILTER_OK)
        status = kl_inproc_listen(f->hub, &f->transport, error);
    f->threads = calloc(f->workers, sizeof *f->threads);
    if (status == KILTER_OK && !f->threads)
        status = kl_fail(error, KILTER_ERR_MEMORY, "starting %u worker threads: memory ran out", f->workers);
    for (uint32_t i = 0; i < f->workers && status == KILTER_OK; i++) {
        thread_worker *one = &f->threads[i];
        one->farm = f;
        status = kl_inproc_join(f->hub, NULL, &one->transport, error);
        if (status != KILTER_OK)
            break;
        int code = pthread_create(&one->thread, NULL, thread_worker_main, one);
        one->started = code == 0;
        if (code != 0) {
            kl_transport_close(one->transport);
            status = kl_fail(error, KILTER_ERR_SYSTEM, "starting worker thread %u: %s", i, strerror(code));
        }
    }
    return status;
}

static uint32_t processes_ended(kilter_farm *f, char *how, size_t size) {
    uint32_t ended = 0;
    for (uint32_t i = 0; i < f->process_count; i++) {
        if (f->processes[i] > 0 && kl_process_ended(f->processes[i], how, size))
            f->processes[i] = 0;
        ended += f->processes[i] == 0;
    }
    return ended;
}

/* Turn until all workers started from here are ready, or will never be. Those of a master that listens its
 * first run waits for. */
kilter_status kl_farm_wait_for_workers(kilter_farm *f, kilter_error *error) {
    char how[64] = "";
    kilter_status status = KILTER_OK;
    for (;;) {
        uint32_t ended = processes_ended(f, how, sizeof how), refused = kl_master_refused(f->master);
        uint32_t lost = ended > refused ? ended : refused;
        if (kl_master_ready(f->master) + lost >= f->workers)
            break;
        /* who could not start says so, but for a process, which may just end */
        if ((status = kl_master_turn(f->master, f->process_count > 0 ? 0.05 : -1, error)) != KILTER_OK)
            return status;
    }
    const char *loss = kl_master_last_loss(f->master);
    if (kl_master_ready(f->master) == 0)
        return kl_fail(error, KILTER_ERR_NO_WORKER, "none of %u workers could start; the last one: %s",
                       f->workers, *loss ? loss : how);
    if (kl_master_ready(f->master) < f->workers)
        fprintf(stderr, "%s: going on with %u of %u workers; one that could not start: %s\n",
                f->settings.name, kl_master_ready(f->master), f->workers, *loss ? loss : how);
    return KILTER_OK;
}

void kl_farm_remove_socket(kilter_farm *f) {
    if (f->socket)
        unlink(f->socket + strlen("ipc://"));
    if (f->socket_dir)
        rmdir(f->socket_dir);
    free(f->socket);
    free(f->socket_dir);
    f->socket = f->socket_dir = NULL;
}

void kl_farm_finish_local(kilter_farm *f) {
    double until_s = kl_now_s(&f->clock) + FINISH_PATIENCE_S;
    for (uint32_t i = 0; i < f->process_count; i++)
        if (f->processes[i] > 0)
            kl_process_finish(f->processes[i], until_s - kl_now_s(&f->clock));
    for (uint32_t i = 0; f->threads && i < f->workers; i++)
        if (f->threads[i].started)
            pthread_join(f->threads[i].thread, NULL);
    kl_inproc_free(f->hub);
    kl_farm_remove_socket(f);
    free(f->processes);
    free(f->threads);
}
