/* Model an iteration whose work is dealt in several rounds. This extends expressions (7) to (9) of
 * farm_model.c. Workers that begin late get fewer chunks, and a chunk is sent before the previous one ends.
 * docs/explanation/model.md has the derivation. */
#include "model/model.h"

#include <math.h>

/* send_s: seconds for which sending a chunk keeps the master busy; arrive_s: seconds from sending to arrival.
 */
typedef struct message {
    double send_s, arrive_s;
} message;

/* Return the times of a message of this size. If answer_s is 0 (not known), m_o is used, as in the paper. */
static message message_of(const kl_farm_model *m, double bytes, double answer_s) {
    double start_s = m->message.fixed_s, wire_s = m->message.per_unit_s * bytes;
    double busy_s = answer_s > 0 ? answer_s : start_s;
    double send_s = m->synchronous ? start_s + wire_s : m->own_links ? busy_s : fmax(busy_s, wire_s);
    return (message){.send_s = send_s, .arrive_s = start_s + wire_s};
}

static double bytes_out(const kl_farm_model *m, const kl_rounds *rounds, size_t round, double n) {
    return m->to_workers * m->bytes * rounds->part[round] / n;
}

/* Return the expected distance of the largest of n values from their mean, in standard deviations. It is the
 * smaller of Hartley and David's bound for any distribution and of the value for a normal distribution
 * (Cramér 1946). */
static double last_of(double n) {
    if (n <= 1)
        return 0;
    double a = sqrt(2 * log(n));
    double normal =
        n > 3 ? a - (log(log(n)) + log(4 * 3.14159265358979323846)) / (2 * a) + 0.5772 / a : (double)INFINITY;
    return fmin((n - 1) / sqrt(2 * n - 1), normal);
}

/* Times in the last round, if each worker does one chunk per round. The first worker begins its chunk at
 * first_s, the last one at last_s. The last message does not arrive before arrived_s. */
typedef struct last_round {
    double first_s, last_s, arrived_s;
} last_round;

static last_round play_rounds(const kl_farm_model *m, double n, double speed, const kl_rounds *rounds) {
    message msg = message_of(m, bytes_out(m, rounds, 0, n), rounds->answer_s);
    double sent_s = n * msg.send_s;
    last_round r = {.first_s = msg.arrive_s, .last_s = (n - 1) * msg.send_s + msg.arrive_s};
    r.arrived_s = r.last_s;
    for (size_t round = 1; round < rounds->count; round++) {
        double chunk_s = m->work_s * rounds->part[round - 1] / speed, asking_s = m->message.fixed_s;
        msg = message_of(m, bytes_out(m, rounds, round, n), rounds->answer_s);
        /* a worker asks for its next chunk when it begins the present one */
        double from_s = fmax(sent_s, r.first_s + asking_s);
        sent_s = from_s + n * msg.send_s;
        r.arrived_s = from_s + (n - 1) * msg.send_s + msg.arrive_s;
        r.last_s = fmax(fmax(r.arrived_s, r.last_s + asking_s + msg.arrive_s), r.last_s + chunk_s);
        r.first_s = fmax(from_s + msg.arrive_s, r.first_s + chunk_s);
    }
    return r;
}

/* Return when the last worker ends its last chunk. Workers are in step while each takes one chunk per
 * round in the same order. Then the times between their starts stay the same, and the differences of their
 * chunks add up. If they are out of step, or their starts are more than a chunk apart, faster workers take
 * chunks from slower ones. Then all workers end within the time of one chunk, on average in the middle of
 * this time. */
static double end_last_s(const last_round *r, const kl_rounds *rounds, double n, double chunk_s,
                         double late_s, double late_in_step_s) {
    double in_step_s = r->last_s + chunk_s + late_in_step_s;
    if (rounds->count < 2)
        return in_step_s;
    double even_s = (r->first_s + r->last_s) / 2 + chunk_s / 2 * (1 - 1 / n);
    if (even_s > r->last_s)
        return rounds->uneven ? even_s + chunk_s + late_s : fmin(even_s + chunk_s + late_s, in_step_s);
    return fmax(even_s, r->arrived_s) + chunk_s + late_s;
}

double kl_model_rounds_time_s(const kl_farm_model *m, uint32_t workers, double speed,
                              const kl_rounds *rounds) {
    double n = workers ? workers : 1, part = rounds->part[rounds->count - 1];
    last_round r = play_rounds(m, n, speed, rounds);
    double chunk_s = m->work_s * part / speed, task_sd_s = rounds->task_sd_s * n / speed;
    double late_s = task_sd_s * sqrt(rounds->tasks * part / n) * last_of(n);
    /* If workers are in step, only a worker that began at most own_sd_s before the last one can end last. */
    double own_sd_s = task_sd_s * sqrt(rounds->tasks / n), apart_s = r.last_s - r.first_s;
    double rivals = apart_s > own_sd_s ? (n - 1) * own_sd_s / apart_s : n - 1;
    double late_in_step_s = own_sd_s * last_of(1 + rivals);
    double back_s = m->message.fixed_s + m->message.per_unit_s * (1 - m->to_workers) * m->bytes * part / n;
    return end_last_s(&r, rounds, n, chunk_s, late_s, late_in_step_s) + back_s + m->master_s;
}

size_t kl_model_daf_parts(const kl_farm_model *m, double tasks, double variation, uint32_t workers,
                          double *part, size_t most) {
    double n = workers ? workers : 1, left = 1;
    double spread = variation * sqrt(n / 2);
    double least = n / tasks; /* a round has at least one task for each worker */
    if (m->work_s > 0) {
        double send_s = message_of(m, m->to_workers * m->bytes / tasks, 0).send_s;
        least = fmax(least, kl_model_min_chunk_s(send_s, workers) * n / m->work_s);
    }
    size_t count = 0;
    for (; count + 1 < most; count++) {
        double next = left / ((count ? 2 : 1) + spread); /* DAF's equations (1) and (2) */
        if (next < least || left - next < least)
            break;
        part[count] = next;
        left -= next;
    }
    part[count++] = left;
    return count;
}
