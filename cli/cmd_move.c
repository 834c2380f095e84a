/* kilter move: move a program that runs under kilter run --keep to other hosts. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "keep.h"

typedef struct move_options {
    const char *to;
    bool json;
} move_options;

static kilter_status check_hosts(const kl_value *v) {
    if (strlen(v->text) >= KL_KEEPER_TEXT_BYTES || strspn(v->text, ", ") == strlen(v->text))
        return kl_option_refuse(v, "not a list of hosts");
    return KILTER_OK;
}

#define AT(member) .offset = offsetof(move_options, member)

static const kl_option rows[] = {
    {"to", "HOSTS", "Move to these hosts, with commas between them (default: the fittest ones).",
     KL_OPTION_TEXT, AT(to), .read = check_hosts},
    {"json", NULL, "Print the answer as a JSON object on one line.", KL_OPTION_SWITCH, AT(json)},
};

static int run(const kl_command *command, int argc, char **argv) {
    move_options options = {.json = false};
    const char *folder = NULL;
    int first, code = kl_cmd_read(command, argc, argv, &options, &first);
    if (code == EXIT_SUCCESS)
        code = kl_cmd_one_file(command, argc, argv, first, NULL, &folder);
    if (code == EXIT_SUCCESS && !folder)
        code = kl_cmd_usage(command, "no folder given: name the keep folder of a kept run");
    return code == EXIT_SUCCESS
               ? kl_keep_order_give("kilter move", folder, KL_KEEPER_MOVE, options.to, options.json)
               : code;
}

const kl_command kl_cmd_move = {
    .name = "move",
    .summary = "Move a kept run to other hosts.",
    .text = "usage: kilter move [--json] [--to HOSTS] FOLDER\n\n"
            "Asks the keeper of a run to save the program and to continue elsewhere. FOLDER is the\n"
            "run's keep folder. The hosts are those named, which must be in the keeper's list, or\n"
            "the fittest ones. The command prints the keeper's answer. Later the keeper may move\n"
            "the run again; kilter drain keeps it off a host.\n",
    .options = KL_OPTIONS(rows),
    .takes_files = true,
    .run = run,
};
