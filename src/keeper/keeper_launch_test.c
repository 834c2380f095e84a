/* Test the command lines that start ranks, and reading the output of Slurm's commands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "keeper/keeper.h"

static char *const PROGRAM[] = {"./solver", "a b", NULL};
static char *const OWN[] = {"launch", "-n{ranks}", "{hosts}", "-f={hostfile}", "{other}", NULL};
static char *const VARIABLES[] = {"KILTER_KEEP", "KILTER_X", NULL};
static const kl_keeper_host HOSTS[] = {
    {.name = "a", .ranks = 2}, {.name = "b", .ranks = 0}, {.name = "c.site", .ranks = 1}};

static void words_are(const kl_launch *launch, const char *wanted) {
    char **words = kl_launch_words(launch), line[1024] = "";
    assert_non_null(words);
    for (size_t i = 0; words[i]; i++)
        snprintf(line + strlen(line), sizeof line - strlen(line), "%s[%s]", "", words[i]);
    assert_string_equal(line, wanted);
    kl_launch_words_free(words);
}

static void each_launcher_has_its_command_line(void **state) {
    (void)state;
    kl_launch l = {.program = PROGRAM, .hosts = HOSTS, .count = 3, .ranks = 3, .hostfile = "/k/hosts"};
    l.kind = KL_LAUNCH_OPENMPI;
    l.variables = VARIABLES;
    words_are(&l,
              "[mpirun][--mca][odls_base_sigkill_timeout][0][--bind-to][none][--host][a:2,c.site:1][-n][3]"
              "[-x][KILTER_KEEP][-x][KILTER_X][./solver][a b]");
    l.command = "/opt/bin/mpirun  -q --bind-to core";
    l.variables = NULL;
    words_are(&l, "[/opt/bin/mpirun][-q][--bind-to][core][--mca][odls_base_sigkill_timeout][0]"
                  "[--host][a:2,c.site:1][-n][3][./solver][a b]");
    l.kind = KL_LAUNCH_MPICH;
    l.command = NULL;
    words_are(&l, "[mpiexec][-hosts][a:2,c.site:1][-n][3][./solver][a b]");
    l.kind = KL_LAUNCH_SRUN;
    l.mpi = "pmix";
    words_are(
        &l,
        "[srun][--kill-on-bad-exit=1][--mpi][pmix][-n][3][-N][2][--distribution=arbitrary][./solver][a b]");
    l.ranks = 0;
    l.mpi = NULL;
    words_are(&l, "[srun][--kill-on-bad-exit=1][./solver][a b]");
    l = (kl_launch){.kind = KL_LAUNCH_OWN,
                    .program = OWN,
                    .hosts = HOSTS,
                    .count = 3,
                    .ranks = 3,
                    .hostfile = "/k/hosts"};
    words_are(&l, "[launch][-n3][a:2,c.site:1][-f=/k/hosts][{other}]");
}

static void a_hostfile_has_a_line_for_each_rank(void **state) {
    (void)state;
    kl_buffer text = {0};
    kl_launch_hostfile(&(kl_launch){.hosts = HOSTS, .count = 3}, &text);
    kl_put_u8(&text, 0);
    assert_string_equal((const char *)text.data, "a\na\nc.site\n");
    kl_buffer_free(&text);
}

static void an_mpi_is_recognised(void **state) {
    (void)state;
    const struct {
        const char *bytes;
        kl_launcher kind;
    } programs[] = {{"..libmpi.so.40..", KL_LAUNCH_OPENMPI},
                    {"libmpich.so.12", KL_LAUNCH_MPICH},
                    {"xlibkilter-openmpi.so.1", KL_LAUNCH_OPENMPI},
                    {"libkilter-mpich.so.1", KL_LAUNCH_MPICH},
                    {"libmpi.so.40 libmpich.so.12", KL_LAUNCH_OWN},
                    {"libmpi.s", KL_LAUNCH_OWN},
                    {"", KL_LAUNCH_OWN}};
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        assert_int_equal(kl_launcher_of_program(programs[i].bytes, strlen(programs[i].bytes)),
                         programs[i].kind);
    assert_int_equal(kl_launcher_of_version("mpirun (Open MPI) 4.1.4\n"), KL_LAUNCH_OPENMPI);
    assert_int_equal(kl_launcher_of_version("HYDRA build details:\n"), KL_LAUNCH_MPICH);
    assert_int_equal(kl_launcher_of_version("GNU bash"), KL_LAUNCH_OWN);
}

/* --- Slurm --- */

