/* For tests: let CLP read the MPS file that kilter-sp writes. Include this after cmocka.h. */
#ifndef SP_READ_ELSEWHERE_H
#define SP_READ_ELSEWHERE_H

#include <stdlib.h>
#include <unistd.h>

#include <Clp_C_Interface.h>

#include "extensive.h"

/* Write the program as MPS, read it, and return the model; the caller frees it with Clp_deleteModel(). */
static inline Clp_Simplex *read_elsewhere(const sp_problem *problem, const sp_program *program) {
    char path[] = "/tmp/kilter_mps_XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    FILE *out = fdopen(file, "w");
    sp_extensive_write(out, problem, program);
    assert_int_equal(fclose(out), 0);
    Clp_Simplex *model = Clp_newModel();
    Clp_setLogLevel(model, 0);
    assert_int_equal(Clp_readMps(model, path, 0, 0), 0);
    unlink(path);
    assert_int_equal(Clp_numberRows(model), program->rows);
    assert_int_equal(Clp_numberColumns(model), program->columns);
    return model;
}

#endif
