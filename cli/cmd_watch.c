/* kilter watch: find where the ranks of an MPI program wait, without changing the program. */
#include <stdio.h>
#include <stdlib.h>

#include "cmd.h"
#include "watch.h"

#define AT(member) .offset = offsetof(kl_watch_options, member)

static const kl_option rows[] = {
    {"record", "FILE",
     "Write the run record to FILE; none writes no record (default: a new file in the folder of records, see "
     "kilter list).",
     KL_OPTION_TEXT, AT(record)},
    {"mpi", "NAME",
     "The program's MPI (default: KILTER_MPI, else that of the launcher, else of the program).",
     KL_OPTION_TEXT, AT(mpi), .words = "openmpi mpich"},
    {"folder", "FOLDER",
     "A folder that all hosts of the program share; the ranks keep their files there (default: one of this "
     "host).",
     KL_OPTION_TEXT, AT(folder)},
};

static int run(const kl_command *command, int argc, char **argv) {
    kl_watch_options options = {.record = NULL};
    kilter_error error;
    int first, code = kl_cmd_read(command, argc, argv, &options, &first);
    if (code != EXIT_SUCCESS)
        return code;
    if (first >= argc)
        return kl_cmd_usage(command, "no program given: write its command line after the options");
    options.words = argv + first;
    kl_watched_program p = {.options = &options};
    kilter_status status = kl_watch_prepare(&p, &error);
    if (status == KILTER_OK)
        status = kl_watch_run(&p, &error);
    bool ran = status == KILTER_OK;
    if (ran)
        status = kl_watch_gather(&p, &error);
    kl_watch_clean(&p);
    if (status != KILTER_OK)
        code = kilter_exit("kilter watch", &error);
    return ran ? p.code : code; /* return the program's own exit code, because scripts may need it */
}

const kl_command kl_cmd_watch = {
    .name = "watch",
    .summary = "Find where the ranks of an MPI program wait, and what even shares would gain.",
    .text = "usage: kilter watch [OPTION]… mpirun -n 8 PROGRAM [ARGUMENT]…\n\n"
            "Runs an MPI program, which needs no change, and prints on stderr where its ranks\n"
            "wait. The page has POP's efficiencies, the iteration, and imbalance that stays or\n"
            "comes and goes. It says what even shares would gain, and which way of Kilter fits.\n"
            "The exit code is that of the program.\n",
    .options = KL_OPTIONS(rows),
    .takes_files = true,
    .in_order = true,
    .run = run,
};
