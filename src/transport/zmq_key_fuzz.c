/* Fuzz target: read any text as a key file, because people copy these files by hand. An accepted key must be
 * the same after it is written and read again. */
#include <string.h>

#include "transport/transport.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kl_key key, again;
    kl_buffer text = {0};
    kilter_error error = {0};
    if (kl_key_parse((const char *)data, size, "fuzz.key", &key, &error) != KILTER_OK) {
        if (!strstr(error.text, "fuzz.key"))
            __builtin_trap();
        return 0;
    }
    kl_key_write(&key, true, &text);
    if (*key.server_secret &&
        kl_key_parse((const char *)text.data, text.size, "fuzz.key", &again, NULL) != KILTER_OK)
        __builtin_trap();
    if (*key.server_secret && memcmp(&key, &again, sizeof key) != 0)
        __builtin_trap();
    kl_buffer_free(&text);
    return 0;
}
