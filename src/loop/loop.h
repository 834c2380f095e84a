/* Door of room loop: include/kilter/loop.h. */
#ifndef KL_LOOP_H
#define KL_LOOP_H

#include "base/base.h"
#include "kilter/loop.h"

#endif
