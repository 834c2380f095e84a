/* The public farm: from how the process was started to its role, transport, workers and record; and the two
 * threads of a master.
 *
 *   the caller's thread    kilter_farm_run() ── callback, callback, … ──────────────▶ returns
 *                                │ request          ▲ results
 *   the service thread           ▼                  │
 *                          takes in events, deals chunks: answers workers while the callback computes
 *
 * Where the transport cannot be used from another thread, the caller's thread does both in turn. */
#include "farm/farm.h"
#include "kilter/version.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const double PROGRESS_S = 0.5;      /* between two progress lines on a terminal */
static const double PROGRESS_LOG_S = 10;   /* and elsewhere */
static const double JOIN_PATIENCE_S = 60;  /* a worker waits so long for its master */
static const double BURST_S = 200e-6;      /* a worker looks for messages so often */
static const double LOOK_PATIENCE_S = 0.2; /* a look waits so long for the master to show its state */
static const double FINISH_PATIENCE_S = 5; /* local workers get so long to end, all together */

enum { OTHER_FILES = 64 }; /* what a master has open, a connection for each worker aside, is less */

typedef struct thread_worker { /* a worker that is a thread (inproc) */
    struct kilter_farm *farm;
    kl_transport *transport;
    pthread_t thread;
    bool started;
} thread_worker;

struct kilter_farm {
    kl_settings settings;
    kl_clock clock;
    double opened_s, opened_unix_s;
    char *socket_dir, *socket; /* of local workers; NULL: none, or not needed any more */
    kl_inproc *hub;
    kl_transport *transport;
    kl_master *master;
    bool recording_decided;
    uint32_t workers; /* started, or waited for */
    pid_t *processes;
    uint32_t process_count;
    thread_worker *threads;
    kl_control *control; /* NULL: none */

    bool threaded;
    pthread_t service;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t news;
    bool gathered; /* the workers a first run waits for are there */
    kl_trace *trace;
    bool recorded;    /* the master knows of the trace */
    kl_tuning tuning; /* set from outside, not taken yet */
    bool look_wanted; /* from outside */
    uint64_t shows;   /* how often `state` was renewed */
    kl_farm_state state;
    pthread_cond_t shown;
    const kilter_run *request;
    double spent_s;     /* the caller's own time before the request */
    double run_ended_s; /* its thread's busy time when it saw a run end */
    bool in_use;        /* a kilter_farm_run() has not returned */
    bool run_ended, closing;
    kl_delivery_list results;
    kilter_error failure; /* of the run or, for good, of the farm */
    bool broken;
    kilter_farm_summary summary;
    char decision[512];
    double progress_at_s;
};

/* --- being a worker --- */

/* Serve the master at the other end of `transport` until one of them ends. */
static kilter_status serve(const kl_settings *s, kl_transport *transport, const char *binding,
                           double patience_s, kilter_error *error) {
    kl_worker_options options = {
        .work = s->options.work,
        .start = s->options.start,
        .shared = s->options.shared,
        .stop = s->options.stop,
        .user = s->options.user,
        .program = s->name,
        .binding = binding,
        .clock = kl_clock_system(),
        .burst_s = BURST_S,
        .patience_s = patience_s,
    };
    kl_worker *worker;
    kilter_status status = kl_worker_new(&options, transport, &worker, error);
    if (status != KILTER_OK)
        return status;
    while (status == KILTER_OK)
        status = kl_worker_turn(worker, -1, error);
    kl_worker_free(worker);
    return status;
}

static kilter_status join(const kl_settings *s, const char *endpoint, const char *binding,
                          kilter_error *error) {
    kl_transport *transport;
    kilter_status status = kl_zmq_join(endpoint, &transport, error);
    if (status != KILTER_OK)
        return status;
    status = serve(s, transport, binding, JOIN_PATIENCE_S, error);
    kl_transport_close(transport);
    return status;
}

typedef struct local_worker {
    const kilter_farm *farm;
    uint32_t number;
} local_worker;

