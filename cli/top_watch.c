/* Find the runs that kilter top shows, attach to farms, read the records of loops, and carry out requests. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "records.h"
#include "report/print.h"
#include "sys/sys.h"
#include "top.h"

enum { LOOKS_KEPT = 10 }; /* number of updates for which a run stays on the screen after its end */
static const double PATIENCE_S = 0.5;

/* ---- updating one run ---- */

static void say(kl_top_run *run, const char *word) {
    snprintf(run->word, sizeof run->word, "%s", word);
}

static void note_decision(kl_top_run *run, const char *decision) {
    char *last = run->decisions[KL_TOP_DECISIONS - 1];
    char line[KL_TOP_WORD_BYTES];
    snprintf(line, sizeof line, "%s", decision);
    if (!*line || strcmp(line, last) == 0)
        return;
    memmove(run->decisions[0], run->decisions[1], (KL_TOP_DECISIONS - 1) * sizeof *run->decisions);
    memcpy(last, line, sizeof line);
}

static void detach(kl_top_run *run) {
    kl_tuner_detach(run->tuner);
    run->tuner = NULL;
}

static void note_loop_decisions(kl_top_run *run) {
    const kl_report *r = run->report;
    size_t first = r->decided_count > KL_TOP_DECISIONS ? r->decided_count - KL_TOP_DECISIONS : 0;
    memset(run->decisions, 0, sizeof run->decisions);
    for (size_t i = first; i < r->decided_count; i++) {
        const kl_report_decided *d = &r->decided[i];
        snprintf(run->decisions[KL_TOP_DECISIONS - r->decided_count + i], KL_TOP_WORD_BYTES, "%s %s: %s",
                 kl_time_words(d->at_s).text, d->kind, d->reason);
    }
}

/* Read the run's summary from the record. If the run is a loop, read the whole record. */
static kilter_status read_report(kl_top_run *run, kilter_error *error) {
    kl_outline outline;
    kl_report *report = NULL;
    kilter_status status = kl_outline_read(run->path, &outline, error);
    if (status == KILTER_OK) {
        status = outline.loop ? kl_report_read(run->path, &report, error)
                              : kl_report_read_run(run->path, &report, error);
        kl_outline_free(&outline);
    }
    if (status != KILTER_OK)
        return status;
    kl_report_free(run->report);
    run->report = report;
    if (report->loop)
        note_loop_decisions(run);
    return KILTER_OK;
}

static void look_at_farm(kl_top_run *run) {
    kilter_error error;
    kilter_status status = KILTER_OK;
    if (!*run->report->run.control) {
        say(run, "the run cannot be watched: it has no control socket");
        return;
    }
    if (!run->tuner)
        status = kl_tuner_attach(run->report->run.control, PATIENCE_S, &run->tuner, &error);
    if (!run->state)
        run->state = calloc(1, sizeof *run->state);
    if (status == KILTER_OK && run->state)
        status = kl_tuner_look(run->tuner, run->state, &error);
    if (status == KILTER_OK && run->state) {
        say(run, "");
        note_decision(run, run->state->decision);
    } else {
        say(run, run->state ? error.text : "memory ran out");
        detach(run);
    }
}

static void look_at_end(kl_top_run *run) {
    kl_record_file file = {.path = run->path};
    kilter_error error;
    detach(run);
    if (run->looks_gone++ > 0)
        return;
    kl_record_file_read(&file);
    say(run, file.state == KL_RECORD_CUT_OFF ? "the program was killed or crashed"
                                             : kl_record_state_name(file.state));
    kl_outline_free(&file.outline);
    if (run->report && run->report->loop)
        read_report(run, &error); /* on an error, keep what was last read of the loop */
}

static void look(kl_top_run *run) {
    kilter_error error;
    if (!kl_record_is_written(run->path)) {
        look_at_end(run);
        return;
    }
    run->looks_gone = 0;
    bool again = !run->report || run->report->loop || !*run->report->run.control;
    if (again && read_report(run, &error) != KILTER_OK)
        say(run, error.text);
    else if (!run->report->loop)
        look_at_farm(run);
    else
        say(run, "");
}

static void free_run(kl_top_run *run) {
    detach(run);
    kl_report_free(run->report);
    free(run->state);
    free(run->path);
}

/* ---- finding all runs ---- */

