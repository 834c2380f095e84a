/* Fuzz target: read any bytes as the output of a shell on another host, and as requests to an agent. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "hosts/lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const char *line) {
    kl_answer answer;
    kl_request request;
    char again[KL_LINE_BYTES];
    kl_answer_read(line, &answer);
    if (answer.reading.cores < 1 || answer.reading.probe > 1 || answer.trip_s < 0 || answer.bytes_per_s < 0 ||
        answer.address.port > 65535 || strpbrk(answer.address.addresses, " ;\n") ||
        (answer.kind == KL_LINE_NOISE && strpbrk(answer.noise, "\n\033")))
        __builtin_trap();
    kl_answer_reading(again, &answer.reading, &answer.address);
    if (!strchr(again, '\n'))
        __builtin_trap();
    kl_request_read(line, &request);
    if (!(request.probe_s >= 0 && request.probe_s <= 10) || request.partner.port > 65535)
        __builtin_trap();
    kl_request_link(again, request.round, &request.partner);
    if (!strchr(again, '\n'))
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kl_liner liner = {.size = 0};
    char line[KL_LINE_BYTES];
    for (size_t at = 0; at < size;) {
        size_t room = sizeof liner.text - liner.size, piece = size - at < room ? size - at : room;
        memcpy(liner.text + liner.size, data + at, piece);
        liner.size += piece;
        at += piece;
        while (kl_liner_next(&liner, line))
            check(line);
        if (liner.size == sizeof liner.text)
            __builtin_trap();
    }
    return 0;
}
