/* Build a crew for tests that fill a snapshot by hand. */
#ifndef KL_CREW_TEST_HELPER_H
#define KL_CREW_TEST_HELPER_H

#include <assert.h>

#include "measure/measure.h"

/* Give the snapshot a crew of its present workers, which the caller frees. */
static inline kl_crew *crew_of(kl_snapshot *s) {
    kl_crew *crew = kl_crew_new();
    kilter_status status = crew ? kl_crew_reserve(crew, s->slots) : KILTER_ERR_MEMORY;
    assert(status == KILTER_OK);
    (void)status;
    kl_crew_look_again(crew, s->workers, s->now_s);
    s->crew = crew;
    return crew;
}

#endif
