/* Describe in one sentence how a run was dealt. */
#include <stdio.h>
#include <string.h>

#include "engine/engine.h"

enum { SPEEDS_NAMED = 6 };

/* Write the speeds of the workers relative to the fastest one, in order of workers: "1.00 : 0.52 : 0.97". */
static void speeds_text(const kl_snapshot *s, char *text, size_t size) {
    double fastest = 0;
    uint32_t named = 0, worked = 0;
    for (uint32_t i = 0; i < s->slots; i++)
        if (s->workers[i].busy_s > 0 && s->workers[i].units / s->workers[i].busy_s > fastest)
            fastest = s->workers[i].units / s->workers[i].busy_s;
    text[0] = '\0';
    for (uint32_t i = 0; i < s->slots; i++) {
        const kl_worker_view *v = &s->workers[i];
        if (!(v->busy_s > 0))
            continue;
        size_t at = strlen(text);
        if (++worked <= SPEEDS_NAMED) {
            snprintf(text + at, size - at, "%s%.2f", named ? " : " : "", v->units / v->busy_s / fastest);
            named++;
        }
    }
    size_t at = strlen(text);
    if (worked > named)
        snprintf(text + at, size - at, " : … (%u workers)", worked);
}

/* Write how long an equal split would have taken, if this is known. */
static void gain_text(const kilter_farm_summary *sum, const kl_interval *equal, char *text, size_t size) {
    double low = equal->low_s / sum->elapsed_s, high = equal->high_s / sum->elapsed_s;
    text[0] = '\0';
    if (sum->workers < 2 || !(sum->elapsed_s > 0) || !(equal->low_s > 0))
        return;
    if (low >= 0.95 && high <= 1.05)
        snprintf(text, size, "; an equal split in advance would have taken about as long");
    else
        snprintf(text, size, "; an equal split in advance would have taken %.2f to %.2f times as long", low,
                 high);
}

void kl_summary_sentence(const kl_balance *b, const char *policy, const kilter_farm_summary *sum,
                         const kl_interval *equal, char *text, size_t size) {
    char speeds[160], gain[160], resting[48] = "";
    if (sum->chunks == 0 && sum->workers > 0) {
        speeds_text(&b->snapshot, speeds, sizeof speeds);
        snprintf(text, size,
                 "The workers organised %llu task%s among themselves, as peers with relative speeds %s, and "
                 "reached %.1f %% of their possible performance.",
                 (unsigned long long)(sum->tasks - sum->stored), sum->tasks - sum->stored == 1 ? "" : "s",
                 speeds, 100 * sum->efficiency);
        return;
    }
    if (sum->chunks == 0) {
        snprintf(text, size, "There were no tasks to deal.");
        return;
    }
    speeds_text(&b->snapshot, speeds, sizeof speeds);
    gain_text(sum, equal, gain, sizeof gain);
    if (sum->resting > 0)
        snprintf(resting, sizeof resting, "; %u more rested", sum->resting);
    snprintf(text, size,
             "%s dealt %llu task%s in %llu chunk%s of %llu to %llu, to workers with relative speeds %s, and "
             "reached "
             "%.1f %% of their possible performance%s%s.",
             policy, (unsigned long long)(sum->tasks - sum->stored), sum->tasks - sum->stored == 1 ? "" : "s",
             (unsigned long long)sum->chunks, sum->chunks == 1 ? "" : "s", (unsigned long long)b->smallest,
             (unsigned long long)b->largest, speeds, 100 * sum->efficiency, gain, resting);
}
