/* Start the program that kilter watch watches. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "programs.h"
#include "sys/sys.h"
#include "watch.h"

/* --- which MPI --- */

static bool is_launcher(const char *word) {
    static const char *const NAMES[] = {"mpirun", "mpiexec", "orterun", "prterun"};
    const char *slash = strrchr(word, '/'), *name = slash ? slash + 1 : word;
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (strncmp(name, NAMES[i], strlen(NAMES[i])) == 0)
            return true;
    return false;
}

/* Find the MPI of the launcher, or else of the first word that is a program whose MPI is known. */
static kl_launcher mpi_of(char *const *words) {
    kl_launcher found = is_launcher(words[0]) ? kl_launcher_of_command(words[0]) : KL_LAUNCH_OWN;
    for (size_t i = 0; words[i] && found == KL_LAUNCH_OWN; i++)
        if (words[i][0] != '-')
            found = kl_launcher_of_file(words[i]);
    return found;
}

static kilter_status refuse_program(const char *word, kilter_error *error) {
    char *file = kl_find_program(word);
    kilter_status status =
        file ? kl_fail(error, KILTER_ERR_USAGE,
                       "the MPI of '%s' is not known; name the MPI with --mpi openmpi or --mpi mpich", word)
             : kl_fail(error, KILTER_ERR_USAGE, "there is no program '%s'", word);
    free(file);
    return status;
}

static kilter_status choose_mpi(kl_watched_program *p, kilter_error *error) {
    const char *told = p->options->mpi ? p->options->mpi : getenv("KILTER_MPI");
    kl_launcher found = told && *told ? KL_LAUNCH_OWN : mpi_of(p->options->words);
    p->mpi = told && *told                ? told
             : found == KL_LAUNCH_OPENMPI ? "openmpi"
             : found == KL_LAUNCH_MPICH   ? "mpich"
                                          : NULL;
    if (!p->mpi)
        return refuse_program(p->options->words[0], error);
    char name[64];
    snprintf(name, sizeof name, "libkilter-watch-%s.so", p->mpi);
    p->library = kl_libexec_file(name);
    return p->library ? KILTER_OK
                      : kl_fail(error, KILTER_ERR_USAGE,
                                "%s is not found; install Kilter with the MPI '%s', or build it with "
                                "-DKILTER_MPI=%s",
                                name, p->mpi, p->mpi);
}

/* --- the folder for the ranks' files --- */

static kilter_status make_folder(kl_watched_program *p, kilter_error *error) {
    if (!p->options->folder)
        return kl_private_dir(&p->folder, error);
    p->folder = kl_text("%s/kilter-watch-XXXXXX", p->options->folder);
    if (!p->folder || !mkdtemp(p->folder)) {
        free(p->folder);
        p->folder = NULL;
        return kl_fail(error, KILTER_ERR_USAGE, "--folder: no folder can be made in '%s': %s",
                       p->options->folder, strerror(errno));
    }
    char *whole = realpath(p->folder, NULL); /* make the path absolute, because ranks may work in other
                                              * folders */
    if (whole) {
        free(p->folder);
        p->folder = whole;
    }
    return KILTER_OK;
}

kilter_status kl_watch_prepare(kl_watched_program *p, kilter_error *error) {
    kilter_status status = choose_mpi(p, error);
    return status == KILTER_OK ? make_folder(p, error) : status;
}

/* --- running the program --- */

/* Return the words of the command line, malloc'd. Open MPI's launcher also gets the names of the variables
 * that be_program() sets, because it passes only named variables to other hosts. NULL: memory ran out */
static char **words_of(const kl_watched_program *p) {
    static char *const NAMES[] = {"-x", "LD_PRELOAD", "-x", "KILTER_WATCH_FOLDER"};
    char *const *words = p->options->words;
    size_t count = 0, added = sizeof NAMES / sizeof *NAMES;
    while (words[count])
        count++;
    char **all = count > 0 ? calloc(count + added + 1, sizeof *all) : NULL;
    if (!all)
        return NULL;
    bool hand = is_launcher(words[0]) && strcmp(p->mpi, "openmpi") == 0;
    all[0] = words[0];
    if (hand)
        memcpy(all + 1, NAMES, sizeof NAMES);
    memcpy(all + 1 + (hand ? added : 0), words + 1, (count - 1) * sizeof *all);
    return all;
}

/* In the child process, set the environment of the program and run it. */
static void be_program(const kl_watched_program *p, char *const *words, pid_t parent,
                       const sigset_t *signals) {
    kl_end_with_parent(parent, SIGTERM);
    const char *before = getenv("LD_PRELOAD");
    char *preload = before && *before ? kl_text("%s:%s", p->library, before) : kl_text("%s", p->library);
    if (preload)
        setenv("LD_PRELOAD", preload, 1);
    setenv("KILTER_WATCH_FOLDER", p->folder, 1);
    sigprocmask(SIG_SETMASK, signals, NULL);
    execvp(words[0], words);
    fprintf(stderr, "kilter watch: starting '%s': %s\n", words[0], strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
}

/* Wait for the end of the program. Pass on signals that a user sends to this process. Do not pass on signals
 * of the terminal, because the terminal sends them to both processes. */
static int await(pid_t child, const sigset_t *signals) {
    int status = 0;
    siginfo_t info;
    while (waitpid(child, &status, WNOHANG) == 0)
        if (sigwaitinfo(signals, &info) > 0 && info.si_signo != SIGCHLD && info.si_code <= 0)
            kill(child, info.si_signo);
    return status;
}

kilter_status kl_watch_run(kl_watched_program *p, kilter_error *error) {
    sigset_t mine, before;
    sigemptyset(&mine);
    sigaddset(&mine, SIGINT);
    sigaddset(&mine, SIGTERM);
    sigaddset(&mine, SIGHUP);
    sigaddset(&mine, SIGCHLD);
    char **words = words_of(p);
    if (!words)
        return kl_fail(error, KILTER_ERR_MEMORY, "starting '%s': memory ran out", p->options->words[0]);
    sigprocmask(SIG_BLOCK, &mine, &before);
    p->began_s = kl_monotonic_s();
    p->began_unix_s = kl_unix_time_s();
    pid_t parent = getpid(), child = fork();
    if (child == 0)
        be_program(p, words, parent, &before);
    int why = errno, status = child > 0 ? await(child, &mine) : 0;
    sigprocmask(SIG_SETMASK, &before, NULL);
    signal(SIGPIPE,
           SIG_IGN); /* if nobody reads the page any more, the exit code must still be the program's */
    free(words);
    if (child < 0)
        return kl_fail(error, KILTER_ERR_SYSTEM, "starting '%s': %s", p->options->words[0], strerror(why));
    p->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (p->code != 0)
        kl_describe_end(status, p->how, sizeof p->how);
    return KILTER_OK;
}
