/* Start and end MPI, with the settings of each MPI that let the other ranks survive when one rank dies.
 * Private to the folder transport. */
#ifndef KL_LAUNCH_MPI_H
#define KL_LAUNCH_MPI_H

#include <mpi.h>

#include "base/base.h"

/* A watchdog: it ends the process if MPI and the farm's ranks have not started in time. */
typedef struct kl_mpi_watchdog kl_mpi_watchdog;

/* Check that the program's MPI is the MPI for which this library was compiled. This may be called before
 * MPI_Init(), and must come before any other call of MPI. KILTER_ERR_USAGE: the program's MPI is a different
 * or unknown one. */
kilter_status kl_mpi_check_library(const char *doing, kilter_error *error);
/* Check that MPI sees all processes that the launcher started. MPI must be running. KILTER_ERR_USAGE: the
 * launcher belongs to another MPI. */
kilter_status kl_mpi_check_world(const char *doing, kilter_error *error);
/* Start MPI if it is not running. *started: true if this call started it. *watchdog: ends the process with a
 * message unless kl_mpi_started() is called in time; NULL: MPI was running already. */
kilter_status kl_mpi_start(bool *started, int *provided, kl_mpi_watchdog **watchdog, kilter_error *error);
void kl_mpi_started(kl_mpi_watchdog *watchdog); /* stop the watchdog; NULL: do nothing */
/* Get the number of seconds to wait for all ranks at the start: KILTER_MPI_START_S, or 300 if it is unset.
 * 0: wait for ever. A value that is not valid is an error. */
kilter_status kl_mpi_patience_s(double *patience_s, kilter_error *error);
/* Wait until all ranks have come to their first common operation. There is no failure detector yet, so wait
 * for patience_s seconds at most. Report missing ranks on stderr after 10 s. With patience_s = 0, wait for
 * ever. KILTER_ERR_PEER: a rank has not come; MPI may still write to the operation's memory. */
kilter_status kl_mpi_await_ranks(MPI_Request *request, const char *doing, double patience_s,
                                 kilter_error *error);
/* End MPI, unless MPI could wait for a dead rank for ever. rank_failed: true if a rank is dead and MPI does
 * not know it. */
void kl_mpi_end(bool rank_failed);
/* Tell a leak checker that this memory, and memory that it points to, is not a leak, because MPI may still
 * write there. */
void kl_mpi_keep(const void *memory);
/* Return a hint how to start the program so that the other ranks survive when one dies. NULL: the program was
 * started in this way. */
const char *kl_mpi_hint(void);
/* Return whether this error code of MPI means that a rank is dead. Only an MPI with ULFM enabled returns
 * such codes. */
bool kl_mpi_says_dead(int code);

#endif
