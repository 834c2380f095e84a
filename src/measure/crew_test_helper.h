/* Helper for tests: make a crew for a snapshot that a test fills in. */
#ifndef KL_CREW_TEST_HELPER_H
#define KL_CREW_TEST_HELPER_H

#include <assert.h>

#include "measure/measure.h"

/* Make a crew of the workers in the snapshot, and store it in the snapshot. The caller frees it. */
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
