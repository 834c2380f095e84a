/* Private to room hosts: measure the link between two agents over TCP. */
#ifndef KL_HOSTS_LINK_H
#define KL_HOSTS_LINK_H

#include "hosts/lines.h"

/* Listen for partners. Return the descriptor; −1, with a port of 0: this is not possible. */
int kl_link_listen(kl_agent_address *address);
/* Accept one partner and answer it, for 1.5 s at most. A stranger, who does not know the token, is sent away.
 */
void kl_link_answer(int listener, uint64_t token);
/* Measure the link to a partner, for 1.5 s at most. */
void kl_link_measure(const kl_agent_address *partner, kl_link *link);

#endif
