/* Functions for commands that attach to a running farm. `doing` names the command's action in messages, as
 * in "tuning". */
#ifndef KL_ATTACH_H
#define KL_ATTACH_H

#include "control/control.h"

/* Attach to the farm whose record is `file`. Return the exit code; if it is 0, *tuner is set. */
int kl_cmd_attach(const char *doing, const char *file, kl_tuner **tuner);
/* Print on stderr what went wrong with an attached farm. Return the exit code. */
int kl_cmd_farm_failed(const char *doing, const char *file, const kilter_error *error);
/* Print the farm's answer to a request. Return the exit code. */
int kl_cmd_print_answer(const char *answer, bool json);

#endif
