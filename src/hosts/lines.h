/* Private to the folder hosts: the lines between a host's agent and the process that measures. A shell may
 * print other lines as well, which are ignored. */
#ifndef KL_HOSTS_LINES_H
#define KL_HOSTS_LINES_H

#include <sys/types.h>

#include "fitness/fitness.h"

enum { KL_LINE_BYTES = 1024, KL_ADDRESSES_BYTES = 320, KL_NOISE_BYTES = 120 };

/* Addresses at which other agents can connect to an agent. */
typedef struct kl_agent_address {
    uint32_t port;                      /* port number; 0: no other agent can connect */
    uint64_t token;                     /* a secret number that another agent must send first */
    char addresses[KL_ADDRESSES_BYTES]; /* IPv4 or IPv6 addresses in digits, separated by commas */
} kl_agent_address;

/* --- lines that an agent writes --- */

typedef enum kl_line_kind { KL_LINE_NOISE, KL_LINE_READING, KL_LINE_LINK } kl_line_kind;

typedef struct kl_answer {
    kl_line_kind kind;
    kl_reading reading; /* the measured numbers; at_s, own and measured are not set */
    kl_agent_address address;
    uint32_t round;
    double trip_s,
        bytes_per_s; /* the measured link: seconds of a round trip, and bytes per second, 0: no connection */
    char noise[KL_NOISE_BYTES]; /* for other lines: the text without control characters */
} kl_answer;

void kl_answer_read(const char *line, kl_answer *answer);
/* Write a line of an agent, with a newline at its end. Every line fits into the buffer. */
void kl_answer_reading(char line[KL_LINE_BYTES], const kl_reading *reading, const kl_agent_address *address);
void kl_answer_link(char line[KL_LINE_BYTES], uint32_t round, const kl_link *link);

/* --- lines that an agent reads --- */

typedef enum kl_request_kind { KL_REQUEST_UNKNOWN, KL_REQUEST_LOOK, KL_REQUEST_LINK } kl_request_kind;

typedef struct kl_request {
    kl_request_kind kind;
    double probe_s; /* length of the probe in seconds, at most 10 */
    uint32_t round; /* for a link: number of the round in which it is measured */
    kl_agent_address partner;
} kl_request;

void kl_request_read(const char *line, kl_request *request);
void kl_request_look(char line[KL_LINE_BYTES], double probe_s);
void kl_request_link(char line[KL_LINE_BYTES], uint32_t round, const kl_agent_address *partner);

/* --- both --- */

/* Collects the bytes of a stream until a line is complete. If all fields are zero, it holds no bytes. */
typedef struct kl_liner {
    char text[2 * KL_LINE_BYTES];
    size_t size;
} kl_liner;

/* Read the bytes that the descriptor has at present. Return their number; 0: the stream has ended; −1: there
 * are no bytes at present. */
ssize_t kl_liner_fill(kl_liner *liner, int fd);
/* Take the next complete line, without its newline. A line that is too long comes in several pieces. false:
 * no line is complete. */
bool kl_liner_next(kl_liner *liner, char line[KL_LINE_BYTES]);

#endif
