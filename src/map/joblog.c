/* The log of commands, as GNU parallel writes it. */
#include <stdio.h>
#include <string.h>

#include "map/map.h"

const char kl_map_joblog_head[] =
    "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n";

void kl_map_put_joblog(kl_buffer *line, const kl_map_result *r, const char *command, size_t size) {
    char text[512];
    int exitval = r->end == KL_MAP_TIMED_OUT ? -1 : (int)(r->signal > 0 ? 0 : kl_map_exit_code(r));
    int length =
        snprintf(text, sizeof text, "%llu\t%s\t%10.3f\t%10.3f\t0\t%llu\t%d\t%u\t", kl_ull(r->number), r->host,
                 r->began_s, r->took_s, kl_ull(r->out_bytes + r->err_bytes), exitval, r->signal);
    kl_put_bytes(line, text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
    for (size_t i = 0; i < size; i++)
        kl_put_u8(
            line,
            command[i] == '\n'
                ? 0
                : (uint8_t)command[i]); /* the log has one line for each command, so a newline becomes NUL */
    kl_put_u8(line, '\n');
}
