/* Measure hosts, with shell commands instead of ssh. Some agents answer, some do not, and some die. This test
 * program is also run as the agent. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "hosts/hosts.h"
#include "sys/sys.h"

/* A command that starts the agent as ssh would: "$0" is the host and "$1" is the script. Agents listen only
 * on the loopback interface. */
#define SHELL(commands) "sh -c '" commands "'"
static const char ANSWERS[] = SHELL("exec sh -c \"$1\"");

static kl_host_list list_of(const char *text) {
    kl_host_list list;
    assert_int_equal(kl_host_list_parse("list", text, strlen(text), &list, NULL), KILTER_OK);
    return list;
}

static kl_hosts *open_hosts(const char *text, kl_hosts_options options) {
    kl_host_list list = list_of(text);
    kl_hosts *hosts;
    assert_int_equal(kl_hosts_open(&list, &options, &hosts, NULL), KILTER_OK);
    kl_host_list_free(&list);
    return hosts;
}

static void measure(kl_hosts *hosts) {
    kl_hosts_start(hosts);
    while (!kl_hosts_poll(hosts, 1))
        ;
}

static kl_fit fit_of(const kl_hosts *hosts, size_t i) {
    kl_fit fits[16];
    assert_true(kl_hosts_count(hosts) <= 16);
    assert_int_equal(kl_hosts_fitness(hosts, 0.5, 0, fits, NULL), KILTER_OK);
    return fits[i];
}

static void assert_trouble(const kl_hosts *hosts, size_t i, const char *words) {
    if (!strstr(kl_hosts_trouble(hosts, i), words))
        fail_msg("trouble of host %zu: '%s', not '%s'", i, kl_hosts_trouble(hosts, i), words);
    assert_int_equal(fit_of(hosts, i).state, KL_FIT_UNREACHABLE);
    assert_true(fit_of(hosts, i).qos == 0);
}

static void all_hosts_and_all_links_are_measured(void **state) {
    (void)state;
    kl_hosts *hosts = open_hosts("a slots=3\nb\nc\nd\ne\n", (kl_hosts_options){.ssh = ANSWERS});
    assert_int_equal(kl_hosts_find(hosts, "d"), 3);
    assert_int_equal(kl_hosts_find(hosts, "x"), SIZE_MAX);
    assert_int_equal(kl_hosts_at(hosts, 0)->slots, 3);
    assert_trouble(hosts, 2, "not measured yet");
    for (int again = 0; again < 2; again++) { /* the second measurement uses the same agents */
        size_t links;
        measure(hosts);
        kl_hosts_links(hosts, &links);
        assert_int_equal(links, 10);
        for (size_t i = 0; i < 5; i++) {
            const kl_reading *r = kl_hosts_reading(hosts, i);
            assert_true(r->probe > 0 && r->probe <= 1 && r->cores >= 1 && r->steps_per_s > 0);
            assert_true(r->at_s <= kl_monotonic_s() && r->memory_left > 0);
            assert_string_equal(kl_hosts_trouble(hosts, i), "");
            kl_fit fit = fit_of(hosts, i);
            assert_true(fit.state == KL_FIT_KNOWN && fit.qos > 0 && fit.net > 0);
        }
        for (size_t i = 0; i < links; i++) {
            const kl_link *link = &kl_hosts_links(hosts, &links)[i];
            assert_true(link->from != link->to && link->bytes_per_s > 0 && link->trip_s > 0);
        }
    }
    kl_hosts_close(hosts);
}

static void links_are_left_out_on_request(void **state) {
    (void)state;
    kl_hosts *hosts = open_hosts("a\nb\n", (kl_hosts_options){.ssh = ANSWERS, .no_network = true});
    size_t links;
    measure(hosts);
    kl_hosts_links(hosts, &links);
    assert_int_equal(links, 0);
    assert_true(fit_of(hosts, 0).net == 1);
    kl_hosts_close(hosts);
}

