/* Fuzz target: read any bytes as a signal. If they are a signal, writing it and reading it again must give
 * the same signal. */
#include <string.h>

#include "move/move.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kl_signal signal, again;
    char text[KL_SIGNAL_BYTES], more[KL_SIGNAL_BYTES], name[KL_SIGNAL_BYTES], prefix[KL_SIGNAL_BYTES];
    if (!kl_signal_get(data, size, &signal))
        return 0;
    size_t bytes = kl_signal_put(&signal, text);
    if (bytes >= sizeof text || !kl_signal_get(text, bytes, &again) || kl_signal_put(&again, more) != bytes)
        __builtin_trap();
    bool same = signal.offers == again.offers && signal.run == again.run && signal.peer == again.peer &&
                signal.to == again.to && signal.left == again.left;
    kl_signal_name(&signal, name);
    kl_signal_prefix(&signal, prefix);
    if (!same || strncmp(name, prefix, strlen(prefix)) != 0)
        __builtin_trap();
    return 0;
}
