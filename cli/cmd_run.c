/* kilter run: start a farm with workers on other hosts, or keep an MPI program running. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd.h"
#include "control/control.h"
#include "grow.h"
#include "keep.h"
#include "listening.h"
#include "sys/sys.h"
#include "transport/transport.h"

enum { WORKERS_MOST = 10000 };
enum { RANKS_MOST = 1 << 20 }; /* greatest number of ranks with --keep */
static const uint32_t JOBS_USUAL = 4;
static const double GROW_TICK_S = 0.1;
static const double END_PATIENCE_S =
    5; /* seconds in which hosts must end their workers after the master has ended */

typedef struct run_options {
    kl_run_host *hosts;
    size_t host_count;
    const char *ssh, *listen;
    char **program; /* the program and its arguments; NULL is the last entry */
    bool quiet;
    uint32_t jobs; /* most jobs of Slurm at a time; 0: JOBS_USUAL */
    kl_keep_options keep;
} run_options;

typedef struct run_state {
    const run_options *options;
    kl_listening reach;
    pid_t master;
    kl_grow *
        grow; /* starts and ends workers while the farm runs; NULL: workers are only on the hosts of --host */
    int code; /* exit code of the master; valid after the master has ended */
} run_state;

/* --- the options of kilter run --- */

static kilter_status add_host(const kl_value *v) {
    static const kl_option count = {.kind = KL_OPTION_UINT32, .least = 1, .most = WORKERS_MOST};
    run_options *options = v->into;
    kl_run_host *host = &options->hosts[options->host_count];
    const char *colon = strrchr(v->text, ':');
    int length = (int)(colon ? colon - v->text : (ptrdiff_t)strlen(v->text));
    *host = (kl_run_host){.input = -1};
    if (colon && kl_option_set(&count, v->said, colon + 1, &host->workers, NULL) != KILTER_OK)
        return kl_fail(v->error, KILTER_ERR_USAGE,
                       "%s: '%s': after the colon, give the number of workers, 1 to %d", v->said, v->text,
                       WORKERS_MOST);
    if (length == 0 || *v->text == '-')
        return kl_fail(v->error, KILTER_ERR_USAGE, "%s: '%.*s' is not the name of a host", v->said, length,
                       v->text);
    if (!(host->name = kl_text("%.*s", length, v->text)))
        return kl_fail(v->error, KILTER_ERR_MEMORY, "%s: memory ran out", v->said);
    options->host_count++;
    return KILTER_OK;
}

#define AT(member) .offset = offsetof(run_options, member)

