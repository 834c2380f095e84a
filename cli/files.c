/* Files that commands write. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "sys/sys.h"

int kl_cmd_save(const char *file, const char *data, size_t size) {
    if (strcmp(file, "-") == 0) {
        fwrite(data, 1, size, stdout);
        return kl_cmd_printed();
    }
    kl_new_file picture;
    kilter_error error = {KILTER_OK, ""};
    kilter_status status = kl_new_file_open(file, &picture, &error);
    if (status == KILTER_OK) {
        fwrite(data, 1, size, picture.out);
        status = kl_new_file_end(&picture, true, &error);
    }
    if (status != KILTER_OK)
        fprintf(stderr, "kilter: %s\n", error.text);
    return status == KILTER_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

int kl_cmd_printed(void) {
    bool failed = ferror(stdout) != 0;
    if (fflush(stdout) == 0 && !failed)
        return EXIT_SUCCESS;
    fprintf(stderr, "kilter: writing to the standard output: %s; make room there\n", strerror(errno));
    return EXIT_FAILURE;
}
