/* Write those rows of the run record that several parts of the master need. */
#include "engine/master_private.h"

void kl_master_record_worker(kl_master *m, const member *one) {
    kl_trace_worker(m->trace, &(kl_trace_worker_row){.worker = one->number,
                                                     .host = one->host,
                                                     .binding = one->binding,
                                                     .pid = (int64_t)one->pid,
                                                     .joined_s = one->joined_s - m->opened_s});
}

void kl_master_record_mean(kl_master *m, int64_t worker, const char *kind, double value, double sd,
                           uint64_t count) {
    kl_trace_measurement(m->trace,
                         &(kl_trace_measurement_row){.at_s = kl_now_s(&m->options.clock) - m->opened_s,
                                                     .worker = worker,
                                                     .kind = kind,
                                                     .value = value,
                                                     .sd = sd,
                                                     .count = count});
}

void kl_master_record_measurement(kl_master *m, int64_t worker, const char *kind, double value) {
    kl_master_record_mean(m, worker, kind, value, 0, 1);
}

void kl_master_record_message_cost(kl_master *m, int64_t worker) {
    const kl_balance *b = &m->balance;
    kl_master_record_mean(m, worker, "message_fixed_s", b->traffic.now.fixed_s, 0, b->traffic.message.count);
    kl_master_record_mean(m, worker, "message_per_byte_s", b->traffic.now.per_unit_s, 0,
                          b->traffic.message.count);
    kl_master_record_mean(m, worker, "message_alone_s", b->snapshot.message.fixed_s, 0,
                          b->traffic.message.count);
    if (b->traffic.link_byte_s > 0)
        kl_master_record_mean(m, worker, "link_per_byte_s", b->traffic.link_byte_s, 0, 1);
    if (b->traffic.copy_byte_s > 0)
        kl_master_record_mean(m, worker, "copy_per_byte_s", b->traffic.copy_byte_s, 0, 1);
    if (b->traffic.near_s > 0)
        kl_master_record_mean(m, worker, "near_message_s", b->traffic.near_s, 0, 1);
}

void kl_master_record(kl_master *m, kl_trace *trace) {
    m->trace = trace;
    kl_balance_record(&m->balance, trace, m->opened_s);
    for (size_t i = 0; i < m->members.count; i++)
        if (m->members.list[i].stage > STARTING)
            kl_master_record_worker(m, &m->members.list[i]);
    kl_master_record_message_cost(m, -1);
}

void kl_master_record_decision(kl_master *m, double now_s, const kl_decision *decision, kl_buffer *grounds) {
    kl_trace_moment when = {
        .now_s = now_s, .opened_s = m->opened_s, .run = m->run.number, .chunk = UINT64_MAX};
    if (grounds && !grounds->failed)
        when.grounds = (kilter_bytes){grounds->data, grounds->size};
    kl_trace_decision(m->trace, &when, decision);
    if (grounds)
        kl_buffer_free(grounds);
}
