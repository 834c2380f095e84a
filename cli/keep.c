/* kilter run --keep: ask the keeper of a run repeatedly what to do, and do it. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckpt/keep_folder.h"
#include "cmd.h"
#include "keep.h"

static const double TICK_S = 0.05, REFRESH_S = 0.5;
enum { RANKS_MOST = 1 << 20 }; /* most ranks of a program if --ranks is not given */
enum { EXIT_UNFINISHED = 75 }; /* the same command continues the run; EX_TEMPFAIL of sysexits.h */

typedef struct kept {
    const kl_keep_options *options;
    kl_keep_folder folder;
    char *checkpoint;
    kl_keeper keeper;
    kl_keep_hosts *hosts; /* NULL: Slurm chooses the hosts */
    kl_keep_slurm *slurm; /* NULL: attempts are processes of this host, not jobs of Slurm */
    kl_keep_start start;
    kl_keep_record record;
    struct timespec reported; /* when the program wrote its last report */
    ino_t report_file;        /* inode of the file with the program's last report; 0: no report yet */
    double limit_s;     /* time at which the present job reaches its limit, as last told to the keeper; 0: not
                         * known */
    double refreshed_s; /* when refresh() last checked the keep folder */
    off_t shown;        /* number of bytes of the job's output that were printed here */
    kl_keeper_action end;
    bool over, stores;
    bool heard;         /* true: the program has reported since the keep folder was last checked */
    bool deaf;          /* true: the keep folder cannot be written, so the program cannot report */
    bool unstored;      /* true: the state could not be written, and a message was printed */
    uint64_t asked;     /* number of the last request to the program */
    bool unasked;       /* true: the last request to the program could not be written yet */
    bool knows_hosts;   /* true: all hosts were measured once, so requests to move can be judged */
    kilter_error error; /* the error if the keeper itself fails */
} kept;

static double now_s(void) {
    return kl_monotonic_s();
}

/* --- the state file in the keep folder --- */

static const char *engine_name(const kept *k) {
    static const char *const NAMES[KL_LAUNCHERS] = {"own", "openmpi", "mpich", "srun"};
    return k->slurm ? "slurm" : NAMES[k->start.launcher];
}

static void store(kept *k) {
    kl_buffer text = {0};
    kl_keep_state_put(k->options, engine_name(k), &text);
    if (k->slurm) {
        kl_put_field(&text, "jobs", kl_keep_slurm_names(k->slurm));
        kl_put_field(&text, "job", kl_keep_slurm_job(k->slurm));
    }
    kl_keeper_store(&k->keeper, &text);
    kilter_error error;
    bool stored = kl_keep_write(k->folder.path, "state", &text, &error) == KILTER_OK;
    if (!stored && !k->unstored)
        fprintf(stderr, "kilter run: %s; a later keeper cannot go on from here\n", error.text);
    k->unstored = !stored;
    kl_buffer_free(&text);
}

/* Continue the run from the state file, which an earlier keeper wrote. The attempt of the earlier keeper may
 * still run, or wait in Slurm's queue. If the attempt ended while there was no keeper, a file in the keep
 * folder tells how. */
static kilter_status go_on(kept *k, const kl_buffer *text, kilter_error *error) {
    kl_keep_state s = kl_keep_state_read(text);
    bool known = k->slurm ? *s.job != '\0' : kl_keep_start_alive(&k->start),
         alive = k->slurm ? s.runs : known;
    kilter_status status = kl_keep_state_check(&k->start, &s, error);
    if (status == KILTER_OK)
        status = kl_keeper_restore(&k->keeper, (const char *)text->data, text->size, alive, now_s(), error);
    if (status != KILTER_OK)
        return status;
    if (k->slurm)
        kl_keep_slurm_adopt(k->slurm, s.jobs, s.job, s.attempt);
    if (k->keeper.state == KL_KEEPER_IS_OVER)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "the run of '%s' is done; remove this folder, or name another folder with --folder",
                       k->folder.path);
    fprintf(stderr, "kilter run: going on with the run of '%s'%s\n", k->folder.path,
            known ? ", which is still running" : "");
    return KILTER_OK;
}

