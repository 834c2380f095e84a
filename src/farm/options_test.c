#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "farm/farm.h"

static int work(const kilter_task *task, kilter_result *result, void *state) {
    (void)task, (void)result, (void)state;
    return 0;
}

/* Read a command line whose words are separated by spaces. `rest` gets the words that are not options of
 * Kilter. */
static kilter_status read_line(const char *line, kl_settings *settings, char *rest, kilter_error *error) {
    char copy[256], *argv[32];
    int argc = 0;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    argv[argc] = NULL;
    kilter_farm_options options = {.work = work, .workers = 9, .policy = "gss"};
    kilter_status status = kl_settings_read(&options, &argc, argv, settings, error);
    rest[0] = '\0';
    for (int i = 1; i < argc; i++)
        strcat(strcat(rest, i > 1 ? " " : ""), argv[i]);
    return status;
}

static void options_are_taken_and_the_rest_is_left(void **state) {
    (void)state;
    const struct {
        const char *line, *rest;
        uint32_t workers;
        const char *policy;
    } rows[] = {
        {"prog", "", 9, "gss"},
        {"prog in.txt --workers 3 -x --policy=SS out", "in.txt -x out", 3, "SS"},
        {"prog --workers=4 -- --workers 5", "-- --workers 5", 4, "gss"},
        {"prog --work 1 --workersx", "--work 1 --workersx", 9, "gss"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        kl_settings s;
        char rest[256];
        assert_int_equal(read_line(rows[i].line, &s, rest, NULL), KILTER_OK);
        assert_string_equal(rest, rows[i].rest);
        assert_int_equal(s.options.workers, rows[i].workers);
        assert_string_equal(s.policy, rows[i].policy);
        assert_string_equal(s.name, "prog");
        kl_settings_free(&s);
    }
}

static void bad_options_are_named_and_nothing_is_taken(void **state) {
    (void)state;
    const struct {
        const char *line, *says;
    } rows[] = {
        {"prog --workers", "--workers: needs a value"},
        {"prog --workers 0", "--workers: '0'"},
        {"prog --workers -3", "--workers: '-3'"},
        {"prog --workers 3x", "--workers: '3x'"},
        {"prog --workers 99999999999999999999", "--workers: '99999"},
        {"prog --workers=", "--workers: ''"},
        {"prog --key -", "--key -: only a worker"},
        {"prog --key=", "--key: the value is empty"},
        {"prog --lost-after 0.4", "--lost-after: '0.4' is not a number of seconds from 0.5 to 86400"},
        {"prog --lost-after 86401", "--lost-after: '86401'"},
        {"prog --lost-after -1", "--lost-after: '-1'"},
        {"prog --lost-after nan", "--lost-after: 'nan'"},
        {"prog --lost-after 1s", "--lost-after: '1s'"},
        {"prog --lost-after=", "--lost-after: ''"},
        {"prog --policy best", "no policy 'best'"},
        {"prog --policy=", "--policy: the value is empty"},
        {"prog --bind cores", "--bind: 'cores' is none of"},
        {"prog --bind 0", "--bind: '0' is none of"},
        {"prog --task-timeout 0.1", "--task-timeout: '0.1' is neither a number of seconds from 0.5 on"},
        {"prog --task-timeout x", "--task-timeout: 'x' is neither"},
        {"prog --task-timeout 10xx", "--task-timeout: '10xx' is neither"},
        {"prog --task-timeout 1x", "--task-timeout: '1x' is neither"},
        {"prog --task-timeout nan", "--task-timeout: 'nan' is neither"},
        {"prog --task-timeout 5 --transport inproc",
         "--task-timeout: with --transport inproc a single worker cannot be ended"},
        {"prog --worker-memory 500", "--worker-memory: '500' is not a size of memory"},
        {"prog --worker-memory 0.1M", "--worker-memory: '0.1M' is not a size"},
        {"prog --worker-memory 5GB", "--worker-memory: '5GB' is not a size"},
        {"prog --worker-memory 5G --transport mpi",
         "--worker-memory: with --transport mpi a single worker cannot be ended"},
        {"prog --worker-tasks 0", "--worker-tasks: '0' is not a whole number"},
        {"prog --retries -1", "--retries: '-1' is not a whole number"},
        {"prog --team some", "--team: 'some' is neither all nor auto, and not the name of a *.kilter file"},
        {"prog --release=yes", "--release: 'yes' is neither 0 nor 1"},
        {"prog --transport pigeon", "'pigeon'"},
        {"prog --listen tcp://127.0.0.1:5 --join tcp://127.0.0.1:5", "--listen and --join"},
        {"prog --listen nonsense", "nonsense"},
        {"prog --join nonsense", "nonsense"},
        {"prog --listen tcp://127.0.0.1:5 --transport inproc", "--listen: needs --transport zmq"},
        {"prog --progress=yes", "--progress: 'yes'"},
        {"prog --record a --resume b", "--record and --resume"},
        {"prog --resume=", "--resume: the value is empty"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        kl_settings s;
        kilter_error error;
        char rest[256];
        assert_int_equal(read_line(rows[i].line, &s, rest, &error), KILTER_ERR_USAGE);
        assert_non_null(strstr(error.text, rows[i].says));
        assert_string_equal(rest, strchr(rows[i].line, ' ') + 1);
        assert_int_equal(kilter_exit(NULL, &error), 2);
    }
}

static void good_options_are_taken(void **state) {
    (void)state;
    kl_settings s;
    char rest[256];
    assert_int_equal(read_line("prog a --bind 2 --resume-anyway b --resume f", &s, rest, NULL), KILTER_OK);
    assert_string_equal(s.bind, "2");
    assert_true(s.options.resume_anyway);
    assert_string_equal(s.arguments, "a b");
    kl_settings_free(&s);
    assert_int_equal(read_line("prog --task-timeout 2.5x --worker-memory 1.5G --worker-tasks 5000000000 "
                               "--retries 3",
                               &s, rest, NULL),
                     KILTER_OK);
    assert_true(s.limits.task_s == 0 && s.limits.task_times == 2.5 && s.limits.retries == 3 &&
                s.limits.worker_memory == 1500000000 && s.limits.worker_tasks == 5000000000);
    kl_settings_free(&s);
    assert_int_equal(read_line("prog --bind none --resume-anyway", &s, rest, NULL), KILTER_OK);
    assert_string_equal(s.arguments, "");
    kl_settings_free(&s);
}

static void the_environment_stands_between_program_and_command_line(void **state) {
    (void)state;
    kl_settings s;
    char rest[256];
    kilter_error error;
    setenv("KILTER_WORKERS", "5", 1);
    setenv("KILTER_POLICY", "fac2", 1);
    setenv("KILTER_PROGRESS", "1", 1);
    setenv("KILTER_LOST_AFTER", "2.5", 1);
    assert_int_equal(read_line("prog --policy tss", &s, rest, NULL), KILTER_OK);
    assert_int_equal(s.options.workers, 5);
    assert_string_equal(s.policy, "tss");
    assert_true(s.options.progress);
    assert_true(s.options.lost_after_s == 2.5);
    kl_settings_free(&s);
    unsetenv("KILTER_LOST_AFTER");
    setenv("KILTER_WORKERS", "many", 1);
    assert_int_equal(read_line("prog", &s, rest, &error), KILTER_ERR_USAGE);
    assert_non_null(strstr(error.text, "KILTER_WORKERS: 'many'"));
    unsetenv("KILTER_WORKERS");
    setenv("KILTER_POLICY", "luck", 1);
    assert_int_equal(read_line("prog", &s, rest, &error), KILTER_ERR_USAGE);
    assert_non_null(strstr(error.text, "KILTER_POLICY: there is no policy 'luck'"));
    unsetenv("KILTER_POLICY");
    setenv("KILTER_TRANSPORT", "udp", 1);
    assert_int_equal(read_line("prog", &s, rest, &error), KILTER_ERR_USAGE);
    assert_non_null(strstr(error.text, "KILTER_TRANSPORT: 'udp'"));
    unsetenv("KILTER_TRANSPORT");
    unsetenv("KILTER_PROGRESS");
}

static void seconds_out_of_range_are_refused_from_the_program_too(void **state) {
    (void)state;
    const double bad[] = {0.1, -1, 1e6, NAN};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        kl_settings s;
        kilter_error error;
        const kilter_farm_options options = {.work = work, .lost_after_s = bad[i]};
        assert_int_equal(kl_settings_read(&options, NULL, NULL, &s, &error), KILTER_ERR_USAGE);
        assert_non_null(strstr(error.text, "lost-after"));
    }
}

static void a_farm_without_work_function_is_refused(void **state) {
    (void)state;
    kl_settings s;
    kilter_error error;
    assert_int_equal(kl_settings_read(&(kilter_farm_options){0}, NULL, NULL, &s, &error), KILTER_ERR_USAGE);
    assert_non_null(strstr(error.text, "options.work"));
}

static char *warnings_of(char *variable, char *argument) {
    char *text = NULL, *environment[] = {variable, NULL}, *argv[] = {"prog", argument, NULL};
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    kl_settings_warn(out, environment, 2, argv);
    fclose(out);
    return text;
}

/* For a correct name there must be no warning. For a variable or an option with one wrong letter, the warning
 * must suggest the right name. */
static void mistyped_names_are_recognised(void **state) {
    (void)state;
    kl_option_list options = kl_farm_options();
    const char *const others[] = {"KILTER_RECORD_DIR", "KILTER_MPI_START_S", "KILTER_MPI_SHIELD",
                                  "KILTER_CHECK",      "KILTER_LIBEXEC",     "KILTER_ANSWER_S",
                                  "KILTER_QUANTUM_S",  "KILTER_RUN"};
    for (size_t i = 0; i < options.count + sizeof others / sizeof *others; i++) {
        char name[KL_VARIABLE_BYTES], wrong[KL_VARIABLE_BYTES], argument[80];
        if (i < options.count)
            kl_option_variable(&options.row[i], name);
        else
            snprintf(name, sizeof name, "%s", others[i - options.count]);
        snprintf(wrong, sizeof wrong, "%s", name);
        wrong[strlen(wrong) - 1] = '!';
        snprintf(argument, sizeof argument, "--%.40s!", i < options.count ? options.row[i].name : "zzzzzzzz");
        char *none = warnings_of(name, "file"), *some = warnings_of(wrong, argument);
        if (strcmp(name, "KILTER_KILTER_HELP") != 0) {
            assert_string_equal(none, "");
            assert_non_null(strstr(some, "did you mean KILTER_"));
            assert_non_null(strstr(some, name));
        }
        assert_true(i >= options.count || strstr(some, "did you mean --"));
        free(none);
        free(some);
    }
}

/* Read every option in two forms: with its value as a separate word, and with its value after '='. */
static void every_option_is_taken(void **state) {
    (void)state;
    kl_option_list options = kl_farm_options();
    /* leave out the last option, which prints help and has no value */
    for (size_t i = 0; i + 1 < options.count; i++) {
        const kl_option *o = &options.row[i];
        const char *value = !o->value                         ? "1"
                            : strcmp(o->name, "listen") == 0  ? "tcp://127.0.0.1:5555"
                            : strcmp(o->name, "join") == 0    ? "tcp://127.0.0.1:5555"
                            : strcmp(o->value, "SIZE") == 0   ? "5M"
                            : strcmp(o->value, "POLICY") == 0 ? "gss"
                            : o->words                        ? "auto"
                                                              : "7";
        if (strcmp(o->name, "transport") == 0)
            value = "zmq";
        const char *needs = strcmp(o->name, "shared-folder") == 0 ? " --organise peers --policy sos" : "";
        char line[128], rest[256];
        kl_settings s;
        snprintf(line, sizeof line, "prog a --%s=%s --x b%s", o->name, value, needs);
        assert_int_equal(read_line(line, &s, rest, NULL), KILTER_OK);
        assert_string_equal(rest, "a --x b");
        kl_settings_free(&s);
        snprintf(line, sizeof line, "prog a --%s %s --x b%s", o->name, value, needs);
        assert_int_equal(read_line(line, &s, rest, NULL), KILTER_OK);
        assert_string_equal(rest, o->value ? "a --x b" : "a 1 --x b");
        kl_settings_free(&s);
    }
}

static void no_command_line_is_fine(void **state) {
    (void)state;
    kl_settings s;
    assert_int_equal(kl_settings_read(&(kilter_farm_options){.work = work}, NULL, NULL, &s, NULL), KILTER_OK);
    assert_string_equal(s.name, "farm");
    kl_settings_free(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_are_taken_and_the_rest_is_left),
        cmocka_unit_test(bad_options_are_named_and_nothing_is_taken),
        cmocka_unit_test(good_options_are_taken),
        cmocka_unit_test(the_environment_stands_between_program_and_command_line),
        cmocka_unit_test(seconds_out_of_range_are_refused_from_the_program_too),
        cmocka_unit_test(a_farm_without_work_function_is_refused),
        cmocka_unit_test(mistyped_names_are_recognised),
        cmocka_unit_test(every_option_is_taken),
        cmocka_unit_test(no_command_line_is_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
