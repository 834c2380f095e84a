/* kilter list: list the records in folders. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "records.h"
#include "report/print.h"
#include "sys/sys.h"

enum { PROGRAM_COLUMNS = 15 }; /* widest column of program names; the ends of longer names are left out */

/* --- printing the list as text --- */

static const kl_record_file *file_at(const void *context, size_t row) {
    return ((const kl_record_file *const *)context)[row];
}

static const void *row_at(const void *context, size_t row) {
    return file_at(context, row);
}

/* Print the time when a run began, as ls does: for old records, print the year instead of the time of day. */
static void cell_began(const void *context, size_t row, char *cell) {
    static const double LONG_S = 180.0 * 86400;
    double began_s = file_at(context, row)->outline.began_unix_s;
    if (!(fabs(began_s) < 1e11)) {
        kl_cell(cell, "-");
        return;
    }
    time_t began = (time_t)began_s;
    double age_s = difftime(time(NULL), began);
    struct tm local;
    strftime(cell, KL_CELL_BYTES, age_s >= 0 && age_s < LONG_S ? "%b %e %H:%M" : "%b %e  %Y",
             localtime_r(&began, &local));
}

static void cell_program(const void *context, size_t row, char *cell) {
    const char *program = file_at(context, row)->outline.program;
    kl_cell(cell, strlen(program) > PROGRAM_COLUMNS ? "%.*s…" : "%.*s", PROGRAM_COLUMNS, program);
}

static const char *kind_of(const kl_outline *o) {
    return o->loop ? "loop" : o->watched ? "watched" : "farm";
}

static void cell_kind(const void *context, size_t row, char *cell) {
    kl_cell(cell, "%s", kind_of(&file_at(context, row)->outline));
}

static void cell_work(const void *context, size_t row, char *cell) {
    const kl_outline *o = &file_at(context, row)->outline;
    if (o->loop)
        kl_cell(cell, "%" PRIu64 " sweeps", o->executions);
    else if (o->watched)
        kl_cell(cell, "%" PRIu64 " iterations", o->executions);
    else
        kl_cell(cell, "%" PRIu64 " tasks", o->tasks);
}

static void cell_state(const void *context, size_t row, char *cell) {
    kl_cell(cell, "%s", kl_record_state_name(file_at(context, row)->state));
}

static void print_table(const kl_record_file *const *readable, size_t count) {
    static const kl_row_column columns[] = {
        {.column = {"began", KL_WHOLE, cell_began}},
        {.column = {"program", KL_WHOLE, cell_program}},
        {.column = {"kind", true, cell_kind}},
        {.column = {"work", false, cell_work}},
        KL_SHOW("took", TIME, kl_record_file, outline.elapsed_s),
        {.column = {"state", KL_WHOLE, cell_state}},
        KL_SHOW("size", BYTES, kl_record_file, bytes),
        {.column = {"file", KL_WHOLE, NULL}, .style = KL_AS_TEXT, .offset = offsetof(kl_record_file, name)},
    };
    if (count > 0)
        kl_print_rows(stdout, columns, sizeof columns / sizeof *columns, row_at, readable, count);
}

/* Return the text of an error without the file's name at its beginning. */
static const char *why_unreadable(const kl_record_file *file) {
    const char *name = strstr(file->error.text, file->path);
    const char *why = name ? strstr(name + strlen(file->path), ": ") : NULL;
    return why ? why + 2 : file->error.text;
}

static void print_text(const char *folder, const kl_record_list *list) {
    const kl_record_file **readable = calloc(list->count + 1, sizeof *readable);
    uint64_t bytes = 0;
    size_t count = 0;
    for (size_t i = 0; readable && i < list->count; i++) {
        bytes += list->files[i].bytes;
        if (list->files[i].state != KL_RECORD_UNREADABLE)
            readable[count++] = &list->files[i];
    }
    print_table(readable, count);
    for (size_t i = 0; i < list->count; i++)
        if (list->files[i].state == KL_RECORD_UNREADABLE)
            kl_say(stdout, "unreadable", "%s: %s", list->files[i].name, why_unreadable(&list->files[i]));
    printf("%zu record%s, %s, in %s%s\n", count, count == 1 ? "" : "s", kl_bytes_words(bytes).text, folder,
           count > 0 ? "; kilter prune deletes old records" : "");
    free(readable);
}

/* --- printing the list as JSON --- */

