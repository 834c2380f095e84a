/* Keep, sort and collide the particles of a row of cells. */
#include "row.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- particles --- */

bool dsmc_row_reserve(dsmc_row *row, uint32_t count) {
    if (count <= row->room)
        return true;
    if (count > UINT32_MAX / 2)
        return false;
    uint32_t room = count + count / 4 + 32;
    double *block = malloc((size_t)room * DSMC_PARTS * sizeof *block);
    if (!block)
        return false;
    for (int k = 0; k < DSMC_PARTS; k++) {
        if (row->count > 0)
            memcpy(block + (size_t)k * room, row->part[k], row->count * sizeof *block);
    }
    free(row->part[0]);
    for (int k = 0; k < DSMC_PARTS; k++)
        row->part[k] = block + (size_t)k * room;
    row->room = room;
    return true;
}

bool dsmc_row_add(dsmc_row *row, const dsmc_point *p) {
    if (!dsmc_row_reserve(row, row->count + 1))
        return false;
    const double member[DSMC_PARTS] = {p->x, p->y, p->u, p->v, p->w, p->rotation};
    for (int k = 0; k < DSMC_PARTS; k++)
        row->part[k][row->count] = member[k];
    row->count++;
    return true;
}

dsmc_point dsmc_row_at(const dsmc_row *row, uint32_t i) {
    return (dsmc_point){row->part[0][i], row->part[1][i], row->part[2][i],
                        row->part[3][i], row->part[4][i], row->part[5][i]};
}

void dsmc_row_free(dsmc_row *row) {
    free(row->part[0]);
    *row = (dsmc_row){.here = false};
}

/* --- cells --- */

bool dsmc_row_sort(dsmc_row *row, dsmc_row *sorted, uint32_t cells, uint32_t *first) {
    if (!dsmc_row_reserve(sorted, row->count))
        return false;
    memset(first, 0, (cells + 1) * sizeof *first);
    for (uint32_t i = 0; i < row->count; i++)
        first[(uint32_t)row->part[0][i] + 1]++;
    for (uint32_t c = 0; c < cells; c++)
        first[c + 1] += first[c];
    for (uint32_t i = 0; i < row->count; i++) {
        uint32_t to = first[(uint32_t)row->part[0][i]]++;
        for (int k = 0; k < DSMC_PARTS; k++)
            sorted->part[k][to] = row->part[k][i];
    }
    /* now first[c] is the first particle of cell c + 1, so shift all entries by one */
    for (uint32_t c = cells; c > 0; c--)
        first[c] = first[c - 1];
    first[0] = 0;
    dsmc_row old = *row;
    *row = *sorted;
    row->count = old.count;
    row->here = old.here;
    *sorted = old;
    sorted->count = 0;
    return true;
}

/* --- collisions --- */

/* Let two particles collide: rotation may exchange energy with the relative motion, and the particles fly
 * apart in a random direction. */
static void collide(dsmc_row *row, uint32_t i, uint32_t j, double squared, const dsmc_collisions *how,
                    kilter_random *random) {
    double apart[3], motion = squared / 4;
    if (how->exchange > 0) {
        for (int side = 0; side < 2; side++)
            if (kilter_random_uniform(random) < how->exchange)
                motion = dsmc_share_energy(&how->gas, random, &row->part[5][side == 0 ? i : j], motion);
        squared = 4 * motion;
    }
    dsmc_scatter(random, sqrt(squared), apart);
    for (int k = 0; k < 3; k++) {
        double *velocity = row->part[2 + k], mean = (velocity[i] + velocity[j]) / 2;
        velocity[i] = mean + apart[k] / 2;
        velocity[j] = mean - apart[k] / 2;
    }
}

/* Choose a random pair, and let it collide with a probability proportional to the volume that it sweeps. The
 * two halves of one random number choose the particles. */
static bool try_pair(dsmc_row *row, uint32_t lo, uint32_t count, const dsmc_collisions *how, dsmc_cell *cell,
                     kilter_random *random) {
    uint64_t bits = kilter_random_bits(random);
    uint32_t i = (uint32_t)(((bits >> 32) * count) >> 32);
    uint32_t j = (uint32_t)(((bits & 0xffffffff) * (count - 1)) >> 32);
    i += lo;
    j += lo;
    j += j >= i;
    double du = row->part[2][i] - row->part[2][j], dv = row->part[3][i] - row->part[3][j],
           dw = row->part[4][i] - row->part[4][j];
    double squared = du * du + dv * dv + dw * dw;
    double swept = how->factor * pow(squared, how->power);
    bool collides = kilter_random_uniform(random) * cell->most < swept;
    if (swept > cell->most)
        cell->most = swept;
    if (collides)
        collide(row, i, j, squared, how, random);
    return collides;
}

uint64_t dsmc_row_collide(dsmc_row *row, const dsmc_cells *cells, const dsmc_collisions *how,
                          kilter_random *random) {
    uint64_t collided = 0;
    for (uint32_t c = 0; c < cells->count; c++) {
        dsmc_cell *cell = &cells->cell[c];
        uint32_t lo = cells->first[c], count = cells->first[c + 1] - lo;
        if (count < 2 || cells->volume[c] <= 0)
            continue;
        double pairs = 0.5 * count * (count - 1.0) * cell->most / cells->volume[c] + cell->left;
        for (; pairs >= 1; pairs--)
            collided += try_pair(row, lo, count, how, cell, random);
        cell->left = pairs;
    }
    return collided;
}
