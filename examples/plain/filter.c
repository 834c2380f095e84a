/* filter [N [FRAMES]] [--picture FILE.pgm] [--output FILE.pgm]: remove salt-and-pepper noise from a series of
 * pictures with an adaptive median filter. The filter's window grows where there is much noise, so some rows
 * cost more than others. From frame to frame, the noise moves to other rows. Without --picture the program
 * draws a picture of N×N points itself. The rows are distributed; a rank also needs REACH rows on each side
 * of its own. */
#include "examples/loop_program.h"
#include "examples/picture.h"

static void *sequential(const settings *set, const picture *scene) {
    size_t width = scene->width, height = scene->height;
    uint8_t(*seen)[width] = allocate(height, sizeof *seen), (*clean)[width] = allocate(height, sizeof *clean);
    for (int frame = 0; frame < set->sweeps; frame++) {
        for (size_t i = 0; i < height; i++)
            take_row(scene, frame, i, seen[i]);
        for (size_t i = 0; i < height; i++)
            clean_row(width, height, i, &seen[i], clean[i]);
    }
    free(seen);
    return clean;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    settings set = read_settings(argc, argv, (settings){.program = "filter", .n = 512, .sweeps = 10});
    picture scene = open_picture(&set);
    size_t width = scene.width, height = scene.height;
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (height < REACH * (size_t)ranks)
        refuse(&set, "N", "a rank has fewer rows than the filter reads on each side; start fewer ranks");
    int counts[ranks], starts[ranks];
    for (int r = 0; r < ranks; r++) {
        starts[r] = (int)(height * (size_t)r / (size_t)ranks);
        counts[r] = (int)(height * ((size_t)r + 1) / (size_t)ranks) - starts[r];
    }
    size_t lo = (size_t)starts[rank], own = (size_t)counts[rank];
    int before = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    int after = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
    int edge = (int)(REACH * width);
    uint8_t(*seen)[width] =
        allocate(own + 2 * REACH, sizeof *seen); /* the rows lo − REACH … lo + own + REACH − 1 */
    uint8_t(*clean)[width] = allocate(own, sizeof *clean);

    MPI_Barrier(MPI_COMM_WORLD);
    double begun_s = MPI_Wtime();
    for (int frame = 0; frame < set.sweeps; frame++) {
        for (size_t i = 0; i < own; i++)
            take_row(&scene, frame, lo + i, seen[i + REACH]);
        MPI_Request requests[4];
        MPI_Status statuses[4];
        MPI_Irecv(seen[0], edge, MPI_BYTE, before, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(seen[own + REACH], edge, MPI_BYTE, after, 0, MPI_COMM_WORLD, &requests[1]);
        MPI_Isend(seen[REACH], edge, MPI_BYTE, before, 0, MPI_COMM_WORLD, &requests[2]);
        MPI_Isend(seen[own], edge, MPI_BYTE, after, 0, MPI_COMM_WORLD, &requests[3]);
        MPI_Waitall(4, requests, statuses);
        double from_s = cpu_s(&set);
        for (size_t i = 0; i < own; i++)
            clean_row(width, height, lo + i, &seen[i + REACH], clean[i]);
        pay(&set, from_s, (double)own);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double elapsed_s = MPI_Wtime() - begun_s;

    MPI_Datatype row;
    MPI_Type_contiguous((int)width, MPI_BYTE, &row);
    MPI_Type_commit(&row);
    uint8_t(*whole)[width] = rank == 0 ? allocate(height, sizeof *whole) : NULL;
    MPI_Gatherv(clean, (int)own, row, whole, counts, starts, row, 0, MPI_COMM_WORLD);
    MPI_Type_free(&row);
    uint8_t(*expected)[width] = rank == 0 && set.check ? sequential(&set, &scene) : NULL;
    int code = rank == 0 ? finish(&set, elapsed_s, whole, expected, height * sizeof *whole) : 0;
    if (rank == 0 && set.output)
        code |= save_picture(set.output, width, height, whole);
    free(expected);
    free(whole);
    free(seen);
    free(clean);
    free(scene.points);
    MPI_Finalize();
    return code;
}
