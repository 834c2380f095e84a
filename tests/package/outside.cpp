// Check in C++ what outside.c checks in C: the headers must compile in C++, and the functions must have C
// linkage.
#include <cstdio>
#include <cstring>

#include <kilter/kilter.h>

using any_function = void (*)();

static const any_function functions[] = {
#define FUNCTION(name) reinterpret_cast<any_function>(name),
#include "functions.inc"
};

int main() {
    for (any_function function : functions)
        if (!function)
            return 1;
    if (std::strcmp(kilter_status_text(KILTER_OK), "done") != 0)
        return 1;
    kilter_farm_usage(stdout);
    std::printf("Kilter %s: %zu functions\n", KILTER_VERSION, sizeof functions / sizeof functions[0]);
    return 0;
}
