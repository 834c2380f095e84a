/* Read the files of the ranks, find where the ranks wait, and write the record. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "kilter/version.h"
#include "report/report.h"
#include "sys/sys.h"
#include "trace/trace.h"
#include "watch.h"
#include "watch/watch.h"

enum { PLACES_MOST = 1000 };

typedef struct gathered {
    kl_watch_rank *ranks; /* what the ranks recorded, in order of rank, without spawned processes */
    uint64_t room;
    size_t count;
    uint64_t spawned, refused, other_calls, unfinished;
} gathered;

/* --- files --- */

static kilter_status read_file(const char *path, kl_watch_rank *rank, kilter_error *error) {
    size_t size = sizeof(kl_watch_file) + 1;
    uint8_t *bytes = malloc(size);
    FILE *in = bytes ? fopen(path, "re") : NULL;
    kilter_status status;
    if (in)
        status = kl_watch_read((kilter_bytes){bytes, fread(bytes, 1, size, in)}, path, rank, error);
    else
        status = kl_fail(error, bytes ? KILTER_ERR_INPUT : KILTER_ERR_MEMORY, "reading '%s': %s", path,
                         strerror(errno));
    if (in)
        fclose(in);
    free(bytes);
    return status;
}

static void take_file(gathered *g, const char *path) {
    kilter_error error;
    kl_watch_rank rank;
    if (read_file(path, &rank, &error) != KILTER_OK) {
        fprintf(stderr, "kilter watch: %s; this rank is not counted\n", error.text);
        g->refused++;
        return;
    }
    kl_watch_rank *more = kl_array_grow(g->ranks, &g->room, g->count + 1, sizeof *more);
    g->ranks = more ? more : g->ranks;
    g->spawned += rank.spawned;
    if (!more || rank.spawned) {
        kl_watch_rank_free(&rank);
        return;
    }
    g->other_calls += rank.other_calls;
    g->unfinished += rank.end == KL_WATCH_RUNNING;
    if (rank.rank >= KL_WATCH_LOOKED_AT) { /* keep the calls of the first ranks only, to save memory */
        free(rank.call);
        rank.call = NULL;
        rank.call_count = 0;
    }
    g->ranks[g->count++] = rank;
}

static int by_rank(const void *a, const void *b) {
    const kl_watch_rank *x = a, *y = b;
    return x->rank != y->rank ? (x->rank > y->rank) - (x->rank < y->rank)
                              : (x->began_unix_s > y->began_unix_s) - (x->began_unix_s < y->began_unix_s);
}

/* Return the number of ranks of the program that began last. */
static uint64_t ranks_of_last(const gathered *g) {
    const kl_watch_rank *last = g->ranks;
    for (size_t i = 1; i < g->count; i++)
        if (g->ranks[i].began_unix_s > last->began_unix_s)
            last = &g->ranks[i];
    return g->count > 0 ? last->ranks : 0;
}

/* Keep only the files of the last program, because a script may start several programs one after the other.
 * For each rank, keep the newest file of a program that had as many ranks as the last program. */
static void keep_last(gathered *g) {
    size_t kept = 0;
    uint64_t ranks = ranks_of_last(g);
    if (g->count > 0)
        qsort(g->ranks, g->count, sizeof *g->ranks, by_rank);
    for (size_t i = 0; i < g->count; i++) {
        if (g->ranks[i].ranks != ranks ||
            (i + 1 < g->count && g->ranks[i + 1].rank == g->ranks[i].rank && g->ranks[i + 1].ranks == ranks))
            kl_watch_rank_free(&g->ranks[i]);
        else
            g->ranks[kept++] = g->ranks[i];
    }
    g->count = kept;
}

static void gather(const char *folder, gathered *g) {
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (strncmp(entry->d_name, "rank-", 5) != 0)
            continue;
        char *path = kl_text("%s/%s", folder, entry->d_name);
        if (path)
            take_file(g, path);
        free(path);
    }
    if (dir)
        closedir(dir);
    keep_last(g);
}

/* --- writing the record --- */

static const char *end_words(kl_watch_end end) {
    static const char *const WORDS[] = {"did not finalize", "finalized", "aborted"};
    return WORDS[end];
}