static kilter_status add(kl_top *top, const char *path, kilter_error *error) {
    for (size_t i = 0; i < top->run_count; i++)
        if (strcmp(top->runs[i].path, path) == 0)
            return KILTER_OK;
    kl_top_run *runs = realloc(top->runs, (top->run_count + 1) * sizeof *runs);
    top->runs = runs ? runs : top->runs;
    char *copy = runs ? strdup(path) : NULL;
    if (!copy)
        return kl_fail(error, KILTER_ERR_MEMORY, "looking at '%s': memory ran out", path);
    top->runs[top->run_count++] = (kl_top_run){.path = copy};
    return KILTER_OK;
}

/* Add those records of the folder that a program is writing now. */
static kilter_status add_running(kl_top *top, kilter_error *error) {
    kl_record_list list;
    kilter_error none;
    char *folder = NULL;
    kilter_status status = kl_record_dir(&folder, error);
    if (status != KILTER_OK)
        return status;
    kl_records_find(folder, &list, &none); /* if the folder of records is missing, no run is in progress */
    for (size_t i = 0; i < list.count && status == KILTER_OK; i++)
        if (kl_record_is_written(list.files[i].path))
            status = add(top, list.files[i].path, error);
    kl_records_free(&list);
    free(folder);
    return status;
}

static void remove_gone(kl_top *top) {
    size_t kept = 0, chosen = top->run;
    for (size_t i = 0; i < top->run_count; i++) {
        if (top->runs[i].looks_gone > LOOKS_KEPT) {
            free_run(&top->runs[i]);
            top->run -= i < chosen;
        } else {
            top->runs[kept++] = top->runs[i];
        }
    }
    top->run_count = kept;
    top->run = top->run < kept ? top->run : 0;
}

/* If the row that the user chose does not exist any more, choose the last row. */
static void keep_row(kl_top *top) {
    const kl_top_run *run = kl_top_chosen(top);
    uint32_t rows = run && run->state ? run->state->worker_count : 0;
    if (run && run->report && run->report->loop)
        rows = run->report->loop->ranks;
    top->row = top->row < rows ? top->row : rows > 0 ? rows - 1 : 0;
}

kilter_status kl_top_update(kl_top *top, const char *file, kilter_error *error) {
    bool first = top->run_count == 0;
    kilter_status status = file ? add(top, file, error) : add_running(top, error);
    if (status == KILTER_OK && file && first)
        status = read_report(&top->runs[0], error);
    for (size_t i = 0; status == KILTER_OK && i < top->run_count; i++)
        look(&top->runs[i]);
    if (!file)
        remove_gone(top);
    keep_row(top);
    return status;
}

void kl_top_free(kl_top *top) {
    for (size_t i = 0; i < top->run_count; i++)
        free_run(&top->runs[i]);
    free(top->runs);
    *top = (kl_top){0};
}

/* ---- requests ---- */

/* Send SIGTERM to the program. Ask its control socket for the process id, so that no other process gets
 * the signal. */
static kilter_status end_run(const kl_top_run *run, char *answer, kilter_error *error) {
    pid_t process = (pid_t)kl_tuner_process(run->tuner);
    if (process <= 1 || kill(process, SIGTERM) != 0)
        return kl_fail(error, KILTER_ERR_SYSTEM, "ending the run: %s",
                       process <= 1 ? "the process of the run is not known" : strerror(errno));
    snprintf(answer, KL_CONTROL_ANSWER_BYTES, "process %d was asked to end", (int)process);
    return KILTER_OK;
}

static kilter_status request(kl_top *top, const kl_top_run *run, kl_top_action action,
                             char answer[KL_CONTROL_ANSWER_BYTES], kilter_error *error) {
    kl_control_drain drain = {.worker_count = 1, .workers = {(uint32_t)kl_top_worker(top)}};
    kl_control_setting setting = {.policy_given = true};
    if (action == KL_TOP_DRAIN)
        return kl_tuner_drain(run->tuner, &drain, answer, error);
    if (action == KL_TOP_END)
        return end_run(run, answer, error);
    snprintf(setting.policy, sizeof setting.policy, "%s", kl_policy_name(kl_policy_at(top->policy)));
    return kl_tuner_set(run->tuner, &setting, answer, error);
}

void kl_top_do(kl_top *top, kl_top_action action) {
    char answer[KL_CONTROL_ANSWER_BYTES] = "";
    kilter_error error;
    const kl_top_run *run = kl_top_chosen(top);
    if (action < KL_TOP_DRAIN || !run)
        return;
    const char *word = answer;
    if (run->looks_gone > 0)
        word = "The run has ended meanwhile.";
    else if (!run->tuner || (action == KL_TOP_DRAIN && kl_top_worker(top) < 0))
        word = "This farm does not answer.";
    else if (request(top, run, action, answer, &error) != KILTER_OK)
        word = error.text;
    snprintf(top->message, sizeof top->message, "%s", word);
}
