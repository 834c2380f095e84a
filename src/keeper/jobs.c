/* Slurm's commands: read their output, and write the script of a batch job. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keeper/keeper.h"

/* Copy the text before the character `stop`, or all of it. Return the position after `stop`; NULL: nothing is
 * left. */
static const char *take_part(const char *at, char stop, char *to, size_t room) {
    if (!at)
        return NULL;
    const char *end = strchr(at, stop);
    size_t bytes = end ? (size_t)(end - at) : strcspn(at, "\n");
    snprintf(to, room, "%.*s", (int)(bytes < room ? bytes : room - 1), at);
    return end ? end + 1 : NULL;
}

/* Read a number of at most 9 digits. Return the position after it; NULL: there is no number. */
static const char *take_digits(const char *at, uint32_t *value) {
    size_t digits = strspn(at, "0123456789");
    if (digits == 0 || digits > 9)
        return NULL;
    *value = (uint32_t)strtoul(at, NULL, 10);
    return at + digits;
}

/* Read a time in one of Slurm's forms: [D-]H:M:S or M:S, or with days also D-H and D-H:M. */
double kl_slurm_time_s(const char *text) {
    uint32_t part[3] = {0}, days = 0;
    int count = 0;
    const char *at = take_digits(text, &part[0]), *dash = at && *at == '-' ? at + 1 : NULL;
    if (dash) {
        days = part[0];
        at = take_digits(dash, &part[0]);
    }
    for (count = 1; at && *at == ':' && count < 3; count++)
        at = take_digits(at + 1, &part[count]);
    if (!at || *at || (!dash && count < 2))
        return -1;
    bool hours = dash || count == 3;
    double first_s = hours ? 3600 : 60, second_s = hours ? 60 : 1;
    return 86400.0 * days + first_s * part[0] + second_s * part[1] + (hours ? part[2] : 0);
}

bool kl_slurm_job_read(const char *line, kl_slurm_job *job) {
    char state[32] = "", left[32] = "";
    *job = (kl_slurm_job){.left_s = 0};
    const char *at = take_part(line, '|', state, sizeof state);
    at = take_part(at, '|', left, sizeof left);
    at = take_part(at, '|', job->partition, sizeof job->partition);
    if (!at)
        return false;
    take_part(at, '\n', job->nodes, sizeof job->nodes);
    job->stage = kl_slurm_stage_of(state);
    double left_s = kl_slurm_time_s(left);
    bool begun = job->stage == KL_SLURM_RUNS || job->stage == KL_SLURM_PAUSED;
    job->left_s = begun && left_s > 0 ? left_s : 0;
    return *state != '\0';
}

static bool begins(const char *text, const char *word) {
    return strncmp(text, word, strlen(word)) == 0;
}

/* Set the flags of a node from its state. A "*" after the state, as in "idle*", means that the node does not
 * respond. A node in the state "draining" still runs jobs, but gets no new ones. */
static void take_state(const char *state, kl_slurm_node *node) {
    node->idle = begins(state, "idle");
    node->used = begins(state, "alloc") || begins(state, "mixed") || begins(state, "comp");
    node->leaving = begins(state, "drain") || begins(state, "maint") || begins(state, "fail");
    node->gone = !node->idle && !node->used && !node->leaving;
    if (strchr(state, '*')) {
        node->gone = true;
        node->idle = false;
    }
}

/* Read the fields of a line about a node. false: the line does not describe a node. */
static bool take_node(const char *line, kl_slurm_node *node) {
    char state[32] = "", cores[16] = "", load[16] = "", partition[KL_KEEPER_NAME_BYTES] = "";
    *node = (kl_slurm_node){.cores = 1};
    const char *at = take_part(line, '|', node->name, sizeof node->name);
    at = take_part(at, '|', state, sizeof state);
    at = take_part(at, '|', cores, sizeof cores);
    at = take_part(at, '|', load, sizeof load);
    at = take_part(at, '|', partition, sizeof partition);
    if (!at || !*node->name || !take_digits(cores, &node->cores))
        return false;
    take_part(at, '\n', node->features, sizeof node->features);
    size_t bytes = strcspn(partition, "*");
    node->is_default = partition[bytes] == '*';
    snprintf(node->partition, sizeof node->partition, "%.*s", (int)bytes, partition);
    double value = strtod(load, NULL);
    node->load = value > 0 && value < 1e9 ? value : 0;
    take_state(state, node);
    return true;
}