static void times_of_slurm_are_read(void **state) {
    (void)state;
    const struct {
        const char *text;
        double seconds;
    } rows[] = {{"0:00", 0},       {"4:05", 245},
                {"1:02:03", 3723}, {"2-03:04:05", 183845},
                {"1-00", 86400},   {"1-02:03", 93780},
                {"UNLIMITED", -1}, {"", -1},
                {"5", -1},         {"1:", -1},
                {"1-", -1},        {"1:2:3:4", -1},
                {"INVALID", -1},   {"9999999999:00", -1},
                {"1-2:3:4x", -1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (kl_slurm_time_s(rows[i].text) != rows[i].seconds)
            fail_msg("%s: %g", rows[i].text, kl_slurm_time_s(rows[i].text));
}

static void each_state_of_a_job_has_a_stage(void **state) {
    (void)state;
    const struct {
        kl_slurm_stage stage;
        const char *states; /* the states of this stage, separated by spaces */
    } rows[] = {
        {KL_SLURM_WAITS, "PENDING CONFIGURING POWER_UP_NODE REQUEUED REQUEUE_FED REQUEUE_HOLD RESV_DEL_HOLD "
                         "SPECIAL_EXIT"},
        {KL_SLURM_RUNS, "RUNNING RESIZING SIGNALING"},
        {KL_SLURM_PAUSED, "SUSPENDED STOPPED COMPLETING STAGE_OUT"},
        {KL_SLURM_OVER, "BOOT_FAIL CANCELLED COMPLETED DEADLINE FAILED LAUNCH_FAILED NODE_FAIL OUT_OF_MEMORY "
                        "PREEMPTED RECONFIG_FAIL REVOKED TIMEOUT"},
        {KL_SLURM_UNKNOWN, "RUN running PENDINGS ?"},
    };
    assert_int_equal(kl_slurm_stage_of(""), KL_SLURM_UNKNOWN);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (const char *at = rows[i].states; *at; at += *at == ' ') {
            char name[32];
            size_t bytes = strcspn(at, " ");
            snprintf(name, sizeof name, "%.*s", (int)bytes, at);
            if (kl_slurm_stage_of(name) != rows[i].stage)
                fail_msg("%s is %d", name, kl_slurm_stage_of(name));
            at += bytes;
        }
}

static void jobs_are_read(void **state) {
    (void)state;
    const struct {
        const char *line;
        bool read;
        kl_slurm_stage stage;
        double left_s;
        const char *partition, *nodes;
    } rows[] = {
        {"RUNNING|1:00:00|main|n[1-2]\n", true, KL_SLURM_RUNS, 3600, "main", "n[1-2]"},
        {"PENDING|8:00:00|a,b|\n", true, KL_SLURM_WAITS, 0, "a,b", ""},
        {"COMPLETING|0:30|main|n1", true, KL_SLURM_PAUSED, 30, "main", "n1"},
        {"FAILED|0:30|main|n1", true, KL_SLURM_OVER, 0, "main", "n1"},
        {"RUNNING|UNLIMITED|main|n1", true, KL_SLURM_RUNS, 0, "main", "n1"},
        {"RUNNING|1:00:00", false, KL_SLURM_UNKNOWN, 0, "", ""},
        {"slurm_load_jobs error: Invalid job id specified", false, KL_SLURM_UNKNOWN, 0, "", ""},
        {"", false, KL_SLURM_UNKNOWN, 0, "", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kl_slurm_job job;
        assert_int_equal(kl_slurm_job_read(rows[i].line, &job), rows[i].read);
        assert_int_equal(job.stage, rows[i].stage);
        assert_true(job.left_s == rows[i].left_s);
        if (rows[i].read)
            assert_string_equal(job.partition, rows[i].partition);
        if (rows[i].read)
            assert_string_equal(job.nodes, rows[i].nodes);
    }
}

static void nodes_are_read(void **state) {
    (void)state;
    const char *text =
        "n1|idle|2|0.10|main*|big,gpu\n\nn2|allocated|4|3.90|main*|(null)\nnonsense\n"
        "n3|draining|2|N/A|side|\nn4|down*|2|N/A|side|\nn5|idle*|2|0.0|side|\nn6|drained|2|0|side|\n";
    const struct {
        const char *name;
        bool idle, used, leaving, gone, is_default;
    } rows[] = {{"n1", true, false, false, false, true},  {"n2", false, true, false, false, true},
                {"n3", false, false, true, false, false}, {"n4", false, false, false, true, false},
                {"n5", false, false, false, true, false}, {"n6", false, false, true, false, false}};
    kl_slurm_node node;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_true(kl_slurm_node_read(&text, &node));
        assert_string_equal(node.name, rows[i].name);
        assert_int_equal(node.idle, rows[i].idle);
        assert_int_equal(node.used, rows[i].used);
        assert_int_equal(node.leaving, rows[i].leaving);
        assert_int_equal(node.gone, rows[i].gone);
        assert_int_equal(node.is_default, rows[i].is_default);
        assert_string_equal(node.partition, rows[i].is_default ? "main" : "side");
        assert_string_equal(node.features, i == 0 ? "big,gpu" : i == 1 ? "(null)" : "");
    }
    assert_false(kl_slurm_node_read(&text, &node));
}

static void options_of_sbatch_are_found(void **state) {
    (void)state;
    const struct {
        const char *options;
        bool given;
        const char *value;
    } rows[] = {{"-p a,b -N 2", true, "a,b"},
                {"-N2 -pa", true, "a"},
                {"--partition=a", true, "a"},
                {"--partition a --nodes 2", true, "a"},
                {"-p 'a b' -p \"c d\"", true, "c d"},
                {"--partitions=a -N 2", false, ""},
                {"-p", true, ""},
                {"", false, ""}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char value[KL_KEEPER_TEXT_BYTES];
        assert_int_equal(kl_slurm_option(rows[i].options, "partition", 'p', value), rows[i].given);
        assert_string_equal(value, rows[i].value);
    }
    assert_null(kl_slurm_refused("-N 2 -t 10 --no-requeue --waiting --mem=2G -w n1"));
    assert_string_equal(kl_slurm_refused("-N 2 --requeue"), "requeue");
    assert_string_equal(kl_slurm_refused("-N 2 -o out"), "output");
}

static void lists_of_hosts_are_expanded(void **state) {
    (void)state;
    const struct {
        const char *list, *names; /* names: the expanded list; NULL: the list is refused */
    } rows[] = {{"", ""},
                {"n1", "n1"},
                {"n[1-3],m", "n1,n2,n3,m"},
                {"n[08-10,12]x,o", "n08x,n09x,n10x,n12x,o"},
                {"n[1-2", NULL},
                {"n1]", NULL},
                {"n[a]", NULL},
                {"n[3-1]", NULL},
                {"n[1-2]m[1-2]", NULL},
                {"./file", NULL},
                {"[1]", NULL},
                {"n[1-999999999]", NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kl_buffer names = {0};
        assert_int_equal(kl_slurm_expand(rows[i].list, &names), rows[i].names != NULL);
        if (rows[i].names)
            assert_string_equal((const char *)names.data, rows[i].names);
        kl_buffer_free(&names);
    }
}

static void constraints_choose_nodes(void **state) {
    (void)state;
    const struct {
        const char *constraint, *features;
        bool fits;
    } rows[] = {{"", "(null)", true}, {"a", "b,a", true},    {"a", "ab", false},
                {"a&b", "a", false},  {"a&b", "b,a", true},  {"a&b|c", "c", true},
                {"a|b", "c", false},  {"[a|b]", "a", false}, {"a*2", "a", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(kl_slurm_has_features(rows[i].constraint, rows[i].features), rows[i].fits);
}

static void a_job_is_named_and_its_number_found(void **state) {
    (void)state;
    char name[KL_SLURM_NAME_BYTES], job[KL_SLURM_JOB_BYTES];
    kl_slurm_name("-N 2", "./bin/solver", 0x12, name);
    assert_string_equal(name, "solver-0000000000000012");
    kl_slurm_name("-J 'my run,1'", "./solver", 1, name);
    assert_string_equal(name, "my_run_1-0000000000000001");
    const struct {
        const char *text, *job;
    } rows[] = {{"123\n", "123"},
                {"123;cluster\n", "123"},
                {"the queue is long\n45\n", "45"},
                {"sbatch: 12 nodes are down\n", ""},
                {"12 nodes are down\n", ""},
                {"", ""}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(kl_slurm_number(rows[i].text, job), *rows[i].job != '\0');
        assert_string_equal(job, rows[i].job);
    }
    assert_true(
        kl_slurm_is_unclear("sbatch: error: Batch job submission failed: Socket timed out on send/recv"));
    assert_true(kl_slurm_is_unclear("sbatch: error: Unable to contact slurm controller (connect failure)"));
    assert_false(
        kl_slurm_is_unclear("sbatch: error: Batch job submission failed: Invalid partition specified"));
}

static void the_number_of_nodes_is_found(void **state) {
    (void)state;
    const struct {
        const char *options;
        uint32_t least, most;
    } rows[] = {
        {"-N 4 -t 8:00:00", 4, 4}, {"-t 1 -N2-4", 2, 4}, {"--nodes=3", 3, 3}, {"--nodes 2-5 -p x", 2, 5},
        {"-t 10", 0, 0},           {"", 0, 0},           {"-N x", 0, 0},      {"-N 4-2", 4, 4}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t least, most;
        kl_slurm_nodes_wanted(rows[i].options, &least, &most);
        assert_int_equal(least, rows[i].least);
        assert_int_equal(most, rows[i].most);
    }
}

static void a_job_has_its_program_and_says_how_it_ended(void **state) {
    (void)state;
    char *const variables[] = {"KILTER_KEEP=/k/it's", NULL};
    kl_buffer text = {0};
    kl_slurm_script_put(
        &(kl_slurm_script){
            .folder = "/w w", .keep = "/k", .step = "'srun' './x'", .variables = variables, .attempt = 3},
        &text);
    kl_put_u8(&text, 0);
    const char *const parts[] = {"#!/bin/sh\n",
                                 "cd '/w w' || exit 126\n",
                                 "export KILTER_KEEP='/k/it'\\''s'\n",
                                 "keep='/k'\nattempt=3\n",
                                 "\"number\":3999,",
                                 "${SLURM_RESTART_COUNT:-0}",
                                 "'srun' './x' &\n",
                                 "attempt %s\\nhow exited\\ncode %s"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strstr((const char *)text.data, parts[i]))
            fail_msg("%s lacks %s", (const char *)text.data, parts[i]);
    kl_buffer_free(&text);
}

/* --- files of names and values --- */

static void ends_come_back(void **state) {
    (void)state;
    const kl_keeper_end ends[] = {{1, KL_KEEPER_EXITED, 3},
                                  {2, KL_KEEPER_SIGNALLED, 9},
                                  {3, KL_KEEPER_MISSING, 0},
                                  {4, KL_KEEPER_REFUSED, 0},
                                  {1u << 30, KL_KEEPER_LOST, 0}};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        kl_buffer text = {0};
        kl_keeper_end got;
        kl_put_end(&text, &ends[i]);
        assert_true(kl_get_end((const char *)text.data, text.size, &got));
        assert_memory_equal(&got.attempt, &ends[i].attempt, sizeof got.attempt);
        assert_int_equal(got.how, ends[i].how);
        assert_int_equal(got.code, ends[i].code);
        for (size_t size = 0; size + 8 < text.size;
             size++) /* a text that is cut off must be refused or give the same result */
            if (kl_get_end((const char *)text.data, size, &got))
                assert_true(got.attempt == ends[i].attempt && got.how == ends[i].how);
        kl_buffer_free(&text);
    }
}

static void a_bad_line_ends_the_reading(void **state) {
    (void)state;
    const char *const texts[] = {"name\n",     "name \n",        " value\n",
                                 "name value", "na\tme value\n", "name va\x01lue\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        kl_fields fields = kl_fields_of(texts[i], strlen(texts[i]));
        kl_field field;
        bool bad;
        assert_false(kl_fields_next(&fields, &field, &bad));
        assert_true(bad);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_launcher_has_its_command_line),
        cmocka_unit_test(a_hostfile_has_a_line_for_each_rank),
        cmocka_unit_test(an_mpi_is_recognised),
        cmocka_unit_test(times_of_slurm_are_read),
        cmocka_unit_test(each_state_of_a_job_has_a_stage),
        cmocka_unit_test(jobs_are_read),
        cmocka_unit_test(options_of_sbatch_are_found),
        cmocka_unit_test(lists_of_hosts_are_expanded),
        cmocka_unit_test(constraints_choose_nodes),
        cmocka_unit_test(a_job_is_named_and_its_number_found),
        cmocka_unit_test(nodes_are_read),
        cmocka_unit_test(the_number_of_nodes_is_found),
        cmocka_unit_test(a_job_has_its_program_and_says_how_it_ended),
        cmocka_unit_test(ends_come_back),
        cmocka_unit_test(a_bad_line_ends_the_reading),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
