/* Declarations that the readers of CORE, TIME and STOCH (smps*.c) share. No other file includes this header.
 */
#ifndef SP_SMPS_PARTS_H
#define SP_SMPS_PARTS_H

#include "smps_lines.h"

typedef struct sp_core_row {
    char type; /* N, E, L or G, as in the section ROWS */
    bool rhs_given, range_given;
    double rhs, range;
    /* 1 + the index of the last column that has an entry in this row; 0: no column has an entry yet */
    int seen_in;
    double last; /* value of the entry of column seen_in − 1 in this row */
} sp_core_row;

typedef struct sp_core_column {
    double cost, lower, upper;
    bool lower_given, upper_given;
    uint64_t bound_line; /* number of the line with the last bound of the column */
    size_t first;        /* index of the column's first entry among all entries of CORE */
} sp_core_column;

typedef struct sp_core_entry {
    int row;
    uint32_t line; /* number of the entry's line; a file has fewer than 2^32 lines */
    double value;
} sp_core_entry;

/* CORE as in the file, before it is split into stages. Names point into the file's bytes. */
typedef struct sp_core {
    sp_names row_names, column_names;
    sp_core_row *row;
    sp_core_column *column;
    sp_core_entry *entry;
    size_t row_capacity, column_capacity, entry_capacity, entries;
    int objective; /* index of the objective's row; −1: there was no such row yet */
    double constant;
    sp_token rhs_set, range_set, bound_set;
} sp_core;

/* The contents of TIME: where stage 2 begins in CORE, and the names of the periods. */
typedef struct sp_time {
    int row, column; /* row, column: indices in CORE of the first row and column of period 2 */
    sp_token period[2];
} sp_time;

/* Read the file CORE into `core`. The caller must free `core`, also after a failure. */
kilter_status sp_core_read(const sp_file *file, sp_core *core, kilter_error *error);
void sp_core_free(sp_core *core);
kilter_status sp_time_read(const sp_file *file, const sp_core *core, sp_time *time, kilter_error *error);

/* The place of a row or column of CORE: its stage, 0 or 1, and its index within the stage; the stage is −1
 * for rows of type N. */
typedef struct sp_place {
    int stage, index;
} sp_place;

typedef struct sp_layout {
    sp_place *row, *column;
} sp_layout;

/* Read the file STOCH, and fill in the problem's random numbers (targets), variables, outcomes and values
 * (changes). */
kilter_status sp_stoch_read(const sp_file *file, const sp_core *core, const sp_time *time,
                            const sp_layout *layout, sp_problem *problem, kilter_error *error);

#endif