bool kl_slurm_node_read(const char **text, kl_slurm_node *node) {
    for (const char *line = *text; *line; line = *text) {
        char copy[2 * KL_KEEPER_TEXT_BYTES];
        size_t bytes = strcspn(line, "\n");
        *text = line + bytes + (line[bytes] == '\n');
        snprintf(copy, sizeof copy, "%.*s", (int)(bytes < sizeof copy ? bytes : sizeof copy - 1), line);
        if (take_node(copy, node))
            return true;
    }
    return false;
}

/* --- the script of a job --- */

static void put_text(kl_buffer *out, const char *text) {
    kl_put_bytes(out, text, strlen(text));
}

void kl_put_quoted(kl_buffer *out, const char *word) {
    put_text(out, "'");
    for (; *word; word++)
        if (*word == '\'')
            put_text(out, "'\\''");
        else
            kl_put_bytes(out, word, 1);
    put_text(out, "'");
}

static void put_variable(kl_buffer *out, const char *variable) {
    size_t name = strcspn(variable, "=");
    put_text(out, "export ");
    kl_put_bytes(out, variable, name);
    put_text(out, "=");
    kl_put_quoted(out, variable[name] ? variable + name + 1 : "");
    put_text(out, "\n");
}

/* Shell commands that end a job which Slurm has started a second time. Otherwise the restarted job would run
 * at the same time as the job of the next attempt. */
static const char AFTER_REQUEUE[] =
    "if [ \"${SLURM_RESTART_COUNT:-0}\" -gt 0 ]; then\n    [ -e \"$keep/ended\" ] ||\n"
    "        { printf 'attempt %s\\nhow lost\\n' $attempt >\"$keep/ended.job\" && mv \"$keep/ended.job\" "
    "\"$keep/ended\"; }\n    exit 0\nfi\n";

/* Write the script of an attempt's job. When Slurm signals that the time limit is near, the script asks the
 * program to save. So the run is saved even if its keeper is dead. The signal interrupts the command `wait`
 * of the script, so the script repeats this command in a loop. */
void kl_slurm_script_put(const kl_slurm_script *s, kl_buffer *out) {
    char numbers[256];
    put_text(out, "#!/bin/sh\n# An attempt of a kept run.\ncd ");
    kl_put_quoted(out, s->folder);
    put_text(out, " || exit 126\n");
    for (size_t i = 0; s->variables && s->variables[i]; i++)
        put_variable(out, s->variables[i]);
    put_text(out, "keep=");
    kl_put_quoted(out, s->keep);
    snprintf(numbers, sizeof numbers,
             "\nattempt=%llu\nsave() {\n"
             "    printf '{\"version\":1,\"number\":%llu,\"what\":\"stop\"}\\n' >\"$keep/request.job\" &&\n"
             "        mv \"$keep/request.job\" \"$keep/request\"\n}\ntrap save USR1\n",
             kl_ull(s->attempt), kl_ull(s->attempt * KL_KEEPER_NUMBERS + KL_KEEPER_JOBS_NUMBER));
    put_text(out, numbers);
    put_text(out, AFTER_REQUEUE);
    put_text(out, s->step);
    put_text(out, " &\nstep=$!\ncode=0\n"
                  "while :; do\n    wait $step\n    code=$?\n    kill -0 $step 2>/dev/null || break\ndone\n"
                  "printf 'attempt %s\\nhow exited\\ncode %s\\n' $attempt $code >\"$keep/ended.job\" &&\n"
                  "    mv \"$keep/ended.job\" \"$keep/ended\"\nexit $code\n");
}