static void record_ranks(kl_trace *trace, const gathered *g, double began_unix_s) {
    for (size_t i = 0; i < g->count; i++) {
        const kl_watch_rank *r = &g->ranks[i];
        double joined_s = fmax(r->began_unix_s - began_unix_s, 0);
        kl_trace_worker(
            trace,
            &(kl_trace_worker_row){
                .worker = r->rank, .host = r->host, .binding = "", .pid = r->pid, .joined_s = joined_s});
        if (r->end != KL_WATCH_FINALIZED)
            kl_trace_worker_left(trace, r->rank, joined_s + r->elapsed_s,
                                 r->end == KL_WATCH_ABORTED
                                     ? "the rank called MPI_Abort"
                                     : "the rank was killed, or ended without MPI_Finalize");
        kl_trace_watched_rank(trace, &(kl_trace_watched_rank_row){.rank = r->rank,
                                                                  .elapsed_s = r->elapsed_s,
                                                                  .useful_s = r->useful_s,
                                                                  .mpi_s = r->mpi_s,
                                                                  .core_share = r->core_share,
                                                                  .calls = r->calls,
                                                                  .end = end_words(r->end)});
    }
}

/* Add up the values of all ranks for each place in the program. */
static void record_places(kl_trace *trace, const gathered *g) {
    kl_watch_place *sums = calloc(PLACES_MOST, sizeof *sums);
    size_t count = 0;
    for (size_t i = 0; sums && i < g->count; i++)
        for (size_t k = 0; k < g->ranks[i].place_count; k++) {
            const kl_watch_place *p = &g->ranks[i].places[k];
            size_t at = 0;
            while (at < count &&
                   (strcmp(sums[at].call, p->call) != 0 || strcmp(sums[at].place, p->place) != 0))
                at++;
            if (at == PLACES_MOST || p->events == 0)
                continue;
            if (at == count)
                sums[count++] = *p;
            else {
                sums[at].events += p->events;
                sums[at].mpi_s += p->mpi_s;
            }
        }
    for (size_t i = 0; i < count; i++)
        kl_trace_watched_place(trace, &(kl_trace_watched_place_row){.call = sums[i].call,
                                                                    .place = sums[i].place,
                                                                    .calls = sums[i].events,
                                                                    .mpi_s = sums[i].mpi_s});
    free(sums);
}

static void record_slices(kl_trace *trace, const gathered *g, double began_unix_s) {
    kl_watch_table slices;
    double from = INFINITY, longest_s = 0;
    for (size_t i = 0; i < g->count; i++) {
        from = fmin(from, g->ranks[i].began_unix_s);
        longest_s = fmax(longest_s, g->ranks[i].elapsed_s);
    }
    if (!kl_watch_table_slices(g->ranks, g->count, 0, &slices))
        return;
    double length_s = slices.parts > 0 ? longest_s / (double)slices.parts : 0;
    for (size_t k = 0; k < slices.parts; k++)
        for (size_t i = 0; i < g->count; i++)
            kl_trace_watched_slice(
                trace, &(kl_trace_watched_slice_row){.rank = g->ranks[i].rank,
                                                     .began_s = from - began_unix_s + (double)k * length_s,
                                                     .length_s = length_s,
                                                     .useful_s = kl_watch_part(&slices, k)[i]});
    kl_watch_table_free(&slices);
}

static void put_status(const kl_watched_program *p, const gathered *g, char *status, size_t size) {
    if (g->unfinished > 0)
        snprintf(status, size, "%llu of %zu ranks did not come to MPI_Finalize%s%s", kl_ull(g->unfinished),
                 g->count, *p->how ? "; the launcher " : "", p->how);
    else
        snprintf(status, size, "%s%s", *p->how ? "the program " : "done", p->how);
}

static void record_found(kl_trace *trace, const kl_watched_program *p, const gathered *g,
                         const kl_watch_found *found) {
    char status[200];
    put_status(p, g, status, sizeof status);
    uint64_t wanted = g->count > 0 ? g->ranks[0].ranks : 0;
    kl_trace_watched_row row = {.mpi = p->mpi,
                                .way = kl_watch_way_name(found->way),
                                .reason = found->reason,
                                .status = status,
                                .exit_code = p->code,
                                .other_calls = g->other_calls,
                                .spawned = g->spawned,
                                .missing = wanted > g->count ? wanted - g->count : 0,
                                .found = *found};
    row.found.slowest = g->ranks[found->slowest].rank;
    kl_trace_watched(trace, &row);
    record_ranks(trace, g, p->began_unix_s);
    record_places(trace, g);
    record_slices(trace, g, p->began_unix_s);
}

/* --- names --- */

static bool has_dash(const char *word) {
    return word[0] == '-';
}

