/* Starting and ending MPI, and the settings with which ranks of each MPI outlive a rank that dies. Private to
 * room transport. */
#ifndef KL_LAUNCH_MPI_H
#define KL_LAUNCH_MPI_H

#include <mpi.h>

#include "base/base.h"

/* Limits the seconds in which MPI and the farm's ranks must start. */
typedef struct kl_mpi_watchdog kl_mpi_watchdog;

/* Check that the program's MPI is the one this library was compiled for. May be called before MPI_Init(), and
 * must come before any other call of MPI. KILTER_ERR_USAGE: it is another or an unknown MPI. */
kilter_status kl_mpi_check_library(const char *doing, kilter_error *error);
/* Check that MPI, which is running, sees the processes that the launcher started. KILTER_ERR_USAGE: the
 * launcher belongs to another MPI. */
kilter_status kl_mpi_check_world(const char *doing, kilter_error *error);
/* Start MPI if it is not running. *started: it was not running. *watchdog ends the process with a message
 * unless kl_mpi_started() is called in time; NULL: MPI was running. */
kilter_status kl_mpi_start(bool *started, int *provided, kl_mpi_watchdog **watchdog, kilter_error *error);
void kl_mpi_started(kl_mpi_watchdog *watchdog); /* NULL does nothing */
/* Get the seconds to wait for ranks at the start: KILTER_MPI_START_S, or 300 if that is unset or wrong; 0:
 * for ever. */
kilter_status kl_mpi_patience_s(double *patience_s, kilter_error *error);
/* End MPI. If that could wait for a dead rank for ever, exit the process instead. rank_failed: a rank is dead
 * and MPI does not know it. */
void kl_mpi_end(bool rank_failed);
/* Tell a leak checker that this memory, to which MPI may still write, is no leak, and neither is memory that
 * it points to. */
void kl_mpi_keep(const void *memory);
/* Return a sentence on what the user can do so that ranks outlive a rank that dies; NULL: there is nothing to
 * do. */
const char *kl_mpi_hint(void);
/* Return whether this error code of MPI says that a rank is dead. Only an MPI with ULFM enabled returns such
 * codes. */
bool kl_mpi_says_dead(int code);

#endif
