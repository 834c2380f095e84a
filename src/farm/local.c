/* Workers that the master starts itself: processes on this machine, or threads of its own process. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "farm/farm_private.h"

/* a local worker that was told to end is killed if it has not ended within this number of seconds */
static const double FINISH_PATIENCE_S = 5;
static const double JOIN_PATIENCE_S = 60; /* seconds within which a replacement must connect to the master */
/* seconds between two checks of worker processes, while some of them are starting */
static const double TEND_S = 0.05;

/* Return the number of cores for each local worker; 0: the worker may use all cores. By default, each worker
 * gets an equal part of the cores, but at least one core for each OpenMP thread. */
static uint32_t cores_each(const kilter_farm *f) {
    const char *bind = f->settings.bind ? f->settings.bind : "auto";
    uint32_t cores = kl_core_count(), each = cores / f->workers, threads = kl_openmp_threads();
    if (strcmp(bind, "none") == 0)
        return 0;
    if (strcmp(bind, "auto") == 0)
        each = each > threads ? each : threads;
    else
        each = strcmp(bind, "core") == 0 ? 1 : (uint32_t)strtoul(bind, NULL, 10);
    return each == 0 ? 1 : each < cores ? each : cores;
}

static int local_worker_process(void *arg, uint32_t number) {
    const kilter_farm *f = arg;
    char binding[KL_BINDING_BYTES] = "";
    kl_leave_interrupts();
    if (f->local.cores_each > 0) {
        kl_bind_cores(number, f->local.cores_each, binding);
        kl_limit_openmp(f->local.cores_each);
    }
    kilter_error error = {KILTER_OK, ""};
    kilter_status status = kl_farm_join(&f->settings, f->local.socket, binding, &error);
    /* print only errors that the master cannot know; the master has reported the other errors */
    if (status != KILTER_ENDED && status != KILTER_ERR_PEER && status != KILTER_ERR_TASK)
        return kilter_exit(f->settings.name, &error);
    return status == KILTER_ENDED ? 0 : 1;
}

static void *thread_worker_main(void *arg) {
    thread_worker *self = arg;
    kl_serve(&self->farm->settings, self->transport, NULL);
    kl_transport_close(self->transport);
    return NULL;
}

/* Remove the file of the workers' socket. If the master was killed, the supervisor calls this. */
static void remove_socket(void *farm) {
    kilter_farm *f = farm;
    if (f->local.socket)
        unlink(f->local.socket + strlen("ipc://"));
    kl_socket_dir_close(&f->local.dir);
    free(f->local.socket);
    f->local.socket = NULL;
}

kilter_status kl_farm_start_processes(kilter_farm *f, kilter_error *error) {
    kilter_status status = kl_allow_files((uint64_t)f->workers + KL_OTHER_FILES, error);
    if (status == KILTER_OK)
        status = kl_socket_dir_open(&f->local.dir, error);
    if (status != KILTER_OK)
        return status;
    f->local.socket = kl_text("ipc://%s/master", f->local.dir.path);
    f->local.list = calloc(f->workers, sizeof *f->local.list);
    if (!f->local.socket || !f->local.list)
        return kl_fail(error, KILTER_ERR_MEMORY, "starting %u local workers: memory ran out", f->workers);
    if (kl_zmq_check(f->local.socket, error) != KILTER_OK)
        return KILTER_ERR_USAGE;
    f->local.cores_each = cores_each(f);
    f->settings.arenas = kl_arenas_open(f->workers);
    status = kl_supervisor_open(local_worker_process, remove_socket, f, &f->local.supervisor, error);
    for (uint32_t i = 0; i < f->workers && status == KILTER_OK; i++)
        status = kl_supervisor_start(f->local.supervisor, i, error);
    return status == KILTER_OK
               ? kl_zmq_listen(f->local.socket,
                               &(kl_zmq_options){.lost_after_s = f->settings.options.lost_after_s,
                                                 .arenas = f->settings.arenas},
                               NULL, &f->transport, error)
               : status;
}

