/* Estimate the cost of a message from the quickest recent exchanges. */
#include <math.h>
#include <string.h>

#include "measure/measure.h"

/* The sizes of messages must differ by at least this number of bytes to show the cost of a byte. If they
 * differ less, variations of the start-up cost hide it. */
static const double SPREAD_BYTES = 16384;
/* A window of time goes on until it has this number of exchanges, so that one delayed exchange cannot decide
 * the result. */
enum { WINDOW_EXCHANGES = 4 };

static kl_msgcost_size *size_of(kl_msgcost_window *window, double bytes) {
    int exponent;
    frexp(bytes, &exponent);
    int last = KL_MSGCOST_SIZES - 1;
    return &window->sizes[exponent < 0 ? 0 : exponent < last ? exponent : last];
}

void kl_msgcost_add(kl_msgcost *cost, double bytes, double seconds) {
    if (!(bytes >= 0) || !(seconds >= 0) || !isfinite(bytes) || !isfinite(seconds))
        return;
    kl_msgcost_size *size = size_of(&cost->now, bytes);
    if (!size->known || seconds < size->seconds)
        *size = (kl_msgcost_size){.known = true, .bytes = bytes, .seconds = seconds};
    cost->now.count++;
    cost->count++;
}

/* Sums over the quickest exchange of each size class, with x in bytes and y in seconds. */
typedef struct sums {
    double n, x, y, xx, xy, least, most;
} sums;

static sums sum_up(const kl_msgcost_window *a, const kl_msgcost_window *b) {
    sums s = {.least = INFINITY};
    for (int i = 0; i < KL_MSGCOST_SIZES; i++) {
        const kl_msgcost_size *p = &a->sizes[i], *other = &b->sizes[i];
        if (other->known && (!p->known || other->seconds < p->seconds))
            p = other;
        if (!p->known)
            continue;
        s.n++;
        s.x += p->bytes;
        s.y += p->seconds;
        s.xx += p->bytes * p->bytes;
        s.xy += p->bytes * p->seconds;
        s.least = fmin(s.least, p->bytes);
        s.most = fmax(s.most, p->bytes);
    }
    return s;
}

/* Return whether the sizes of the messages in this window differ enough to show λ, the cost of a byte. Two
 * windows cannot be joined for this, because the start-up cost may have changed between them. */
static bool tells_per_byte(const kl_msgcost_window *window) {
    sums s = sum_up(window, window);
    return s.n > 0 && s.most - s.least >= SPREAD_BYTES;
}

static kl_linear least_squares(const sums *s) {
    double spread = s->n * s->xx - s->x * s->x;
    kl_linear flat = {s->y / s->n, 0};
    if (spread <= 1e-12 * s->n * s->xx) /* all messages have the same size, except for rounding */
        return flat;
    double slope = (s->n * s->xy - s->x * s->y) / spread;
    double start = (s->y - slope * s->x) / s->n;
    /* If the fit without limits has a negative term, the best fit without negative terms has 0 for this term.
     */
    if (slope < 0)
        return flat;
    if (start < 0)
        return (kl_linear){0, s->xy / s->xx};
    return (kl_linear){start, slope};
}

kl_linear kl_msgcost_fit(const kl_msgcost *cost) {
    sums s = sum_up(&cost->now, &cost->before);
    if (s.n == 0)
        return (kl_linear){0, 0};
    if (cost->per_byte_known && !tells_per_byte(&cost->now))
        return (kl_linear){fmax(0, (s.y - cost->per_byte_s * s.x) / s.n), cost->per_byte_s};
    return least_squares(&s);
}

void kl_msgcost_next_window(kl_msgcost *cost) {
    if (cost->now.count < WINDOW_EXCHANGES)
        return;
    if (tells_per_byte(&cost->now)) {
        sums s = sum_up(&cost->now, &cost->now);
        cost->per_byte_s = least_squares(&s).per_unit_s;
        cost->per_byte_known = true;
    }
    cost->before = cost->now;
    cost->now = (kl_msgcost_window){0};
}