static kilter_status restore(kept *k, kilter_error *error) {
    kl_buffer text = {0};
    kilter_status status = KILTER_OK;
    if (kl_keep_read(k->folder.path, "state", &text))
        status = go_on(k, &text, error);
    kl_buffer_free(&text);
    return status;
}

/* --- telling the keeper about reports and ends --- */

static void tell(kept *k, const kl_keeper_event *event) {
    uint64_t decisions = k->keeper.decisions;
    kl_keeper_state state = k->keeper.state;
    if (!kl_keeper_step(&k->keeper, event, now_s()))
        kl_fail(&k->error, KILTER_ERR_MEMORY, "keeping the run: memory ran out");
    k->stores |= decisions != k->keeper.decisions || state != k->keeper.state;
}

/* Open the report's file before stat(): over NFS, stat() may return data that are some seconds old, but
 * opening a file renews the data. */
static bool is_new_report(kept *k) {
    struct stat info;
    char *path = kl_keep_file(k->folder.path, "progress");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    bool is_new = file >= 0 && fstat(file, &info) == 0 &&
                  (info.st_ino != k->report_file || info.st_mtim.tv_sec != k->reported.tv_sec ||
                   info.st_mtim.tv_nsec != k->reported.tv_nsec);
    if (is_new) {
        k->reported = info.st_mtim;
        k->report_file = info.st_ino;
    }
    if (file >= 0)
        close(file);
    free(path);
    return is_new;
}

static void tell_report(kept *k, const kl_keep_progress *p) {
    const char **names = calloc(p->ranks + 1, sizeof *names);
    for (uint32_t i = 0; names && i < p->ranks; i++)
        names[i] = p->hosts[i];
    const kl_keeper_report report = {.attempt = p->attempt,
                                     .ranks = p->ranks,
                                     .hosts = names,
                                     .rates = p->rates,
                                     .sweeps = p->sweeps,
                                     .expected = p->expected,
                                     .saved = p->saved_sweeps,
                                     .sweep_s = p->sweep_s,
                                     .longest_s = p->longest_s,
                                     .write_s = p->write_s,
                                     .load_s = p->load_s,
                                     .answered = p->answered,
                                     .error = p->error,
                                     .stopped = p->stopped,
                                     .done = p->done};
    tell(k, &(kl_keeper_event){.kind = KL_KEEPER_REPORT, .report = &report});
    free(names);
}

static void look_at_report(kept *k) {
    kl_keep_progress p;
    bool there = false;
    if (!is_new_report(k))
        return;
    if (kl_keep_progress_read(k->folder.path, &p, &there, NULL) != KILTER_OK || !there)
        return;
    k->heard = true;
    tell_report(k, &p);
    kl_keep_progress_free(&p);
}

static bool runs(const kept *k) {
    return k->keeper.state >= KL_KEEPER_STARTING && k->keeper.state <= KL_KEEPER_KILLING;
}

static void look_at_attempt(kept *k) {
    kl_keeper_event event = {.kind = KL_KEEPER_ENDED};
    uint64_t attempt = k->keeper.tally.attempt;
    bool ended = k->slurm ? kl_keep_slurm_ended(k->slurm, attempt, &event.end)
                          : kl_keep_start_ended(&k->start, attempt, &event.end);
    if (!ended)
        return;
    k->report_file = 0; /* read the report once more, because the attempt wrote its last report just before
                         * its end */
    look_at_report(k);
    k->start.guard = 0;
    k->limit_s = 0;
    tell(k, &event);
}

static void look_at_job(kept *k) {
    double limit_s = kl_keep_slurm_limit_s(k->slurm);
    if (k->keeper.watch.reported)
        kl_keep_slurm_began(k->slurm);
    if (limit_s == k->limit_s)
        return;
    k->limit_s = limit_s;
    tell(k, &(kl_keeper_event){.kind = KL_KEEPER_LIMIT, .limit_s = limit_s});
}

/* Take the time limit from the environment if this command runs inside an allocation of Slurm. */
static void look_at_allocation(kept *k) {
    const char *end = getenv("SLURM_JOB_END_TIME");
    double left_s = end ? strtod(end, NULL) - kl_unix_time_s() : 0;
    if (!(left_s > 0) || k->limit_s > 0)
        return;
    k->limit_s = now_s() + left_s;
    tell(k, &(kl_keeper_event){.kind = KL_KEEPER_LIMIT, .limit_s = k->limit_s});
}