static int local_worker_process(void *arg) {
    const local_worker *local = arg;
    char binding[KL_BINDING_BYTES];
    kl_bind_core(local->number, binding);
    kilter_error error = {KILTER_OK, ""};
    kilter_status status = join(&local->farm->settings, local->farm->socket, binding, &error);
    /* what else went wrong the master has seen, and says */
    if (status != KILTER_ENDED && status != KILTER_ERR_PEER && status != KILTER_ERR_TASK)
        return kilter_exit(local->farm->settings.name, &error);
    return status == KILTER_ENDED ? 0 : 1;
}

static void *thread_worker_main(void *arg) {
    thread_worker *self = arg;
    serve(&self->farm->settings, self->transport, "", -1, NULL);
    kl_transport_close(self->transport);
    return NULL;
}

/* --- starting workers --- */

static kilter_status start_processes(kilter_farm *f, kilter_error *error) {
    kilter_status status = kl_allow_files((uint64_t)f->workers + OTHER_FILES, error);
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

static kilter_status start_threads(kilter_farm *f, kilter_error *error) {
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

/* What others call this machine's end of `bound`: an address that means "all of mine" is no use to them. */
static void address_for_others(const char *bound, char *address, size_t size) {
    static const char any[] = "tcp://0.0.0.0:";
    char host[KL_HOST_BYTES];
    kl_host_name(host);
    if (strncmp(bound, any, sizeof any - 1) == 0)
        snprintf(address, size, "tcp://%s:%s", host, bound + sizeof any - 1);
    else
        snprintf(address, size, "%s", bound);
}

static kilter_status listen_for_workers(kilter_farm *f, kilter_error *error) {
    char *bound = NULL, address[512];
    kilter_status status = kl_allow_files((uint64_t)f->workers + OTHER_FILES, error);
    if (status == KILTER_OK)
        status = kl_zmq_listen(f->settings.listen, &bound, &f->transport, error);
    if (status != KILTER_OK)
        return status;
    address_for_others(bound, address, sizeof address);
    fprintf(stderr, "%s: waiting for %u worker%s; start each with --join %s\n", f->settings.name, f->workers,
            f->workers == 1 ? "" : "s", address);
    free(bound);
    return KILTER_OK;
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
static kilter_status wait_for_workers(kilter_farm *f, kilter_error *error) {
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

/* Local workers are connected now: nobody else needs the socket's name. */
static void remove_socket(kilter_farm *f) {
    if (f->socket)
        unlink(f->socket + strlen("ipc://"));
    if (f->socket_dir)
        rmdir(f->socket_dir);
    free(f->socket);
    free(f->socket_dir);
    f->socket = f->socket_dir = NULL;
}

/* --- tuning from outside --- */

/* In the control thread: have the master show its state, and take the last one if it has no turn soon. */
static void fresh_state(kilter_farm *f, kl_farm_state *state) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(1e9 * LOOK_PATIENCE_S);
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&f->lock);
    uint64_t shows = f->shows;
    f->look_wanted = true;
    kl_transport_wake(f->transport);
    while (f->shows == shows && pthread_cond_timedwait(&f->shown, &f->lock, &until) == 0)
        ;
    *state = f->state;
    pthread_mutex_unlock(&f->lock);
}

static void look_from_outside(void *self, kl_control_state *shown) {
    kilter_farm *f = self;
    kl_farm_state state;
    fresh_state(f, &state);
    kl_tuning_show(&state, shown);
    snprintf(shown->program, sizeof shown->program, "%s", f->settings.name);
    snprintf(shown->transport, sizeof shown->transport, "%s", f->transport->ops->name);
}

static kilter_status set_from_outside(void *self, const kl_control_setting *setting,
                                      char answer[KL_CONTROL_ANSWER_BYTES], kilter_error *error) {
    kilter_farm *f = self;
    kl_farm_state state;
    kl_tuning tuning;
    fresh_state(f, &state);
    kilter_status status = kl_tuning_check(setting, &state, &tuning, answer, error);
    if (status != KILTER_OK)
        return status;
    pthread_mutex_lock(&f->lock);
    kl_tuning_merge(&f->tuning, &tuning);
    pthread_mutex_unlock(&f->lock);
    kl_transport_wake(f->transport);
    return KILTER_OK;
}

/* A farm nobody can look at is no reason to fail. */
static void open_control(kilter_farm *f) {
    kl_control_farm farm = {.look = look_from_outside, .set = set_from_outside, .self = f};
    kilter_error error;
    if (kl_control_open(&farm, &f->control, &error) != KILTER_OK)
        fprintf(stderr, "%s: kilter tune will not reach this run: %s\n", f->settings.name, error.text);
}

static void close_control(kilter_farm *f) {
    kl_control_close(f->control);
    f->control = NULL;
}

/* Take what was set, under the lock. */
static kl_tuning take_tuning(kilter_farm *f) {
    kl_tuning tuning = f->tuning;
    f->tuning = (kl_tuning){0};
    return tuning;
}

/* Show the state to whoever waits for it, under the lock. A master without a thread of its own has no turn
 * between two runs: what it shows then is how its last one ended. */
static void show_state(kilter_farm *f, bool run_ended) {
    if (!f->look_wanted && !(run_ended && !f->threaded))
        return;
    kl_master_state(f->master, &f->state);
    f->look_wanted = false;
    f->shows++;
    pthread_cond_signal(&f->shown);
}

/* --- the record --- */

static kilter_status check_record(const char *path, kilter_error *error) {
    struct stat found;
    if (stat(path, &found) == 0 && found.st_size > 0)
        return kl_fail(error, KILTER_ERR_USAGE, "--record: %s exists; name another file or remove it", path);
    char *folder = strdup(path);
    if (!folder)
        return kl_fail(error, KILTER_ERR_MEMORY, "--record: memory ran out");
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = '\0';
    kilter_status status = KILTER_OK;
    if (access(slash ? folder : ".", W_OK | X_OK) != 0)
        status =
            kl_fail(error, KILTER_ERR_USAGE, "--record: %s cannot be written: %s", path, strerror(errno));
    free(folder);
    return status;
}

/* A new file in the state folder. */
static kilter_status default_record(const kilter_farm *f, char **path, kilter_error *error) {
    char *folder, stamp[32];
    kilter_status status = kl_record_dir(&folder, error);
    if (status == KILTER_OK && (status = kl_make_dirs(folder, error)) != KILTER_OK)
        free(folder);
    if (status != KILTER_OK)
        return status;
    time_t now = time(NULL);
    struct tm local;
    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", localtime_r(&now, &local));
    *path = kl_text("%s/%s-%s-%d.kilter", folder, f->settings.name, stamp, (int)getpid());
    for (int i = 2; *path && access(*path, F_OK) == 0; i++) {
        free(*path);
        *path = kl_text("%s/%s-%s-%d-%d.kilter", folder, f->settings.name, stamp, (int)getpid(), i);
    }
    free(folder);
    return *path ? KILTER_OK : kl_fail(error, KILTER_ERR_MEMORY, "naming the run record: memory ran out");
}

/* At the first run: a farm that never ran leaves no file. A record nobody asked for is no reason to fail. */
static kilter_status start_record(kilter_farm *f, kilter_error *error) {
    const char *asked = f->settings.record;
    if (f->recording_decided || (asked && strcmp(asked, "none") == 0))
        return KILTER_OK;
    f->recording_decided = true;
    char *path = NULL, host[KL_HOST_BYTES];
    kl_trace *trace = NULL;
    kilter_error problem;
    kilter_status status = asked ? KILTER_OK : default_record(f, &path, &problem);
    if (status == KILTER_OK && !f->clock.simulated) /* there, no thread runs beside the ranks */
        open_control(f);
    kl_host_name(host);
    kl_trace_run_row row = {.program = f->settings.name,
                            .version = KILTER_VERSION,
                            .transport = f->transport->ops->name,
                            .policy = f->settings.policy ? f->settings.policy : "auto",
                            .host = host,
                            .began_unix_s = f->opened_unix_s,
                            .pid = getpid(),
                            .simulated = f->clock.simulated,
                            .control = kl_control_path(f->control)};
    if (status == KILTER_OK)
        status = kl_trace_open(asked ? asked : path, &row, &trace, &problem);
    free(path);
    if (status != KILTER_OK)
        close_control(f); /* nobody would find it */
    if (status != KILTER_OK && asked)
        return kl_fail(error, KILTER_ERR_USAGE, "--record: %s", problem.text);
    if (status != KILTER_OK)
        fprintf(stderr, "%s: no run record: %s\n", f->settings.name, problem.text);
    pthread_mutex_lock(&f->lock);
    f->trace = trace;
    pthread_mutex_unlock(&f->lock);
    return KILTER_OK;
}

const char *kilter_farm_record(const kilter_farm *farm) {
    return kl_trace_path(farm->trace);
}

/* --- the service --- */

static void show_progress(kilter_farm *f) {
    double now_s = kl_now_s(&f->clock);
    bool terminal = isatty(STDERR_FILENO) == 1;
    if (!f->settings.options.progress || now_s < f->progress_at_s)
        return;
    f->progress_at_s = now_s + (terminal ? PROGRESS_S : PROGRESS_LOG_S);
    char text[160];
    kl_master_progress(f->master, text, sizeof text);
    fprintf(stderr, terminal ? "\r%s: %s\033[K" : "%s: %s\n", f->settings.name, text);
}

static void end_progress(const kilter_farm *f) {
    if (f->settings.options.progress && isatty(STDERR_FILENO) == 1)
        fprintf(stderr, "\r\033[K");
}

/* Begin what was requested, take in one event, hand over what came of it. */
static void service_turn(kilter_farm *f, double timeout_s) {
    pthread_mutex_lock(&f->lock);
    f->gathered |= !f->settings.listen || kl_master_ready(f->master) >= f->workers;
    const kilter_run *request = f->gathered ? f->request : NULL;
    if (request)
        f->request = NULL;
    double spent_s = f->spent_s;
    kl_trace *new_trace = f->recorded ? NULL : f->trace;
    f->recorded |= new_trace != NULL;
    kl_tuning tuning = take_tuning(f);
    pthread_mutex_unlock(&f->lock);
    if (new_trace)
        kl_master_record(f->master, new_trace);
    if (tuning.set)
        kl_master_tune(f->master, &tuning, NULL); /* it was checked */

    kilter_error error = {KILTER_OK, ""};
    kilter_status status = KILTER_OK;
    bool was_running = kl_master_running(f->master) || request;
    if (request) {
        kl_master_spent(f->master, spent_s);
        status = kl_master_begin(f->master, request, &error);
    }
    if (status == KILTER_OK && (kl_master_running(f->master) || !request))
        status = kl_master_turn(f->master, timeout_s, &error);
    bool running = kl_master_running(f->master);
    if (running)
        show_progress(f);
    else if (was_running)
        end_progress(f);

    kl_delivery_list results = kl_master_take(f->master);
    pthread_mutex_lock(&f->lock);
    kl_delivery_append(&f->results, &results);
    if (status != KILTER_OK) {
        f->failure = error;
        f->broken |= running || !was_running; /* not just the run is lost */
    }
    if ((was_running && !running) || status != KILTER_OK) {
        f->run_ended = true;
        kl_master_summary(f->master, &f->summary);
        snprintf(f->decision, sizeof f->decision, "%s", f->summary.decision ? f->summary.decision : "");
        f->summary.decision = f->decision;
    }
    show_state(f, f->run_ended);
    pthread_cond_signal(&f->news);
    pthread_mutex_unlock(&f->lock);
}

static void *service_main(void *arg) {
    kilter_farm *f = arg;
    for (;;) {
        pthread_mutex_lock(&f->lock);
        bool stop = f->closing || f->broken;
        pthread_mutex_unlock(&f->lock);
        if (stop)
            return NULL;
        service_turn(f, f->settings.options.progress && kl_master_running(f->master) ? PROGRESS_S : -1);
    }
}

static kilter_status start_service(kilter_farm *f, kilter_error *error) {
    if (!f->transport->ops->threads)
        return KILTER_OK;
    sigset_t all, old; /* signals are the program's own threads' business */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int code = pthread_create(&f->service, NULL, service_main, f);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    f->threaded = code == 0;
    return code == 0 ? KILTER_OK
                     : kl_fail(error, KILTER_ERR_SYSTEM, "starting the service thread: %s", strerror(code));
}

/* --- opening --- */

/* Everything of a master, in the order of its making; safe at any stage of it. */
static void tear_down(kilter_farm *f) {
    if (f->master)
        kl_master_end(f->master);
    kl_transport_close(f->transport);
    double until_s = kl_now_s(&f->clock) + FINISH_PATIENCE_S;
    for (uint32_t i = 0; i < f->process_count; i++)
        if (f->processes[i] > 0)
            kl_process_finish(f->processes[i], until_s - kl_now_s(&f->clock));
    for (uint32_t i = 0; f->threads && i < f->workers; i++)
        if (f->threads[i].started)
            pthread_join(f->threads[i].thread, NULL);
    kl_inproc_free(f->hub);
    kl_master_free(f->master);
    while (f->results.first) {
        kl_delivery *next = f->results.first->next;
        kl_delivery_free(f->results.first);
        f->results.first = next;
    }
    remove_socket(f);
    free(f->processes);
    free(f->threads);
    pthread_cond_destroy(&f->news);
    pthread_cond_destroy(&f->shown);
    pthread_mutex_destroy(&f->lock);
    kl_settings_free(&f->settings);
    free(f);
}

static kilter_farm *new_farm(kl_settings *settings) {
    kilter_farm *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    f->settings = *settings;
    *settings = (kl_settings){0};
    f->clock = kl_clock_system();
    f->opened_s = kl_now_s(&f->clock);
    f->opened_unix_s = kl_unix_time_s();
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->news, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&f->shown, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return f;
}

/* Workers are under way: become their master. Takes the farm over, whatever happens. */
static kilter_status become_master(kilter_farm *f, kilter_status status, kilter_farm **farm,
                                   kilter_error *error) {
    const char *policy = f->settings.policy ? f->settings.policy : "auto";
    kl_master_options options = {.policy = kl_policy_find(policy),
                                 .clock = f->clock,
                                 .program = f->settings.name,
                                 .may_join = f->settings.listen != NULL,
                                 .chooses = !f->settings.team || strcmp(f->settings.team, "auto") == 0,
                                 .release = f->settings.options.release};
    if (status == KILTER_OK)
        status = kl_master_new(&options, f->transport, &f->master, error);
    if (status == KILTER_OK && !f->settings.listen)
        status = wait_for_workers(f, error);
    if (status == KILTER_OK)
        kl_master_state(f->master, &f->state);
    if (status == KILTER_OK)
        status = start_service(f, error);
    if (status != KILTER_OK) {
        tear_down(f);
        return status;
    }
    remove_socket(f);
    *farm = f;
    return KILTER_OK;
}

static kilter_status open_master(kl_settings *settings, kilter_farm **farm, kilter_error *error) {
    kilter_farm *f = new_farm(settings);
    if (!f)
        return kl_fail(error, KILTER_ERR_MEMORY, "opening the farm: memory ran out");
    const kl_settings *s = &f->settings;
    f->workers = s->options.workers ? s->options.workers : s->listen ? 1 : kl_core_count();
    kilter_status status = s->listen ? listen_for_workers(f, error)
                           : s->transport && strcmp(s->transport, "inproc") == 0 ? start_threads(f, error)
                                                                                 : start_processes(f, error);
    return become_master(f, status, farm, error);
}

/* How many ranks did a launcher start? 1 when there was none. */
static int launched_ranks(void) {
    const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *text = getenv(names[i]);
        if (text && atoi(text) > 1)
            return atoi(text);
    }
    return 1;
}

#ifdef KL_HAVE_MPI
static kilter_status open_mpi(kl_settings *settings, kilter_farm **farm, kilter_error *error) {
    int rank, size;
    kl_transport *transport;
    kilter_status status = kl_mpi_open(NULL, NULL, &rank, &size, &transport, error);
    if (status != KILTER_OK)
        return status;
    if (rank > 0) {
        status = serve(settings, transport, "", -1, error);
        kl_transport_close(transport);
        return status;
    }
    kilter_farm *f = new_farm(settings);
    if (!f) {
        kl_transport_close(transport);
        return kl_fail(error, KILTER_ERR_MEMORY, "opening the farm: memory ran out");
    }
    f->transport = transport;
    f->workers = (uint32_t)size - 1;
    if (size < 2)
        status =
            kl_fail(error, KILTER_ERR_USAGE,
                    "--transport mpi: the only rank is the master: start at least two, as in mpirun -n 2");
    return become_master(f, status, farm, error);
}
#else
static kilter_status open_mpi(kl_settings *settings, kilter_farm **farm, kilter_error *error) {
    (void)settings, (void)farm;
    return kl_fail(error, KILTER_ERR_USAGE, "--transport mpi: this Kilter was built without MPI");
}
#endif

kilter_status kilter_farm_open(const kilter_farm_options *options, int *argc, char **argv, kilter_farm **farm,
                               kilter_error *error) {
    kl_settings settings = {0};
    kl_keep_standard_streams();
    kilter_status status = kl_settings_read(options, argc, argv, &settings, error);
    if (status != KILTER_OK)
        return status;
    const char *transport = settings.transport;
    bool simulated = kl_clock_system().simulated;
    bool mpi = transport ? strcmp(transport, "mpi") == 0
                         : !settings.listen && !settings.join && (simulated || launched_ranks() > 1);
    if (settings.record && strcmp(settings.record, "none") != 0 && !settings.join)
        status = check_record(settings.record, error);
    if (status == KILTER_OK && simulated && !mpi)
        status = kl_fail(error, KILTER_ERR_USAGE, "--%s: a simulated machine has the mpi transport only",
                         settings.listen ? "listen"
                         : settings.join ? "join"
                                         : "transport");
    if (status != KILTER_OK)
        ;
    else if (settings.join)
        status = join(&settings, settings.join, "", error);
    else if (mpi)
        status = open_mpi(&settings, farm, error);
    else
        status = open_master(&settings, farm, error);
    kl_settings_free(&settings);
    return status;
}

/* --- running --- */

static kilter_status begin_use(kilter_farm *f, kilter_error *error) {
    pthread_mutex_lock(&f->lock);
    bool in_use = f->in_use;
    f->in_use = true;
    pthread_mutex_unlock(&f->lock);
    return in_use ? kl_fail(error, KILTER_ERR_USAGE,
                            "starting a run: the farm's last one has not returned; call it after that, and "
                            "not from the callback")
                  : KILTER_OK;
}

static void end_use(kilter_farm *f) {
    pthread_mutex_lock(&f->lock);
    f->in_use = false;
    pthread_mutex_unlock(&f->lock);
}

static kilter_status check_sizes(const kilter_run *run, kilter_error *error) {
    if (run->shared.size > KL_WIRE_MOST_BYTES)
        return kl_fail(error, KILTER_ERR_RANGE, "shared data of %zu bytes: at most %d can be sent",
                       run->shared.size, KL_WIRE_MOST_BYTES);
    for (uint64_t i = 0; run->inputs && i < run->tasks; i++)
        if (run->inputs[i].size > KL_WIRE_MOST_BYTES)
            return kl_fail(error, KILTER_ERR_RANGE,
                           "input of task %llu has %zu bytes: at most %d can be sent", (unsigned long long)i,
                           run->inputs[i].size, KL_WIRE_MOST_BYTES);
    return KILTER_OK;
}

/* Wait for results or the end of the run; true when it has ended and nothing is left to take. */
static bool next_results(kilter_farm *f, kl_delivery_list *list) {
    if (!f->threaded && !f->run_ended)
        service_turn(f, f->settings.options.progress ? PROGRESS_S : -1);
    pthread_mutex_lock(&f->lock);
    while (f->threaded && !f->results.first && !f->run_ended)
        pthread_cond_wait(&f->news, &f->lock);
    *list = f->results;
    f->results = (kl_delivery_list){0};
    if (f->run_ended && f->run_ended_s == 0)
        f->run_ended_s = kl_busy_s(&f->clock);
    bool ended = f->run_ended && !list->first;
    pthread_mutex_unlock(&f->lock);
    return ended;
}

/* Deal, and give the results to the callback as they come. */
static kilter_status carry_out(kilter_farm *f, const kilter_run *run, kl_deliverer *deliverer,
                               kilter_error *error) {
    kilter_status status = KILTER_OK;
    pthread_mutex_lock(&f->lock);
    f->run_ended = f->broken; /* then nobody is there to take the request */
    if (!f->broken) {
        f->failure = (kilter_error){KILTER_OK, ""};
        f->request = run;
        f->spent_s = f->run_ended_s > 0 ? fmax(0, kl_busy_s(&f->clock) - f->run_ended_s) : 0;
        f->run_ended_s = 0;
    }
    f->progress_at_s = kl_now_s(&f->clock) + PROGRESS_S;
    pthread_mutex_unlock(&f->lock);
    kl_transport_wake(f->transport);
    for (kl_delivery_list list; !next_results(f, &list);) {
        kilter_status delivered = kl_deliver(deliverer, list, status == KILTER_OK ? error : NULL);
        status = status == KILTER_OK ? delivered : status;
    }
    pthread_mutex_lock(&f->lock);
    kilter_error failure = f->failure;
    pthread_mutex_unlock(&f->lock);
    if (status == KILTER_OK && failure.status != KILTER_OK)
        return kl_fail(error, failure.status, "%s", failure.text);
    return status;
}

static kilter_status run_in_use(kilter_farm *f, const kilter_run *run, kilter_error *error) {
    kl_deliverer *deliverer = NULL;
    kilter_status status = check_sizes(run, error);
    if (status == KILTER_OK)
        status = start_record(f, error);
    if (status == KILTER_OK)
        status = kl_deliverer_new(run, &deliverer, error);
    if (status != KILTER_OK)
        return status;
    status = carry_out(f, run, deliverer, error);
    char first[256];
    uint64_t failed = kl_deliverer_failed(deliverer, first, sizeof first);
    kl_deliverer_free(deliverer);
    if (status == KILTER_OK && failed > 0)
        return kl_fail(error, KILTER_ERR_TASK,
                       "%llu of %llu tasks failed, the others are done; the first failure: %s",
                       (unsigned long long)failed, (unsigned long long)run->tasks, first);
    return status;
}

kilter_status kilter_farm_run(kilter_farm *f, const kilter_run *run, kilter_error *error) {
    kilter_status status = begin_use(f, error);
    if (status != KILTER_OK)
        return status;
    status = run_in_use(f, run, error);
    end_use(f);
    return status;
}

void kilter_farm_summary_get(const kilter_farm *farm, kilter_farm_summary *summary) {
    kilter_farm *f = (kilter_farm *)(uintptr_t)farm; /* const to the caller; the lock is not */
    pthread_mutex_lock(&f->lock);
    *summary = f->summary;
    pthread_mutex_unlock(&f->lock);
}

kilter_status kilter_farm_close(kilter_farm *f, kilter_error *error) {
    if (!f)
        return KILTER_OK;
    kilter_status status = begin_use(f, NULL);
    if (status != KILTER_OK)
        return kl_fail(error, status,
                       "closing the farm: a run has not returned; close it after that, and "
                       "not from the callback");
    close_control(f); /* nobody else uses the master now */
    pthread_mutex_lock(&f->lock);
    f->closing = true;
    pthread_mutex_unlock(&f->lock);
    if (f->threaded) {
        kl_transport_wake(f->transport);
        pthread_join(f->service, NULL);
    }
    kl_trace *trace = f->trace; /* the tear-down may still have rows for it */
    double closed_s = kl_now_s(&f->clock) - f->opened_s;
    tear_down(f);
    return kl_trace_close(trace, closed_s, error);
}
