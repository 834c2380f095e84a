/* Write and read results of commands as bytes. */
#include <string.h>

#include "map/map.h"

#define RESULT(X)                                                                                            \
    X(u64, number)                                                                                           \
    X(u32, slot)                                                                                             \
    X(u32, end)                                                                                              \
    X(u32, code)                                                                                             \
    X(u32, signal)                                                                                           \
    X(time, began_s)                                                                                         \
    X(time, took_s)                                                                                          \
    X(u64, out_bytes)                                                                                        \
    X(u64, err_bytes)                                                                                        \
    X(label, host)                                                                                           \
    X(label, why)                                                                                            \
    X(text, out_file)                                                                                        \
    X(text, err_file)

void kl_map_put_result(kl_buffer *out, const kl_map_result *m) {
    RESULT(KL_PUT_MEMBER)
    kl_put_span(out, m->out.data, m->out.size);
    kl_put_span(out, m->err.data, m->err.size);
}

bool kl_map_get_result(kilter_bytes bytes, kl_map_result *m) {
    kl_reader reader = kl_reader_of(bytes.data, bytes.size), *r = &reader;
    RESULT(KL_GET_MEMBER)
    m->out.data = kl_get_span(r, &m->out.size);
    m->err.data = kl_get_span(r, &m->err.size);
    return kl_reader_done(r) && m->end <= KL_MAP_STOPPED && m->code <= 255 && m->signal <= 127;
}

bool kl_map_succeeded(const kl_map_result *r) {
    return r->end == KL_MAP_EXITED && r->code == 0 && r->signal == 0;
}

uint32_t kl_map_exit_code(const kl_map_result *r) {
    if (r->end == KL_MAP_NOT_STARTED)
        return 127;
    if (r->end == KL_MAP_LOST_OUTPUT && r->code == 0 && r->signal == 0)
        return 1;
    return r->signal > 0 ? 128 + r->signal : r->code;
}
