/* Private to the folder growth: functions that are defined in one of its files and used in another. */
#ifndef KL_GROWTH_PRIVATE_H
#define KL_GROWTH_PRIVATE_H

#include "growth/growth.h"

/* --- say.c --- */

void kl_growth_act_on(kl_growth *growth, kl_growth_act act, const kl_growth_job *job);
void kl_growth_decide(kl_growth *growth, const kl_decision *about, const char *format, ...)
    KILTER_PRINTF(3, 4);

/* --- useful.c --- */

/* Decide whether another job is useful, and set the decision's reason and gain. */
bool kl_growth_is_useful(const kl_growth *growth, const kl_growth_farm *farm, kl_decision *decision);
/* Return why a waiting job is not useful any more. NULL: it is still useful. */
const char *kl_growth_useless(const kl_growth *growth, const kl_growth_farm *farm);
double kl_growth_idle_limit_s(const kl_growth *growth);
double kl_growth_margin_s(const kl_growth *growth, const kl_growth_job *job);
double kl_growth_start_limit_s(const kl_growth *growth);

#endif