static void put_outline(kl_json *j, const kl_outline *o) {
    kl_json_text(j, "program", o->program);
    kl_json_text(j, "folder", *o->folder ? o->folder : NULL);
    kl_json_text(j, "kind", kind_of(o));
    kl_json_number(j, "began_unix_s", o->began_unix_s);
    kl_json_number(j, "elapsed_s", o->elapsed_s);
    kl_json_text(j, "status", o->status);
    if (o->loop) {
        kl_json_count(j, "executions", o->executions);
        kl_json_count(j, "rounds", o->rounds);
    } else if (o->watched) {
        kl_json_count(j, "iterations", o->executions);
    } else {
        kl_json_count(j, "runs", o->runs);
        kl_json_count(j, "tasks", o->tasks);
        kl_json_count(j, "failed", o->failed);
    }
    kl_json_truth(j, "results", o->results);
}

static void put_file(kl_json *j, const kl_record_file *file) {
    kl_json_open(j, NULL, '{');
    kl_json_text(j, "file", file->path);
    kl_json_number(j, "written_unix_s", (double)file->written.tv_sec + 1e-9 * (double)file->written.tv_nsec);
    kl_json_count(j, "bytes", file->bytes);
    kl_json_text(j, "state", kl_record_state_name(file->state));
    if (file->state == KL_RECORD_UNREADABLE)
        kl_json_text(j, "error", file->error.text);
    else
        put_outline(j, &file->outline);
    kl_json_close(j, '}');
}

/* --- the command and its options --- */

/* List the records of one folder. If `j` is NULL, print text. If `may_lack`, the folder need not exist,
 * because it is the default folder. */
static int list_folder(const char *folder, bool may_lack, kl_json *j) {
    kl_record_list list = {0};
    kilter_error error;
    kilter_status status = KILTER_OK;
    if (!may_lack || access(folder, F_OK) == 0)
        status = kl_records_find(folder, &list, &error);
    for (size_t i = 0; status == KILTER_OK && i < list.count; i++) {
        kl_record_file_read(&list.files[i]);
        if (j)
            put_file(j, &list.files[i]);
    }
    if (status == KILTER_OK && !j)
        print_text(folder, &list);
    kl_records_free(&list);
    return status == KILTER_OK ? EXIT_SUCCESS : kilter_exit("kilter", &error);
}

static int list_own_folder(kl_json *j) {
    kilter_error error;
    char *folder;
    if (kl_record_dir(&folder, &error) != KILTER_OK)
        return kilter_exit("kilter", &error);
    int code = list_folder(folder, true, j);
    free(folder);
    return code;
}

static int list_all(char **folders, int count, kl_json *j) {
    int code = count == 0 ? list_own_folder(j) : EXIT_SUCCESS;
    for (int i = 0; i < count; i++) {
        if (i > 0 && !j)
            putchar('\n');
        int got = list_folder(folders[i], false, j);
        code = got == EXIT_SUCCESS ? code : got;
    }
    return code;
}

static int list_as_json(char **folders, int count) {
    kl_json j = {.out = stdout, .first = true};
    kl_json_open(&j, NULL, '{');
    kl_json_open(&j, "records", '[');
    int code = list_all(folders, count, &j);
    kl_json_close(&j, ']');
    kl_json_close(&j, '}');
    putchar('\n');
    return code;
}

static const kl_option rows[] = {
    {"json", NULL, "Print one JSON object; times are in seconds, and an unknown number is null.",
     KL_OPTION_SWITCH, .offset = 0},
};

static int run(const kl_command *command, int argc, char **argv) {
    bool json = false;
    int first, code = kl_cmd_read(command, argc, argv, &json, &first);
    if (code != EXIT_SUCCESS)
        return code;
    code = json ? list_as_json(argv + first, argc - first) : list_all(argv + first, argc - first, NULL);
    int printed = kl_cmd_printed();
    return code == EXIT_SUCCESS ? printed : code;
}

const kl_command kl_cmd_list = {
    .name = "list",
    .summary = "List the records: when each began, its program and how it ended.",
    .text = "usage: kilter list [--json] [FOLDER]…\n\n"
            "Lists the records (*.kilter) in FOLDER, the latest first. It prints when each program\n"
            "began, how much it had to do, how long it took and how it ended. Without FOLDER: the\n"
            "records in $KILTER_RECORD_DIR, else $XDG_STATE_HOME/kilter, else ~/.local/state/kilter.\n"
            "\n"
            "The state of a record is running, finished, cancelled (as by Ctrl-C), failed, or cut\n"
            "off: the program was killed or crashed, and the record ends there.\n",
    .options = KL_OPTIONS(rows),
    .takes_files = true,
    .run = run,
};
