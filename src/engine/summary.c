/* What a run came to, in one sentence. */
#include <stdio.h>
#include <string.h>

#include "engine/engine.h"

enum { SPEEDS_NAMED = 6 };

/* "1.00 : 0.52 : 0.97", relative to the fastest, in order of the workers. */
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

/* What an equal split would have come to, as far as that can be told. */
static void gain_text(const kilter_farm_summary *sum, const kl_interval *equal, char *text, size_t size) {
    double low = equal->low_s / sum->elapsed_s, high = equal->high_s / sum->elapsed_s;
    text[0] = '\0';
    if (sum->workers < 2 || !(sum->elapsed_s > 0) || !(equal->low_s > 0))
        return;
    if (low <= 1 && high >= 1)
        snprintf(text, size, "; an equal split made up front would have done about as well");
    else
        snprintf(text, size, "; an equal split made up front would have taken %.2f to %.2f times as long",
                 low, high);
}

void kl_summary_sentence(const kl_balance *b, const char *policy, const kilter_farm_summary *sum,
                         const kl_interval *equal, char *text, size_t size) {
    char speeds[160], gain[160], resting[48] = "";
    if (sum->chunks == 0) {
        snprintf(text, size, "Nothing to deal.");
        return;
    }
    speeds_text(&b->snapshot, speeds, sizeof speeds);
    gain_text(sum, equal, gain, sizeof gain);
    if (sum->resting > 0)
        snprintf(resting, sizeof resting, "; %u more rested", sum->resting);
    snprintf(
        text, size,
        "%s dealt %llu task%s in %llu chunk%s of %llu to %llu, to workers of speeds %s, and reached %.1f "
        "%% of what they could do%s%s.",
        policy, (unsigned long long)(sum->tasks - sum->stored), sum->tasks - sum->stored == 1 ? "" : "s",
        (unsigned long long)sum->chunks, sum->chunks == 1 ? "" : "s", (unsigned long long)b->smallest,
        (unsigned long long)b->largest, speeds, 100 * sum->efficiency, gain, resting);
}
