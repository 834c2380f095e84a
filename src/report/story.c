/* Say in three sentences without symbols how a recorded run went. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/loop_print.h"
#include "report/page.h"
#include "report/text.h"

enum { COSTS_NAMED = 3 };
static const double COST_LEAST = 0.0005; /* smallest fraction of the workers' time that is mentioned */

static const char *const costs_words[KL_COSTS] = {
    [KL_COST_START] = "before workers got their first tasks",
    [KL_COST_BETWEEN] = "between two chunks of tasks",
    [KL_COST_WITHIN] = "between the tasks of a chunk",
    [KL_COST_END] = "after the last tasks of workers, while others still worked",
    [KL_COST_UNUSED] = "in workers that got no task",
};

/* ---- a farm ---- */

static void bound_sentence(const kl_report_iteration *it, FILE *out) {
    if (isnan(it->efficiency))
        return;
    if (it->elapsed_s > it->bound_s)
        fprintf(out,
                "If every worker had computed all the time, the run would have taken %s, which is %s less.",
                kl_time_words(it->bound_s).text, kl_time_words(it->elapsed_s - it->bound_s).text);
    else
        fprintf(out, "If every worker had computed all the time, the run would have taken %s.",
                kl_time_words(it->bound_s).text);
}

static void cost_sentence(const kl_costs *costs, FILE *out) {
    double left[KL_COSTS], all = costs->busy_s;
    for (int i = 0; i < KL_COSTS; i++)
        all += left[i] = costs->s[i];
    for (int named = 0; named < COSTS_NAMED && all > 0; named++) {
        int most = 0;
        for (int i = 1; i < KL_COSTS; i++)
            most = left[i] > left[most] ? i : most;
        if (left[most] / all < COST_LEAST) {
            fputs(named > 0 ? "." : "Nothing else took a noticeable part of the workers' time.", out);
            return;
        }
        fprintf(out, "%s %s %s", named == 0 ? "Lost time of the workers:" : ",",
                kl_percent(left[most] / all).text, costs_words[most]);
        left[most] = 0;
    }
    fputs(all > 0 ? "." : "", out);
}

/* ---- a loop ---- */

typedef struct waits {
    double elapsed_s, waited_s, moving_s; /* seconds, added over all ranks */
    size_t most, least;                   /* indices of the ranks that waited longest and shortest */
} waits;

static waits waits_of(const kl_report_loop *loop) {
    waits w = {0};
    for (size_t i = 0; i < loop->ranks; i++) {
        w.elapsed_s += loop->rank[i].elapsed_s;
        w.waited_s += loop->rank[i].waited_s;
        w.moving_s += loop->rank[i].moving_s;
        w.most = loop->rank[i].waited_s > loop->rank[w.most].waited_s ? i : w.most;
        w.least = loop->rank[i].waited_s < loop->rank[w.least].waited_s ? i : w.least;
    }
    return w;
}

static void loop_sentence(const kl_report *report, int sentence, FILE *out) {
    const kl_report_loop *loop = report->loop;
    waits w = loop->ranks > 0 ? waits_of(loop) : (waits){0};
    if (!(w.elapsed_s > 0)) /* the time is 0 or not known */
        return;
    if (sentence == 1)
        fprintf(out, "Its ranks computed %s of the time, waited for each other %s, and moved rows %s.",
                kl_percent(1 - (w.waited_s + w.moving_s) / w.elapsed_s).text,
                kl_percent(w.waited_s / w.elapsed_s).text, kl_percent(w.moving_s / w.elapsed_s).text);
    else if (w.most != w.least)
        fprintf(out, "Rank %u waited longest, %s; rank %u waited %s.", report->workers[w.most].worker,
                kl_time_words(loop->rank[w.most].waited_s).text, report->workers[w.least].worker,
                kl_time_words(loop->rank[w.least].waited_s).text);
}

/* ---- a farm or a loop ---- */

/* Print the first sentence. The report in words begins with the same sentence. */
static void first_sentence(const kl_report *report, FILE *out) {
    char *text = NULL;
    size_t size = 0;
    FILE *whole = open_memstream(&text, &size);
    if (!whole)
        return;
    kl_report_print_sentence(report, whole);
    if (fclose(whole) == 0)
        fprintf(out, "%.*s", (int)strcspn(text, "\n"), text);
    free(text);
}

void kl_page_story(const kl_report *report, const kl_costs *costs, int sentence, FILE *out) {
    const kl_report_iteration *last =
        report->iteration_count > 0 ? &report->iterations[report->iteration_count - 1] : NULL;
    if (sentence == 0)
        first_sentence(report, out);
    else if (report->loop && report->loop->name && !kl_is_kept(report->loop))
        loop_sentence(report, sentence, out);
    else if (!report->loop && last && last->ended)
        sentence == 1 ? bound_sentence(last, out) : cost_sentence(costs, out);
}