static void hosts_in_trouble_are_unreachable_with_a_word(void **state) {
    (void)state;
    static const char command[] = SHELL("case $0 in refuses) echo no route to host >&2; exit 255;;"
                                        " silent) exec sleep 60;;"
                                        " babbles) while echo babble; do sleep 0.01; done;;"
                                        " without) exec ./no-such-kilter;;"
                                        " lies) echo kilter-host 1 reading cores 4 probe 0.5;;"
                                        " *) echo Welcome to $0; exec sh -c \"$1\";; esac");
    kl_hosts *hosts = open_hosts("refuses\nsilent\nbabbles\nwithout\ngood\nlies\n",
                                 (kl_hosts_options){.ssh = command, .patience_s = 3});
    measure(hosts);
    assert_trouble(hosts, 0, "the connection ended: no route to host");
    assert_trouble(hosts, 1, "no answer in time");
    assert_trouble(hosts, 2, "no answer in time: babble");
    assert_trouble(hosts, 3, "no-such-kilter");
    assert_string_equal(kl_hosts_trouble(hosts, 4), "");
    kl_fit good = fit_of(hosts, 4);
    assert_true(good.state == KL_FIT_KNOWN && good.qos > 0);
    kl_hosts_close(hosts);
}

static void a_command_that_is_missing_is_named(void **state) {
    (void)state;
    kl_hosts *hosts = open_hosts("a\nb\n", (kl_hosts_options){.ssh = "no-such-command"});
    measure(hosts);
    assert_trouble(hosts, 0, "no-such-command");
    assert_trouble(hosts, 1, "no-such-command");
    kl_hosts_close(hosts);
}

/* Read the process number that the command has written to a file, and remove the file. */
static pid_t take_number(const char *path) {
    long pid = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld", &pid), 1);
    fclose(file);
    assert_int_equal(unlink(path), 0);
    return (pid_t)pid;
}

static void an_agent_that_is_lost_is_replaced(void **state) {
    (void)state;
    static const int signals[] = {SIGKILL, SIGSTOP, SIGKILL};
    char *folder, command[4096], path[4096];
    assert_int_equal(kl_private_dir(&folder, NULL), KILTER_OK);
    snprintf(command, sizeof command, SHELL("echo $$ >%s/$0; exec sh -c \"$1\""), folder);
    snprintf(path, sizeof path, "%s/a", folder);
    kl_hosts *hosts = open_hosts("a\nb\n", (kl_hosts_options){.ssh = command, .patience_s = 5});
    measure(hosts);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        assert_int_equal(kill(take_number(path), signals[i]), 0);
        measure(hosts);
        if (signals[i] == SIGSTOP)
            assert_trouble(hosts, 0, "no answer in time");
        if (*kl_hosts_trouble(
                hosts, 0)) /* a killed agent is replaced at once, or only after a measurement that fails */
            measure(hosts);
        assert_string_equal(kl_hosts_trouble(hosts, 0), "");
        assert_true(fit_of(hosts, 0).qos > 0 && fit_of(hosts, 1).qos > 0);
    }
    kl_hosts_close(hosts);
    take_number(path);
    snprintf(path, sizeof path, "%s/b", folder);
    take_number(path);
    assert_int_equal(rmdir(folder), 0);
    free(folder);
}

static void what_the_program_measures_replaces_the_probe(void **state) {
    (void)state;
    kl_hosts *hosts = open_hosts("a slots=1\n", (kl_hosts_options){.ssh = ANSWERS});
    measure(hosts);
    double steps_per_s = kl_hosts_reading(hosts, 0)->steps_per_s;
    kl_hosts_measured(hosts, 0, 0.125);
    assert_true(fit_of(hosts, 0).cpu == 0.125);
    measure(hosts); /* the program has reported its own share of a core, so the host is not probed */
    assert_true(isnan(kl_hosts_reading(hosts, 0)->probe));
    assert_true(kl_hosts_reading(hosts, 0)->steps_per_s == steps_per_s);
    assert_true(fit_of(hosts, 0).cpu == 0.125);
    kl_hosts_measured(hosts, 0, NAN);
    measure(hosts);
    assert_true(kl_hosts_reading(hosts, 0)->probe > 0);
    kl_hosts_own(hosts, 0, 1e6); /* say that the program has more threads than run on the host */
    assert_true(fit_of(hosts, 0).cpu == 1 || kl_hosts_reading(hosts, 0)->quota < 1);
    kl_hosts_close(hosts);
}

