/* Private to room report: text that came from a file, made fit to print. */
#ifndef KL_REPORT_TEXT_H
#define KL_REPORT_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the UTF-8 character at `s`, which ends in NUL; 0 when it is none, or at the end. */
size_t kl_utf8_bytes(const char *s);
/* Characters in valid UTF-8. */
size_t kl_utf8_columns(const char *s);
/* Copy at most `columns` characters of `from`, "…" standing for what is cut, '?' for what a terminal would
 * obey or not show. `size` bytes at `to` hold them all when size > 4·columns. */
void kl_printable(char *to, size_t size, const char *from, size_t columns);

static inline const char *kl_plural(uint64_t count) { /* the ending of so many things */
    return count == 1 ? "" : "s";
}

#endif
