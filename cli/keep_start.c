/* Attempts that are processes of this host: a guard process starts mpirun, srun, or the user's own
 * launcher. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keep.h"
#include "programs.h"

extern char **environ;

static const double LOCK_LOOK_S = 0.2;   /* seconds between two checks of the guard's lock */
static const double GONE_PATIENCE_S = 3; /* seconds that the processes of an attempt get to end after their
                                          * guard was killed */

/* --- choosing the launcher --- */

static const char *title(kl_launcher kind) {
    return kind == KL_LAUNCH_OPENMPI ? "Open MPI" : "MPICH";
}

/* Find an mpirun of the program's MPI, or any mpirun if the program's MPI is not known. */
static kilter_status find_mpirun(kl_keep_start *s, kl_launcher needed, kilter_error *error) {
    static const char *const COMMANDS[] = {"mpirun", "mpirun.openmpi", "mpirun.mpich", "mpiexec",
                                           "mpiexec.mpich"};
    for (size_t i = 0; i < sizeof COMMANDS / sizeof *COMMANDS; i++) {
        char *file = kl_find_program(COMMANDS[i]);
        kl_launcher kind = file ? kl_launcher_of_command(COMMANDS[i]) : KL_LAUNCH_OWN;
        free(file);
        if (kind == KL_LAUNCH_OWN || (needed != KL_LAUNCH_OWN && kind != needed))
            continue;
        s->launcher = kind;
        s->command = COMMANDS[i];
        return KILTER_OK;
    }
    return needed == KL_LAUNCH_OWN
               ? kl_fail(error, KILTER_ERR_USAGE,
                         "there is no mpirun of Open MPI or MPICH here; name one with --mpirun")
               : kl_fail(error, KILTER_ERR_USAGE,
                         "'%s' needs %s, and there is no mpirun of it here; name one with --mpirun",
                         s->options->program[0], title(needed));
}

static kilter_status take_mpirun(kl_keep_start *s, kl_launcher needed, kilter_error *error) {
    if (!s->options->mpirun)
        return find_mpirun(s, needed, error);
    s->command = s->options->mpirun;
    s->launcher = kl_launcher_of_command(s->command);
    if (s->launcher == KL_LAUNCH_OWN)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "--mpirun: '%s --version' names neither Open MPI nor MPICH; use --launcher own",
                       s->command);
    if (needed != KL_LAUNCH_OWN && needed != s->launcher)
        return kl_fail(error, KILTER_ERR_USAGE, "--mpirun: '%s' belongs to %s, but '%s' needs %s", s->command,
                       title(s->launcher), s->options->program[0], title(needed));
    return KILTER_OK;
}

/* Choose srun as the launcher. Slurm starts Open MPI's ranks with PMIx, and MPICH's with PMI-2. */
static void take_srun(kl_keep_start *s, kl_launcher needed) {
    s->launcher = KL_LAUNCH_SRUN;
    if (!getenv("SLURM_MPI_TYPE"))
        s->mpi = needed == KL_LAUNCH_OPENMPI ? "pmix" : needed == KL_LAUNCH_MPICH ? "pmi2" : NULL;
}

/* Check that the program exists, unless it runs on other hosts, which may have other files. */
static kilter_status check_program(const kl_keep_start *s, bool in_slurm, kilter_error *error) {
    const char *program = s->options->program[0];
    if (in_slurm || s->options->hosts)
        return KILTER_OK;
    char *file = kl_find_program(program);
    if (!file)
        return kl_fail(error, KILTER_ERR_USAGE, "there is no program '%s'", program);
    free(file);
    return KILTER_OK;
}

kilter_status kl_keep_start_open(kl_keep_start *s, bool in_slurm, kilter_error *error) {
    kilter_status status = check_program(s, in_slurm, error);
    if (status != KILTER_OK)
        return status;
    const char *wanted = s->options->launcher ? s->options->launcher : "auto";
    kl_launcher needed = kl_launcher_of_file(s->options->program[0]);
    if (strcmp(wanted, "own") == 0)
        s->launcher = KL_LAUNCH_OWN;
    else if (strcmp(wanted, "srun") == 0 || (in_slurm && strcmp(wanted, "auto") == 0 && !s->options->mpirun))
        take_srun(s, needed);
    else
        return take_mpirun(s, needed, error);
    return KILTER_OK;
}

/* --- environment and command line of an attempt --- */

static bool add_variable(char **list, size_t *count, char *text) {
    if (text)
        list[(*count)++] = text;
    return text;
}

char **kl_keep_start_variables(const kl_keep_start *s, uint64_t attempt) {
    char **list = calloc(6, sizeof *list);
    size_t count = 0;
    bool good = list && add_variable(list, &count, kl_text("KILTER_KEEP=%s", s->folder)) &&
                add_variable(list, &count, kl_text("KILTER_CHECKPOINT=%s", s->checkpoint)) &&
                add_variable(list, &count, kl_text("KILTER_KEEP_ATTEMPT=%llu", kl_ull(attempt)));
    if (good && s->launcher == KL_LAUNCH_SRUN && !s->options->slurm)
        good = add_variable(list, &count, kl_text("SLURM_HOSTFILE=%s/hosts", s->folder));
    if (good)
        return list;
    kl_launch_words_free(list);
    return NULL;
}