/* Check whether the program can report. If the disk is full, the program cannot report, so its silence does
 * not mean that the program hangs. */
static void look_at_folder(kept *k) {
    kilter_error error;
    bool deaf = !k->heard && !kl_keep_has_room(k->folder.path, &error);
    if (deaf && !k->deaf)
        fprintf(stderr, "kilter run: %s; the program cannot report, so Kilter does not notice a hang\n",
                error.text);
    k->deaf = deaf;
    k->heard = false;
}

/* Tell the keeper whether silence of the program can mean that the program hangs. */
static void look_at_silence(kept *k) {
    bool pending = k->deaf || (k->slurm && kl_keep_slurm_pending(k->slurm));
    tell(k, &(kl_keeper_event){.kind = KL_KEEPER_QUEUE, .pending = pending});
}

static void look_at_hosts(kept *k) {
    kl_keeper_event event = {.kind = KL_KEEPER_HOSTS};
    if (k->slurm ? kl_keep_slurm_poll(k->slurm, &event.views, &event.count)
                 : kl_keep_hosts_poll(k->hosts, &event.views, &event.count)) {
        k->knows_hosts = true;
        tell(k, &event);
    }
}

static void look_at_orders(kept *k) {
    kl_keep_order order;
    if (!k->knows_hosts || !kl_keep_order_take(k->folder.path, &order))
        return;
    tell(k, &(kl_keeper_event){.kind = order.kind, .names = order.names});
    kl_keep_order_answer(k->folder.path, &order, &k->keeper);
    k->stores = true;
}

/* Print the part of the job's output that was not printed yet. */
static void show_output(kept *k) {
    char *path = k->slurm ? kl_keep_file(k->folder.path, "output") : NULL, bytes[4096];
    FILE *in = path ? fopen(path, "re") : NULL;
    free(path);
    if (!in)
        return;
    if (fseeko(in, k->shown, SEEK_SET) == 0)
        for (size_t got; (got = fread(bytes, 1, sizeof bytes, in)) > 0;) {
            fwrite(bytes, 1, got, stdout);
            k->shown += (off_t)got;
        }
    fclose(in);
    fflush(stdout);
}

/* --- carrying out the keeper's actions --- */

static void forget_request(const kept *k) {
    char *path = kl_keep_file(k->folder.path, "request");
    if (path)
        unlink(path);
    free(path);
}

/* Begin an attempt. Store the state first. If this keeper dies now, a later keeper knows of the attempt. */
static void begin(kept *k) {
    kilter_error error;
    forget_request(k);
    store(k);
    if (k->hosts)
        kl_keep_hosts_used(k->hosts, &k->keeper);
    kl_keep_record_hosts(&k->record, &k->keeper, now_s());
    kilter_status status = k->slurm ? kl_keep_slurm_begin(k->slurm, &k->keeper, &error)
                                    : kl_keep_start_begin(&k->start, &k->keeper, &error);
    k->stores = true;
    if (status == KILTER_OK)
        return;
    fprintf(stderr, "kilter run: %s\n", error.text);
    tell(k, &(kl_keeper_event){.kind = KL_KEEPER_ENDED,
                               .end = {.attempt = k->keeper.tally.attempt, .how = KL_KEEPER_REFUSED}});
}

/* Ask the program to save and stop, by a request in the keep folder. If the request cannot be written,
 * refresh() tries again. */
static void ask(kept *k, uint64_t number) {
    kilter_error error;
    const kl_keep_request request = {.number = number, .what = KL_KEEP_STOP};
    bool asked = kl_keep_request_write(k->folder.path, &request, &error) == KILTER_OK;
    if (!asked && !k->unasked)
        fprintf(stderr, "kilter run: asking the program to save: %s\n", error.text);
    k->unasked = !asked;
    k->asked = number;
}

