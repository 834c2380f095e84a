/* Private to the folder hosts: measure the link between two agents over TCP. */
#ifndef KL_HOSTS_LINK_H
#define KL_HOSTS_LINK_H

#include "hosts/lines.h"

/* Listen for connections of other agents. Return the descriptor; −1: listening failed, and the port is 0. */
int kl_link_listen(kl_agent_address *address);
/* Accept one connection and answer its requests, for at most 1.5 s. Close it at once if the other agent does
 * not send the token. */
void kl_link_answer(int listener, uint64_t token);
/* Measure the link to another agent. This takes at most 1.5 s. */
void kl_link_measure(const kl_agent_address *partner, kl_link *link);

#endif
