/* Private to the folder report: make a recorded decision again. */
#ifndef KL_REPORT_AGAIN_H
#define KL_REPORT_AGAIN_H

#include <sqlite3.h>

#include "decide/decide.h"

/* The columns of a row from which kl_decide_again() reads a decision. The column `grounds` follows them. */
#define KL_DECISION_COLUMNS                                                                                  \
    "id, at_s, run, round, chunk, kind, subject, count, forecast_s, gain_s, cost_s, reason"
enum { KL_COLUMN_KIND = 5, KL_COLUMN_GROUNDS = 12 };

/* A decision that was made again, and how it differs from the recorded one. */
typedef struct kl_again_verdict {
    /* why the decision was not made again, in which case the other fields are not set; NULL: it was made
     * again */
    const char *missing;
    kl_decision decision;
    uint64_t meant; /* the recorded count, as the policy chose it before limits changed it */
    bool other_kind, other_count, other_forecast, other_gain, other_reason;
} kl_again_verdict;

bool kl_again_differs(const kl_again_verdict *verdict);
/* Make the decision of this row again. by_other: a policy other than the recorded one decides, so forecasts
 * and reasons are not compared. */
void kl_decide_again(kl_again *again, bool by_other, sqlite3_stmt *row, kl_again_verdict *verdict);

#endif