/* Close in the middle of a measurement. No child process may remain, not even one that ignores its input. */
static void closing_ends_all_agents(void **state) {
    (void)state;
    static const char command[] = SHELL("case $0 in stays) exec sleep 600;; *) exec sh -c \"$1\";; esac");
    kl_hosts *hosts = open_hosts("a\nstays\n", (kl_hosts_options){.ssh = command});
    kl_hosts_start(hosts);
    assert_false(kl_hosts_poll(hosts, 0));
    assert_true(kl_hosts_fd(hosts) >= 0);
    kl_hosts_close(hosts);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child processes are left */
    assert_int_equal(errno, ECHILD);
    kl_hosts_close(NULL);
}

static void lists_come_from_files_and_from_slurm(void **state) {
    (void)state;
    kl_host_list list;
    kilter_error error;
    bool slurm = true;
    char name[KL_HOST_BYTES];
    kl_host_name(name);
    unsetenv("SLURM_JOB_NODELIST");
    assert_int_equal(kl_hosts_list(NULL, &list, &slurm, NULL), KILTER_OK);
    assert_false(slurm);
    assert_int_equal(list.count, 1);
    assert_string_equal(list.at[0].name, name);
    kl_host_list_free(&list);
    setenv("SLURM_JOB_NODELIST", "n[1-2]", 1);
    setenv("SLURM_JOB_CPUS_PER_NODE", "4(x2)", 1);
    assert_int_equal(kl_hosts_list(NULL, &list, &slurm, NULL), KILTER_OK);
    assert_true(slurm);
    assert_int_equal(list.at[1].slots, 4);
    kl_host_list_free(&list);
    assert_int_equal(kl_hosts_list("/no/such/list", &list, &slurm, &error), KILTER_ERR_INPUT);
    assert_true(strstr(error.text, "/no/such/list: No such file"));
    assert_int_equal(kl_hosts_list("/", &list, NULL, &error), KILTER_ERR_INPUT);
    unsetenv("SLURM_JOB_NODELIST");
    unsetenv("SLURM_JOB_CPUS_PER_NODE");
}

/* Hosts of a Slurm allocation must be reached by srun. The test puts a script named srun into PATH. */
static void hosts_of_an_allocation_are_reached_by_srun(void **state) {
    (void)state;
    char *folder;
    assert_int_equal(kl_private_dir(&folder, NULL), KILTER_OK);
    char *path = kl_text("%s/srun", folder), *before = kl_text("%s", getenv("PATH")),
         *with = kl_text("%s:%s", folder, before);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("#!/bin/sh\n[ \"$1 $2 $3 $4\" = '--overlap --nodes=1 --ntasks=1 --nodelist' ] || exit 1\n"
          "shift 5\nexec \"$@\"\n",
          file);
    assert_int_equal(fchmod(fileno(file), 0700), 0);
    assert_int_equal(fclose(file), 0);
    setenv("PATH", with, 1);
    kl_hosts *hosts = open_hosts("n1\nn2\n", (kl_hosts_options){.slurm = true});
    measure(hosts);
    assert_string_equal(kl_hosts_trouble(hosts, 0), "");
    assert_string_equal(kl_hosts_trouble(hosts, 1), "");
    kl_hosts_close(hosts);
    setenv("PATH", before, 1);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
    free(path);
    free(before);
    free(with);
    free(folder);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "hosts") ==
                        0) /* agents of this test run this program with "hosts" as first argument */
        return kl_hosts_serve(STDIN_FILENO, STDOUT_FILENO, NULL) == KILTER_OK ? EXIT_SUCCESS : EXIT_FAILURE;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_hosts_and_all_links_are_measured),
        cmocka_unit_test(links_are_left_out_on_request),
        cmocka_unit_test(hosts_in_trouble_are_unreachable_with_a_word),
        cmocka_unit_test(a_command_that_is_missing_is_named),
        cmocka_unit_test(an_agent_that_is_lost_is_replaced),
        cmocka_unit_test(what_the_program_measures_replaces_the_probe),
        cmocka_unit_test(closing_ends_all_agents),
        cmocka_unit_test(lists_come_from_files_and_from_slurm),
        cmocka_unit_test(hosts_of_an_allocation_are_reached_by_srun),
    };
    /* set the address to which ssh would have connected, so that agents listen only on the loopback interface
     */
    setenv("SSH_CONNECTION", "127.0.0.1 1 127.0.0.1 2", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
