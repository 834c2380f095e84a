/* kilter map: run a command for each of many values, on the cores of this host or of other hosts. */
#include <ctype.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "map.h"
#include "sys/sys.h"

/* --- option values that are more than a number or a word --- */

/* Return the seconds of a unit of time, as GNU parallel writes it; 0: there is no such unit. */
static double unit_s(const char *unit) {
    if (*unit == '\0' || strcmp(unit, "s") == 0)
        return 1;
    return strcmp(unit, "m") == 0 ? 60 : strcmp(unit, "h") == 0 ? 3600 : strcmp(unit, "d") == 0 ? 86400 : 0;
}

/* Read the time limit of a command: "30" (seconds), "5m", "10x" or "300%" (multiples of the commands' median
 * time so far). */
static kilter_status read_timeout(const kl_value *v) {
    kl_map_setup *setup = &((kl_map_request *)v->into)->setup;
    char *end;
    double value = strtod(v->text, &end);
    bool times = strcmp(end, "x") == 0, percent = strcmp(end, "%") == 0;
    double unit = unit_s(end);
    if (!isdigit((unsigned char)*v->text) || !(unit > 0 || times || percent) || !(value > 0 && value <= 1e9))
        return kl_option_refuse(v, "neither a time such as 60 (seconds), 5m or 2h, nor a multiple of the "
                                   "usual time such as 10x or 300%");
    setup->timeout_s = value * unit;
    setup->timeout_times = times ? value : percent ? value / 100 : 0;
    return KILTER_OK;
}

static kilter_status read_halt(const kl_value *v) {
    return kl_map_read_halt(v->text, &((kl_map_request *)v->into)->halt)
               ? KILTER_OK
               : kl_option_refuse(v, "neither never nor WHEN,WHY=N, as in now,fail=1 or soon,success=30%");
}

/* Read the value of --jobs, a number of slots. The forms +N and −N are relative to the number of cores, and
 * N% is a part of the cores. The value 0 stands for as many slots as possible. */
static kilter_status read_jobs(const kl_value *v) {
    bool relative = *v->text == '+' || *v->text == '-';
    char *end;
    double value = strtod(v->text + relative, &end), cores = kl_core_count();
    bool percent = strcmp(end, "%") == 0;
    if (!isdigit((unsigned char)v->text[relative]) || !(percent || *end == '\0') || !(value <= 1e6))
        return kl_option_refuse(v, "not a number of slots such as 4, +1, -1 or 50%");
    double amount = percent ? value / 100 * cores : value;
    double slots = *v->text == '+' ? cores + amount : *v->text == '-' ? cores - amount : amount;
    bool all = !relative && !percent && value == 0;
    slots = all || slots > KL_MAP_SLOTS_MOST ? KL_MAP_SLOTS_MOST : slots < 1 ? 1 : slots;
    ((kl_map_request *)v->into)->slots = (uint32_t)slots;
    ((kl_map_request *)v->into)->jobs = v->text;
    return KILTER_OK;
}

static kilter_status read_size(const kl_value *v, uint64_t *bytes) {
    return kl_map_read_size(v->text, bytes)
               ? KILTER_OK
               : kl_option_refuse(v, "not a number of bytes such as 1000000, 500M or 2G");
}

static kilter_status read_memory(const kl_value *v) {
    return read_size(v, &((kl_map_request *)v->into)->needs.memory);
}

static kilter_status read_limit(const kl_value *v) {
    return read_size(v, &((kl_map_request *)v->into)->needs.output_most);
}

static kilter_status read_named(const kl_value *v, bool use) {
    return kl_map_needs_read(v->text, use, &((kl_map_request *)v->into)->needs)
               ? KILTER_OK
               : kl_option_refuse(
                     v, "not NAME=N as in gpu=2; a name has letters, digits and _, and there may be "
                        "eight of them");
}

static kilter_status read_resource(const kl_value *v) {
    return read_named(v, false);
}

static kilter_status read_use(const kl_value *v) {
    return read_named(v, true);
}

/* --- the table of options --- */

#define AT(member) .offset = offsetof(kl_map_request, member)