static const kl_option rows[] = {
    {"host", "HOST[:N]",
     "Start N workers on HOST (default: one for each processing unit). The option may be repeated.",
     KL_OPTION_OTHER, .read = add_host, .repeats = true, .except = "keep"},
    {"ssh", "COMMAND",
     "Reach a host with COMMAND HOST SCRIPT (default: ssh -o BatchMode=yes, which never asks for a "
     "password).",
     KL_OPTION_TEXT, AT(ssh), .repeats = true, .except = "slurm"},
    {"listen", "ADDRESS", "Address of this machine that the hosts reach (default: its name).", KL_OPTION_TEXT,
     AT(listen), .repeats = true, .except = "keep"},
    {"quiet", NULL, "Do not show a farm's line of progress.", KL_OPTION_SWITCH, AT(quiet), .except = "keep"},
    {"keep", NULL, "Keep an MPI program alive: start it again after failures, and move it to fitter hosts.",
     KL_OPTION_SWITCH, AT(keep.keep)},
    {"hosts", "FILE",
     "Hosts of a farm or a kept program, as kilter hosts reads them (default, with --keep: the Slurm "
     "allocation, else this host).",
     KL_OPTION_TEXT, AT(keep.hosts), .except = "slurm"},
    {"ranks", "N", "Number of ranks (default: one for each slot of the hosts).", KL_OPTION_UINT32,
     AT(keep.ranks), .least = 1, .most = RANKS_MOST, .needs = "keep", .except = "slurm", .letter = 'n'},
    {"least", "N", "Go on with fewer ranks, down to N, when hosts are missing (default: 1).",
     KL_OPTION_UINT32, AT(keep.least), .least = 1, .most = RANKS_MOST, .needs = "keep", .except = "slurm"},
    {"slurm", "OPTIONS",
     "Start the workers, or with --keep the program, as batch jobs of Slurm, with these options of sbatch.",
     KL_OPTION_TEXT, AT(keep.slurm)},
    {"jobs", "N", "Let a farm have at most N jobs of Slurm at a time (default: 4).", KL_OPTION_UINT32,
     AT(jobs), .least = 1, .most = KL_GROWTH_JOBS_MOST, .needs = "slurm"},
    {"folder", "FOLDER",
     "Folder of a kept run or of a farm's jobs, which all hosts share (default: PROGRAM.keep or PROGRAM.farm "
     "here).",
     KL_OPTION_TEXT, AT(keep.folder)},
    {"checkpoint", "PATH",
     "Path of the checkpoints (default: KILTER_CHECKPOINT, else checkpoint in the keep folder).",
     KL_OPTION_TEXT, AT(keep.checkpoint), .needs = "keep"},
    {"pick", "PICKER", "How to pick hosts, as in kilter hosts (default: forecast).", KL_OPTION_TEXT,
     AT(keep.pick), .words = "forecast best round-robin random best-few", .except = "slurm"},
    {"weight", "W",
     "Weight of processor and memory in a host's fitness, 0 to 1, for a picker (default: 1); the weight of "
     "the network is 1 - W.",
     KL_OPTION_NUMBER, AT(keep.weight), .most = 1, .needs = "pick", .except = "slurm"},
    {"seed", "N", "Seed of random pickers (default: 1).", KL_OPTION_UINT64, AT(keep.seed), .needs = "pick",
     .except = "slurm"},
    {"launcher", "NAME",
     "Start ranks by mpirun or srun (default: srun in an allocation, else mpirun). With own, PROGRAM is the "
     "launcher, and {ranks}, {hosts} and {hostfile} in its words are replaced.",
     KL_OPTION_TEXT, AT(keep.launcher), .words = "auto mpirun srun own", .needs = "keep", .except = "slurm"},
    {"mpirun", "COMMAND", "The mpirun of Open MPI or MPICH, with options (default: the one of the program).",
     KL_OPTION_TEXT, AT(keep.mpirun), .needs = "keep", .except = "slurm"},
    {"hang", "SECONDS",
     "End a program that makes no progress for this time, and for ten times its longest sweep (default: 10).",
     KL_OPTION_NUMBER, AT(keep.hang_s), .above = true, .needs = "keep"},
    {"tries", "N",
     "Give up a kept run after N attempts in a row that saved nothing new. For a farm, submit no more jobs "
     "after N jobs in a row that did nothing (default: 3).",
     KL_OPTION_UINT32, AT(keep.tries), .least = 1, .most = RANKS_MOST},
    {"wait", "SECONDS", "Wait at most this time for enough fit hosts (default: 600).", KL_OPTION_NUMBER,
     AT(keep.wait_s)},
    {"look", "SECONDS", "Time between two measurements of the hosts (default: 60).", KL_OPTION_NUMBER,
     AT(keep.look_s), .above = true},
    {"margin", "SECONDS",
     "Save the program, or let workers leave, this long before a time limit (default: chosen from the time "
     "that saving or a task takes).",
     KL_OPTION_NUMBER, AT(keep.margin_s), .above = true},
    {"stay", NULL, "Never move only because other hosts are faster.", KL_OPTION_SWITCH, AT(keep.fixed),
     .needs = "keep"},
};

/* Check the options of a farm. */
static int check_farm(const kl_command *command, const run_options *options) {
    const kl_keep_options *keep = &options->keep;
    if ((keep->slurm || keep->hosts) && options->host_count > 0)
        return kl_cmd_usage(command, "--%s and --host cannot be combined", keep->slurm ? "slurm" : "hosts");
    if (!keep->hosts && keep->pick)
        return kl_cmd_usage(command, "--pick has no effect without --keep or --hosts");
    if (!keep->slurm && (keep->folder || keep->margin_s > 0))
        return kl_cmd_usage(command, "--%s has no effect without --keep or --slurm",
                            keep->folder ? "folder" : "margin");
    if (!keep->slurm && !keep->hosts && options->host_count == 0)
        return kl_cmd_usage(command, "no host given: name one with --host, give a list with --hosts, let "
                                     "Slurm choose with --slurm, or keep an MPI program with --keep");
    return EXIT_SUCCESS;
}

