/* The result of the task that the worker does, and the part of the core's time that tasks get. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/worker_private.h"

/* after this many seconds in tasks, the part of the core's time is measured again */
static const double SHARE_S = 10e-3;

kilter_status kilter_result_put(kilter_result *result, const void *data, size_t size) {
    size_t have = result->buffer->size - result->at - 4;
    if (size > KL_WIRE_MOST_BYTES - have)
        return KILTER_ERR_RANGE;
    kl_put_bytes(result->buffer, data, size);
    return result->buffer->failed ? KILTER_ERR_MEMORY : KILTER_OK;
}

void kl_fail_result(kilter_result *result, const char *text) {
    result->buffer->size = result->at + 4;
    kl_put_bytes(result->buffer, text, strlen(text));
    result->failed = true;
}

int kilter_result_fail(kilter_result *result, const char *format, ...) {
    char text[KILTER_ERROR_TEXT_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    kl_fail_result(result, text);
    return 1;
}

/* If the task's result is wrong or missing, replace it by a failure. */
void kl_check_result(hand *h, int code, size_t wanted) {
    kilter_result *result = &h->result;
    char text[100];
    if (code != 0 && !result->failed) {
        snprintf(text, sizeof text, "the work function returned %d", code);
        kl_fail_result(result, text);
    }
    const size_t size = h->making.size - result->at - 4;
    if (!result->failed && wanted > 0 && size != wanted) {
        snprintf(text, sizeof text, "the task's result has %zu bytes, but results of this run have %zu", size,
                 wanted);
        kl_fail_result(result, text);
    }
    if (h->making.failed) { /* memory for the result ran out, so the task fails, but the worker continues */
        h->making.failed = false;
        kl_fail_result(result, "storing the task's result: memory ran out");
    }
    kl_wire_end_result(&h->making, result->at, result->failed);
}

/* Add the time of a task. From time to time, measure which part of the core's time tasks get. This is not
 * done for each task, because reading the CPU time takes longer than a small task. */
void kl_account_share(task_share *share, const kl_attendance *attendance, double seconds) {
    share->tasks_s += seconds;
    if (!attendance->busy_s || share->tasks_s < SHARE_S)
        return;
    double busy_s = attendance->busy_s(attendance->self);
    double got = fmin(1, (busy_s - share->busy_s) / share->tasks_s);
    share->usual += (got - share->usual) / (share->usual > 0 ? 8 : 1);
    share->busy_s = busy_s;
    share->tasks_s = 0;
}