static const kl_option rows[] = {
    {"jobs", "N",
     "Number of slots, which is the number of commands that run at once (default: one for each core). +N and "
     "-N: N more or fewer than the cores; N%: this part of the cores; 0: as many as possible.",
     KL_OPTION_OTHER, .read = read_jobs, .letter = 'j'},
    {"arg-file", "FILE", "Read the values from FILE, one a line; - is the standard input.", KL_OPTION_TEXT,
     AT(file), .letter = 'a'},
    {"null", NULL,
     "In files and on the standard input, values are separated by zero bytes instead of ends of lines.",
     KL_OPTION_SWITCH, AT(null), .letter = '0'},
    {"colsep", "REGEX",
     "Cut each value into columns, {1}, {2} and so on, wherever this extended regular expression matches. "
     "\\t is a tab, \\s a space or a tab, \\d a digit.",
     KL_OPTION_TEXT, AT(columns), .letter = 'C'},
    {"quote", NULL, "Take the words of COMMAND as they are: the shell does not interpret them.",
     KL_OPTION_SWITCH, AT(quoted), .letter = 'q'},
    {"keep-order", NULL, "Print outputs in the order of the values, not as the commands end.",
     KL_OPTION_SWITCH, AT(keep), .letter = 'k'},
    {"tag", NULL, "Begin each line of output with the value and a tab.", KL_OPTION_SWITCH, AT(tag)},
    {"results", "FOLDER",
     "Store outputs in FOLDER, as FOLDER/1/VALUE/stdout and stderr, and do not print them.", KL_OPTION_TEXT,
     AT(results)},
    {"joblog", "FILE", "Write a line to FILE for each command that has ended: its times and exit code.",
     KL_OPTION_TEXT, AT(joblog), .is_file = true},
    {"retries", "N", "Start a command up to N times if it fails; only the last output is printed.",
     KL_OPTION_UINT32, AT(tries), .least = 1, .most = 1000000},
    {"timeout", "HOW",
     "End a command that takes too long: 60 is seconds, 5m and 2h are minutes and hours, 10x or 1000% is ten "
     "times the median so far.",
     KL_OPTION_OTHER, .read = read_timeout},
    {"halt", "WHEN,WHY=N",
     "End the run early. WHEN: now ends all commands, soon starts no more. WHY: fail, success or done. N: "
     "number of such commands, or N% of all.",
     KL_OPTION_OTHER, .read = read_halt},
    {"after", "FILE",
     "Run the commands of FILE, each after the commands that its entry names. An entry is a line NAME: NAMES "
     "and, indented below it, the command. Commands after a failed one are not run.",
     KL_OPTION_TEXT, AT(after), .except = "arg-file"},
    {"hosts", "FILE",
     "Run the commands on these hosts instead of this one. FILE is as for kilter hosts; it may change during "
     "the run. Only values and outputs travel, and commands begin in the home folder; see --shared-fs.",
     KL_OPTION_TEXT, AT(hosts), .except = "serve"},
    {"shared-fs", NULL, "The hosts share this folder: commands begin in it, and files need not travel.",
     KL_OPTION_SWITCH, AT(shared_fs), .needs = "hosts"},
    {"ssh", "COMMAND",
     "Reach a host with COMMAND HOST SCRIPT (default: ssh -o BatchMode=yes, which never asks for a password; "
     "localhost needs none).",
     KL_OPTION_TEXT, AT(ssh), .needs = "hosts"},
    {"listen", "ADDRESS", "Address of this machine that the hosts reach (default: its name).", KL_OPTION_TEXT,
     AT(listen), .needs = "hosts"},
    {"serve", "ENDPOINT",
     "Run commands for a kilter map on another machine, which starts this command because of its --hosts. "
     "The key comes from the standard input.",
     KL_OPTION_TEXT, AT(serve)},
    {"cores", "N",
     "Cores that each command needs; as many commands run at once as fit. OMP_NUM_THREADS is set to N, "
     "unless it is set already.",
     KL_OPTION_UINT32, AT(needs.cores), .least = 1, .most = 65536},
    {"memory", "SIZE",
     "Memory that each command needs, such as 500M or 2G; as many commands run at once as fit, and a command "
     "waits until this memory is free.",
     KL_OPTION_OTHER, .read = read_memory},
    {"resource", "NAME=N",
     "This host has N of a resource, such as gpu=2 or license=3. The option may be repeated.",
     KL_OPTION_OTHER, .read = read_resource, .repeats = true},
    {"use", "NAME=N",
     "Each command needs N of a resource. KILTER_NAME says which units, as in 0,1; for gpu, "
     "CUDA_VISIBLE_DEVICES does, too. The number of GPUs is known without --resource. The option may be "
     "repeated.",
     KL_OPTION_OTHER, .read = read_use, .repeats = true},
    {"output-limit", "SIZE",
     "End a command that writes more than SIZE to one of its outputs, such as 10G (default: when the disk of "
     "TMPDIR is nearly full).",
     KL_OPTION_OTHER, .read = read_limit},
    {"quiet", NULL, "Do not show the line of progress.", KL_OPTION_SWITCH, AT(quiet)},
    {"dry-run", NULL, "Print the command lines and run nothing.", KL_OPTION_SWITCH, AT(dry_run)},
    {"resume", "FILE",
     "Store results in this run record, and do not run commands again whose results it holds. Repeat the "
     "same command.",
     KL_OPTION_TEXT, AT(resume)},
    {"resume-anyway", NULL, "Let --resume continue although the command or its values have changed.",
     KL_OPTION_SWITCH, AT(resume_anyway), .needs = "resume"},
};

