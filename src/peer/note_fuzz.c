/* Fuzz target: read any bytes as a message between peers. A valid message must be the same after it was
 * written and read again. */
#include <string.h>

#include "peer/note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kl_note note = {0}, again = {0};
    kl_buffer bytes = {0}, more = {0};
    if (kl_note_get(data, size, 1000000, &note)) {
        kl_note_put(&bytes, &note);
        if (!kl_note_get(bytes.data, bytes.size, 1000000, &again))
            __builtin_trap();
        kl_note_put(&more, &again);
        if (bytes.size != more.size || memcmp(bytes.data, more.data, bytes.size) != 0)
            __builtin_trap();
    }
    kl_buffer_free(&bytes);
    kl_buffer_free(&more);
    kl_note_free(&note);
    kl_note_free(&again);
    return 0;
}
