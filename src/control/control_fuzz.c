/* Fuzz target: read any bytes as each kind of message. Writing an accepted message must give the same bytes
 * again. */
#include <string.h>

#include "control/talk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Check that the message, written again, has the bytes from which it was read. Then free the buffer. */
static void must_be(kl_buffer *again, const uint8_t *data, size_t size) {
    if (again->failed || again->size != size || memcmp(again->data, data, size) != 0)
        __builtin_trap();
    kl_buffer_free(again);
}

static void read_requests(const uint8_t *data, size_t size) {
    kl_control_setting setting;
    kl_control_drain drain;
    kl_decision note;
    kl_buffer again = {0};
    kl_talk_get_look(data, size);
    if (kl_talk_get_set(data, size, &setting)) {
        kl_talk_put_set(&again, &setting);
        must_be(&again, data, size);
    }
    if (kl_talk_get_drain(data, size, &drain)) {
        kl_talk_put_drain(&again, &drain);
        must_be(&again, data, size);
    }
    if (kl_talk_get_note(data, size, &note)) {
        kl_talk_put_note(&again, &note);
        must_be(&again, data, size);
    }
}

static void read_replies(const uint8_t *data, size_t size) {
    static kl_control_state state;
    char answer[KL_CONTROL_ANSWER_BYTES];
    kilter_error why;
    kl_buffer again = {0};
    if (kl_talk_get_state(data, size, &state)) {
        kl_talk_put_state(&again, &state);
        must_be(&again, data, size);
    }
    if (kl_talk_get_taken(data, size, answer)) {
        kl_talk_put_taken(&again, answer);
        must_be(&again, data, size);
    }
    if (kl_talk_get_refused(data, size, &why)) {
        kl_talk_put_refused(&again, &why);
        must_be(&again, data, size);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint32_t version;
    kl_talk_kind(data, size, &version);
    read_requests(data, size);
    read_replies(data, size);
    return 0;
}
