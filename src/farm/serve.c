/* Being a worker: serve a master until one of the two ends, and then the next one, if it comes back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "farm/farm_private.h"

static const double WAIT_FOR_MASTER_S = 60; /* unless the program says */
static const double BURST_S = 200e-6;       /* a worker looks for messages so often */

/* A process that is nothing but a worker. */
typedef struct process {
    const kl_settings *settings;
    const char *binding;
    kl_key key; /* read once: it may have come from standard input */
} process;

static void begin_anew(const process *p) {
    const kl_settings *s = p->settings;
    kl_buffer key = {0};
    kilter_error error = {KILTER_OK, ""};
    if (s->key && strcmp(s->key, "-") == 0)
        kl_key_write(&p->key, false, &key);
    kl_begin_anew(key.data, key.size, &error);
    _exit(kilter_exit(s->name, &error));
}

/* One that its master started only ends, and is replaced; one that was started elsewhere takes its own place.
 */
static void abandon(void *self, const kilter_error *why, bool anew) {
    const process *p = self;
    if (p->settings->join && anew)
        begin_anew(p);
    bool good = anew || why->status == KILTER_ENDED;
    if (p->settings->join &&
        !good) /* of a local one the master says it; and the task may hold the lock of stderr */
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

static kilter_status new_worker(const kl_settings *s, kl_transport *transport, process *self,
                                double patience_s, kl_worker **worker, kilter_error *error) {
    kl_worker_options options = {
        .work = s->options.work,
        .start = s->options.start,
        .shared = s->options.shared,
        .stop = s->options.stop,
        .user = s->options.user,
        .program = s->name,
        .program_version = s->version,
        .binding = self ? self->binding : "",
        .introduce = kl_worker_introduce,
        .clock = kl_clock_system(),
        .tells_cpu = transport->ops->threads, /* a rank of MPI computes while it waits */
        .cpu = self ? CLOCK_PROCESS_CPUTIME_ID : kl_thread_cpu(),
        .burst_s = BURST_S,
        .patience_s = patience_s,
        .abandon = self ? abandon : NULL,
        .self = self,
    };
    return kl_worker_new(&options, transport, worker, error);
}

/* Until the master or the worker ends. Only a process that is nothing but a worker hears SIGTERM. */
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
    kl_worker *worker;
    kilter_status status = new_worker(s, transport, NULL, -1, &worker, error);
    if (status != KILTER_OK)
        return status;
    status = serve_one(worker, transport, false, error);
    kl_worker_free(worker);
    return status;
}

kilter_status kl_farm_join(const kl_settings *s, const char *endpoint, const char *binding,
                           kilter_error *error) {
    process self = {.settings = s, .binding = binding};
    kl_zmq_options options;
    kl_transport *transport = NULL;
    kl_worker *worker = NULL;
    double patience_s = s->options.wait_for_master_s > 0 ? s->options.wait_for_master_s : WAIT_FOR_MASTER_S;
    kilter_status status = kl_farm_zmq_options(s, endpoint, false, &self.key, &options, error);
    if (status == KILTER_OK)
        status = kl_zmq_join(endpoint, &options, &transport, error);
    if (status == KILTER_OK)
        status = new_worker(s, transport, &self, patience_s, &worker, error);
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
    kl_transport_close(transport);
    if (renewed && s->join) {
        fflush(NULL);
        begin_anew(&self);
    }
    return status;
}
