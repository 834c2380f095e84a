/* Private to kilter tune: print the state of a running farm, as text and as JSON. */
#ifndef KL_TUNE_PRINT_H
#define KL_TUNE_PRINT_H

#include <stdio.h>

#include "control/control.h"

/* Print the state as text of at most 110 columns, in UTF-8. */
void kl_tune_print_text(const kl_control_state *state, FILE *out);
void kl_tune_print_json(const kl_control_state *state, FILE *out); /* print the state as a JSON object on
                                                                    * one line */

#endif
