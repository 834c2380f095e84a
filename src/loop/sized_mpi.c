/* The loop's public functions that take structs. The size of such a struct depends on the version of Kilter
 * with which the program was compiled: see docs/decisions/0025-public-structs.md. */
#include "loop/loop_mpi.h"

/* Open a loop. Opening is collective: a rank with wrong options must tell the other ranks. */
kilter_status kilter_loop_open_sized(MPI_Comm comm, const kilter_loop_options *options, size_t bytes,
                                     kilter_loop **loop, kilter_error *error) {
    kilter_loop_options own;
    if (!options)
        return kl_loop_open(comm, NULL, loop, error);
    kilter_status taken = kl_struct_in(KL_STRUCT(kilter_loop_options, own), options, bytes, error);
    kilter_status status =
        kl_loop_open(comm, taken == KILTER_OK ? &own : NULL, loop, taken == KILTER_OK ? error : NULL);
    return taken == KILTER_OK ? status : taken;
}

/* Declare row content. Declaring is collective: a rank with a wrong struct must tell the other ranks. */
kilter_status kilter_loop_rows_sized(kilter_loop *loop, const kilter_loop_content *content, size_t bytes,
                                     kilter_error *error) {
    kilter_loop_content own;
    if (!content)
        return kl_loop_declare(loop, NULL, error);
    kilter_status taken = kl_struct_in(KL_STRUCT(kilter_loop_content, own), content, bytes, error);
    kilter_status status =
        kl_loop_declare(loop, taken == KILTER_OK ? &own : NULL, taken == KILTER_OK ? error : NULL);
    return taken == KILTER_OK ? status : taken;
}

void kilter_loop_summary_get_sized(const kilter_loop *loop, kilter_loop_summary *summary, size_t bytes) {
    kilter_loop_summary own;
    kl_loop_summary_get(loop, &own);
    kl_struct_out(summary, bytes, KL_STRUCT(kilter_loop_summary, own));
}
