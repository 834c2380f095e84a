/* The handle of a loop, and its options. */
#include <stdlib.h>

#include "loop/loop_mpi.h"

/* seconds that a rank waits before it sends the list of its calls to the next rank */
static const double TELL_AFTER_S = 1;
/* a waiting rank on a core of its own checks for this many seconds without a pause, before it first sleeps */
static const double SPIN_S = 0.01;

/* --- options --- */

kilter_status kl_loop_agree_on_options(kilter_loop *l, kilter_error *error) {
    static const char *const names[] = {"iterations", "kind",     "scattered", "inner",
                                        "block",      "fixed",    "deep",      "stride",
                                        "offset",     "periodic", "backward",  "ordered"};
    const kilter_loop_options *o = &l->options;
    const uint64_t values[] = {o->iterations, (uint64_t)o->kind, o->scattered, o->inner,
                               o->block,      o->fixed,          o->deep,      o->stride,
                               o->offset,     o->periodic,       o->backward,  o->ordered};
    const char *differs;
    kilter_status status =
        kl_group_agree(&l->bundle->group, values, names, sizeof names / sizeof *names, &differs, error);
    if (status == KILTER_OK && differs)
        return kl_fail(
            error, KILTER_ERR_RANGE,
            "opening loop '%s': the option '%s' differs between ranks; give all ranks the same value",
            l->name, differs);
    return status;
}

static const char *wrong_size(const kilter_loop_options *o) {
    if (o->iterations == 0 || o->iterations > UINT64_MAX / 4)
        return "iterations must be at least 1, and at most 2^62";
    if (o->inner > UINT64_MAX / 4)
        return "inner must be at most 2^62";
    if (o->kind == KILTER_DOACROSS && o->inner == 0)
        return "a loop of kind KILTER_DOACROSS needs inner, the elements of a row, at least 1";
    if (o->block > o->inner)
        return "block must not be larger than inner";
    return NULL;
}

static const char *wrong_kind(const kilter_loop_options *o) {
    if (o->kind != KILTER_DOALL && o->kind != KILTER_DOACROSS)
        return "kind must be KILTER_DOALL or KILTER_DOACROSS";
    if (o->kind == KILTER_DOACROSS && o->scattered)
        return "scattered is for loops of kind KILTER_DOALL";
    if (o->deep && (o->scattered || o->kind == KILTER_DOACROSS))
        return "deep is for loops of kind KILTER_DOALL that are not scattered";
    if (o->kind == KILTER_DOALL && (o->inner > 0 || o->block > 0))
        return "inner and block are for loops of kind KILTER_DOACROSS";
    if (o->kind == KILTER_DOALL && o->backward && !o->ordered)
        return "backward is for loops of kind KILTER_DOACROSS, and for ordered loops";
    if (o->ordered && (o->kind == KILTER_DOACROSS || o->scattered || o->deep))
        return "ordered is for loops of kind KILTER_DOALL that are neither scattered nor deep";
    if (o->periodic && (o->kind == KILTER_DOACROSS || o->scattered || o->deep))
        return "periodic is for loops of kind KILTER_DOALL that are neither scattered nor deep";
    return NULL;
}

static const char *wrong_alignment(const kilter_loop_options *o) {
    const kilter_loop *leader = o->follows;
    uint64_t stride = o->stride > 0 ? o->stride : 1;
    if (!leader)
        return o->stride > 0 || o->offset > 0 ? "stride and offset need follows, the loop to follow" : NULL;
    if (!kl_loop_leads(leader))
        return "the loop to follow follows another loop; follow that loop";
    if (leader->options.scattered || leader->options.deep)
        return "a loop that is scattered or deep cannot be followed";
    if (o->scattered || o->deep || o->fixed)
        return "a loop that follows another must not be scattered, deep or fixed";
    if (o->offset >= leader->options.iterations ||
        o->iterations - 1 > (leader->options.iterations - 1 - o->offset) / stride)
        return "the last row needs row stride * (iterations - 1) + offset of the loop to follow, which has "
               "fewer rows";
    return NULL;
}

const char *kl_loop_wrong_option(const kilter_loop_options *o) {
    const char *wrong = wrong_kind(o);
    wrong = wrong ? wrong : wrong_size(o);
    return wrong ? wrong : wrong_alignment(o);
}

/* --- handles --- */

static const kl_kind *kind_of(const kilter_loop_options *o, uint32_t ranks) {
    if (o->kind == KILTER_DOACROSS)
        return &kl_pipelined;
    return o->scattered && !o->fixed && ranks > 1 ? &kl_scattered : &kl_ranged;
}

static kl_rank_options rank_options(const kilter_loop_options *o, const kl_group *g) {
    return (kl_rank_options){.iterations = o->iterations,
                             .rank = (uint32_t)g->rank,
                             .ranks = g->ranks,
                             .inner = o->inner,
                             .block = o->block,
                             .backward = o->backward,
                             .ordered = o->ordered,
                             .fixed = o->fixed || o->follows,
                             .leader = o->follows ? &o->follows->rank : NULL,
                             .map = {o->iterations, o->stride > 0 ? o->stride : 1, o->offset}};
}

kilter_loop *kl_loop_new_handle(const kilter_loop_options *o, kl_bundle *bundle) {
    kilter_loop *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    const kl_rank_options told = rank_options(o, &bundle->group);
    l->options = *o;
    l->bundle = bundle;
    l->name = kl_text("%s", o->name ? o->name : "loop");
    bool fits = kl_rank_init(&l->rank, kind_of(o, told.ranks), &told);
    l->rank.meter.core = &bundle->group.wait.core;
    l->rank.meter.simulated = bundle->group.clock.simulated;
    if (fits && l->name)
        return l;
    kl_loop_free_handle(l);
    return NULL;
}

void kl_loop_free_handle(kilter_loop *l) {
    kl_rank *k = &l->rank;
    kl_set *sets[] = {&k->rounds.set, &k->exchange.set, &k->flow.coming, &k->flow.going};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        kl_loop_forget(sets[i]);
    kl_posts_free(&l->posts);
    kl_requests_free(&l->delivery);
    kl_rank_free(k);
    free(l->name);
    free(l);
}

/* --- the data that aligned loops share --- */

/* While the rank waits, check for lost ranks, and for calls that differ between ranks. */
static kilter_status look(void *bundle, double now_s, kilter_error *error) {
    kl_bundle *a = bundle;
    kilter_status status = kl_steps_look(&a->steps, now_s, error);
    if (status == KILTER_OK)
        status = kl_loop_saver_look(a->leader, error);
    return status == KILTER_OK ? kl_detector_look(&a->detector, now_s, error) : status;
}

kl_bundle *kl_loop_new_bundle(int rank, int ranks) {
    kl_bundle *a = calloc(1, sizeof *a);
    if (!a)
        return NULL;
    a->group = (kl_group){.comm = MPI_COMM_NULL,
                          .rank = rank,
                          .ranks = (uint32_t)ranks,
                          .clock = kl_clock_system(),
                          .look = look,
                          .loop = a};
    a->steps = (kl_steps){.group = &a->group, .tell_after_s = TELL_AFTER_S};
    if (!kl_detector_init(&a->detector, &a->group)) {
        kl_loop_free_bundle(a);
        return NULL;
    }
    kl_mpi_wait_begin(&a->group.wait);
    a->group.wait.spin_s = SPIN_S;
    return a;
}

void kl_loop_free_bundle(kl_bundle *a) {
    kl_requests_free(&a->steps.requests);
    kl_detector_free(&a->detector);
    free(a);
}
