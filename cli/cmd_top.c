/* kilter top: show the farms, loops and maps that are running now. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cmd.h"
#include "top.h"

typedef struct request {
    double interval_s;
    uint32_t port; /* port of the page; 0: show the runs on the terminal */
} request;

#define AT(member) .offset = offsetof(request, member)

static const kl_option rows[] = {
    {"interval-s", "SECONDS", "Time between two updates (default: 1).", KL_OPTION_NUMBER, AT(interval_s),
     .least = 0.05, .most = 3600},
    {"serve", "PORT",
     "Show nothing here, and serve a page about the run at http://127.0.0.1:PORT/ instead, with metrics for "
     "Prometheus at /metrics, until Ctrl-C.",
     KL_OPTION_UINT32, AT(port), .least = 1, .most = 65535},
};

static int run(const kl_command *command, int argc, char **argv) {
    request r = {.interval_s = 1};
    const char *file = NULL;
    int first, code = kl_cmd_read(command, argc, argv, &r, &first);
    if (code == EXIT_SUCCESS)
        code = kl_cmd_one_file(command, argc, argv, first, NULL, &file);
    if (code != EXIT_SUCCESS)
        return code;
    if (r.port > 0)
        return kl_top_serve(file, r.port, r.interval_s);
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return kl_cmd_usage(command,
                            "kilter top needs a terminal; kilter tune --once prints the state of a farm");
    return kl_top_show(file, r.interval_s);
}

const kl_command kl_cmd_top = {
    .name = "top",
    .summary = "Show what runs now; drain workers, set policies, end runs.",
    .text = "usage: kilter top [--interval-s SECONDS] [FILE]\n"
            "       kilter top --serve PORT [FILE]\n\n"
            "\n"
            "Shows the farms, loops and maps that run on this machine, or the one whose record is\n"
            "FILE: progress, workers, speeds, late tasks, decisions. It looks for records of this user\n"
            "in $KILTER_RECORD_DIR, else $XDG_STATE_HOME/kilter, else ~/.local/state/kilter.\n"
            "\n"
            "Keys: up and down choose a worker, Tab the next run; d lets the worker finish its task and\n"
            "leave, p sets the policy, e ends the run in order; q quits.\n",
    .options = KL_OPTIONS(rows),
    .takes_files = true,
    .run = run,
};
