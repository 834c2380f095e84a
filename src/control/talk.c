#include "control/talk.h"

#include <string.h>

static const uint32_t MAGIC = 0x544c544b; /* "KTLT" */

static void put_head(kl_buffer *out, kl_talk kind) {
    kl_put_u32(out, MAGIC);
    kl_put_u32(out, KL_CONTROL_VERSION);
    kl_put_u8(out, (uint8_t)kind);
}

kilter_status kl_talk_fail_not_owner(kilter_error *error) {
    return kl_fail(error, KILTER_ERR_USAGE,
                   "the farm belongs to another user, and only its owner may attach");
}

kl_talk kl_talk_kind(const void *data, size_t size, uint32_t *version) {
    kl_reader r = kl_reader_of(data, size);
    bool ours = kl_get_u32(&r) == MAGIC;
    uint32_t theirs = kl_get_u32(&r);
    uint8_t kind = kl_get_u8(&r);
    *version = ours && !r.bad ? theirs : 0;
    return *version == KL_CONTROL_VERSION && kind <= KL_TALK_ENDED ? (kl_talk)kind : KL_TALK_NONE;
}

/* Return a reader of the bytes after the message's header. If the message is of another kind than `kind`,
 * set the reader's `bad`. */
static kl_reader body_of(const void *data, size_t size, kl_talk kind) {
    kl_reader r = kl_reader_of(data, size);
    uint32_t version;
    bool right = kl_talk_kind(data, size, &version) == kind;
    kl_get_bytes(&r, 2 * sizeof(uint32_t) + 1);
    r.bad |= !right;
    return r;
}

/* For each kind of message, its members in order. */
/* clang-format off */
#define SET(X)    X(flag, policy_given) X(flag, factor_given) X(flag, workers_given) X(text, policy) \
                  X(f64, factor) X(u32, workers)
#define DRAIN(X)  X(flag, all) X(text, host)
#define HOST(X)   X(text, name) X(flag, drained) X(u32, workers) X(u32, idle) X(u32, working) X(u32, lost)
#define NOTE(X)   X(u64, count) X(f64, forecast_s) X(f64, gain_s) X(f64, cost_s) X(text, reason)
#define WORKER(X) X(f64, rate_units_per_s) X(f64, busy_s) X(u64, chunks) X(u64, queued_tasks)
#define STATE(X)  X(text, program) X(text, transport) X(flag, running) X(flag, chooses) X(text, policy) \
                  X(text, waiting) X(text, decision)
/* clang-format on */
#define PUT_COUNT(name)  KL_PUT_MEMBER(u64, name)
#define PUT_NUMBER(name) KL_PUT_MEMBER(f64, name)
#define GET_COUNT(name)  KL_GET_MEMBER(u64, name)
#define GET_NUMBER(name) KL_GET_MEMBER(f64, name)

void kl_talk_put_look(kl_buffer *out) {
    put_head(out, KL_TALK_LOOK);
}

bool kl_talk_get_look(const void *data, size_t size) {
    kl_reader r = body_of(data, size, KL_TALK_LOOK);
    return kl_reader_done(&r);
}

void kl_talk_put_ended(kl_buffer *out) {
    put_head(out, KL_TALK_ENDED);
}

bool kl_talk_get_ended(const void *data, size_t size) {
    kl_reader r = body_of(data, size, KL_TALK_ENDED);
    return kl_reader_done(&r);
}

void kl_talk_put_set(kl_buffer *out, const kl_control_setting *m) {
    put_head(out, KL_TALK_SET);
    SET(KL_PUT_MEMBER)
}

bool kl_talk_get_set(const void *data, size_t size, kl_control_setting *m) {
    kl_reader body = body_of(data, size, KL_TALK_SET), *r = &body;
    SET(KL_GET_MEMBER)
    return kl_reader_done(r);
}

void kl_talk_put_drain(kl_buffer *out, const kl_control_drain *m) {
    put_head(out, KL_TALK_DRAIN);
    DRAIN(KL_PUT_MEMBER)
    kl_put_u32(out, m->worker_count);
    for (uint32_t i = 0; i < m->worker_count; i++)
        kl_put_u32(out, m->workers[i]);
}

/* Read a request to release workers. It is malformed if it names no worker, or if it names both a host and
 * workers. */
bool kl_talk_get_drain(const void *data, size_t size, kl_control_drain *m) {
    kl_reader body = body_of(data, size, KL_TALK_DRAIN), *r = &body;
    *m = (kl_control_drain){0};
    DRAIN(KL_GET_MEMBER)
    uint32_t workers = kl_get_u32(r);
    r->bad |= workers > KL_CONTROL_DRAINED_MOST || (*m->host && workers > 0) ||
              (!*m->host && workers == 0 && !m->all);
    for (; m->worker_count < workers && !r->bad; m->worker_count++)
        m->workers[m->worker_count] = kl_get_u32(r);
    return kl_reader_done(r);
}

