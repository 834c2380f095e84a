/* The folder loop has its public header in include/kilter/loop.h. The folder rank decides which actions a
 * rank takes. The folder loop carries out the actions with MPI. A loop has several parts. Only the functions
 * of a part change its fields. Other parts call these functions, or read the fields. A file may use only its
 * own part and the parts that are listed before it:
 *
 *     part         owner file      what it knows
 *     kl_rows      rows.c          memory of one array's rows, at global addresses
 *     kl_memory    memory.c        memory of all arrays
 *     kl_posts     posts.c         messages between rows, in order
 *     kl_fold      fold.c          values of rows, combined in a fixed order
 *     kl_group     group_mpi.c     the ranks: messages, reductions, waiting
 *     kl_detector  detector_mpi.c  which rank died or gave up, and why
 *     kl_steps     steps_mpi.c     the collective calls made so far: all ranks make the same ones
 *     kl_rank      folder rank     the state machine, which decides a rank's actions
 *     record       record_mpi.c    the run record, which rank 0 writes
 *     -            content_mpi.c   packs and unpacks rows of changing size
 *     -            drive_mpi.c     the driver: carries out the rank's actions
 *     -            messages_mpi.c  measures the cost of messages before the first sweep
 *     -            handle_mpi.c    options, handles, and the bundle that aligned loops share
 *     -            follow_mpi.c    loops that follow another loop
 *     kilter_loop  open_mpi.c      opens and closes these parts; attach_mpi.c: its arrays; sweep_mpi.c: one
 *                                  sweep; deliver_mpi.c: messages between rows; collect_mpi.c: sums;
 *                                  reduce_mpi.c: reductions; gather_mpi.c: gathers and scatters rows;
 *                                  outcome_mpi.c: summary, failure
 */
#ifndef KL_LOOP_H
#define KL_LOOP_H

#include "base/base.h"
#include "kilter/loop.h"

#endif
