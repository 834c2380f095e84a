/* Door of room loop: include/kilter/loop.h.
 *
 * A loop is made of parts. A part changes its own fields; others call its functions, or read. In this order
 * files may use those before them, never those after:
 *
 *     part         owner file     what it knows
 *     kl_rows      rows.c         memory of one array's rows, at global addresses
 *     kl_ranges    ranges.c       ranges of rows, in any order
 *     kl_sum       sum.c          the exact sum of doubles
 *     kl_layout    layout.c       where rows lie now and after the next exchange; the arrays and their room
 *     kl_group     group_mpi.c    the ranks: messages, reductions, waiting
 *     kl_detector  detector_mpi.c which rank died or gave up, and why
 *     kl_steps     steps_mpi.c    the collective calls made so far: all ranks make the same ones
 *     kl_meter     meter_mpi.c    what this rank measured since its last report, and in all
 *     kl_exchange  exchange_mpi.c halos and rows on their way, and for how many sweeps they are enough
 *     record       record_mpi.c   the run record, which rank 0 writes
 *     kl_loop_rounds rounds_mpi.c   reports, and the decisions made from them by room steer
 *     kl_work      ranged_mpi.c   one range of rows for each rank: what is done of a sweep
 *     kl_flow      pipeline_mpi.c blocks, passes, and which block is best
 *     kl_scatter   scatter_mpi.c  rows anywhere: transfers within a sweep
 *     kilter_loop  open_mpi.c     opens and closes all of them; attach_mpi.c: its arrays; sweep_mpi.c: one
 *                                 sweep; collect_mpi.c: sums and gathering; outcome_mpi.c: summary, failure
 *
 * Loops of the last three parts differ by a table of operations, kl_kind. */
#ifndef KL_LOOP_H
#define KL_LOOP_H

#include "base/base.h"
#include "kilter/loop.h"

#endif
