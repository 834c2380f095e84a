/* Helper for tests: find a decision in the report of a record. Include this header after cmocka.h. */
#ifndef KL_DECISION_TEST_HELPER_H
#define KL_DECISION_TEST_HELPER_H

#include <string.h>

#include "report/report.h"

static inline const kl_report_decision *decision_of(const kl_report *report, const char *kind) {
    for (size_t i = 0; i < report->decision_count; i++)
        if (strcmp(report->decisions[i].kind, kind) == 0)
            return &report->decisions[i];
    fail_msg("no decision '%s' in the record", kind);
    return NULL;
}

#endif