/* Return the name of the watched program: the first word after the launcher that is an executable file. */
static const char *name_of(char *const *words) {
    const char *name = words[0];
    for (size_t i = 1; words[i]; i++)
        if (!has_dash(words[i]) && strchr(words[i], '/') && access(words[i], X_OK) == 0) {
            name = words[i];
            break;
        }
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

/* Return the path of the record: the given path, or a new file in the folder of records. If the user wants no
 * record, the record is made in the folder of the ranks' files, which is removed later. NULL: see `error`. */
static char *record_path(const kl_watched_program *p, kilter_error *error) {
    const char *wanted = p->options->record ? p->options->record : getenv("KILTER_RECORD");
    char stamp[32], *folder = NULL, *path = NULL;
    struct tm local;
    time_t now = time(NULL);
    if (wanted && *wanted)
        return strcmp(wanted, "none") == 0 ? kl_text("%s/record.kilter", p->folder) : kl_text("%s", wanted);
    if (kl_record_dir(&folder, error) == KILTER_OK && kl_make_dirs(folder, error) == KILTER_OK) {
        strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", localtime_r(&now, &local));
        path = kl_text("%s/%s-%s-%d.kilter", folder, name_of(p->options->words), stamp, (int)getpid());
    }
    free(folder);
    return path;
}

/* Open the record at `path`, and free `path`. If `path` is NULL, `error` is already set. */
static kilter_status open_record(const kl_watched_program *p, char *path, kl_trace **trace,
                                 kilter_error *error) {
    char host[KL_HOST_BYTES], *here = getcwd(NULL, 0);
    kl_host_name(host);
    const kl_trace_run_row run = {.program = name_of(p->options->words),
                                  .version = KILTER_VERSION,
                                  .transport = "mpi",
                                  .policy = "watched",
                                  .host = host,
                                  .began_unix_s = p->began_unix_s,
                                  .pid = getpid(),
                                  .folder = here,
                                  .control = "",
                                  .watched = true};
    kilter_status status = path ? kl_trace_open(path, &run, trace, error) : KILTER_ERR_RECORD;
    free(path);
    free(here);
    return status;
}

/* Print the page of results. If the record is not kept, the page does not name it. */
static kilter_status print_page(const char *path, bool kept, kilter_error *error) {
    kl_report *report = NULL;
    kilter_status status = kl_report_read(path, &report, error);
    if (status == KILTER_OK) {
        if (!kept)
            snprintf(report->path, strlen(report->path) + 1, "none");
        kl_report_print_text(report, stderr);
    }
    kl_report_free(report);
    return status;
}

static kilter_status write_record(const kl_watched_program *p, const gathered *g, kilter_error *error) {
    kl_watch_found found;
    kl_trace *trace = NULL;
    kilter_status status = kl_watch_judge(g->ranks, g->count, &found, error);
    if (status == KILTER_OK && open_record(p, record_path(p, error), &trace, error) != KILTER_OK) {
        fprintf(stderr, "kilter watch: %s; the page is not kept\n", error->text);
        status = open_record(p, kl_text("%s/record.kilter", p->folder), &trace, error);
    }
    if (status != KILTER_OK)
        return status;
    record_found(trace, p, g, &found);
    char *path = kl_text("%s", kl_trace_path(trace));
    status = kl_trace_close(trace, kl_monotonic_s() - p->began_s, error);
    if (status == KILTER_OK && path)
        status = print_page(path, strncmp(path, p->folder, strlen(p->folder)) != 0, error);
    free(path);
    return status;
}

kilter_status kl_watch_gather(const kl_watched_program *p, kilter_error *error) {
    gathered g = {.count = 0};
    gather(p->folder, &g);
    kilter_status status = KILTER_OK;
    if (g.count > 0)
        status = write_record(p, &g, error);
    else if (g.refused == 0 && p->code != 126 &&
             p->code != 127) /* 126 or 127: the program could not be started, and a message was printed */
        fprintf(
            stderr,
            "kilter watch: no process of '%s' called MPI_Init of %s, so nothing was seen. A program that is "
            "linked statically, or with another MPI (--mpi), cannot be watched; ranks on other hosts need "
            "--folder\n",
            p->options->words[0], strcmp(p->mpi, "openmpi") == 0 ? "Open MPI" : "MPICH");
    for (size_t i = 0; i < g.count; i++)
        kl_watch_rank_free(&g.ranks[i]);
    free(g.ranks);
    return status;
}

void kl_watch_clean(kl_watched_program *p) {
    DIR *dir = p->folder ? opendir(p->folder) : NULL;
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
    if (p->folder)
        rmdir(p->folder);
    free(p->folder);
    free(p->library);
    p->folder = p->library = NULL;
}
