/* Private to the folder sys: the cores that a thread may use, although it is held on one of them. */
#ifndef KL_SYS_HOLD_H
#define KL_SYS_HOLD_H

#include <sched.h>
#include <stdbool.h>

/* Store the cores that this thread may use while it is not held. Return false if they are not known. */
bool kl_allowed_cores(cpu_set_t *cores);

#endif
