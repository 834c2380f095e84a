#include "control/talk.h"

#include <string.h>

static const uint32_t MAGIC = 0x544c544b; /* "KTLT" */

static void put_head(kl_buffer *out, kl_talk kind) {
    kl_put_u32(out, MAGIC);
    kl_put_u32(out, KL_CONTROL_VERSION);
    kl_put_u8(out, (uint8_t)kind);
}

kl_talk kl_talk_kind(const void *data, size_t size, uint32_t *version) {
    kl_reader r = kl_reader_of(data, size);
    bool ours = kl_get_u32(&r) == MAGIC;
    uint32_t theirs = kl_get_u32(&r);
    uint8_t kind = kl_get_u8(&r);
    *version = ours && !r.bad ? theirs : 0;
    return *version == KL_CONTROL_VERSION && kind <= KL_TALK_ENDED ? (kl_talk)kind : KL_TALK_NONE;
}

/* Behind the head; `bad` when the message is of another kind. */
static kl_reader body_of(const void *data, size_t size, kl_talk kind) {
    kl_reader r = kl_reader_of(data, size);
    uint32_t version;
    bool right = kl_talk_kind(data, size, &version) == kind;
    kl_get_bytes(&r, 2 * sizeof(uint32_t) + 1);
    r.bad |= !right;
    return r;
}

static void put_text(kl_buffer *out, const char *text) {
    kl_put_span(out, text, strlen(text));
}

static void get_text(kl_reader *r, char *text, size_t size) {
    size_t length;
    const uint8_t *bytes = kl_get_span(r, &length);
    r->bad |= length >= size || (bytes && memchr(bytes, '\0', length));
    if (r->bad || !bytes)
        length = 0;
    else
        memcpy(text, bytes, length);
    text[length] = '\0';
}

static void put_bool(kl_buffer *out, bool value) {
    kl_put_u8(out, value);
}

static bool get_bool(kl_reader *r) {
    uint8_t value = kl_get_u8(r);
    r->bad |= value > 1;
    return value == 1;
}

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

void kl_talk_put_set(kl_buffer *out, const kl_control_setting *setting) {
    put_head(out, KL_TALK_SET);
    put_bool(out, setting->policy_given);
    put_bool(out, setting->factor_given);
    put_bool(out, setting->workers_given);
    put_text(out, setting->policy);
    kl_put_f64(out, setting->factor);
    kl_put_u32(out, setting->workers);
}

bool kl_talk_get_set(const void *data, size_t size, kl_control_setting *setting) {
    kl_reader r = body_of(data, size, KL_TALK_SET);
    *setting = (kl_control_setting){.policy_given = get_bool(&r)};
    setting->factor_given = get_bool(&r);
    setting->workers_given = get_bool(&r);
    get_text(&r, setting->policy, sizeof setting->policy);
    setting->factor = kl_get_f64(&r);
    setting->workers = kl_get_u32(&r);
    return kl_reader_done(&r);
}

void kl_talk_put_drain(kl_buffer *out, const kl_control_drain *drain) {
    put_head(out, KL_TALK_DRAIN);
    put_bool(out, drain->all);
    put_text(out, drain->host);
    kl_put_u32(out, drain->worker_count);
    for (uint32_t i = 0; i < drain->worker_count; i++)
        kl_put_u32(out, drain->workers[i]);
}

/* One that names nobody, or a host and workers, is none. */
bool kl_talk_get_drain(const void *data, size_t size, kl_control_drain *drain) {
    kl_reader r = body_of(data, size, KL_TALK_DRAIN);
    *drain = (kl_control_drain){.all = get_bool(&r)};
    get_text(&r, drain->host, sizeof drain->host);
    uint32_t workers = kl_get_u32(&r);
    r.bad |= workers > KL_CONTROL_DRAINED_MOST || (*drain->host && workers > 0) ||
             (!*drain->host && workers == 0 && !drain->all);
    for (; drain->worker_count < workers && !r.bad; drain->worker_count++)
        drain->workers[drain->worker_count] = kl_get_u32(&r);
    return kl_reader_done(&r);
}

