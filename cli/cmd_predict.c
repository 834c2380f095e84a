/* kilter predict: forecast a run on other numbers of workers, or on other workers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "predict.h"
#include "records.h"

enum { WORKERS_MOST = 1000000 };

typedef struct request {
    const char *file, *program, *speeds, *hosts, *picture;
    int64_t run; /* number of the run in the record; −1: choose the run as kl_basis_read() does */
    uint32_t most;
    double iterations; /* number of runs of a program after its first one; 0: predict a single run */
    bool json, verbose;
    kl_basis basis;
} request;

static kilter_status read_input(const kl_value *v) {
    kl_number *number = (kl_number *)((char *)v->into + v->option->offset);
    ptrdiff_t which = number - ((request *)v->into)->basis.in;
    const kl_input *input = &kl_inputs[which];
    const kl_option bounds = {.kind = which == KL_IN_TASKS ? KL_OPTION_WHOLE : KL_OPTION_NUMBER,
                              .value = v->option->value,
                              .least = input->low,
                              .most = input->high,
                              .above = input->above_low};
    number->from = "given";
    return kl_option_set(&bounds, v->said, v->text, &number->value, v->error);
}

#define AT(member)   .offset = offsetof(request, member)
#define INPUT(index) KL_OPTION_OTHER, .read = read_input, AT(basis.in[index])

static const kl_option rows[] = {
    {"run", "N", "Take run N of the record.", KL_OPTION_UINT64, AT(run), .most = 1e15},
    KL_PROGRAM_ROW(request),
    {"work-s", "SECONDS", "Time to compute all tasks on one worker.", INPUT(KL_IN_WORK_S)},
    {"bytes", "BYTES", "Size of all messages of a run, both ways (default: 0).", INPUT(KL_IN_BYTES)},
    {"alpha", "PART", "Part of --bytes that goes to the workers, from 0 to 1 (default: 0.5).",
     INPUT(KL_IN_ALPHA)},
    {"startup-s", "SECONDS", "Time to start a message (default: 0).", INPUT(KL_IN_STARTUP_S)},
    {"per-byte-s", "SECONDS", "Time that each byte of a message adds (default: 0).", INPUT(KL_IN_PER_BYTE_S)},
    {"master-s", "SECONDS", "Time the master works alone in each run (default: 0).", INPUT(KL_IN_MASTER_S)},
    {"answer-s", "SECONDS",
     "Time the master needs for each chunk, if it deals the work in several rounds (default: --startup-s).",
     INPUT(KL_IN_ANSWER_S)},
    {"tasks", "N", "Number of tasks.", INPUT(KL_IN_TASKS)},
    {"task-mean-s", "SECONDS", "Mean time of a task.", INPUT(KL_IN_TASK_MEAN_S)},
    {"task-sd-s", "SECONDS", "Standard deviation of the time of a task (default: 0).",
     INPUT(KL_IN_TASK_SD_S)},
    {"iterations", "N",
     "Predict a program that does one run, and then N times computes alone and does another run.",
     KL_OPTION_WHOLE, AT(iterations), .least = 1, .most = 1e15},
    {"max-workers", "N", "Largest number of workers to look at.", KL_OPTION_UINT32, AT(most), .least = 1,
     .most = WORKERS_MOST},
    {"speeds", "LIST",
     "Predict for other workers with these speeds, such as 1,1,0.5 or 16x1,16x0.25; the mean worker so far "
     "has speed 1.",
     KL_OPTION_TEXT, AT(speeds)},
    {"hosts", "FILE", "Predict for the workers of another record.", KL_OPTION_TEXT, AT(hosts)},
    {"plot", "FILE.svg", "Also draw time and performance index over the number of workers.", KL_OPTION_TEXT,
     AT(picture), .is_file = true},
    {"verbose", NULL, "Also print the model's numbers with their symbols, and both ways to send the tasks.",
     KL_OPTION_SWITCH, AT(verbose)},
    KL_JSON_ROW(request),
};

