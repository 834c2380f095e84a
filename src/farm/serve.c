/* Being a worker: serve a master until one of the two ends. */
#include "farm/farm_private.h"

static const double JOIN_PATIENCE_S = 60; /* a worker waits so long for its master */
static const double BURST_S = 200e-6;     /* a worker looks for messages so often */

kilter_status kl_serve(const kl_settings *s, kl_transport *transport, const char *binding, double patience_s,
                       kilter_error *error) {
    kl_worker_options options = {
        .work = s->options.work,
        .start = s->options.start,
        .shared = s->options.shared,
        .stop = s->options.stop,
        .user = s->options.user,
        .program = s->name,
        .program_version = s->version,
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

kilter_status kl_farm_join(const kl_settings *s, const char *endpoint, const char *binding,
                           kilter_error *error) {
    kl_transport *transport;
    kl_key key;
    kl_zmq_options options;
    kilter_status status = kl_farm_zmq_options(s, endpoint, false, &key, &options, error);
    if (status == KILTER_OK)
        status = kl_zmq_join(endpoint, &options, &transport, error);
    if (status != KILTER_OK)
        return status;
    status = kl_serve(s, transport, binding, JOIN_PATIENCE_S, error);
    kl_transport_close(transport);
    return status;
}