kilter_status kl_farm_start_threads(kilter_farm *f, kilter_error *error) {
    kilter_status status = kl_inproc_new(NULL, &f->local.hub, error);
    if (status == KILTER_OK)
        status = kl_inproc_listen(f->local.hub, &f->transport, error);
    f->local.threads = calloc(f->workers, sizeof *f->local.threads);
    if (status == KILTER_OK && !f->local.threads)
        status = kl_fail(error, KILTER_ERR_MEMORY, "starting %u worker threads: memory ran out", f->workers);
    for (uint32_t i = 0; i < f->workers && status == KILTER_OK; i++) {
        thread_worker *one = &f->local.threads[i];
        one->farm = f;
        status = kl_inproc_join(f->local.hub, NULL, &one->transport, error);
        if (status != KILTER_OK)
            break;
        int code = kl_thread_create(&one->thread, thread_worker_main, one);
        one->started = code == 0;
        if (code != 0) {
            kl_transport_close(one->transport);
            status = kl_fail(error, KILTER_ERR_SYSTEM, "starting worker thread %u: %s", i, strerror(code));
        }
    }
    return status;
}

static void take_news(kilter_farm *f, const kl_child_news *news) {
    local_worker *local = &f->local.list[news->number];
    local->pid = news->pid;
    local->ended = news->ended;
    local->started_s = kl_now_s(&f->clock);
    if (news->ended)
        local->kill_at_s = 0;
    snprintf(local->how, sizeof local->how, "%s", news->how);
    if (!news->ended || kl_master_knows(f->master, (uint64_t)news->pid))
        /* the process still runs or is connected, so the master itself will notice when the worker is lost */
        local->lost = false;
}

static void read_news(kilter_farm *f) {
    kl_child_news news;
    while (f->local.supervisor && kl_supervisor_next(f->local.supervisor, 0, &news))
        take_news(f, &news);
}

static local_worker *find_local(kilter_farm *f, uint64_t pid) {
    for (uint32_t i = 0; f->local.supervisor && i < f->workers; i++)
        if ((uint64_t)f->local.list[i].pid == pid)
            return &f->local.list[i];
    return NULL;
}

/* Tell the master how many workers are being started or will be started, because a run waits for these
 * workers. A lost worker does not count while its process lives, because it may reconnect. */
static uint32_t tell_who_comes(kilter_farm *f) {
    uint32_t coming = 0;
    /* if none of the processes lives, the supervisor itself may have ended */
    bool any_lives = f->local.supervisor && kl_supervisor_under_way(f->local.supervisor) > 0;
    for (uint32_t i = 0; f->local.supervisor && i < f->workers; i++) {
        const local_worker *local = &f->local.list[i];
        coming += (local->lost && local->ended) || (any_lives && (local->lost || local->replacing));
    }
    kl_master_expect(f->master, coming);
    return coming;
}

/* seconds to wait for the end of a worker's process after the worker's connection has ended */
static const double END_PATIENCE_S = 0.1;

void kl_farm_local_lost(void *self, uint64_t pid, bool missed, char *how, size_t size) {
    kilter_farm *f = self;
    kl_child_news news;
    double until_s = kl_now_s(&f->clock) + END_PATIENCE_S;
    local_worker *local = find_local(f, pid);
    /* read the supervisor's messages, because the message about this process may not have been read yet */
    if (!local)
        read_news(f);
    local = local ? local : find_local(f, pid);
    while (local && !local->ended &&
           kl_supervisor_next(f->local.supervisor, until_s - kl_now_s(&f->clock), &news))
        take_news(f, &news);
    if (!local)
        return;
    local->lost = missed;
    bool to_kill = !local->ended && (missed || local->replacing);
    local->kill_at_s = to_kill ? kl_now_s(&f->clock) : 0;
    tell_who_comes(f);
    if (local->ended)
        snprintf(how, size, "%s", local->how);
    else if (to_kill)
        snprintf(how, size, "no longer answers");
}

void kl_farm_renew_local(void *self, uint64_t pid, bool at_once) {
    kilter_farm *f = self;
    local_worker *local = find_local(f, pid);
    if (!local) {
        read_news(f);
        local = find_local(f, pid);
    }
    if (!local)
        return;
    local->lost = local->renewed = true;
    local->kill_at_s = local->ended ? 0 : kl_now_s(&f->clock) + (at_once ? 0 : FINISH_PATIENCE_S);
    tell_who_comes(f);
}

/* Kill a worker that does not respond, so that it is replaced. Do not kill it if a debugger has stopped it,
 * or while its core dump is being written. */
static void kill_frozen(kilter_farm *f, uint32_t number) {
    local_worker *local = &f->local.list[number];
    double now_s = kl_now_s(&f->clock);
    bool unseen = local->replacing && !local->ended && local->pid > 0 &&
                  now_s > local->started_s + JOIN_PATIENCE_S &&
                  !kl_master_sees(f->master, (uint64_t)local->pid);
    bool to_kill = local->kill_at_s > 0 && now_s >= local->kill_at_s;
    if ((to_kill || unseen) && !kl_process_is_held(local->pid))
        kl_supervisor_end(f->local.supervisor, number);
}

