/* The life of a worker: it serves a master until the worker or the master ends. If the connection to the
 * master is lost and the master is started again, the worker serves the new master. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "farm/farm_private.h"

static const double WAIT_FOR_MASTER_S = 60; /* default number of seconds that a worker waits for its master */
/* seconds of work after which a worker checks for messages */
static const double BURST_S = 200e-6;

/* The data of a worker on this machine. The worker is a thread, or a process that does nothing else. */
typedef struct served {
    const kl_settings *settings;
    /* key of the farm, if the worker is a process. The worker keeps the key, because a key on the standard
     * input can be read only once. */
    kl_key key;
    clockid_t cpu;
    /* measures how much of its core the worker's thread gets; open only if the worker reports its CPU time */
    kl_core_meter meter;
    kl_worker_options options;
    bool warned; /* true: an error of the shared folder was already reported */
} served;

static void begin_anew(const served *p) {
    const kl_settings *s = p->settings;
    kl_buffer key = {0};
    kilter_error error = {KILTER_OK, ""};
    if (s->key && strcmp(s->key, "-") == 0)
        kl_key_write(&p->key, false, &key);
    kl_begin_anew(key.data, key.size, &error);
    _exit(kilter_exit(s->name, &error));
}

/* End a worker that cannot continue. The master replaces a worker that it started; any other worker restarts
 * its own program. */
static void abandon(void *self, const kilter_error *why, bool anew) {
    const served *p = self;
    if (p->settings->join && anew)
        begin_anew(p);
    bool good = anew || why->status == KILTER_ENDED;
    /* print the error only if the user started this worker, because the master prints the errors of workers
     * that it started; use dprintf(), because the task may hold the lock of stderr */
    if (p->settings->join && !good)
        dprintf(STDERR_FILENO, "%s: %s\n", p->settings->name, why->text);
    _exit(good ? EXIT_SUCCESS : EXIT_FAILURE);
}

void kl_worker_introduce(void *self, kl_hello *hello) {
    char host[KL_HOST_BYTES];
    (void)self;
    kl_host_name(host);
    snprintf(hello->host, sizeof hello->host, "%.*s", (int)sizeof hello->host - 1, host);
    hello->pid = (uint64_t)getpid();
}

static double cpu_s(void *self) {
    return kl_cpu_s(((const served *)self)->cpu);
}

static bool core(void *self, double *run_s, double *delay_s) {
    double slices;
    return kl_core_read(&((const served *)self)->meter, run_s, delay_s, &slices);
}

static uint64_t memory(void *self) {
    (void)self;
    return kl_process_memory();
}

/* Report the first error of the shared folder. The run continues, but late workers may get no help. */
static void report_fault(served *self) {
    int why = errno;
    if (!self->warned)
        dprintf(STDERR_FILENO,
                "%s: this worker cannot use the shared folder, so the run may take longer: %s\n",
                self->settings->name, strerror(why));
    self->warned = true;
}

static kilter_status check_folder(void *self, const char *folder, kilter_error *error) {
    (void)self;
    return kl_signal_folder_check(folder, error);
}

static bool put_signal(void *self, const char *folder, const char *name, kilter_bytes text) {
    bool put = kl_signal_file_put(folder, name, text.data, text.size);
    if (!put)
        report_fault(self);
    return put;
}

static bool take_signal(void *self, const char *folder, const char *prefix, const char *claim,
                        char text[KL_SIGNAL_BYTES], size_t *size) {
    *size = KL_SIGNAL_BYTES;
    kl_signal_found found = kl_signal_file_take(folder, prefix, claim, text, size);
    if (found == KL_SIGNAL_FAULT)
        report_fault(self);
    return found == KL_SIGNAL_TAKEN;
}

static void drop_signal(void *self, const char *folder, const char *name) {
    (void)self;
    kl_signal_file_drop(folder, name);
}

static const kl_signal_folder SIGNALS = {check_folder, put_signal, take_signal, drop_signal};

/* Fill in the data by which the master knows this worker. binding NULL: the worker is a thread. */
static void describe(served *self, const kl_settings *s, const char *binding, bool tells_cpu) {
    *self = (served){.settings = s, .meter = {-1, -1}};
    self->options = (kl_worker_options){
        .work = s->options.work,
        .start = s->options.start,
        .shared = s->options.shared,
        .stop = s->options.stop,
        .user = s->options.user,
        .combine = s->options.combine,
        .program = s->name,
        .program_version = s->version,
        .binding = binding ? binding : "",
        .introduce = kl_worker_introduce,
        .clock = kl_clock_system(),
        .burst_s = BURST_S,
        .patience_s = -1,
        .memory = memory,
        .abandon = binding ? abandon : NULL,
        .signals = &SIGNALS,
    };
    if (tells_cpu) {
        /* use the clock of the thread for an MPI rank, because a rank computes while it waits */
        self->cpu = binding ? CLOCK_PROCESS_CPUTIME_ID : kl_thread_cpu();
        kl_core_meter_open_thread(&self->meter);
        self->options.cpu_s = cpu_s;
        self->options.core = core;
    }
}

/* Serve one master until the master or the worker ends. SIGTERM makes the worker leave only if its process
 * does nothing else. */
static kilter_status serve_one(kl_worker *worker, const kl_transport *transport, bool is_process,
                               kilter_error *error) {
    kl_attendant *attendant = NULL;
    kilter_status status = KILTER_OK;
    if (transport->ops->threads)
        status = kl_attendant_start(worker, is_process, &attendant, error);
    while (status == KILTER_OK)
        status = kl_worker_turn(worker, -1, error);
    kl_attendant_stop(attendant);
    return status;
}

kilter_status kl_serve(const kl_settings *s, kl_transport *transport, kilter_error *error) {
    served self;
    kl_worker *worker;
    describe(&self, s, NULL, transport->ops->threads);
    kilter_status status = kl_worker_new(&self.options, &self, transport, &worker, error);
    if (status == KILTER_OK) {
        status = serve_one(worker, transport, false, error);
        kl_worker_free(worker);
    }
    kl_core_meter_close(&self.meter);
    return status;
}

kilter_status kl_farm_join(const kl_settings *s, const char *endpoint, const char *binding,
                           kilter_error *error) {
    served self;
    kl_zmq_options options;
    kl_transport *transport = NULL;
    kl_worker *worker = NULL;
    describe(&self, s, binding, true);
    self.options.patience_s =
        s->options.wait_for_master_s > 0 ? s->options.wait_for_master_s : WAIT_FOR_MASTER_S;
    kilter_status status = kl_farm_zmq_options(s, endpoint, false, &self.key, &options, error);
    if (status == KILTER_OK)
        status = kl_zmq_join(endpoint, &options, &transport, error);
    if (status == KILTER_OK)
        status = kl_worker_new(&self.options, &self, transport, &worker, error);
    if (status == KILTER_OK)
        status = serve_one(worker, transport, true, error);
    while (status == KILTER_ERR_PEER && kl_worker_is_orphan(worker)) {
        kl_transport_close(transport);
        transport = NULL;
        status = kl_zmq_join(endpoint, &options, &transport, error);
        if (status != KILTER_OK)
            break;
        kl_worker_adopt(worker, transport);
        status = serve_one(worker, transport, true, error);
    }
    bool renewed = status == KILTER_ENDED && kl_worker_renewal(worker);
    kl_worker_free(worker);
    kl_core_meter_close(&self.meter);
    kl_transport_close(transport);
    if (renewed && s->join) {
        fflush(NULL);
        begin_anew(&self);
    }
    return status;
}
