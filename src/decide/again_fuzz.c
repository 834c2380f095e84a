/* Fuzz target: make decisions again from recorded inputs, because records may come from anywhere. The
 * fuzzer's bytes are rows: length (two bytes), kind of decision, count, inputs. */
#include "decide/decide.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void decide(kl_again *again, kl_reader *reader) {
    size_t size = kl_get_u8(reader);
    size |= (size_t)kl_get_u8(reader) << 8;
    kl_recorded row = {.decision.kind = kl_get_u8(reader) % KL_DECISION_KINDS};
    row.decision.count = kl_get_u8(reader);
    if (size > reader->size - reader->at)
        size = reader->size - reader->at;
    row.grounds = (kilter_bytes){kl_get_bytes(reader, size), size};
    kl_answer answer;
    kl_again_decide(again, &row, &answer);
    if (!answer.missing && answer.decision.kind >= KL_DECISION_KINDS)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kl_reader reader = kl_reader_of(data, size);
    kl_again *again = kl_again_new(size % 2 ? kl_policy_find("ect") : NULL);
    while (again && reader.at < reader.size && !reader.bad)
        decide(again, &reader);
    kl_again_free(again);
    return 0;
}
