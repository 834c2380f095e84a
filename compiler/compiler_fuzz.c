/* Fuzz target: read a C program, decide on its loops, and make the parallel program. Input that includes
 * other files is skipped. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "emit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int file = -1;
static char path[64];

static bool open_file(void) {
    if (file >= 0)
        return ftruncate(file, 0) == 0 && lseek(file, 0, SEEK_SET) == 0;
    file = memfd_create("program", 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return file >= 0;
}

static bool is_alone(const uint8_t *data, size_t size) { /* does the program include no other file? */
    static const char *const words[] = {"include", "embed", "import", "??", "\\"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (memmem(data, size, words[i], strlen(words[i])))
            return false;
    return size < 16384;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const flags[] = {"-xc", "-nostdinc", "-ferror-limit=1", "-fbracket-depth=128"};
    kilter_error error;
    if (!is_alone(data, size) || !open_file() || write(file, data, size) != (ssize_t)size)
        return -1;
    kc_unit *unit = calloc(1, sizeof *unit);
    FILE *out = fopen("/dev/null", "w");
    if (!unit || !out)
        abort();
    if (kc_unit_open(unit, path, flags, sizeof flags / sizeof *flags, &error) == KILTER_OK) {
        kc_explain(unit, out);
        kc_emit(unit, out, &error);
    }
    kc_unit_close(unit);
    free(unit);
    fclose(out);
    return 0;
}
