/* The progress of a run, as numbers and as one line of text. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/master_private.h"

enum { BAR_MOST = 24, BAR_LEAST = 5 };

void kl_master_progress(kl_master *m, const kl_telling *more, kl_progress *progress) {
    uint64_t safe = m->run.done - m->run.unsafe, tasks = m->run.summary.tasks + more->to_come;
    *progress = (kl_progress){.things = more->things ? more->things : "task",
                              .tasks = tasks,
                              .done = safe,
                              .failed = m->run.failed + more->failed,
                              .workers = kl_master_active(m),
                              .elapsed_s = kl_now_s(&m->options.clock) - m->run.began_s,
                              .late = kl_master_late(m)};
    const kl_left_look look = {tasks - m->run.done, more->chain, KL_FLUSH_S};
    progress->known = kl_balance_time_left(&m->balance, &look, &progress->left);
}

/* Append a text to the line; the part that does not fit is left out. */
static void put(char *text, size_t size, const char *format, ...) KILTER_PRINTF(3, 4);
static void put(char *text, size_t size, const char *format, ...) {
    size_t at = strlen(text);
    va_list values;
    va_start(values, format);
    vsnprintf(text + at, size - at, format, values);
    va_end(values);
}

typedef struct unit {
    double s;
    const char *name;
} unit;

static unit unit_of(double seconds) {
    static const unit units[] = {{3600, "h"}, {60, "min"}, {1, "s"}, {1e-3, "ms"}};
    bool is_short = seconds > 0 && seconds < 0.0995;
    return units[seconds >= 7200 ? 0 : seconds >= 120 ? 1 : is_short ? 3 : 2];
}

static int digits_of(double seconds, unit u) {
    return seconds > 0 && seconds / u.s < 9.95 ? 1 : 0;
}

static void put_time(char *text, size_t size, double seconds) {
    unit u = unit_of(seconds);
    put(text, size, "%.*f %s", digits_of(seconds, u), seconds / u.s, u.name);
}

/* Write an interval of time, such as "30 to 41 s". If both times have the same unit, write the unit once. If
 * both times are equal, write only one time. */
static void put_interval(char *text, size_t size, double low_s, double high_s) {
    unit low = unit_of(low_s), high = unit_of(high_s);
    char least[32] = "", most[32] = "";
    put_time(least, sizeof least, low_s);
    put_time(most, sizeof most, high_s);
    if (strcmp(least, most) != 0 && low.s == high.s)
        put(text, size, "%.*f to ", digits_of(low_s, low), low_s / low.s);
    else if (strcmp(least, most) != 0)
        put(text, size, "%s to ", least);
    put_time(text, size, high_s);
}

static void put_late(char *text, size_t size, const kl_late *late) {
    if (!(late->elapsed_s > 0))
        return;
    put(text, size, " · task %llu at worker %u for ", kl_ull(late->task), late->worker);
    put_time(text, size, late->elapsed_s);
    put(text, size, ", usually ");
    put_time(text, size, late->usual_s);
}

/* Return the number of columns that a text takes. Bytes that continue a UTF-8 character take none. */
static int columns_of(const char *text) {
    int columns = 0;
    for (; *text; text++)
        columns += ((unsigned char)*text & 0xc0) != 0x80;
    return columns;
}

static void put_bar(char *text, size_t size, double part, int room) {
    int width = room < BAR_MOST ? room : BAR_MOST, full = (int)(part * width);
    if (width < BAR_LEAST)
        return;
    put(text, size, "[%.*s%.*s] ", full, "########################", width - full,
        "........................");
}

/* Cut the text so that it takes at most this many columns. */
static void cut(char *text, int columns) {
    for (; *text; text++)
        if (((unsigned char)*text & 0xc0) != 0x80 && columns-- == 0) {
            *text = '\0';
            return;
        }
}

void kl_progress_print(const kl_progress *p, int columns, char *text, size_t size) {
    char rest[320] = "";
    double part = p->tasks ? (double)p->done / (double)p->tasks : 1;
    put(rest, sizeof rest, "%.0f %% · %llu of %llu %ss", floor(100 * part), kl_ull(p->done), kl_ull(p->tasks),
        p->things);
    if (p->failed > 0)
        put(rest, sizeof rest, " · %llu failed", kl_ull(p->failed));
    put(rest, sizeof rest, " · %u worker%s · ", p->workers, p->workers == 1 ? "" : "s");
    put_time(rest, sizeof rest, p->elapsed_s);
    put(rest, sizeof rest, " · ");
    if (p->known) {
        put_interval(rest, sizeof rest, p->left.low_s, p->left.high_s);
        put(rest, sizeof rest, " left (90 %%)");
    } else {
        put(rest, sizeof rest, "time left not known yet");
    }
    put_late(rest, sizeof rest, &p->late);
    text[0] = '\0';
    if (columns > 0)
        put_bar(text, size, part, columns - columns_of(rest) - 4);
    put(text, size, "%s", rest);
    if (columns > 0)
        cut(text, columns - 1);
}
