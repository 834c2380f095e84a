/* Hold a thread on the core on which it runs. The system moves threads between cores so that all of them get
 * about the same time. If other processes use one of the cores, each rank of a loop is then slow in turn, and
 * rows that follow the ranks' speeds come too late. */
#include "sys/hold.h"

#include "sys/sys.h"

static _Thread_local cpu_set_t before; /* the cores that the thread may use while it is not held */
static _Thread_local int held = -1;    /* the core on which the thread is held; −1: it is not held */

bool kl_allowed_cores(cpu_set_t *cores) {
    if (held < 0)
        return sched_getaffinity(0, sizeof *cores, cores) == 0;
    *cores = before;
    return true;
}

static cpu_set_t only(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)core, &set);
    return set;
}

bool kl_core_hold(int core) {
    cpu_set_t one;
    if (held >= 0 || core < 0 || core >= CPU_SETSIZE || sched_getaffinity(0, sizeof before, &before) != 0)
        return false;
    one = only(core);
    if (!CPU_ISSET((size_t)core, &before) || sched_setaffinity(0, sizeof one, &one) != 0)
        return false;
    held = core;
    return true;
}

void kl_core_release(void) {
    cpu_set_t now, one;
    if (held < 0)
        return;
    one = only(held);
    held = -1;
    /* if the program has bound the thread itself meanwhile, this stays so */
    if (sched_getaffinity(0, sizeof now, &now) == 0 && CPU_EQUAL(&now, &one))
        sched_setaffinity(0, sizeof before, &before);
}
