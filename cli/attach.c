/* Attach to the running farm that writes a record. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach.h"
#include "cmd.h"
#include "report/print.h"
#include "report/report.h"

static const double PATIENCE_S = 2;

int kl_cmd_farm_failed(const char *doing, const char *file, const kilter_error *error) {
    kilter_error named;
    kl_fail(&named, error->status, "%s the run of '%s': %s", doing, file, error->text);
    return kilter_exit("kilter", &named);
}

static kilter_status check_owner(const char *file, kilter_error *error) {
    struct stat info;
    if (stat(file, &info) != 0)
        return kl_fail(error, KILTER_ERR_INPUT, "%s; name the record of a running farm", strerror(errno));
    if (geteuid() != 0 && info.st_uid != geteuid())
        return kl_fail(error, KILTER_ERR_USAGE,
                       "the file belongs to another user, and only its owner may attach");
    return KILTER_OK;
}

static kilter_status attach_to(const kl_report_run *run, kl_tuner **tuner, kilter_error *error) {
    if (run->ended)
        return kl_fail(error, KILTER_ERR_INPUT, "the farm has ended; kilter report shows what it did");
    if (!*run->control)
        return kl_fail(error, KILTER_ERR_INPUT,
                       "the run cannot be reached: it is a loop or a simulation, uses an older Kilter, or "
                       "could not open its socket (see its warning)");
    return kl_tuner_attach(run->control, PATIENCE_S, tuner, error);
}

int kl_cmd_attach(const char *doing, const char *file, kl_tuner **tuner) {
    kilter_error error;
    kl_report *report;
    if (check_owner(file, &error) != KILTER_OK)
        return kl_cmd_farm_failed(doing, file, &error);
    if (kl_report_read_run(file, &report, &error) != KILTER_OK)
        return kilter_exit("kilter", &error);
    kilter_status status = attach_to(&report->run, tuner, &error);
    kl_report_free(report);
    return status == KILTER_OK ? EXIT_SUCCESS : kl_cmd_farm_failed(doing, file, &error);
}

int kl_cmd_print_answer(const char *answer, bool json) {
    if (json) {
        kl_json j = {.out = stdout, .first = true};
        kl_json_open(&j, NULL, '{');
        kl_json_text(&j, "answer", answer);
        kl_json_close(&j, '}');
        putchar('\n');
    } else {
        puts(answer);
    }
    return kl_cmd_printed();
}
