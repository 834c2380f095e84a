/* Print the decision on each loop of a file (kilter cc --explain). */
#include <stdio.h>
#include <stdlib.h>

#include "report/print.h"
#include "unit.h"

static const char *const KINDS[] = {
    [KC_REFUSED] = "refused", [KC_DOALL] = "doall", [KC_DOACROSS] = "doacross", [KC_OLD] = "old"};
static const char *const ROLES[] = {
    [KC_PARAMETER] = "parameter", [KC_PRIVATE] = "private", [KC_REDUCED] = "reduction",
    [KC_EXACT] = "exact sum",     [KC_ROWS] = "rows",       [KC_COPIED] = "copy"};
static const char *const UPDATES[] = {
    [KC_NO_UPDATE] = "", [KC_SUM] = "+",    [KC_PRODUCT] = "*", [KC_LEAST] = "min",
    [KC_MOST] = "max",   [KC_FMIN] = "min", [KC_FMAX] = "max"};

static void say_verdict(const kc_loop *l, FILE *out) {
    const kc_decision *d = &l->decision;
    switch (d->kind) {
    case KC_DOALL:
        fputs("DOALL: the iterations do not depend on each other\n", out);
        break;
    case KC_DOACROSS:
        fprintf(out,
                "DOACROSS: each iteration needs the one before it; a pipeline over blocks of the loop in "
                "line %u%s\n",
                kc_line(l->nest->inner.loop), d->backward ? ", from the last row to the first" : "");
        break;
    case KC_OLD:
        fputs("DOALL with old values: an iteration needs what later iterations overwrite; ranks do their "
              "rows in "
              "order\n",
              out);
        break;
    default:
        fprintf(out, "not parallel as it stands: line %u: %s\n", d->line, d->why);
        if (*d->advice)
            fprintf(out, "    %s\n", d->advice);
    }
}

static void say_halo(const kc_decided *a, FILE *out) {
    if (a->before || a->after)
        fprintf(out, ", reads %lld row%s before and %lld after", a->before, a->before == 1 ? "" : "s",
                a->after);
}

static void say_array(const kc_array *a, const kc_decided *d, FILE *out) {
    fprintf(out, "    %-10s ", a->name);
    switch (d->role) {
    case KC_PARAMETER:
        fputs("the same on all ranks", out);
        break;
    case KC_PRIVATE:
        fputs("each iteration sets it before reading it", out);
        break;
    case KC_REDUCED:
        fprintf(out, "combined over all iterations (%s)%s%s%s", UPDATES[d->update],
                d->needs_clause ? ": other order, other last bits; allow it with reduction(" : "",
                d->needs_clause ? UPDATES[d->update] : "", d->needs_clause ? ":…)" : "");
        break;
    case KC_EXACT:
        fputs("added up exactly, and rounded once", out);
        break;
    case KC_ROWS:
        fprintf(out, "distributed by rows%s", d->written ? ", written" : "");
        say_halo(d, out);
        break;
    default:
        fputs("a copy on each rank", out);
    }
    fputs("\n", out);
}

void kc_explain(const kc_unit *u, FILE *out) {
    for (int i = 0; i < u->loops; i++) {
        const kc_loop *l = &u->loop[i];
        char *function = kc_name(l->function),
             *index = kc_is_null(l->nest->outer.index) ? NULL : kc_name(l->nest->outer.index);
        fprintf(out, "%s:%u: loop%s%s in %s()%s: ", u->path, kc_line(l->loop), index ? " over " : "",
                index ? index : "", function, l->marked ? ", marked" : "");
        say_verdict(l, out);
        for (int a = 0; a < l->nest->arrays && l->decision.kind != KC_REFUSED; a++)
            say_array(&l->nest->array[a], &l->decision.array[a], out);
        free(function);
        free(index);
    }
    if (u->loops == 0)
        fprintf(out, "%s: no loops\n", u->path);
}

static void json_array(kl_json *j, const kc_array *a, const kc_decided *d) {
    kl_json_open(j, NULL, '{');
    kl_json_text(j, "name", a->name);
    kl_json_text(j, "role", ROLES[d->role]);
    kl_json_truth(j, "written", d->written);
    kl_json_signed(j, "before", d->before);
    kl_json_signed(j, "after", d->after);
    kl_json_text(j, "operator", d->role == KC_REDUCED || d->role == KC_EXACT ? UPDATES[d->update] : NULL);
    kl_json_truth(j, "needs_clause", d->needs_clause);
    kl_json_close(j, '}');
}

static void json_loop(kl_json *j, const kc_loop *l) {
    const kc_decision *d = &l->decision;
    bool refused = d->kind == KC_REFUSED;
    char *function = kc_name(l->function);
    kl_json_open(j, NULL, '{');
    kl_json_count(j, "line", kc_line(l->loop));
    kl_json_text(j, "function", function);
    kl_json_truth(j, "marked", l->marked);
    kl_json_text(j, "verdict", KINDS[d->kind]);
    kl_json_text(j, "reason", refused ? d->why : NULL);
    kl_json_count(j, "reason_line", refused ? d->line : 0);
    kl_json_text(j, "advice", *d->advice ? d->advice : NULL);
    kl_json_truth(j, "backward", d->backward);
    kl_json_open(j, "arrays", '[');
    for (int i = 0; i < l->nest->arrays && !refused; i++)
        json_array(j, &l->nest->array[i], &d->array[i]);
    kl_json_close(j, ']');
    kl_json_close(j, '}');
    free(function);
}

void kc_explain_json(const kc_unit *u, FILE *out) {
    kl_json j = {.out = out, .first = true};
    kl_json_open(&j, NULL, '{');
    kl_json_text(&j, "file", u->path);
    kl_json_open(&j, "loops", '[');
    for (int i = 0; i < u->loops; i++)
        json_loop(&j, &u->loop[i]);
    kl_json_close(&j, ']');
    kl_json_close(&j, '}');
    fputs("\n", out);
}
