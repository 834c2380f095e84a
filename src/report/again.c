/* Make a recorded decision again, and compare the new decision with the recorded one. */
#include "report/again.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    AT = 1,
    KIND = KL_COLUMN_KIND,
    SUBJECT,
    COUNT,
    FORECAST,
    GAIN,
    REASON = 11,
    KNOWN = KL_COLUMN_GROUNDS
};

static const char *text_at(sqlite3_stmt *row, int column) {
    const char *text = (const char *)sqlite3_column_text(row, column);
    return text ? text : "";
}

static kl_recorded read_row(sqlite3_stmt *row) {
    bool all = sqlite3_column_type(row, SUBJECT) == SQLITE_NULL;
    kl_recorded r = {.decision = {.kind = kl_decision_find(text_at(row, KIND)),
                                  .subject = all ? KL_SUBJECT_ALL : sqlite3_column_int64(row, SUBJECT),
                                  .count = (uint64_t)sqlite3_column_int64(row, COUNT),
                                  .forecast_s = sqlite3_column_double(row, FORECAST),
                                  .gain_s = sqlite3_column_double(row, GAIN)}};
    snprintf(r.decision.reason, sizeof r.decision.reason, "%s", text_at(row, REASON));
    r.grounds = (kilter_bytes){sqlite3_column_blob(row, KNOWN), (size_t)sqlite3_column_bytes(row, KNOWN)};
    return r;
}

/* Return whether two times differ by a microsecond or more. Times are printed with this precision. */
static bool is_other_time(double a_s, double b_s) {
    return !(fabs(a_s - b_s) < 1e-6);
}

static void compare(const kl_decision *then, bool by_other, kl_again_verdict *v) {
    const kl_decision *now = &v->decision;
    v->other_kind = now->kind != then->kind;
    v->other_count = now->count != v->meant;
    if (by_other)
        return;
    v->other_forecast = is_other_time(now->forecast_s, then->forecast_s);
    v->other_gain = is_other_time(now->gain_s, then->gain_s);
    v->other_reason = strcmp(now->reason, then->reason) != 0;
}

bool kl_again_differs(const kl_again_verdict *v) {
    return v->other_kind || v->other_count || v->other_forecast || v->other_gain || v->other_reason;
}

void kl_decide_again(kl_again *again, bool by_other, sqlite3_stmt *row, kl_again_verdict *verdict) {
    const kl_recorded then = read_row(row);
    kl_answer answer;
    kl_again_decide(again, &then, &answer);
    *verdict =
        (kl_again_verdict){.missing = answer.missing, .decision = answer.decision, .meant = answer.meant};
    if (answer.missing)
        return;
    if (verdict->decision.forecast_s > 0)
        verdict->decision.forecast_s += sqlite3_column_double(row, AT) - answer.now_s;
    compare(&then.decision, by_other, verdict);
}
