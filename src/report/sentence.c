/* Write the first line of a report: one sentence without symbols that says how the run ended. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "report/loop_print.h"
#include "report/print.h"
#include "report/report.h"
#include "report/text.h"
#include "report/watched.h"

static void loop_sentence(const kl_report_loop *loop, FILE *out) {
    if (!loop->name) {
        fputs("The loop has not begun.", out);
        return;
    }
    if (kl_is_kept(loop)) {
        kl_kept_print_sentence(loop, out);
        return;
    }
    char name[4 * KL_CELL_COLUMNS + 1];
    kl_printable(name, sizeof name, loop->name, KL_CELL_COLUMNS);
    fprintf(out, "Loop %s did %s%" PRIu64 " sweep%s on %" PRIu32 " rank%s", name,
            loop->ended ? "" : "at least ", loop->executions, kl_plural(loop->executions), loop->ranks,
            kl_plural(loop->ranks));
    if (loop->ended)
        fprintf(out, " in %s", kl_time_words(loop->elapsed_s).text);
    if (loop->move_count == 0)
        fputs("; no rows moved.", out);
    else if (isnan(loop->came_s))
        fprintf(out, "; %" PRIu64 " rows moved.", loop->moved);
    else
        fprintf(out, "; moving %" PRIu64 " row%s %s %s.", loop->moved, kl_plural(loop->moved),
                loop->came_s < 0 ? "cost" : "saved", kl_time_words(fabs(loop->came_s)).text);
}

static void run_sentence(const kl_report_iteration *it, FILE *out) {
    if (!it->ended) {
        fprintf(out, "The last run did not end: %llu of %llu task%s are done.", kl_ull(it->tasks_done),
                kl_ull(it->tasks), kl_plural(it->tasks));
        return;
    }
    if (isnan(it->efficiency))
        fprintf(out, "%u worker%s did %llu task%s in %s.", it->workers, kl_plural(it->workers),
                kl_ull(it->tasks_done), kl_plural(it->tasks_done), kl_time_words(it->elapsed_s).text);
    else
        fprintf(out, "%u worker%s did %llu task%s in %s, at %s of their full speed.", it->workers,
                kl_plural(it->workers), kl_ull(it->tasks_done), kl_plural(it->tasks_done),
                kl_time_words(it->elapsed_s).text, kl_percent(it->efficiency).text);
}

static void sentence(const kl_report *report, FILE *out) {
    if (report->loop)
        loop_sentence(report->loop, out);
    else if (report->watched)
        kl_watched_print_sentence(report, out);
    else if (report->iteration_count == 0)
        fputs("No tasks were dealt.", out);
    else
        run_sentence(&report->iterations[report->iteration_count - 1], out);
}

void kl_report_print_sentence(const kl_report *report, FILE *out) {
    char *text = NULL, line[4 * KL_WIDTH + 1];
    size_t size = 0;
    FILE *whole = open_memstream(&text, &size);
    if (!whole)
        return;
    sentence(report, whole);
    if (fclose(whole) == 0) {
        kl_printable(line, sizeof line, text, KL_WIDTH);
        fprintf(out, "%s\n\n", line);
    }
    free(text);
}