static int parse(const kl_command *command, int argc, char **argv, request *r) {
    int first, code = kl_cmd_read(command, argc, argv, r, &first);
    if (code == EXIT_SUCCESS)
        code = kl_cmd_one_file(command, argc, argv, first, r->program, &r->file);
    if (code != EXIT_SUCCESS)
        return code;
    if (r->speeds && r->hosts)
        return kl_cmd_usage(command, "--speeds and --hosts cannot be combined");
    if (r->run >= 0 && !r->file && r->basis.in[KL_IN_WORK_S].from)
        return kl_cmd_usage(command, "--run chooses a run of a record: name the FILE");
    return EXIT_SUCCESS;
}

/* Read the record if the user named a record, or did not give the time of the work. */
static kilter_status read_basis(const request *r, kl_basis *basis, kilter_error *error) {
    kilter_status status = KILTER_OK;
    if (r->file) {
        status = kl_basis_read(basis, r->file, r->run, error);
    } else if (!basis->in[KL_IN_WORK_S].from) {
        char *newest = kl_record_choose(r->program, false, error);
        status = newest ? kl_basis_read(basis, newest, r->run, error) : KILTER_ERR_INPUT;
        free(newest);
    }
    if (status == KILTER_OK)
        status = kl_basis_complete(basis, error);
    if (status == KILTER_OK && r->speeds)
        status = kl_basis_speeds(basis, r->speeds, error);
    if (status == KILTER_OK && r->hosts)
        status = kl_basis_hosts(basis, r->hosts, error);
    return status;
}

static int save_plot(const kl_prediction *p, const char *picture) {
    char *data = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&data, &size);
    if (out)
        kl_prediction_plot(p, out);
    int code = out && fclose(out) == 0 ? kl_cmd_save(picture, data, size) : EXIT_FAILURE;
    free(data);
    return code;
}

static int print(const kl_prediction *p, const request *r) {
    int code = r->picture ? save_plot(p, r->picture) : EXIT_SUCCESS;
    if (code != EXIT_SUCCESS)
        return code;
    if (r->json)
        kl_prediction_print_json(p, stdout);
    else
        kl_prediction_print_text(p, r->verbose, stdout);
    return kl_cmd_printed();
}

static int run(const kl_command *command, int argc, char **argv) {
    request r = {.run = -1};
    kl_prediction prediction;
    kilter_error error;
    int code = parse(command, argc, argv, &r);
    if (code != EXIT_SUCCESS)
        return code;
    kilter_status status = read_basis(&r, &r.basis, &error);
    if (status == KILTER_OK)
        status = kl_predict(&r.basis, r.most, &prediction, &error);
    if (status == KILTER_OK && r.iterations > 0) {
        prediction.program.workers = prediction.most;
        status = kl_predict_program(&r.basis, r.iterations, &prediction.program, &error);
        if (status != KILTER_OK)
            kl_prediction_free(&prediction);
    }
    if (status == KILTER_OK) {
        code = print(&prediction, &r);
        kl_prediction_free(&prediction);
    } else {
        code = kilter_exit("kilter", &error);
    }
    kl_basis_free(&r.basis);
    return code;
}

const kl_command kl_cmd_predict = {
    .name = "predict",
    .summary = "Predict a run on other numbers of workers, or on other workers.",
    .text = "usage: kilter predict [OPTION]… [FILE]\n\n"
            "Prints how long a run would take on n workers, how efficient it would be, and how many\n"
            "workers speed it up. The numbers come from the options first, and then from the last\n"
            "run of the record FILE whose tasks are all done. Where no run is complete, as after\n"
            "Ctrl-C, they come from the tasks of the last run that were done. With --work-s no\n"
            "record is needed.\n" KL_RECORD_CHOICE_HELP,
    .options = KL_OPTIONS(rows),
    .takes_files = true,
    .run = run,
};
