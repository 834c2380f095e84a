/* Private to the folder loop: messages between rows, from posting to delivery. A message is a header and its
 * data, padded so that each header is aligned for any type. */
#ifndef KL_POSTS_H
#define KL_POSTS_H

#include "base/base.h"

typedef struct kl_post { /* ranks send the struct without conversion */
    uint64_t to, from, bytes;
    uint64_t order; /* sort key: pass in the upper bits, then the number among the messages of its rank */
} kl_post;

typedef struct kl_posts {       /* all zero: no messages */
    kl_buffer out;              /* all messages in the order of posting */
    uint64_t count;             /* number of messages in `out` */
    kl_buffer sorted;           /* messages for other ranks, rank by rank */
    kl_buffer in;               /* messages from other ranks */
    uint64_t *sends, *receives; /* [ranks]: bytes to each rank and from each rank */
    const kl_post **list;       /* messages for this rank */
    uint64_t listed, room;
} kl_posts;

/* Add a message. pass: number of the pass since the sweep began, the same on all ranks. Between two
 * passes, row `from` may move to another rank, which begins its own numbering. false: memory ran out. */
bool kl_posts_add(kl_posts *posts, uint64_t pass, uint64_t from, uint64_t to, const void *data,
                  uint64_t bytes);
/* Fill sorted, sends, and the list with messages that stay on `rank`. bounds[ranks + 1]: rank r has the rows
 * bounds[r] to bounds[r + 1] − 1. false: memory ran out */
bool kl_posts_sort(kl_posts *posts, const uint64_t *bounds, uint32_t ranks, uint32_t rank);
/* Make room for the messages of `receives`. false: memory ran out */
bool kl_posts_expect(kl_posts *posts, uint32_t ranks);
/* Add the received messages to the list, and put the list in the order of delivery. false: memory ran out */
bool kl_posts_arrange(kl_posts *posts);
static inline const void *kl_post_data(const kl_post *post) {
    return post + 1;
}
void kl_posts_clear(kl_posts *posts); /* forget all messages and keep the memory */
void kl_posts_free(kl_posts *posts);

/* Return the number of the rank that has a row. */
uint32_t kl_posts_owner(const uint64_t *bounds, uint32_t ranks, uint64_t row);

#endif
