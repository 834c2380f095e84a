/* The policies by which peers distribute tasks. Their order here is the order of registration. */
#include <string.h>

#include "peer/peer_private.h"

static const kl_help registry[] = {
    {.name = "help",
     .summary = "new shares of the tasks are computed again and again from all measured rates",
     .sharing = KL_SHARE_AGAIN,
     .part = KL_PART_BY_RATE,
     .dead_zone = 0.1,
     .lines = true,
     .early = true,
     .copies = true},
    {.name = "sos",
     .summary =
         "new shares are computed once; then an idle peer helps a late one in proportion to both rates",
     .sharing = KL_SHARE_ONCE,
     .part = KL_PART_BY_RATE,
     .board = true},
    {.name = "sos-half",
     .summary = "like sos, but an idle peer that is more than twice as fast takes half of the tasks",
     .sharing = KL_SHARE_ONCE,
     .part = KL_PART_BY_RATE_OR_HALF,
     .board = true},
    {.name = "steal",
     .summary = "an idle peer takes half of the tasks of a random peer",
     .sharing = KL_SHARE_NEVER,
     .part = KL_PART_HALF,
     .lines = true},
};

const kl_help *kl_help_at(size_t i) {
    return i < sizeof registry / sizeof *registry ? &registry[i] : NULL;
}

const kl_help *kl_help_find(const char *name) {
    const kl_help *help = NULL;
    for (size_t i = 0; name && (help = kl_help_at(i)); i++)
        if (strcmp(help->name, name) == 0)
            break;
    return help;
}