static void put_worker(kl_buffer *out, const kl_control_worker *worker) {
    kl_put_u32(out, worker->worker);
    kl_put_u8(out, (uint8_t)worker->activity);
    kl_put_f64(out, worker->rate_units_per_s);
    kl_put_f64(out, worker->busy_s);
    kl_put_u64(out, worker->chunks);
    kl_put_u64(out, worker->queued_tasks);
}

static void get_worker(kl_reader *r, kl_control_worker *worker) {
    *worker = (kl_control_worker){.worker = kl_get_u32(r)};
    uint8_t activity = kl_get_u8(r);
    r->bad |= activity >= KL_CONTROL_ACTIVITIES;
    worker->activity = r->bad ? KL_CONTROL_STARTING : (kl_control_activity)activity;
    worker->rate_units_per_s = kl_get_f64(r);
    worker->busy_s = kl_get_f64(r);
    worker->chunks = kl_get_u64(r);
    worker->queued_tasks = kl_get_u64(r);
}

void kl_talk_put_state(kl_buffer *out, const kl_control_state *state) {
    put_head(out, KL_TALK_STATE);
    put_text(out, state->program);
    put_text(out, state->transport);
    put_bool(out, state->running);
    put_bool(out, state->chooses);
    put_text(out, state->policy);
    put_text(out, state->waiting);
    put_text(out, state->decision);
#define PUT_COUNT(name)  kl_put_u64(out, state->name);
#define PUT_NUMBER(name) kl_put_f64(out, state->name);
    KL_CONTROL_COUNTS(PUT_COUNT)
    KL_CONTROL_NUMBERS(PUT_NUMBER)
    kl_put_u32(out, state->worker_count);
    for (uint32_t i = 0; i < state->worker_count; i++)
        put_worker(out, &state->workers[i]);
}

bool kl_talk_get_state(const void *data, size_t size, kl_control_state *state) {
    kl_reader r = body_of(data, size, KL_TALK_STATE);
    *state = (kl_control_state){0};
    get_text(&r, state->program, sizeof state->program);
    get_text(&r, state->transport, sizeof state->transport);
    state->running = get_bool(&r);
    state->chooses = get_bool(&r);
    get_text(&r, state->policy, sizeof state->policy);
    get_text(&r, state->waiting, sizeof state->waiting);
    get_text(&r, state->decision, sizeof state->decision);
#define GET_COUNT(name)  state->name = kl_get_u64(&r);
#define GET_NUMBER(name) state->name = kl_get_f64(&r);
    KL_CONTROL_COUNTS(GET_COUNT)
    KL_CONTROL_NUMBERS(GET_NUMBER)
    uint32_t workers = kl_get_u32(&r);
    r.bad |= workers > KL_CONTROL_WORKERS_MOST;
    for (; state->worker_count < workers && !r.bad; state->worker_count++)
        get_worker(&r, &state->workers[state->worker_count]);
    return kl_reader_done(&r);
}

void kl_talk_put_taken(kl_buffer *out, const char *answer) {
    put_head(out, KL_TALK_TAKEN);
    put_text(out, answer);
}

bool kl_talk_get_taken(const void *data, size_t size, char answer[KL_CONTROL_ANSWER_BYTES]) {
    kl_reader r = body_of(data, size, KL_TALK_TAKEN);
    get_text(&r, answer, KL_CONTROL_ANSWER_BYTES);
    return kl_reader_done(&r);
}

void kl_talk_put_refused(kl_buffer *out, const kilter_error *why) {
    put_head(out, KL_TALK_REFUSED);
    kl_put_u8(out, (uint8_t)why->status);
    put_text(out, why->text);
}

bool kl_talk_get_refused(const void *data, size_t size, kilter_error *why) {
    kl_reader r = body_of(data, size, KL_TALK_REFUSED);
    uint8_t status = kl_get_u8(&r);
    /* what is no failure would be taken for success */
    r.bad |= status <= KILTER_ENDED || status > KILTER_ERR_MPI;
    why->status = r.bad ? KILTER_ERR_INPUT : (kilter_status)status;
    get_text(&r, why->text, sizeof why->text);
    return kl_reader_done(&r);
}
