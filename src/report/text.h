/* Private to the folder report: make a text from a record safe to print. */
#ifndef KL_REPORT_TEXT_H
#define KL_REPORT_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* Return the number of bytes of the first UTF-8 character of `s`; 0: the bytes are not a valid character, or
 * `s` is empty.
 */
size_t kl_utf8_bytes(const char *s);
/* Return the number of characters of a text, which must be valid UTF-8. */
size_t kl_utf8_columns(const char *s);
/* Copy at most `columns` characters of `from`. If the text is longer, "…" replaces the last character.
 * Control characters and invalid ones become '?'. `size`, the number of bytes at `to`, must be above
 * 4·columns. */
void kl_printable(char *to, size_t size, const char *from, size_t columns);

static inline const char *kl_plural(uint64_t count) { /* Return "s" unless `count` is 1. */
    return count == 1 ? "" : "s";
}

#endif