/* No more workers are started after this number of deaths in a row without a finished task. */
enum { DEATHS_MOST = 100 };

static bool is_worth_replacing(kilter_farm *f, const local_worker *local) {
    if (local->renewed)
        return true;
    uint64_t finished = kl_master_finished(f->master);
    f->local.deaths = finished == f->local.finished_at_death ? f->local.deaths + 1 : 1;
    f->local.finished_at_death = finished;
    if (f->local.deaths == DEATHS_MOST + 1)
        fprintf(
            stderr,
            "%s: %d workers in a row were lost and no task was finished, so no more workers are started\n",
            f->settings.name, DEATHS_MOST);
    return f->local.deaths <= DEATHS_MOST;
}

double kl_farm_tend_local(kilter_farm *f) {
    read_news(f);
    for (uint32_t i = 0; f->local.supervisor && i < f->workers; i++) {
        local_worker *local = &f->local.list[i];
        if (local->lost && !local->ended && kl_master_knows(f->master, (uint64_t)local->pid))
            local->lost = false, local->kill_at_s = 0; /* the worker is connected again */
        kill_frozen(f, i);
        if (local->ended && local->lost) {
            local->lost = false;
            local->replacing = is_worth_replacing(f, local) &&
                               kl_supervisor_start(f->local.supervisor, i, NULL) == KILTER_OK;
            local->ended = !local->replacing;
            local->renewed = false;
            local->pid = 0;
        }
        if (local->replacing && local->ended)
            fprintf(stderr, "%s: the replacement of a lost worker %s, so no other replacement is started\n",
                    f->settings.name, local->how);
        local->replacing &= !local->ended && !kl_master_knows(f->master, (uint64_t)local->pid);
    }
    return tell_who_comes(f) > 0 ? TEND_S : HUGE_VAL;
}

static uint32_t locals_ended(kilter_farm *f, const char **how) {
    uint32_t ended = 0;
    read_news(f);
    for (uint32_t i = 0; f->local.supervisor && i < f->workers; i++) {
        ended += f->local.list[i].ended;
        *how = f->local.list[i].ended ? f->local.list[i].how : *how;
    }
    return ended;
}

/* Handle events until each worker that the master started is ready or has failed. A master that listens does
 * not call this, because its first run waits for its workers. */
kilter_status kl_farm_wait_for_workers(kilter_farm *f, kilter_error *error) {
    const char *how = "";
    kilter_status status = KILTER_OK;
    for (;;) {
        uint32_t ended = locals_ended(f, &how), refused = kl_master_refused(f->master);
        uint32_t lost = ended > refused ? ended : refused;
        if (kl_master_ready(f->master) + lost >= f->workers)
            break;
        /* wake up from time to time, because a process may end without a report that it cannot start */
        if ((status = kl_master_turn(f->master, f->local.supervisor ? TEND_S : -1, error)) != KILTER_OK)
            return status;
    }
    const char *loss = kl_master_last_loss(f->master);
    if (kl_master_ready(f->master) == 0)
        return kl_fail(error, KILTER_ERR_NO_WORKER, "none of %u workers could start; the last one: %s",
                       f->workers, *loss ? loss : how);
    if (kl_master_ready(f->master) < f->workers)
        fprintf(stderr, "%s: continuing with %u of %u workers; a worker that could not start: %s\n",
                f->settings.name, kl_master_ready(f->master), f->workers, *loss ? loss : how);
    return KILTER_OK;
}

void kl_farm_finish_local(kilter_farm *f) {
    /* kill a replacement, because it may not be connected yet and would then wait for a master that has
     * gone */
    for (uint32_t i = 0; f->local.supervisor && i < f->workers; i++)
        if (f->local.list[i].replacing)
            kl_supervisor_end(f->local.supervisor, i);
    kl_supervisor_close(f->local.supervisor, FINISH_PATIENCE_S);
    for (uint32_t i = 0; f->local.threads && i < f->workers; i++)
        if (f->local.threads[i].started)
            pthread_join(f->local.threads[i].thread, NULL);
    kl_inproc_free(f->local.hub);
    kl_arenas_close(f->settings.arenas);
    remove_socket(f);
    free(f->local.list);
    free(f->local.threads);
}
