/* Private to the folder sys: the cores that a thread may use, although it is pinned to one of them. */
#ifndef KL_SYS_PIN_H
#define KL_SYS_PIN_H

#include <sched.h>
#include <stdbool.h>

/* If the calling thread is pinned, store the cores that it may use otherwise, and return true. */
bool kl_unpinned_cores(cpu_set_t *cores);
/* Store the cores that the calling thread may use while it is not pinned. Return false if they are not
 * known. */
bool kl_all_my_cores(cpu_set_t *cores);

#endif
