/* Where a master listens for workers of other hosts, and the key that they need. */
#ifndef KL_LISTENING_H
#define KL_LISTENING_H

#include "transport/transport.h"

typedef struct kl_listening {
    char *listen,
        *join; /* listen: endpoint where the master listens; join: endpoint by which other hosts reach it */
    char *key_file; /* name of the file with the key, for the master; the file exists as long as this
                     * process */
    kl_key key;
} kl_listening;

/* Choose a free port and make a key. address: the address of this machine for other hosts; NULL: the
 * machine's name. Errors: KILTER_ERR_SYSTEM, KILTER_ERR_USAGE, KILTER_ERR_MEMORY */
kilter_status kl_listening_open(const char *address, kl_listening *reach, kilter_error *error);
void kl_listening_close(kl_listening *reach);

#endif