void kl_talk_put_note(kl_buffer *out, const kl_decision *m) {
    put_head(out, KL_TALK_NOTE);
    kl_put_u8(out, (uint8_t)m->kind);
    NOTE(KL_PUT_MEMBER)
}

bool kl_talk_get_note(const void *data, size_t size, kl_decision *m) {
    kl_reader body = body_of(data, size, KL_TALK_NOTE), *r = &body;
    uint8_t kind = kl_get_u8(r);
    r->bad |= kind < KL_DECIDES_GIVE_UP || kind >= KL_DECISION_KINDS;
    *m = (kl_decision){.kind = r->bad ? KL_DECIDES_NOTHING : (kl_decision_kind)kind,
                       .subject = KL_SUBJECT_ALL};
    NOTE(KL_GET_MEMBER)
    return kl_reader_done(r);
}

static void put_host(kl_buffer *out, const kl_control_host *m) {
    HOST(KL_PUT_MEMBER)
}

static void get_host(kl_reader *r, kl_control_host *m) {
    HOST(KL_GET_MEMBER)
}

static void put_worker(kl_buffer *out, const kl_control_worker *m) {
    kl_put_u32(out, m->worker);
    kl_put_u8(out, (uint8_t)m->activity);
    WORKER(KL_PUT_MEMBER)
}

static void get_worker(kl_reader *r, kl_control_worker *m) {
    *m = (kl_control_worker){.worker = kl_get_u32(r)};
    uint8_t activity = kl_get_u8(r);
    r->bad |= activity >= KL_CONTROL_ACTIVITIES;
    m->activity = r->bad ? KL_CONTROL_STARTING : (kl_control_activity)activity;
    WORKER(KL_GET_MEMBER)
}

void kl_talk_put_state(kl_buffer *out, const kl_control_state *m) {
    put_head(out, KL_TALK_STATE);
    STATE(KL_PUT_MEMBER)
    KL_CONTROL_COUNTS(PUT_COUNT)
    KL_CONTROL_NUMBERS(PUT_NUMBER)
    kl_put_u32(out, m->worker_count);
    for (uint32_t i = 0; i < m->worker_count; i++)
        put_worker(out, &m->workers[i]);
    kl_put_u32(out, m->host_count);
    for (uint32_t i = 0; i < m->host_count; i++)
        put_host(out, &m->hosts[i]);
}

bool kl_talk_get_state(const void *data, size_t size, kl_control_state *m) {
    kl_reader body = body_of(data, size, KL_TALK_STATE), *r = &body;
    *m = (kl_control_state){0};
    STATE(KL_GET_MEMBER)
    KL_CONTROL_COUNTS(GET_COUNT)
    KL_CONTROL_NUMBERS(GET_NUMBER)
    uint32_t workers = kl_get_u32(r);
    r->bad |= workers > KL_CONTROL_WORKERS_MOST;
    for (; m->worker_count < workers && !r->bad; m->worker_count++)
        get_worker(r, &m->workers[m->worker_count]);
    uint32_t hosts = kl_get_u32(r);
    r->bad |= hosts > KL_CONTROL_HOSTS_MOST;
    for (; m->host_count < hosts && !r->bad; m->host_count++)
        get_host(r, &m->hosts[m->host_count]);
    return kl_reader_done(r);
}

void kl_talk_put_taken(kl_buffer *out, const char *answer) {
    put_head(out, KL_TALK_TAKEN);
    kl_put_text(out, answer);
}

bool kl_talk_get_taken(const void *data, size_t size, char answer[KL_CONTROL_ANSWER_BYTES]) {
    kl_reader r = body_of(data, size, KL_TALK_TAKEN);
    kl_read_text(&r, answer, KL_CONTROL_ANSWER_BYTES);
    return kl_reader_done(&r);
}

void kl_talk_put_refused(kl_buffer *out, const kilter_error *why) {
    put_head(out, KL_TALK_REFUSED);
    kl_put_u8(out, (uint8_t)why->status);
    kl_put_text(out, why->text);
}

bool kl_talk_get_refused(const void *data, size_t size, kilter_error *why) {
    kl_reader r = body_of(data, size, KL_TALK_REFUSED);
    uint8_t status = kl_get_u8(&r);
    /* refuse a status that means success, because a refusal must never look like a success */
    r.bad |= status <= KILTER_ENDED || status > KILTER_ERR_MPI;
    why->status = r.bad ? KILTER_ERR_INPUT : (kilter_status)status;
    kl_read_text(&r, why->text, sizeof why->text);
    return kl_reader_done(&r);
}
