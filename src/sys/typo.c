/* Mistyped names of options, commands and variables: find the name that was probably meant. */
#include <string.h>

#include "sys/options.h"

enum { NAME_MOST = 40, SHORT_NAME = 5 };

static size_t least(size_t a, size_t b, size_t c) {
    return a < b ? (a < c ? a : c) : b < c ? b : c;
}

/* Return the number of typing errors that turn `a` into `b`. A letter that is changed, added, left out or
 * swapped with the next one is one error. */
static size_t distance(const char *a, const char *b) {
    size_t rows[3][NAME_MOST + 1], lengths[2] = {strlen(a), strlen(b)};
    if (lengths[0] > NAME_MOST || lengths[1] > NAME_MOST)
        return NAME_MOST;
    for (size_t j = 0; j <= lengths[1]; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= lengths[0]; i++) {
        size_t *now = rows[i % 3], *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= lengths[1]; j++) {
            now[j] = least(last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < now[j])
                now[j] = before[j - 2] + 1;
        }
    }
    return rows[lengths[0] % 3][lengths[1]];
}

const char *kl_typo_of(const char *word, const char *const *names, size_t count) {
    const char *nearest = NULL;
    size_t most = strlen(word) > SHORT_NAME ? 2 : 1;
    for (size_t i = 0; i < count; i++) {
        size_t apart = distance(word, names[i]);
        if (apart == 0)
            return NULL;
        if (apart <= most) {
            /* from now on, only a name with fewer differences can replace the one just found */
            most = apart - 1;
            nearest = names[i];
        }
    }
    return nearest;
}

const char *kl_typo_of_option(kl_option_list list, const char *word) {
    enum { MOST = 64 };
    const char *names[MOST];
    size_t count = 0;
    for (size_t i = 0; i < list.count && count < MOST; i++)
        names[count++] = list.row[i].name;
    return kl_typo_of(word, names, count);
}

static bool is_among(const char *word, size_t length, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strlen(names[i]) == length && strncmp(word, names[i], length) == 0)
            return true;
    return false;
}

void kl_typo_warn_environment(FILE *out, char *const *variables, const char *const *names, size_t count) {
    static const char BEGIN[] = "KILTER_", TEST[] = "KILTER_TEST_";
    for (; variables && *variables; variables++) {
        size_t length = strcspn(*variables, "=");
        if (strncmp(*variables, BEGIN, strlen(BEGIN)) != 0 || strncmp(*variables, TEST, strlen(TEST)) == 0 ||
            is_among(*variables, length, names, count))
            continue;
        char word[2 * NAME_MOST] = "";
        if (length < sizeof word)
            memcpy(word, *variables, length);
        const char *meant = kl_typo_of(word, names, count);
        fprintf(out, "kilter: %.*s: there is no such variable%s%s%s\n", (int)(length < 200 ? length : 200),
                *variables, meant ? "; did you mean " : "", meant ? meant : "", meant ? "?" : "");
    }
}

void kl_typo_warn_argument(FILE *out, const char *argument, kl_option_list list) {
    char word[2 * NAME_MOST] = "";
    if (strncmp(argument, "--", 2) != 0)
        return;
    size_t length = strcspn(argument + 2, "=");
    if (length == 0 || length >= sizeof word)
        return;
    memcpy(word, argument + 2, length);
    const char *meant = kl_typo_of_option(list, word);
    if (meant)
        fprintf(out, "kilter: --%s is left to the program; did you mean --%s?\n", word, meant);
}
