/* Fuzz target: read any bytes as each file of a keep folder. An accepted file is written again, and reading
 * it again must give the same values. */
#include <stdlib.h>
#include <string.h>

#include "ckpt/ckpt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds) {
    if (!holds)
        __builtin_trap();
}

static void read_request(const char *text, size_t size) {
    kl_keep_request r, again;
    kl_buffer out = {.size = 0};
    if (kl_keep_request_parse(text, size, &r, NULL) != KILTER_OK)
        return;
    must(kl_keep_request_print(&r, &out));
    must(kl_keep_request_parse((const char *)out.data, out.size, &again, NULL) == KILTER_OK);
    must(r.number == again.number && r.what == again.what);
    kl_buffer_free(&out);
}

static void read_progress(const char *text, size_t size) {
    kl_keep_progress p, again;
    kl_buffer out[2] = {{.size = 0}, {.size = 0}};
    if (kl_keep_progress_parse(text, size, &p, NULL) != KILTER_OK)
        return;
    must(kl_keep_progress_print(&p, &out[0]));
    must(kl_keep_progress_parse((const char *)out[0].data, out[0].size, &again, NULL) == KILTER_OK);
    must(kl_keep_progress_print(&again, &out[1]));
    must(out[0].size == out[1].size && memcmp(out[0].data, out[1].data, out[0].size) == 0);
    kl_keep_progress_free(&p);
    kl_keep_progress_free(&again);
    kl_buffer_free(&out[0]);
    kl_buffer_free(&out[1]);
}

/* Read any bytes as the name of a file in the folder of the checkpoints. */
static void read_name(const uint8_t *data, size_t size) {
    uint64_t generation;
    char *name = malloc(size + 1);
    must(name != NULL);
    memcpy(name, data, size);
    name[size] = '\0';
    must(!kl_ckpt_generation_of("c", name, &generation) || generation > 0);
    free(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    read_request((const char *)data, size);
    read_progress((const char *)data, size);
    read_name(data, size);
    return 0;
}
