/* A command for tools/map-box: use a given number of milliseconds of CPU time, and print the command's
 * number. The command adds a line to the file BEGUN when it begins, and a line to the file ENDED when it
 * ends. A line has the number, the host, the CPU time in seconds, and the times of beginning and end. These
 * two times are in seconds of a clock that all hosts share.
 *
 * usage: map_burn NUMBER MS BEGUN ENDED */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Write the whole line in one call, so that lines of several commands do not mix. */
static bool note(const char *file, const char *number, double cpu_s, double begin_s) {
    char host[64] = "", line[256];
    gethostname(host, sizeof host - 1);
    int size = snprintf(line, sizeof line, "%s %s %.4f %.4f %.4f\n", number, host, cpu_s, begin_s,
                        seconds(CLOCK_MONOTONIC));
    int fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    bool good = fd >= 0 && write(fd, line, (size_t)size) == size;
    if (fd >= 0)
        close(fd);
    return good;
}

int main(int argc, char **argv) {
    if (argc != 5)
        return 2;
    double begin_s = seconds(CLOCK_MONOTONIC), most_s = strtod(argv[2], NULL) / 1000;
    bool good = note(argv[3], argv[1], most_s, begin_s);
    while (seconds(CLOCK_PROCESS_CPUTIME_ID) < most_s)
        ;
    puts(argv[1]);
    return note(argv[4], argv[1], most_s, begin_s) && good ? EXIT_SUCCESS : EXIT_FAILURE;
}
