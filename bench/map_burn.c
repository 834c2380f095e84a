/* A command for tools/map-box: use a given number of milliseconds of CPU time. Print the number of the
 * command, then a line for the file LOG with the number, the host, the CPU time, and begin and end on the
 * clock that all hosts share. usage: map_burn NUMBER MS LOG */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char **argv) {
    char host[64] = "", line[256];
    if (argc != 4)
        return 2;
    double begin_s = seconds(CLOCK_MONOTONIC), most_s = strtod(argv[2], NULL) / 1000;
    gethostname(host, sizeof host - 1);
    while (seconds(CLOCK_PROCESS_CPUTIME_ID) < most_s)
        ;
    int size = snprintf(line, sizeof line, "%s %s %.4f %.4f %.4f\n", argv[1], host, most_s, begin_s,
                        seconds(CLOCK_MONOTONIC));
    int file = open(argv[3], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    bool good =
        file >= 0 && write(file, line, (size_t)size) == size; /* one write, so that lines do not mix */
    printf("%s\n", argv[1]);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
