/* filter [N [FRAMES]] [--picture FILE.pgm] [--output FILE.pgm]: remove salt-and-pepper noise from a series of
 * pictures with an adaptive median filter. The filter's window grows where there is much noise, so some rows
 * cost more than others. From frame to frame, the noise moves to other rows. Without --picture the program
 * draws a picture of N×N points itself. Rows move to the ranks that compute them fastest. */
#include <kilter/loop.h>

#include "loop_program.h"
#include "picture.h"

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
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    kilter_loop_options options = {
        .iterations = height, .fixed = set.fixed, .name = "filter", .record = set.record};
    kilter_loop *loop;
    kilter_error error;
    must(kilter_loop_open(MPI_COMM_WORLD, &options, &loop, &error), &error);
    uint8_t(*seen)[width], (*clean)[width];
    must(kilter_loop_array(loop, sizeof *seen, REACH, (void **)&seen, &error), &error);
    must(kilter_loop_array(loop, sizeof *clean, 0, (void **)&clean, &error), &error);
    kilter_range r;

    MPI_Barrier(MPI_COMM_WORLD);
    double begun_s = MPI_Wtime();
    for (int frame = 0; frame < set.sweeps; frame++) {
        for (size_t nth = 0; kilter_loop_mine(loop, nth, &r); nth++)
            for (size_t i = r.lo; i < r.hi; i++)
                take_row(&scene, frame, i, seen[i]);
        must(kilter_loop_begin(loop, &error), &error);
        while (kilter_loop_next(loop, &r)) {
            double from_s = cpu_s(&set);
            for (size_t i = r.lo; i < r.hi; i++)
                clean_row(width, height, i, &seen[i], clean[i]);
            pay(&set, from_s, (double)(r.hi - r.lo));
        }
        must(kilter_loop_end(loop, &error), &error);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double elapsed_s = MPI_Wtime() - begun_s;

    uint8_t(*whole)[width] = rank == 0 ? allocate(height, sizeof *whole) : NULL;
    must(kilter_loop_gather(loop, clean, 0, whole, &error), &error);
    uint8_t(*expected)[width] = rank == 0 && set.check ? sequential(&set, &scene) : NULL;
    int code = rank == 0 ? finish(&set, elapsed_s, whole, expected, height * sizeof *whole) : 0;
    if (rank == 0 && set.output)
        code |= save_picture(set.output, width, height, whole);
    if (rank == 0)
        say_summary(&set, loop);
    free(expected);
    free(whole);
    must(kilter_loop_close(loop, &error), &error);
    free(scene.points);
    MPI_Finalize();
    return code;
}
