/* Door of room loop: include/kilter/loop.h, and what tests need beside it. */
#ifndef KL_LOOP_H
#define KL_LOOP_H

#include "base/base.h"
#include "kilter/loop.h"

/* From now on rows move at every opportunity, to places out of `seed`, which must be the same on all ranks;
 * nothing is measured or decided. Collective; before the first kilter_loop_begin(). */
void kl_loop_force(kilter_loop *loop, uint64_t seed);

#endif