static void carry_out(kept *k, const kl_keeper_action *a) {
    switch (a->act) {
    case KL_KEEPER_LOOK:
        if (k->slurm)
            kl_keep_slurm_look(k->slurm);
        else
            kl_keep_hosts_look(k->hosts, &k->keeper, a->others, a->seconds);
        break;
    case KL_KEEPER_START:
        begin(k);
        break;
    case KL_KEEPER_ASK:
        ask(k, a->number);
        break;
    case KL_KEEPER_KILL:
        if (k->slurm)
            kl_keep_slurm_kill(k->slurm);
        else
            kl_keep_start_kill(&k->start);
        break;
    case KL_KEEPER_DECIDED:
        fprintf(stderr, "kilter run: %s\n", a->text);
        kl_keep_record_decision(&k->record, a, now_s());
        break;
    case KL_KEEPER_CAME:
        kl_keep_record_came(&k->record, a, now_s());
        break;
    case KL_KEEPER_OVER:
        k->over = true;
        k->end = *a;
        break;
    }
}

static void carry_out_all(kept *k) {
    kl_keeper_action action;
    while (kl_keeper_take(&k->keeper, &action))
        carry_out(k, &action);
    if (k->stores)
        store(k);
    k->stores = false;
}

/* --- the loop of the keeper --- */

static void refresh(kept *k) {
    if (now_s() - k->refreshed_s < REFRESH_S)
        return;
    k->refreshed_s = now_s();
    kl_keep_refresh(k->folder.path);
    if (runs(k))
        look_at_folder(k);
    if (k->unasked && k->keeper.state == KL_KEEPER_SAVING)
        ask(k, k->asked);
}

static void look_around(kept *k) {
    look_at_hosts(k);
    if (runs(k))
        look_at_report(k); /* read the program's report before orders, because orders are judged by the
                            * program's state */
    refresh(k);
    look_at_orders(k);
    carry_out_all(k); /* begin an attempt that the keeper has decided on, before checking whether the attempt
                         has ended */
    if (runs(k)) {
        if (k->slurm)
            look_at_job(k);
        else
            look_at_allocation(k);
        look_at_silence(k);
        look_at_attempt(k);
    }
    if (!k->over)
        tell(k, &(kl_keeper_event){.kind = KL_KEEPER_TIME});
    show_output(k);
}

static bool is_stop(int signal) {
    return signal == SIGINT || signal == SIGTERM || signal == SIGHUP;
}

static int keep_going(kept *k, const sigset_t *awaited) {
    int stopped_by = 0;
    while (!k->over && k->error.status == KILTER_OK) {
        const struct timespec tick = kl_timespec(TICK_S);
        int got = sigtimedwait(awaited, NULL, &tick);
        if (is_stop(got)) {
            stopped_by = got;
            fprintf(stderr, "kilter run: %s\n",
                    k->keeper.wish.stop ? "ending the program"
                                        : "saving and stopping; a second signal ends the program at once");
            tell(k, &(kl_keeper_event){.kind = KL_KEEPER_STOP});
        }
        look_around(k);
        carry_out_all(k);
    }
    return stopped_by;
}

static int end_with(kept *k, int stopped_by) {
    static const char *const STATUS[] = {[KL_KEEPER_GOES_ON] = "the keeper failed",
                                         [KL_KEEPER_DONE] = "done",
                                         [KL_KEEPER_STOPPED] = "stopped",
                                         [KL_KEEPER_GAVE_UP] = "given up"};
    kl_keep_record_close(&k->record, &k->keeper, STATUS[k->end.result], now_s());
    if (k->error.status != KILTER_OK)
        return kilter_exit("kilter run", &k->error);
    if (k->end.result != KL_KEEPER_DONE || k->keeper.tally.attempt > 1)
        fprintf(stderr, "kilter run: %s\n", k->end.text);
    if (k->end.result == KL_KEEPER_DONE)
        return EXIT_SUCCESS;
    if (k->end.result == KL_KEEPER_STOPPED)
        return stopped_by > 0 ? 128 + stopped_by : EXIT_UNFINISHED;
    return k->end.code > 0 ? k->end.code : EXIT_FAILURE;
}

/* --- opening the run --- */

static char *default_folder(const kl_keep_options *o) {
    const char *slash = strrchr(o->program[0], '/');
    return kl_text("%s.keep", slash ? slash + 1 : o->program[0]);
}

