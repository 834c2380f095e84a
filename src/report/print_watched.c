/* Print the report of a watched program, as text and as JSON. */
#include "report/watched.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report/fields.h"
#include "report/text.h"

enum { RANKS_ALL = 24, PLACES_MOST = 5 };
static const double SMALL =
    0.01; /* a kind of lost time is printed if it is at least this part of the elapsed time */

static double part_of(double seconds, double whole_s) {
    return whole_s > 0 ? seconds / whole_s : (double)NAN;
}

/* Write a range of times as words, such as "9.1 s to 9.8 s". */
static const char *range_words(const kl_watch_range *range, char text[96]) {
    kl_words least = kl_time_words(range->least_s), most = kl_time_words(range->most_s);
    if (strcmp(least.text, most.text) == 0)
        snprintf(text, 96, "%s", least.text);
    else
        snprintf(text, 96, "%s to %s", least.text, most.text);
    return text;
}

/* Return the range of the time that is saved, from the range of the elapsed time. The longest elapsed time
 * gives the smallest saving, so the two limits change places. */
static kl_watch_range saved_of(const kl_report_watched *w, const kl_watch_range *range) {
    return (kl_watch_range){w->elapsed_s - range->most_s, w->elapsed_s - range->least_s};
}

void kl_watched_print_sentence(const kl_report *report, FILE *out) {
    const kl_report_watched *w = report->watched;
    char text[96];
    if (!w->way) {
        fputs("The program is still watched, or kilter watch was killed.", out);
        return;
    }
    kl_watch_range saved =
        saved_of(w, strcmp(w->way, "loop") == 0 && w->follow.most_s < w->even.most_s ? &w->follow : &w->even);
    if (saved.most_s > SMALL * w->elapsed_s)
        fprintf(out, "%u rank%s computed %s of %s; even shares would save %s.", w->ranks, kl_plural(w->ranks),
                kl_percent(w->parallel).text, kl_time_words(w->elapsed_s).text, range_words(&saved, text));
    else
        fprintf(out, "%u rank%s computed %s of %s.", w->ranks, kl_plural(w->ranks),
                kl_percent(w->parallel).text, kl_time_words(w->elapsed_s).text);
}

void kl_watched_print_what(const kl_report_watched *w, FILE *out) {
    if (w->way)
        kl_say(out, "watched", "%" PRIu32 " rank%s of %s, exit code %" PRId64, w->ranks, kl_plural(w->ranks),
               strcmp(w->mpi, "openmpi") == 0 ? "Open MPI" : "MPICH", w->exit_code);
}

/* --- what the ranks used their time for --- */

static void print_iteration(const kl_report_watched *w, FILE *out) {
    if (w->iterations == 0)
        kl_say(out, "iteration", "none: no sequence of calls repeats on most ranks");
    else
        kl_say(out, "iteration", "%llu iteration%s of %llu call%s, %s each; %s of the calls repeat",
               kl_ull(w->iterations), kl_plural(w->iterations), kl_ull(w->iteration_calls),
               kl_plural(w->iteration_calls), kl_time_words(w->iteration_s).text, kl_percent(w->alike).text);
}

static void print_lost(const kl_report_watched *w, FILE *out) {
    const struct {
        double part;
        const char *what;
    } LOST[] = {
        {w->lost_constant, "waiting for ranks that compute longer in the whole run"},
        {w->lost_slow, "waiting for ranks that compute longer for a part of the run"},
        {w->lost_fast, "waiting for another rank in each iteration"},
        {1 - w->parallel - w->lost_constant - w->lost_slow - w->lost_fast,
         "communication, and waits that the order of messages causes"},
    };
    const char *label = "lost";
    for (size_t i = 0; i < sizeof LOST / sizeof *LOST; i++)
        if (LOST[i].part >= SMALL) {
            kl_say(out, label, "%s: %s", kl_percent(LOST[i].part).text, LOST[i].what);
            label = "";
        }
}

static void print_forecast(const char *label, const char *what, const kl_watch_range *range,
                           const kl_report_watched *w, FILE *out) {
    char text[96];
    kl_watch_range saved = saved_of(w, range);
    kl_say(out, label, "%s: %s (%s to %s less)", what, range_words(range, text),
           kl_percent(part_of(saved.least_s, w->elapsed_s)).text,
           kl_percent(part_of(saved.most_s, w->elapsed_s)).text);
}

static void print_forecasts(const kl_report_watched *w, FILE *out) {
    if (w->lost_constant + w->lost_slow < SMALL)
        return;
    print_forecast("even shares", "if the shares stay", &w->even, w, out);
    if (w->lost_slow >= SMALL)
        print_forecast("", "if the shares follow the changes", &w->follow, w, out);
}

