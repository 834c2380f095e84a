/* Private to the folder hosts: measure the link between two agents over TCP. */
#ifndef KL_HOSTS_LINK_H
#define KL_HOSTS_LINK_H

#include "hosts/lines.h"

/* Listen for other agents. Return the descriptor; −1 (and port 0): listening failed. */
int kl_link_listen(kl_agent_address *address);
/* Accept one connection and answer it, for at most 1.5 s. Close it if the other side does not send the
 * token. */
void kl_link_answer(int listener, uint64_t token);
/* Measure the link to another agent, for at most 1.5 s. */
void kl_link_measure(const kl_agent_address *partner, kl_link *link);

#endif