/* Check the options of a kept run. */
static int check_keep(const kl_command *command, const run_options *options) {
    const kl_keep_options *keep = &options->keep;
    if (options->jobs > 0)
        return kl_cmd_usage(command, "--keep and --jobs cannot be combined: each attempt is one job");
    if (keep->ranks > 0 && keep->least > keep->ranks)
        return kl_cmd_usage(command, "--least %u is more than --ranks %u", keep->least, keep->ranks);
    if (keep->launcher && keep->mpirun && strcmp(keep->launcher, "mpirun") != 0)
        return kl_cmd_usage(command, "--mpirun has no effect with --launcher %s", keep->launcher);
    return EXIT_SUCCESS;
}

static int read_words(const kl_command *command, int argc, char **argv, run_options *options) {
    int first, code = kl_cmd_read(command, argc, argv, options, &first);
    if (code != EXIT_SUCCESS)
        return code;
    if (first < argc && strcmp(argv[first - 1], "--") != 0)
        return kl_cmd_usage(command, "'%s': write -- before the program", argv[first]);
    if (first >= argc)
        return kl_cmd_usage(command, "no program given: write it after --");
    options->program = options->keep.program = argv + first;
    return options->keep.keep ? check_keep(command, options) : check_farm(command, options);
}

/* --- starting --- */

static const char *ssh_of(const run_options *options) {
    return options->ssh ? options->ssh : "ssh -o BatchMode=yes";
}

/* Check that the first word of --ssh is a command. The shell's own message would not tell the user which
 * option is wrong. */
static kilter_status check_ssh(const char *ssh, kilter_error *error) {
    ssh += strspn(ssh, " \t");
    size_t bytes = strcspn(ssh, " \t");
    if (strcspn(ssh, "\"'\\$~`(") < bytes) /* only the shell can interpret a first word with such
                                            * characters */
        return KILTER_OK;
    char *word = strndup(ssh, bytes);
    char *const words[] = {"sh", "-c", "command -v \"$1\" >/dev/null 2>&1", "sh", word, NULL};
    sigset_t none;
    int status = -1;
    sigemptyset(&none);
    pid_t child = word && *word && *word != '-' ? kl_run_start(words, -1, &none) : -1;
    bool found =
        child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    free(word);
    return found
               ? KILTER_OK
               : kl_fail(error, KILTER_ERR_USAGE, "--ssh: there is no command '%.*s' here", (int)bytes, ssh);
}

static kilter_status start_master(run_state *r, const sigset_t *signals, kilter_error *error) {
    char *const *program = r->options->program;
    size_t own = kl_own_words_of(program), count = own;
    while (program[count])
        count++;
    char **words = calloc(count + 5, sizeof *words);
    if (!words)
        return kl_fail(error, KILTER_ERR_MEMORY, "starting %s: memory ran out", program[0]);
    char *const added[] = {"--listen", r->reach.listen, "--key", r->reach.key_file};
    memcpy(words, program, own * sizeof *words);
    memcpy(words + own, added, sizeof added);
    memcpy(words + own + 4, program + own, (count - own) * sizeof *words);
    r->master = kl_run_start(words, -1, signals);
    free(words);
    return r->master > 0 ? KILTER_OK
                         : kl_fail(error, KILTER_ERR_SYSTEM, "starting %s: %s", program[0], strerror(errno));
}

/* --- waiting for the end of the master and the hosts --- */

