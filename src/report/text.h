/* Private to room report: make text of a file printable. */
#ifndef KL_REPORT_TEXT_H
#define KL_REPORT_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* Return the number of bytes of the UTF-8 character at the front of `s`, which ends in NUL; 0: not valid, or
 * the end. */
size_t kl_utf8_bytes(const char *s);
/* Return the number of characters in valid UTF-8. */
size_t kl_utf8_columns(const char *s);
/* Copy at most `columns` characters of `from`. "…" replaces what is cut, '?' a control or invalid character.
 * `size` bytes at `to` suffice if size > 4·columns. */
void kl_printable(char *to, size_t size, const char *from, size_t columns);

static inline const char *kl_plural(uint64_t count) { /* Return "s" unless `count` is 1. */
    return count == 1 ? "" : "s";
}

#endif
