/* The beginning and the end of MPI itself, where Kilter starts it; and what each MPI needs so that ranks
 * outlive one that dies. Private to room transport. */
#ifndef KL_LAUNCH_MPI_H
#define KL_LAUNCH_MPI_H

#include <mpi.h>

#include "base/base.h"

/* How long MPI, and the farm's ranks after that, may take to get together. */
typedef struct kl_mpi_watchdog kl_mpi_watchdog;

/* Is the MPI of the program the one this library was compiled for? May be called before MPI_Init(), and must
 * come before any other call of MPI. KILTER_ERR_USAGE: it is not, or belongs to no MPI that was asked. */
kilter_status kl_mpi_check_library(const char *doing, kilter_error *error);
/* Does MPI see the processes the launcher started? KILTER_ERR_USAGE: the launcher is that of another MPI. MPI
 * runs. */
kilter_status kl_mpi_check_world(const char *doing, kilter_error *error);
/* Starts MPI when it is not running. *started: it was not. *watchdog: ends the process, with a word, when
 * kl_mpi_started() is not called in time; NULL where MPI ran already. */
kilter_status kl_mpi_start(bool *started, int *provided, kl_mpi_watchdog **watchdog, kilter_error *error);
void kl_mpi_started(kl_mpi_watchdog *watchdog); /* NULL does nothing */
/* How long ranks are waited for at the beginning: KILTER_MPI_START_S, or 300, as where that is wrong; 0: for
 * ever. */
kilter_status kl_mpi_patience_s(double *patience_s, kilter_error *error);
/* Ends MPI, unless that could wait for the dead for ever: then the process just exits, which is as good.
 * rank_failed: a rank is dead that MPI does not know to be. */
void kl_mpi_end(bool rank_failed);
/* Keep memory that MPI may still write into: a sanitizer is told that it, and what it points to, is no leak.
 */
void kl_mpi_keep(const void *memory);
/* What the user can do so that other ranks outlive one that dies; NULL: nothing is to be done. */
const char *kl_mpi_hint(void);
/* Is this how MPI says that a rank is dead? No MPI does without ULFM, and where that is not enabled. */
bool kl_mpi_says_dead(int code);

#endif
