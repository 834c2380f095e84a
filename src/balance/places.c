/* The workers' places in the array of views: how workers get places, rest, and give their places back. */
#include <stdlib.h>
#include <string.h>

#include "balance/balance.h"

/* Greatest number of workers that keep their places after they took part in the run and left. */
enum { GONE_KEPT = 1024 };

/* Get the place of a worker that has left. Return false if no such place is free. Workers that took part in
 * the run keep their places after they have left. If too many of these places are kept, combine the two
 * workers that left first, which frees one place. */
static bool take_place(kl_balance *b, uint32_t *place) {
    kl_places *p = &b->places;
    uint32_t i = 0;
    while (i < p->gone_count && b->views[p->gone[i]].units > 0)
        i++;
    if (i == p->gone_count && p->gone_count <= GONE_KEPT)
        return false;
    if (i == p->gone_count) {
        i = 0;
        /* add the work of the worker that left first to the work of the worker that left second */
        kl_worker_view *into = &b->views[p->gone[1]];
        const kl_worker_view *from = &b->views[p->gone[0]];
        into->units += from->units;
        into->busy_s += from->busy_s;
        kl_stat_merge(&into->run_unit_s, &from->run_unit_s);
    }
    *place = p->gone[i];
    p->gone_count--;
    memmove(p->gone + i, p->gone + i + 1, (p->gone_count - i) * sizeof *p->gone);
    return true;
}

static bool add_place(kl_balance *b, uint32_t *place) {
    uint32_t slots = b->snapshot.slots;
    if ((slots & (slots + 1)) == 0) { /* grow the array to 1, 3, 7, 15 … places */
        size_t room = 2 * (size_t)slots + 1;
        kl_worker_view *views = realloc(b->views, room * sizeof *views);
        if (!views)
            return false;
        b->views = views;
        b->snapshot.workers = views;
        uint32_t *gone = realloc(b->places.gone, room * sizeof *gone);
        if (!gone)
            return false;
        b->places.gone = gone;
    }
    if (kl_crew_reserve(b->crew, slots + 1) != KILTER_OK)
        return false;
    b->snapshot.slots = slots + 1;
    *place = slots;
    return true;
}

void kl_balance_view_changed(kl_balance *b, uint32_t worker) {
    kl_crew_update(b->crew, b->views, worker);
    kl_grounds_changed(b->rows.grounds, worker);
}

kilter_status kl_balance_add_worker(kl_balance *b, uint32_t *worker, kilter_error *error) {
    uint32_t place;
    if (!take_place(b, &place) && !add_place(b, &place))
        return kl_fail(error, KILTER_ERR_MEMORY, "taking in worker %u: memory ran out",
                       b->places.next_number);
    b->views[place] = (kl_worker_view){.number = b->places.next_number++};
    kl_balance_view_changed(b, place);
    kl_dealer_joined(b->dealer, place);
    *worker = place;
    return KILTER_OK;
}

void kl_balance_remove_worker(kl_balance *b, uint32_t worker) {
    kl_balance_present(b, worker, false);
    b->places.gone[b->places.gone_count++] = worker;
}

void kl_balance_present(kl_balance *b, uint32_t worker, bool present) {
    kl_worker_view *view = &b->views[worker];
    if (view->present != present) {
        b->snapshot.present += present ? 1 : UINT32_MAX; /* + 1 or − 1 */
        kl_dealer_changed(b->dealer);
    }
    view->present = present;
    view->resting = false;
    kl_balance_view_changed(b, worker);
}

void kl_balance_rest(kl_balance *b, uint32_t worker, bool resting) {
    kl_balance_present(b, worker, !resting);
    b->views[worker].resting = resting;
    kl_balance_view_changed(b, worker);
}
