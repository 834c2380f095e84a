/* Functions of the commands that attach to a running farm. `doing` names the action, as in "tuning".
 */
#ifndef KL_ATTACH_H
#define KL_ATTACH_H

#include "control/control.h"

/* Attach to the farm. Return the exit code; *tuner is set if it is 0. */
int kl_cmd_attach(const char *doing, const char *file, kl_tuner **tuner);
/* Print on stderr what went wrong. Return the exit code. */
int kl_cmd_farm_failed(const char *doing, const char *file, const kilter_error *error);
/* Print the farm's answer to a request. Return the exit code. */
int kl_cmd_print_answer(const char *answer, bool json);

#endif