/* Take the record of --resume from the environment if the option is not given. Remove the variable, because
 * commands must not inherit it: a kilter map among them cannot use the same record. */
static void take_environment(kl_map_request *q) {
    const char *resume = getenv("KILTER_RESUME");
    unsetenv("KILTER_RESUME"); /* the text of the variable stays valid */
    if (!q->resume && resume && *resume)
        q->resume = resume;
}

/* Run the commands. Use no more slots than there are commands. Return the exit code. */
static int run_commands(kl_map_request *q) {
    uint64_t commands = kl_map_combinations(q->sources, q->source_count);
    if (commands == UINT64_MAX) {
        fputs("kilter map: the lists of values have too many combinations; give fewer or shorter lists\n",
              stderr);
        return KL_EXIT_USER;
    }
    if (commands < q->slots)
        q->slots = commands > 0 ? (uint32_t)commands : 1;
    return kl_map_run(q);
}

static int run(const kl_command *command, int argc, char **argv) {
    kl_map_request q = {.slots = 0};
    kilter_error error;
    int first, code = kl_cmd_read(command, argc, argv, &q, &first);
    if (code != EXIT_SUCCESS)
        return code;
    signal(SIGPIPE, SIG_IGN); /* Without SIGPIPE, a write to a pipe whose reader is gone returns an error. */
    take_environment(&q);
    if (q.serve)
        return kl_map_serve(&q);
    if ((!q.hosts && kl_map_needs_fit(&q.needs, q.jobs, &q.slots, &error) != KILTER_OK) ||
        kl_map_read_values(&q, argc - first, argv + first, &error) != KILTER_OK)
        code = kilter_exit("kilter map", &error);
    else
        code = run_commands(&q);
    kl_map_free_values(&q);
    return code;
}

const kl_command kl_cmd_map = {
    .name = "map",
    .summary = "Run a command for each of many values.",
    .text = "usage: kilter map [OPTION]… COMMAND [WORD]… [::: VALUE…]…\n"
            "       kilter map [OPTION]… COMMAND [WORD]… < VALUES\n\n"
            "Runs COMMAND once for each value, on all cores. Values are words after :::, or lines of\n"
            "files after ::::, of the file of -a, or of the standard input.\n"
            "Without COMMAND, the values are command lines. With several ::: there is a command for\n"
            "each combination of values; :::+ pairs its values with those of the list before.\n"
            "\n"
            "In COMMAND, {} is the value, {.} the value without its ending, {/} its file name, {//}\n"
            "its folder, {/.} its file name without ending. Forms {2} and {2/.} take the second\n"
            "value or column, {-1} the last one. {#} is the number of the command, {##} the number of\n"
            "all commands, {%} the number of the slot. Without any of these, {} is added at the end.\n"
            "\n"
            "Output is printed when its command has ended, and never mixed. The exit code is the\n"
            "number of commands that failed, and 101 if more than 100 did. Ctrl-C ends all commands.\n",
    .options = KL_OPTIONS(rows),
    .in_order = true,
    .run = run,
};
