/* Link every public function, and call the functions that need no farm. The file functions.inc lists these
 * functions; it is made from the headers. */
#include <stdio.h>
#include <string.h>

#include <kilter/kilter.h>

typedef void (*any_function)(void);

static const struct {
    const char *name;
    any_function function;
} functions[] = {
#define FUNCTION(name) {#name, (any_function)name},
#include "functions.inc"
};

int main(void) {
    size_t count = sizeof functions / sizeof functions[0];
    for (size_t i = 0; i < count; i++)
        if (!functions[i].function)
            return fprintf(stderr, "the function %s has no address\n", functions[i].name), 1;
    if (strcmp(kilter_status_text(KILTER_OK), "done") != 0)
        return 1;
    kilter_error none = {KILTER_OK, ""};
    if (kilter_exit("outside", &none) != 0)
        return 1;
    kilter_farm_usage(stdout);
    printf("Kilter %s: %zu functions\n", KILTER_VERSION, count);
    return 0;
}
