/* Private to kilter tune: print a look at a running farm, as text and as JSON. */
#ifndef KL_TUNE_PRINT_H
#define KL_TUNE_PRINT_H

#include <stdio.h>

#include "control/control.h"

void kl_tune_print_text(const kl_control_state *state, FILE *out); /* at most 110 columns wide, UTF-8 */
void kl_tune_print_json(const kl_control_state *state, FILE *out); /* one object on one line */

#endif
