/* The worker's side of kilter map: each task of the farm runs one command. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "map.h"
#include "sys/sys.h"

enum {
    TIMES = 101,
    LEAST_TIMES = 3
}; /* The median is taken over the last TIMES commands, and only if at
    * least LEAST_TIMES are known. */

typedef struct worker {
    kl_map_guard *guard;
    uint32_t slot;
    kl_map_spawner spawner;
    kl_map_template *template;
    kl_map_setup setup;
    double times[TIMES]; /* seconds that the last successful commands took */
    size_t time_count;
    char host[KL_HOST_BYTES];
    kl_map_result result;
    kl_buffer encoded;
} worker;

/* --- the setup that a worker gets before its first command --- */

void kl_map_put_setup(kl_buffer *out, const kl_map_setup *setup, size_t count, const char *const *words) {
    kl_put_f64(out, setup->timeout_s);
    kl_put_f64(out, setup->timeout_times);
    kl_put_u64(out, setup->total);
    kl_put_u8(out, setup->quoted);
    for (size_t i = 0; i < count; i++)
        kl_put_bytes(out, words[i], strlen(words[i]) + 1);
}

static kilter_status read_words(worker *w, const char *texts, size_t size) {
    size_t count = kl_map_count_texts(texts, size);
    const char **words = calloc(count + 1, sizeof *words);
    for (size_t i = 0; words && i < count; i++, texts += strlen(texts) + 1)
        words[i] = texts;
    kl_map_template *template = NULL;
    kilter_status status =
        words ? kl_map_template_new(count, words, w->setup.quoted, &template, NULL) : KILTER_ERR_MEMORY;
    free(words);
    kl_map_template_free(w->template);
    w->template = template;
    return status;
}

int kl_map_take_setup(kilter_bytes shared, void *state) {
    worker *w = state;
    kl_reader r = kl_reader_of(shared.data, shared.size);
    w->setup.timeout_s = kl_get_f64(&r);
    w->setup.timeout_times = kl_get_f64(&r);
    w->setup.total = kl_get_u64(&r);
    w->setup.quoted = kl_get_u8(&r);
    size_t rest = r.size - r.at;
    const char *texts = (const char *)kl_get_bytes(&r, rest);
    if (r.bad || (rest > 0 && texts[rest - 1] != '\0'))
        return 1;
    return read_words(w, texts, rest) == KILTER_OK ? 0 : 1;
}

/* --- starting and ending a worker --- */

int kl_map_start(const kilter_worker *worker_, void **state) {
    worker *w = calloc(1, sizeof *w);
    if (!w)
        return 1;
    w->guard = worker_->user;
    w->slot = kl_map_guard_claim(w->guard);
    kl_host_name(w->host);
    if (w->slot == w->guard->slots ||
        kl_map_spawner_open(&w->spawner, w->guard, &w->guard->slot[w->slot], NULL) != KILTER_OK) {
        free(w);
        return 1;
    }
    *state = w;
    return 0;
}

void kl_map_stop(void *state) {
    worker *w = state;
    atomic_store(&w->guard->slot[w->slot].worker, 0);
    kl_map_spawner_close(&w->spawner);
    kl_map_template_free(w->template);
    kl_buffer_free(&w->encoded);
    free(w);
}

/* --- running the command of a task --- */

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Return the time limit of the next command in seconds; HUGE_VAL: no limit. */
static double limit_s(const worker *w) {
    double sorted[TIMES];
    size_t count = w->time_count < TIMES ? w->time_count : TIMES;
    if (w->setup.timeout_s > 0)
        return w->setup.timeout_s;
    if (!(w->setup.timeout_times > 0) || count < LEAST_TIMES)
        return HUGE_VAL;
    memcpy(sorted, w->times, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare);
    return w->setup.timeout_times * (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

/* Read the number and the values of a task's command. false: the task is malformed. */
static bool read_task(const worker *w, kilter_bytes input, kl_map_fill *fill) {
    kl_reader r = kl_reader_of(input.data, input.size);
    *fill = (kl_map_fill){.number = kl_get_u64(&r), .total = w->setup.total, .slot = w->slot + 1};
    size_t size = r.size - r.at;
    fill->values = (const char *)kl_get_bytes(&r, size);
    fill->columns = kl_map_count_texts(fill->values, size);
    return !r.bad && (size == 0 || fill->values[size - 1] == '\0');
}

/* Note how the command ended, for time limits and --halt. */
static void note_end(worker *w) {
    bool succeeded = kl_map_succeeded(&w->result);
    if (w->result.end != KL_MAP_STOPPED)
        kl_map_guard_count(w->guard, succeeded);
    if (succeeded)
        w->times[w->time_count++ % TIMES] = w->result.took_s;
}

int kl_map_work(const kilter_task *task, kilter_result *result, void *state) {
    worker *w = state;
    kl_map_fill fill;
    if (!read_task(w, task->input, &fill))
        return kilter_result_fail(result, "the worker got a malformed command");
    memset(&w->result, 0, sizeof w->result);
    memcpy(w->result.host, w->host, sizeof w->host);
    kl_map_run_command(&w->spawner, w->template, &fill, limit_s(w), &w->result);
    /* Do not send the result of a command that was ended. The master runs the command again only if this
     * worker dies without a result. */
    while (w->guard->silent && atomic_load(&w->guard->ending))
        pause();
    note_end(w);
    kl_buffer_clear(&w->encoded);
    kl_map_put_result(&w->encoded, &w->result);
    if (w->encoded.failed)
        return kilter_result_fail(result, "keeping the command's output: memory ran out");
    return kilter_result_put(result, w->encoded.data, w->encoded.size) == KILTER_OK
               ? 0
               : kilter_result_fail(result, "the output of %zu bytes cannot be sent", w->encoded.size);
}
