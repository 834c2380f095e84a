#include "basket.h"

#include <math.h>

/* The forecast assumes that a solve needs more candidates, by this factor, if it evaluates two candidates at
 * once instead of one. Factors from 1.1 to 1.6 were measured with a fast master (docs/reference/sp.md). Two
 * candidates at once are faster only if master and workers take about equal times. */
static const double MORE_CANDIDATES = 1.8;
static const double WORTH_TRYING = 0.95;

double sp_basket_ratio(const sp_times *t) {
    double alone_s = t->master_s + t->farm_s;
    return alone_s > 0 ? MORE_CANDIDATES * fmax(t->master_s, t->farm_s) / alone_s : NAN;
}

void sp_basket_print(FILE *out, const sp_times *t) {
    double ratio = sp_basket_ratio(t);
    if (isnan(ratio))
        fprintf(out, "one candidate at a time");
    else
        fprintf(
            out,
            "one candidate at a time, each %.3g s in the master and %.3g s on the workers; two at a time, "
            "with %.3g times as many candidates, should take %.0f %% %s",
            t->master_s, t->farm_s, MORE_CANDIDATES, 100 * fabs(ratio - 1),
            ratio < WORTH_TRYING ? "less: try --basket 2"
            : ratio < 1          ? "less"
                                 : "longer");
}
