/* Fuzz target: read any bytes as a message of each kind. */
#include "move/move.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_results(const uint8_t *data, size_t size) {
    kl_results_head head;
    if (!kl_wire_check_results(data, size, &head))
        return;
    kl_reader reader = kl_wire_read_results(data, size);
    for (uint32_t i = 0; i < head.segments; i++) {
        kl_segment segment;
        bool failed;
        kilter_bytes bytes;
        if (!kl_wire_next_segment(&reader, &segment))
            __builtin_trap(); /* a message that passes the check must be readable to its end */
        for (uint64_t k = 0; k < segment.count; k++)
            if (!kl_wire_next_result(&reader, &failed, &bytes))
                __builtin_trap();
    }
    if (!kl_reader_done(&reader))
        __builtin_trap();
}

static void read_peers(const uint8_t *data, size_t size) {
    kl_peers_head head;
    kl_ranges tasks = {0};
    kl_note_head note;
    kl_where where;
    kl_wanted wanted;
    kl_reader inputs;
    kilter_bytes bytes;
    uint64_t number;
    kl_wire_get_peers(data, size, &head, &tasks);
    kl_ranges_free(&tasks);
    kl_wire_get_note(data, size, &note, &bytes);
    kl_wire_get_where(data, size, &where);
    kl_wire_get_number(data, size, &number);
    kl_wire_get_wanted(data, size, &wanted);
    if (kl_wire_get_inputs(data, size, &wanted, &inputs))
        for (uint64_t i = wanted.lo; i < wanted.hi; i++)
            if (!kl_get_span(&inputs, &bytes.size) && bytes.size > 0)
                __builtin_trap(); /* a message that passes the check must be readable to its end */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kl_hello hello;
    kl_chunk_head head;
    kl_reader weights, inputs;
    char text[40];
    kl_welcome welcome;
    uint64_t hash;
    kilter_bytes bytes;
    kl_part part;
    kl_heartbeat heartbeat;
    kl_wire_get_shared(data, size, &hash, &bytes);
    kl_wire_get_part(data, size, &part);
    kl_wire_get_heartbeat(data, size, &heartbeat);
    kl_wire_type(data, size);
    kl_wire_get_hello(data, size, &hello);
    kl_wire_get_welcome(data, size, &welcome);
    kl_wire_get_text(data, size, text, sizeof text);
    kl_wire_get_chunk(data, size, &head, &weights, &inputs);
    read_results(data, size);
    read_peers(data, size);
    return 0;
}
