/* What the commands share that attach to a running farm. `doing`: what for, as in "tuning". */
#ifndef KL_ATTACH_H
#define KL_ATTACH_H

#include "control/control.h"

/* Gives the exit code; *tuner only with 0. */
int kl_cmd_attach(const char *doing, const char *file, kl_tuner **tuner);
/* Says on stderr what came of it. Gives the exit code. */
int kl_cmd_farm_failed(const char *doing, const char *file, const kilter_error *error);
/* What the farm says to what was asked of it. Gives the exit code. */
int kl_cmd_print_answer(const char *answer, bool json);

#endif
