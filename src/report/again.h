/* Private to the folder report: make a recorded decision again. */
#ifndef KL_REPORT_AGAIN_H
#define KL_REPORT_AGAIN_H

#include <sqlite3.h>

#include "decide/decide.h"

/* The columns from which kl_decide_again() reads a decision. A further column, `grounds`, follows them: the
 * inputs of the decision as the record stores them. */
#define KL_DECISION_COLUMNS                                                                                  \
    "id, at_s, run, round, chunk, kind, subject, count, forecast_s, gain_s, cost_s, reason"
enum { KL_COLUMN_KIND = 5, KL_COLUMN_GROUNDS = 12 };

/* A decision that was made again, and how it differs from the recorded one. */
typedef struct kl_again_verdict {
    /* the reason why the decision was not made again; NULL: it was made again. With a reason, no other field
     * is set. */
    const char *missing;
    kl_decision decision;
    uint64_t meant; /* number of tasks that the policy chose in the recorded run, before limits changed this
                       number */
    bool other_kind, other_count, other_forecast, other_gain, other_reason;
} kl_again_verdict;

bool kl_again_differs(const kl_again_verdict *verdict);
/* Make the decision of this row again. by_other: true if a policy other than the recorded policy decides;
 * forecasts and reasons are then not compared. */
void kl_decide_again(kl_again *again, bool by_other, sqlite3_stmt *row, kl_again_verdict *verdict);

#endif
