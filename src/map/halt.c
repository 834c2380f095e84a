/* Decide when a run of commands is ended early, by the halt rule of the user. */
#include <stdlib.h>
#include <string.h>

#include "map/map.h"

static bool read_amount(const char *text, kl_map_halt *halt) {
    char *end;
    double value = strtod(text, &end);
    if (*text < '0' || *text > '9' || !(value > 0))
        return false;
    if (strcmp(end, "%") == 0 && value <= 100)
        halt->part = value / 100;
    else if (*end == '\0')
        halt->count = value;
    else
        return false;
    return true;
}

/* Read a halt rule in one of the older forms of GNU parallel: 0, 1, 2, −1, −2 or 20%. */
static bool read_older(const char *text, kl_map_halt *halt) {
    static const kl_map_halting WHEN[] = {KL_MAP_GO_ON, KL_MAP_SOON, KL_MAP_NOW};
    bool success = *text == '-';
    const char *digit = text + success;
    if (digit[0] >= '0' && digit[0] <= '2' && digit[1] == '\0') {
        halt->when = WHEN[*digit - '0'];
        halt->why = success ? KL_MAP_ON_SUCCESS : KL_MAP_ON_FAIL;
        halt->count = 1;
        return true;
    }
    halt->when = KL_MAP_SOON;
    return strchr(text, '%') && read_amount(text, halt);
}

static bool skip(const char **text, const char *word) {
    size_t size = strlen(word);
    if (strncmp(*text, word, size) != 0)
        return false;
    *text += size;
    return true;
}

bool kl_map_read_halt(const char *text, kl_map_halt *halt) {
    *halt = (kl_map_halt){0};
    if (strcmp(text, "never") == 0)
        return true;
    if (skip(&text, "now,"))
        halt->when = KL_MAP_NOW;
    else if (skip(&text, "soon,"))
        halt->when = KL_MAP_SOON;
    else
        return read_older(text, halt);
    if (skip(&text, "fail="))
        halt->why = KL_MAP_ON_FAIL;
    else if (skip(&text, "success="))
        halt->why = KL_MAP_ON_SUCCESS;
    else if (skip(&text, "done="))
        halt->why = KL_MAP_ON_DONE;
    else
        return false;
    return read_amount(text, halt);
}

kl_map_halting kl_map_halts(const kl_map_halt *halt, uint64_t failed, uint64_t succeeded, uint64_t total) {
    uint64_t ended = failed + succeeded;
    uint64_t of_kind = halt->why == KL_MAP_ON_FAIL ? failed : succeeded;
    double count = (double)(halt->why == KL_MAP_ON_DONE ? ended : of_kind);
    if (halt->when == KL_MAP_GO_ON)
        return KL_MAP_GO_ON;
    double limit = halt->part > 0 ? halt->part * (double)total : halt->count;
    return count >= limit ? halt->when : KL_MAP_GO_ON;
}

bool kl_map_read_size(const char *text, uint64_t *bytes) {
    static const char UNITS[] = "KMGT";
    char *end;
    double value = strtod(text, &end);
    const char *unit = *end ? strchr(UNITS, *end) : NULL;
    for (const char *at = UNITS; unit && at <= unit; at++)
        value *= 1000;
    if (*text < '0' || *text > '9' || (*end && (!unit || end[1])) || !(value >= 1 && value < 1e18))
        return false;
    *bytes = (uint64_t)value;
    return true;
}
