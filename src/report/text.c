#include "report/text.h"
#include "report/print.h"

#include <stdint.h>
#include <string.h>

/* Return the number of bytes of a UTF-8 character as section 4 of RFC 3629 defines it. Overlong forms,
 * surrogates and characters above U+10FFFF are invalid. */
size_t kl_utf8_bytes(const char *text) {
    const uint8_t *s = (const uint8_t *)text;
    if (s[0] == 0)
        return 0;
    if (s[0] < 0x80)
        return 1;
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    size_t bytes = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    for (size_t i = 1; i < bytes; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
        (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return bytes;
}

size_t kl_utf8_columns(const char *s) {
    size_t columns = 0;
    for (; *s; s++)
        columns += ((uint8_t)*s & 0xc0) != 0x80;
    return columns;
}

/* Return whether the character is a C0 or C1 control character. */
static int is_control(const char *s, size_t bytes) {
    const uint8_t *u = (const uint8_t *)s;
    return (bytes == 1 && (u[0] < 0x20 || u[0] == 0x7f)) || (bytes == 2 && u[0] == 0xc2 && u[1] < 0xa0);
}

void kl_printable(char *to, size_t size, const char *from, size_t columns) {
    static const char ellipsis[] = "…";
    size_t at = 0, last = 0; /* last: offset at which the last column begins */
    for (size_t done = 0; *from && done < columns && at + sizeof ellipsis + 1 < size; done++) {
        size_t bytes = kl_utf8_bytes(from);
        last = at;
        if (bytes == 0 || is_control(from, bytes)) {
            to[at++] = '?';
            from += bytes ? bytes : 1;
        } else {
            memcpy(to + at, from, bytes);
            at += bytes;
            from += bytes;
        }
    }
    if (*from && columns > 0) {
        memcpy(to + last, ellipsis, sizeof ellipsis);
        return;
    }
    to[at] = '\0';
}

kl_shown kl_shown_name(const char *name) {
    kl_shown shown;
    kl_printable(shown.text, sizeof shown.text, name, sizeof shown.text / 4 - 1);
    return shown;
}
