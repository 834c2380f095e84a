/* Test that a process's MPI is found from the environment that launchers set, and from version texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "transport/mpi_kind.h"
#include "transport/transport.h"

static const char *const VARIABLES[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE",  "MV2_COMM_WORLD_SIZE",
                                        "MPI_LOCALNRANKS",      "PMIX_RANK", "KILTER_MPI"};

static void launch(const char *const settings[]) { /* NAME, VALUE, …, NULL */
    for (size_t i = 0; i < sizeof VARIABLES / sizeof *VARIABLES; i++)
        unsetenv(VARIABLES[i]);
    for (size_t i = 0; settings[i]; i += 2)
        setenv(settings[i], settings[i + 1], 1);
}

static void launchers_are_told_by_the_environment(void **state) {
    static const struct {
        const char *settings[7];
        kl_mpi_kind kind;
        long launched;
    } cases[] = {
        {{NULL}, KL_MPI_UNKNOWN, 1},
        {{"OMPI_COMM_WORLD_SIZE", "4", "PMIX_RANK", "0"}, KL_MPI_OPENMPI, 4},
        {{"OMPI_COMM_WORLD_SIZE", "1", "PMIX_RANK", "0"}, KL_MPI_OPENMPI, 1},
        {{"PMI_SIZE", "3", "MPI_LOCALNRANKS", "3"}, KL_MPI_MPICH, 3},
        {{"PMI_SIZE", "3", "MPI_LOCALNRANKS", "1"}, KL_MPI_MPICH, 3},
        /* PMI_SIZE is no sign of an MPI, because Slurm sets it for ranks of every MPI */
        {{"PMI_SIZE", "3"}, KL_MPI_UNKNOWN, 3},
        {{"PMIX_RANK", "5"}, KL_MPI_UNKNOWN, 6},
        {{"MV2_COMM_WORLD_SIZE", "2"}, KL_MPI_UNKNOWN, 2},
        {{"OMPI_COMM_WORLD_SIZE", "2", "PMI_SIZE", "3", "MPI_LOCALNRANKS", "3"},
         KL_MPI_UNKNOWN,
         2}, /* the variables of two launchers are set, because one launcher started the other */
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        launch(cases[i].settings);
        assert_int_equal(kl_mpi_of_launcher(), cases[i].kind);
        assert_int_equal(kl_mpi_launched(), cases[i].launched);
    }
}

static void mpis_are_told_by_their_version(void **state) {
    static const struct {
        const char *text;
        kl_mpi_kind kind;
    } cases[] = {
        {"Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4", KL_MPI_OPENMPI},
        {"MPICH Version:\t4.0.2\nMPICH Release date:\tThu Apr  7 12:34:45 CDT 2022", KL_MPI_MPICH},
        {"CRAY MPICH version 8.1.25.17 (ANL base 3.4a2)", KL_MPI_MPICH},
        {"Intel(R) MPI Library 2021.9 for Linux* OS\n", KL_MPI_MPICH},
        {"MVAPICH2 Version      :\t2.3.7\n", KL_MPI_MPICH},
        {"SMPI Version 3.32. Copyright The SimGrid Team 2007-2022", KL_MPI_UNKNOWN},
        {"", KL_MPI_UNKNOWN},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(kl_mpi_of_version(cases[i].text), cases[i].kind);
}

/* Test the only part of opening a transport that needs no MPI; tests/package/mpis_test.sh tests the other
 * parts. */
static void an_unknown_name_is_refused(void **state) {
    static const char *const settings[] = {"KILTER_MPI", "lam", NULL};
    kilter_error error = {KILTER_OK, ""};
    kl_transport *transport = NULL;
    int rank = -1, size = -1;
    (void)state;
    launch(settings);
    assert_int_equal(kl_mpi_open(0, &rank, &size, &transport, &error), KILTER_ERR_USAGE);
    assert_non_null(strstr(error.text, "Kilter does not know the MPI 'lam'"));
    assert_null(transport);
    assert_int_equal(rank, -1);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(launchers_are_told_by_the_environment),
        cmocka_unit_test(mpis_are_told_by_their_version),
        cmocka_unit_test(an_unknown_name_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
