/* Of room report: a decision, with the state and the events that the record shows before it. */
#ifndef KL_REPORT_REPLAY_H
#define KL_REPORT_REPLAY_H

#include <stdio.h>

#include "base/base.h"

typedef enum kl_replay_by {
    KL_REPLAY_LIST, /* all decisions, a line each */
    KL_REPLAY_ID,   /* the decision with this id */
    KL_REPLAY_TIME, /* the last decision made by this time [microseconds since the farm was opened] */
} kl_replay_by;

typedef struct kl_replay_choice {
    kl_replay_by by;
    int64_t number;
    bool json;
} kl_replay_choice;

/* Print the decisions of a record, or one of them. Errors of kl_report_read(); KILTER_ERR_INPUT when there is
 * no such decision. What was written to `out` then is not whole. */
kilter_status kl_replay_print(const char *path, const kl_replay_choice *choice, FILE *out,
                              kilter_error *error);

#endif