static kilter_status open_folder(kept *k, kilter_error *error) {
    const kl_keep_options *o = k->options;
    char *folder = o->folder ? kl_text("%s", o->folder) : default_folder(o);
    const char *set = getenv("KILTER_CHECKPOINT");
    const char *given = o->checkpoint ? o->checkpoint : set && *set ? set : NULL; /* "" counts as not set */
    kilter_status status = folder ? kl_keep_folder_open(folder, &k->folder, error)
                                  : kl_fail(error, KILTER_ERR_MEMORY, "--folder: memory ran out");
    free(folder);
    if (status != KILTER_OK)
        return status;
    k->checkpoint = given ? kl_text("%s", given) : kl_keep_file(k->folder.path, "checkpoint");
    return k->checkpoint ? KILTER_OK : kl_fail(error, KILTER_ERR_MEMORY, "--checkpoint: memory ran out");
}

/* Initialise the keeper. With Slurm, the keeper counts nodes instead of ranks; the options of sbatch give the
 * number of nodes. */
static void open_keeper(kept *k) {
    const kl_keep_options *o = k->options;
    kl_keeper_options how = {.ranks = o->ranks > 0 ? o->ranks : RANKS_MOST,
                             .least = o->least,
                             .tries = o->tries,
                             .hang_s = o->hang_s,
                             .wait_s = o->wait_s,
                             .look_s = o->look_s,
                             .margin_s = o->margin_s,
                             .queued = k->slurm != NULL,
                             .fixed = o->fixed,
                             .self = k->hosts};
    if (k->slurm) {
        kl_keep_slurm_nodes(k->slurm, &how.least, &how.ranks);
        how.ranks = how.ranks > 0 ? how.ranks : 1;
        how.least = 1;
    } else if (kl_keep_hosts_picks(k->hosts)) {
        how.order = kl_keep_hosts_order;
    }
    kl_keeper_init(&k->keeper, &how);
}

/* Skip the part of the job's output that an earlier keeper has already printed. */
static void skip_output(kept *k) {
    struct stat info;
    char *path = kl_keep_file(k->folder.path, "output");
    if (path && stat(path, &info) == 0)
        k->shown = info.st_size;
    free(path);
}

static kilter_status open_all(kept *k, kilter_error *error) {
    kilter_status status = k->options->slurm ? KILTER_OK : kl_keep_hosts_open(k->options, &k->hosts, error);
    bool in_slurm = k->options->slurm || (k->hosts && kl_keep_hosts_of_slurm(k->hosts));
    k->start = (kl_keep_start){.options = k->options};
    if (status == KILTER_OK)
        status = kl_keep_start_open(&k->start, in_slurm, error);
    if (status == KILTER_OK && k->options->slurm)
        status = kl_keep_slurm_open(&k->start, &k->slurm, error);
    if (status == KILTER_OK)
        status = open_folder(k, error);
    k->start.folder = k->folder.path;
    k->start.checkpoint = k->checkpoint;
    if (status != KILTER_OK)
        return status;
    open_keeper(k);
    skip_output(k);
    return restore(k, error);
}

static void close_all(kept *k) {
    kl_keeper_free(&k->keeper);
    kl_keep_hosts_close(k->hosts);
    kl_keep_slurm_close(k->slurm);
    kl_keep_folder_close(&k->folder);
    free(k->checkpoint);
}

/* Return whether this process ignores a signal, as it ignores SIGHUP under nohup. The keeper must not block
 * such a signal: if it waited for the signal, it would get the signal in spite of nohup. */
static bool is_ignored(int number) {
    struct sigaction action;
    return number != SIGCHLD && sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

int kl_keep_run(const kl_keep_options *options) {
    kept k = {.options = options, .folder = {.lock = -1}};
    const int signals[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP};
    sigset_t awaited;
    kilter_error error;
    sigemptyset(&awaited);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (!is_ignored(signals[i]))
            sigaddset(&awaited, signals[i]);
    sigprocmask(SIG_BLOCK, &awaited, NULL);
    signal(SIGPIPE, SIG_IGN);
    int code;
    if (open_all(&k, &error) == KILTER_OK) {
        kl_keep_record_open(&k.record, options, k.folder.path, engine_name(&k));
        code = end_with(&k, keep_going(&k, &awaited));
    } else {
        code = kilter_exit("kilter run", &error);
    }
    close_all(&k);
    return code;
}