static void print_notes(const kl_report_watched *w, FILE *out) {
    if (w->shared_ranks > 0)
        kl_say(out, "shared",
               "%u rank%s did not get the whole core while computing: other programs run "
               "there, or the host limits the ranks",
               w->shared_ranks, kl_plural(w->shared_ranks));
    if (w->status && strcmp(w->status, "done") != 0)
        kl_say(out, "status", "%s", w->status);
    if (w->missing > 0)
        kl_say(out, "missing", "%llu rank%s left no file; ranks on other hosts need --folder",
               kl_ull(w->missing), kl_plural(w->missing));
    if (w->other_calls > 0)
        kl_say(out, "threads", "%llu call%s of further threads are not counted", kl_ull(w->other_calls),
               kl_plural(w->other_calls));
    if (w->spawned > 0)
        kl_say(out, "spawned", "%llu process%s that MPI_Comm_spawn started are not counted",
               kl_ull(w->spawned), w->spawned == 1 ? "" : "es");
}

/* --- the tables of ranks and of places in the program --- */

static const void *rank_at(const void *context, size_t row) {
    return &((const kl_report *)context)->watched->rank[row];
}

static void cell_host(const void *context, size_t row, char *cell) {
    const kl_report *report = context;
    const char *host = "";
    for (size_t i = 0; i < report->worker_count; i++)
        if (report->workers[i].worker == report->watched->rank[row].rank)
            host = report->workers[i].host;
    kl_printable(cell, KL_CELL_BYTES, host ? host : "", KL_CELL_COLUMNS);
}

static void cell_busy(const void *context, size_t row, char *cell) {
    const kl_report_watched *w = ((const kl_report *)context)->watched;
    kl_cell_number(cell, "%.1f", 100 * part_of(w->rank[row].useful_s, w->elapsed_s));
}

static void print_ranks(const kl_report *report, FILE *out) {
    static const kl_row_column columns[] = {
        KL_SHOW("rank", NUMBER, kl_report_watched_rank, rank),
        {.column = {"host", true, cell_host}},
        KL_SHOW_REAL("useful s", REAL, kl_report_watched_rank, useful_s, 3, 1),
        {.column = {"useful %", false, cell_busy}},
        KL_SHOW_REAL("in MPI s", REAL, kl_report_watched_rank, mpi_s, 3, 1),
        KL_SHOW_REAL("of its core %", KNOWN, kl_report_watched_rank, core_share, 1, 100),
        KL_SHOW("calls", COUNT, kl_report_watched_rank, calls)};
    size_t ranks = report->watched->rank_count;
    fputc('\n', out);
    kl_print_rows(out, columns, sizeof columns / sizeof *columns, rank_at, report,
                  ranks < RANKS_ALL ? ranks : RANKS_ALL);
    if (ranks > RANKS_ALL)
        fprintf(out, "… and %zu more ranks; --json prints all\n", ranks - RANKS_ALL);
    fputc('\n', out);
}

static void print_places(const kl_report_watched *w, FILE *out) {
    for (size_t i = 0; i < w->place_count && i < PLACES_MOST; i++) {
        char place[4 * KL_CELL_COLUMNS + 1];
        kl_printable(place, sizeof place, w->place[i].place, KL_CELL_COLUMNS);
        kl_say(out, i ? "" : "most in MPI", "%s in %" PRIu64 " call%s of %.32s at %s",
               kl_time_words(w->place[i].mpi_s).text, w->place[i].calls, kl_plural(w->place[i].calls),
               w->place[i].call, place);
    }
}

void kl_watched_print_text(const kl_report *report, FILE *out) {
    const kl_report_watched *w = report->watched;
    if (!w->way)
        return;
    fputc('\n', out);
    kl_say(out, "efficiency", "parallel efficiency %s = load balance %s × communication efficiency %s",
           kl_percent(w->parallel).text, kl_percent(w->load_balance).text, kl_percent(w->communication).text);
    print_iteration(w, out);
    print_lost(w, out);
    print_forecasts(w, out);
    kl_say(out, "fits", "%s: %s", w->way, w->reason);
    print_notes(w, out);
    print_ranks(report, out);
    print_places(w, out);
}

void kl_watched_print_json(kl_json *j, const kl_report_watched *watched) {
    kl_json_open(j, "watched", '{');
    kl_row_json(j, &kl_watched_rows, watched);
    kl_rows_json(j, "rank", &kl_watched_rank_rows, watched->rank, watched->rank_count);
    kl_rows_json(j, "place", &kl_watched_place_rows, watched->place, watched->place_count);
    kl_rows_json(j, "slice", &kl_watched_slice_rows, watched->slice, watched->slice_count);
    kl_json_close(j, '}');
}
