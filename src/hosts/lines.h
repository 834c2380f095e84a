/* Private to the folder hosts: the lines between a host's agent and the process that measures. A shell may
 * print other lines as well, which are ignored. */
#ifndef KL_HOSTS_LINES_H
#define KL_HOSTS_LINES_H

#include <sys/types.h>

#include "fitness/fitness.h"

enum { KL_LINE_BYTES = 1024, KL_ADDRESSES_BYTES = 320, KL_NOISE_BYTES = 120 };

/* How other agents reach an agent. */
typedef struct kl_agent_address {
    uint32_t port;                      /* port number; 0: the agent cannot be reached */
    uint64_t token;                     /* the secret that another agent sends first */
    char addresses[KL_ADDRESSES_BYTES]; /* addresses of IPv4 or IPv6 in digits, separated by commas */
} kl_agent_address;

/* --- from the agent --- */

typedef enum kl_line_kind { KL_LINE_NOISE, KL_LINE_READING, KL_LINE_LINK } kl_line_kind;

typedef struct kl_answer {
    kl_line_kind kind;
    kl_reading reading; /* the reading, without at_s, own and measured */
    kl_agent_address address;
    uint32_t round;
    double trip_s, bytes_per_s; /* result for a link; bytes_per_s 0: no connection */
    char noise[KL_NOISE_BYTES]; /* text without control characters */
} kl_answer;

void kl_answer_read(const char *line, kl_answer *answer);
/* Write the line with its newline. The buffer is always large enough. */
void kl_answer_reading(char line[KL_LINE_BYTES], const kl_reading *reading, const kl_agent_address *address);
void kl_answer_link(char line[KL_LINE_BYTES], uint32_t round, const kl_link *link);

/* --- to the agent --- */

typedef enum kl_request_kind { KL_REQUEST_UNKNOWN, KL_REQUEST_LOOK, KL_REQUEST_LINK } kl_request_kind;

typedef struct kl_request {
    kl_request_kind kind;
    double probe_s; /* seconds of the probe; at most 10 */
    uint32_t round; /* number of the round, for a link */
    kl_agent_address partner;
} kl_request;

void kl_request_read(const char *line, kl_request *request);
void kl_request_look(char line[KL_LINE_BYTES], double probe_s);
void kl_request_link(char line[KL_LINE_BYTES], uint32_t round, const kl_agent_address *partner);

/* --- both --- */

/* Collects the bytes of a stream until a line is complete. All zero: empty. */
typedef struct kl_liner {
    char text[2 * KL_LINE_BYTES];
    size_t size;
} kl_liner;

/* Read the available bytes of the descriptor. Return their number; 0: the stream has ended; −1: no bytes
 * at present. */
ssize_t kl_liner_fill(kl_liner *liner, int fd);
/* Take the next complete line, without its newline. A line that is too long is cut into several. */
bool kl_liner_next(kl_liner *liner, char line[KL_LINE_BYTES]);

#endif
