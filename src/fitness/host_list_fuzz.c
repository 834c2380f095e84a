/* Fuzz target: read lists of hosts, as a file and as Slurm writes them. Names of an accepted list must be
 * safe on a command line, and each name must be found again. */
#include <stdlib.h>
#include <string.h>

#include "fitness/fitness.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(kl_host_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        const char *name = list->at[i].name;
        if (*name == '-' || strpbrk(name, " \t\r\n;'\"$`\\|&<>()*?") || strlen(name) >= KL_LISTED_BYTES ||
            kl_host_list_find(list, name) != i)
            __builtin_trap();
    }
    if (list->count == 0)
        __builtin_trap();
    kl_host_list_free(list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kl_host_list list;
    kilter_error error;
    if (kl_host_list_parse("file", (const char *)data, size, &list, &error) == KILTER_OK)
        check(&list);
    else if (!strstr(error.text, "file"))
        __builtin_trap();
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    char *numbers = strchr(text, '\n'); /* the second line of the input holds Slurm's numbers */
    if (numbers)
        *numbers++ = '\0';
    if (kl_host_list_slurm(text, numbers, &list, &error) == KILTER_OK)
        check(&list);
    free(text);
    return 0;
}
