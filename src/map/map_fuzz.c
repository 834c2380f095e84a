/* Fuzz target: fill any values into any command, read any text as a halt rule, and any bytes as a result. A
 * command without a shell must have a program name that is not empty. An accepted result must be written as
 * the same bytes. */
#include <stdlib.h>
#include <string.h>

#include "map/map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fill_in(const char *command, const char *values, size_t columns, bool quoted) {
    kl_map_template *t = NULL;
    kl_buffer line = {0}, words = {0};
    const kl_map_fill fill = {1, 2, 3, values, columns};
    if (kl_map_template_new(*command != '\0', &command, quoted, &t, NULL) != KILTER_OK)
        return;
    kl_map_put_line(t, &fill, &line);
    size_t count = kl_map_put_words(t, &fill, &words);
    if (count > 0 && (words.data[0] == '\0' || words.data[words.size - 1] != '\0'))
        __builtin_trap();
    kl_buffer_free(&line);
    kl_buffer_free(&words);
    kl_map_template_free(t);
}

static void read_result(const uint8_t *data, size_t size) {
    kl_map_result result;
    kl_buffer again = {0};
    if (!kl_map_get_result((kilter_bytes){data, size}, &result))
        return;
    kl_map_put_result(&again, &result);
    kl_map_result second;
    if (!kl_map_get_result((kilter_bytes){again.data, again.size}, &second) || second.number != result.number)
        __builtin_trap();
    kl_buffer_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 2);
    kl_map_halt halt;
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = text[size + 1] = '\0';
    size_t command = strlen(text) + 1, rest = size + 2 - command;
    size_t columns = kl_map_count_texts(text + command, rest);
    fill_in(text, text + command, columns, false);
    fill_in(text, text + command, columns, true);
    kl_map_read_halt(text, &halt);
    read_result(data, size);
    free(text);
    return 0;
}