static int code_of(int status) {
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void note_host(const run_state *r, kl_run_host *host, int code) {
    host->pid = 0;
    host->failed = code != 0;
    if (code == 0 || r->master == 0)
        return;
    if (code == 255) /* exit code of ssh when the connection failed or broke */
        fprintf(stderr,
                "kilter run: %s cannot be reached, or its connection broke; the run goes on without it\n",
                host->name);
    else
        fprintf(stderr, "kilter run: workers on %s ended with code %d; the run goes on without them\n",
                host->name, code);
}

static bool all_failed(const run_options *options) {
    size_t failed = 0;
    for (size_t i = 0; i < options->host_count; i++)
        failed += options->hosts[i].failed;
    return failed == options->host_count;
}

static bool any_left(const run_options *options) {
    for (size_t i = 0; i < options->host_count; i++)
        if (options->hosts[i].pid > 0)
            return true;
    return false;
}

/* Find out whether the master has ended, and which connections to the hosts of --host have ended. Do not wait
 * for other child processes: the code that started them waits for them. */
static void reap(run_state *r) {
    const run_options *options = r->options;
    int status;
    if (r->master > 0 && waitpid(r->master, &status, WNOHANG) == r->master) {
        r->master = 0;
        r->code = code_of(status);
    }
    for (size_t i = 0; i < options->host_count; i++) {
        kl_run_host *host = &options->hosts[i];
        if (host->pid > 0 && waitpid(host->pid, &status, WNOHANG) == host->pid)
            note_host(r, host, code_of(status));
    }
}

/* Return whether the master has no workers and will get none. */
static bool is_alone(run_state *r) {
    return r->grow ? !kl_grow_look(r->grow) : all_failed(r->options);
}

static void wait_for_master(run_state *r, const sigset_t *awaited) {
    const struct timespec tick = kl_timespec(GROW_TICK_S);
    bool gave_up = false;
    while (r->master > 0) {
        siginfo_t info;
        int signal = r->grow ? sigtimedwait(awaited, &info, &tick) : sigwaitinfo(awaited, &info);
        /* a signal from the terminal reaches the master directly */
        bool from_terminal = signal == SIGINT && info.si_code == SI_KERNEL;
        if (signal != SIGCHLD && signal > 0 && !from_terminal)
            kill(r->master, signal);
        reap(r);
        if (r->master > 0 && !gave_up && is_alone(r)) {
            /* End the master if no host is left. Otherwise the master would wait for workers for ever. */
            fprintf(stderr, "kilter run: no %s is left; the run is ended\n",
                    r->options->keep.slurm ? "job" : "host");
            kill(r->master, SIGTERM);
            gave_up = true;
        }
    }
}

/* Close the inputs of the hosts' shells. A shell whose input is closed ends the workers that the master has
 * not ended. */
static void end_hosts(run_state *r, const sigset_t *awaited) {
    const run_options *options = r->options;
    double until_s = kl_monotonic_s() + END_PATIENCE_S;
    for (size_t i = 0; i < options->host_count; i++)
        if (options->hosts[i].input >= 0)
            close(options->hosts[i].input);
    for (double rest_s; any_left(options) && (rest_s = until_s - kl_monotonic_s()) > 0; reap(r)) {
        struct timespec rest = kl_timespec(rest_s);
        sigtimedwait(awaited, NULL, &rest);
    }
    for (size_t i = 0; i < options->host_count; i++)
        if (options->hosts[i].pid > 0) {
            kill(options->hosts[i].pid, SIGKILL);
            waitpid(options->hosts[i].pid, NULL, 0);
        }
}

static kl_run_how how_of(const run_state *r, const sigset_t *signals) {
    return (kl_run_how){.program = r->options->program,
                        .join = r->reach.join,
                        .ssh = ssh_of(r->options),
                        .key = &r->reach.key,
                        .signals = signals};
}

static kilter_status run_all(run_state *r, const sigset_t *awaited, const sigset_t *before,
                             kilter_error *error) {
    const kl_run_how how = how_of(r, before);
    kilter_status status = start_master(r, before, error);
    if (status != KILTER_OK)
        return status;
    for (size_t i = 0; i < r->options->host_count && status == KILTER_OK; i++)
        status = kl_run_start_host(&how, &r->options->hosts[i], error);
    if (status != KILTER_OK)
        kill(r->master, SIGTERM);
    wait_for_master(r, awaited);
    end_hosts(r, awaited);
    return status;
}

/* Run the master of a farm whose workers come and go, until the master ends. The variable KILTER_RUN tells
 * the master the name of its control socket. Remove the variable after the master's start, so that Slurm's
 * jobs do not inherit it. */
static kilter_status run_and_grow(run_state *r, const sigset_t *awaited, const sigset_t *before,
                                  kilter_error *error) {
    const kl_keep_options *keep = &r->options->keep;
    char *control = kl_control_new_name();
    const kl_grow_options how = {.slurm = keep->slurm,
                                 .folder = keep->folder,
                                 .growth = {.jobs = r->options->jobs > 0 ? r->options->jobs
                                                    : keep->slurm        ? JOBS_USUAL
                                                                         : KL_GROWTH_JOBS_MOST,
                                            .tries = keep->tries,
                                            .margin_s = keep->margin_s,
                                            .hosts = !keep->slurm},
                                 .program = r->options->program,
                                 .join = r->reach.join,
                                 .control = control,
                                 .key = &r->reach.key,
                                 .hosts = keep->hosts,
                                 .pick = keep->pick,
                                 .weight = keep->weight,
                                 .look_s = keep->look_s,
                                 .wait_s = keep->wait_s,
                                 .seed = keep->seed,
                                 .how = {how_of(r, before), r->options->ssh}};
    kilter_status status = control ? kl_grow_open(&how, &r->grow, error)
                                   : kl_fail(error, KILTER_ERR_MEMORY, "starting a farm: memory ran out");
    if (status == KILTER_OK) {
        setenv("KILTER_RUN", control, 1);
        status = start_master(r, before, error);
        unsetenv("KILTER_RUN");
    }
    if (status == KILTER_OK)
        wait_for_master(r, awaited);
    kl_grow_close(r->grow, status == KILTER_OK && r->code == EXIT_SUCCESS);
    free(control);
    return status;
}

static int run_with(const run_options *options) {
    run_state r = {.options = options};
    sigset_t awaited, before;
    kilter_error error;
    const int signals[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP};
    sigemptyset(&awaited);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaddset(&awaited, signals[i]);
    sigprocmask(SIG_BLOCK, &awaited, &before);
    signal(SIGPIPE, SIG_IGN);
    if (!options->quiet)
        setenv("KILTER_PROGRESS", "1", 0);
    setenv("KILTER_RUN", "1", 1); /* with this variable, the master does not print how to start workers */
    const char *slurm = options->keep.slurm;
    kilter_status status = slurm ? KILTER_OK : check_ssh(ssh_of(options), &error);
    if (status == KILTER_OK)
        status = kl_listening_open(options->listen, &r.reach, &error);
    if (status == KILTER_OK)
        status = slurm || options->keep.hosts ? run_and_grow(&r, &awaited, &before, &error)
                                              : run_all(&r, &awaited, &before, &error);
    kl_listening_close(&r.reach);
    return status == KILTER_OK ? r.code : kilter_exit("kilter run", &error);
}

static int run_kept(run_options *options) {
    options->keep.ssh = options->ssh;
    return kl_keep_run(&options->keep);
}

static int run(const kl_command *command, int argc, char **argv) {
    run_options options = {
        .hosts = calloc((size_t)argc, sizeof *options.hosts),
        .keep = {.least = 1, .tries = 3, .hang_s = 10, .wait_s = 600, .look_s = 60, .weight = 1, .seed = 1}};
    if (!options.hosts)
        return kl_cmd_usage(command, "memory ran out");
    int code = read_words(command, argc, argv, &options);
    if (code == EXIT_SUCCESS && options.keep.keep)
        code = run_kept(&options);
    else if (code == EXIT_SUCCESS)
        code = run_with(&options);
    for (size_t i = 0; i < options.host_count; i++)
        free(options.hosts[i].name);
    free(options.hosts);
    return code;
}

const kl_command kl_cmd_run = {
    .name = "run",
    .summary = "Start a farm on other hosts, or keep an MPI program alive.",
    .text = "usage: kilter run --host HOST[:N]… [OPTION]… -- PROGRAM…\n"
            "       kilter run --hosts FILE [OPTION]… -- PROGRAM…\n"
            "       kilter run --slurm OPTIONS [OPTION]… -- PROGRAM…\n"
            "       kilter run --keep [OPTION]… -- PROGRAM…\n\n"
            "Starts a farm. PROGRAM here is its master. On each HOST it starts N workers, through\n"
            "ssh. The program must be there under the same name. Messages are encrypted with a\n"
            "key made for this run, which the workers get on their standard input. The command\n"
            "ends with the exit code of the master, and the workers end with it. A host that cannot\n"
            "be reached is named, and the run continues.\n"
            "\n"
            "With --hosts and without --keep: workers are on the fittest hosts of a list, as many hosts\n"
            "as speed the farm up. The hosts are measured each --look seconds, and FILE is read again\n"
            "when it changes. Workers leave a host whose fitness is below 0.25, and start on hosts\n"
            "whose fitness is at least 0.5, the fastest first, or by --pick.\n"
            "\n"
            "With --slurm and without --keep: workers are jobs of Slurm. Jobs are submitted while\n"
            "tasks are left for them and a job would begin before the end. Idle jobs are released.\n"
            "Nodes where workers fail twice in a row, and drained hosts, get no more workers.\n"
            "Ctrl-C cancels all jobs.\n"
            "\n"
            "With --keep: starts PROGRAM, whose loops write checkpoints, on the fittest hosts with\n"
            "mpirun or srun, or as jobs of Slurm. After a failure or a hang it starts again from the\n"
            "newest checkpoint, on hosts that are fit. It moves when the run would end sooner\n"
            "elsewhere, when a host is drained, and before a time limit. Reach it by its keep\n"
            "folder, with kilter move and kilter drain. Ctrl-C saves and stops it. To continue, run\n"
            "the same command again; this also works after the command itself was killed.\n",
    .options = KL_OPTIONS(rows),
    .in_order = true,
    .run = run,
};
