/* Private to the folder report: make text from a file printable. */
#ifndef KL_REPORT_TEXT_H
#define KL_REPORT_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* Return the number of bytes of the first UTF-8 character of `s`, which ends with NUL; 0: it is not valid,
 * or the text has ended. */
size_t kl_utf8_bytes(const char *s);
/* Return the number of characters in valid UTF-8. */
size_t kl_utf8_columns(const char *s);
/* Copy at most `columns` characters of `from`. The character … replaces text that is cut off; '?' replaces
 * a control character or an invalid one. The memory at `to` needs more than 4·columns bytes, given as
 * `size`. */
void kl_printable(char *to, size_t size, const char *from, size_t columns);

static inline const char *kl_plural(uint64_t count) { /* Return "s" unless `count` is 1. */
    return count == 1 ? "" : "s";
}

#endif
