/* Use a loop with structs that are longer or shorter than the library's structs; see sizes_test.sh. Print
 * "kept" at the end. */
#include "sizes.h"

#include <kilter/loop.h>

enum { ROWS = 50 };

static kilter_loop *open_loop(void) {
    GUARDED(kilter_loop_options) options;
    PREPARE_INPUT(options);
    options.it.iterations = ROWS;
    options.it.name = "sized";
    kilter_loop *loop = NULL;
    kilter_error error = {KILTER_OK, ""};
    SET_LATER(&options.it, 1);
    if (KNOWS_LATER) {
        CHECK(kilter_loop_open(MPI_COMM_WORLD, &options.it, &loop, &error) == KILTER_ERR_USAGE && !loop);
        CHECK(strstr(error.text, "kilter_loop_options: the program sets a member that this Kilter"));
    }
    SET_LATER(&options.it, 0);
    if (kilter_loop_open(MPI_COMM_WORLD, &options.it, &loop, &error) != KILTER_OK)
        wrong(__FILE__, __LINE__, error.text);
    CHECK(UNTOUCHED(options));
    return loop;
}

static uint64_t bytes_of(uint64_t row, void *user) {
    (void)user;
    return row;
}

static bool pack(uint64_t row, void *to, void *user) {
    (void)user;
    memset(to, 1, row);
    return true;
}

static bool unpack(uint64_t row, const void *from, uint64_t bytes, void *user) {
    (void)user;
    return from && bytes == row;
}

static void drop(uint64_t row, void *user) {
    (void)row, (void)user;
}

static void declare_content(kilter_loop *loop) {
    GUARDED(kilter_loop_content) content;
    PREPARE_INPUT(content);
    content.it.bytes = bytes_of;
    content.it.pack = pack;
    content.it.unpack = unpack;
    content.it.drop = drop;
    kilter_error error = {KILTER_OK, ""};
    if (kilter_loop_rows(loop, &content.it, &error) != KILTER_OK)
        wrong(__FILE__, __LINE__, error.text);
    CHECK(UNTOUCHED(content));
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    kilter_loop *loop = open_loop();
    void *base;
    declare_content(loop);
    CHECK(kilter_loop_array(loop, sizeof(double), 0, &base, NULL) == KILTER_OK);
    for (int sweep = 0; sweep < 3; sweep++) {
        CHECK(kilter_loop_begin(loop, NULL) == KILTER_OK);
        for (kilter_range r; kilter_loop_next(loop, &r);)
            for (uint64_t i = r.lo; i < r.hi; i++)
                ((double *)base)[i] += 1;
        CHECK(kilter_loop_end(loop, NULL) == KILTER_OK);
    }
    double sum;
    CHECK(kilter_loop_sum(loop, base, &sum, NULL) == KILTER_OK && sum == 3.0 * ROWS);
    GUARDED(kilter_loop_summary) summary;
    PREPARE_OUTPUT(summary);
    kilter_loop_summary_get(loop, &summary.it);
    CHECK(summary.it.executions == 3 && UNTOUCHED(summary) && LATER_IS_ZERO(&summary.it));
    CHECK(kilter_loop_close(loop, NULL) == KILTER_OK);
    puts("kept");
    MPI_Finalize();
    return 0;
}