/* List the names of all variables of Kilter for mpirun: Open MPI passes only named variables to other
 * hosts. */
static char **variable_names(char *const *added) {
    size_t count = 0, most = 8;
    while (environ[count])
        count++;
    char **names = calloc(count + most, sizeof *names);
    size_t filled = 0;
    for (size_t i = 0; names && added[i]; i++)
        names[filled++] = kl_text("%.*s", (int)strcspn(added[i], "="), added[i]);
    for (size_t i = 0; names && environ[i]; i++) {
        bool ours = strncmp(environ[i], "KILTER_", 7) == 0, again = false;
        size_t bytes = strcspn(environ[i], "=");
        for (size_t j = 0; ours && added[j]; j++)
            again |= strncmp(environ[i], added[j], bytes + 1) == 0;
        if (ours && !again)
            names[filled++] = kl_text("%.*s", (int)bytes, environ[i]);
    }
    return names;
}

char **kl_keep_start_words(const kl_keep_start *s, const kl_keeper *k, kilter_error *error) {
    char **added = kl_keep_start_variables(s, k->tally.attempt),
         **names = added ? variable_names(added) : NULL;
    char *hostfile = kl_keep_file(s->folder, "hosts"), **words = NULL;
    uint32_t ranks = 0;
    for (uint64_t i = 0; i < k->count; i++)
        ranks += k->hosts[i].ranks;
    const kl_launch launch = {.kind = s->launcher,
                              .command = s->command,
                              .mpi = s->mpi,
                              .program = s->options->program,
                              .variables = names,
                              .hostfile = hostfile,
                              .hosts = k->hosts,
                              .count = k->count,
                              .ranks = s->options->slurm ? 0 : ranks};
    kl_buffer text = {0};
    kl_launch_hostfile(&launch, &text);
    kl_fail(error, KILTER_ERR_MEMORY, "starting attempt %llu: memory ran out", kl_ull(k->tally.attempt));
    if (names && hostfile && kl_keep_write(s->folder, "hosts", &text, error) == KILTER_OK)
        words = kl_launch_words(&launch);
    kl_buffer_free(&text);
    free(hostfile);
    kl_launch_words_free(names);
    kl_launch_words_free(added);
    return words;
}

/* --- starting and following an attempt --- */

kilter_status kl_keep_start_begin(kl_keep_start *s, const kl_keeper *k, kilter_error *error) {
    char **words = kl_keep_start_words(s, k, error);
    char **variables = kl_keep_start_variables(s, k->tally.attempt);
    char *lock = kl_keep_file(s->folder, "running"), *ended = kl_keep_file(s->folder, "ended");
    kilter_status status = words ? KILTER_OK : error->status;
    if (words && !(variables && lock && ended))
        status = kl_fail(error, KILTER_ERR_MEMORY, "starting attempt %llu: memory ran out",
                         kl_ull(k->tally.attempt));
    const kl_guard_job job = {
        .words = words, .variables = variables, .lock = lock, .ended = ended, .attempt = k->tally.attempt};
    if (status == KILTER_OK)
        status = kl_guard_start(&job, &s->guard, error);
    s->gone_s = 0;
    kl_launch_words_free(words);
    kl_launch_words_free(variables);
    free(lock);
    free(ended);
    return status;
}

bool kl_keep_start_alive(const kl_keep_start *s) {
    char *lock = kl_keep_file(s->folder, "running");
    bool alive = lock && kl_lock_is_held(lock);
    free(lock);
    return alive;
}

/* If this keeper started the guard, signal the guard's process directly, because the keep folder may have
 * been removed. */
void kl_keep_start_kill(const kl_keep_start *s) {
    char *lock = s->guard > 0 ? NULL : kl_keep_file(s->folder, "running");
    if (s->guard > 0)
        kill(s->guard, SIGTERM);
    else if (lock)
        kl_guard_end(lock);
    free(lock);
}

bool kl_keep_start_ended(kl_keep_start *s, uint64_t attempt, kl_keeper_end *end) {
    double now_s = kl_monotonic_s();
    pid_t ended = s->guard > 0 ? waitpid(s->guard, NULL, WNOHANG) : 0;
    if (ended > 0)
        s->guard = 0;
    if (s->guard > 0 || (ended == 0 && now_s - s->looked_s < LOCK_LOOK_S))
        return false;
    s->looked_s = now_s;
    if (kl_keep_start_alive(s)) {
        s->gone_s = 0;
        return false;
    }
    if (kl_keep_read_end(s->folder, attempt, end))
        return true;
    s->gone_s = s->gone_s > 0 ? s->gone_s : now_s;
    *end = (kl_keeper_end){.attempt = attempt, .how = KL_KEEPER_LOST};
    return now_s - s->gone_s > GONE_PATIENCE_S;
}
