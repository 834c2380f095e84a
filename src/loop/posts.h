/* Private to the folder loop: messages between rows, from posting to delivery. A message is a header and its
 * data, padded so that each header is aligned for any type. */
#ifndef KL_POSTS_H
#define KL_POSTS_H

#include "base/base.h"

/* The header of a message between rows. Ranks send this struct without conversion. */
typedef struct kl_post {
    uint64_t to, from, bytes;
    /* key for sorting: the pass in the upper bits, and the number of the message on its rank in the lower
     * bits */
    uint64_t order;
} kl_post;

typedef struct kl_posts {       /* The messages between rows on a rank. All zero: no messages. */
    kl_buffer out;              /* posted messages in the order of posting */
    uint64_t count;             /* number of posted messages */
    kl_buffer sorted;           /* posted messages for other ranks, in the order of these ranks */
    kl_buffer in;               /* messages that came from other ranks */
    uint64_t *sends, *receives; /* sends[r]: bytes to rank r; receives[r]: bytes from rank r */
    const kl_post **list;       /* messages for rows of this rank */
    uint64_t listed, room;
} kl_posts;

/* Post a message. `pass` is the number of the pass since the sweep began, the same on all ranks. Between two
 * passes, row `from` may move to another rank, which numbers its messages anew. So messages between the same
 * two rows are sorted by pass first, then by number. Return false if memory ran out. */
bool kl_posts_add(kl_posts *posts, uint64_t pass, uint64_t from, uint64_t to, const void *data,
                  uint64_t bytes);
/* Fill `sorted` and `sends`, and list the messages that stay on `rank`. Rank r has the rows from bounds[r]
 * to bounds[r + 1] − 1. Return false if memory ran out. */
bool kl_posts_sort(kl_posts *posts, const uint64_t *bounds, uint32_t ranks, uint32_t rank);
/* Make room for the messages from other ranks; `receives` has their sizes. Return false if memory ran out. */
bool kl_posts_expect(kl_posts *posts, uint32_t ranks);
/* Add the received messages to the list, and put the list in the order of delivery. Return false if memory
 * ran out. */
bool kl_posts_arrange(kl_posts *posts);
static inline const void *kl_post_data(const kl_post *post) {
    return post + 1;
}
void kl_posts_clear(kl_posts *posts); /* forget all messages and keep the memory */
void kl_posts_free(kl_posts *posts);

/* Return the rank that has a row. */
uint32_t kl_posts_owner(const uint64_t *bounds, uint32_t ranks, uint64_t row);

#endif
