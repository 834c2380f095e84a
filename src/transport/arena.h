/* Memory that a master shares with the workers forked from it, for the bodies of large messages. Private to
 * room transport, but for kl_arenas_open() and kl_arenas_close(), which its door declares.
 *
 *   kl_arenas   pair 0 [ to the worker | to the master ]  pair 1 [ … | … ]  …
 *   kl_arena    one of the two halves, as the side sees it that writes there
 *
 * The writer finds room for a message, and notes there that it is held; a frame of the socket tells where it
 * lies; the reader reads it in place, and clears the note when it has released the message. All else that is
 * known of an arena is in the writer's own memory, so that what the other side does to the shared one can
 * spoil messages between the two, and nothing else. */
#ifndef KL_ARENA_H
#define KL_ARENA_H

#include "transport/transport.h"

/* Smaller messages are as cheap through the socket. */
enum { KL_ARENA_LEAST_BYTES = 16 * 1024 };

/* Where a message lies, as a frame tells it. */
typedef struct kl_arena_place {
    uint64_t at, size;
    uint32_t slot; /* of its note */
} kl_arena_place;

uint64_t kl_arenas_token(const kl_arenas *arenas); /* those who know it share this memory */

/* The master's end of a pair that nobody uses any more, for the worker of process `pid`. NULL: there is none.
 */
typedef struct kl_arena kl_arena;
kl_arena *kl_arena_to_worker(kl_arenas *arenas, uint64_t pid);
uint32_t kl_arena_pair(const kl_arena *arena);
/* The worker's end of it. NULL: there is no such pair, or no memory. */
kl_arena *kl_arena_to_master(kl_arenas *arenas, uint32_t pair);
/* The peer is gone, or this end is closed. ended: it uses them no more, even if its process goes on. At
 * the master the pair is free again when its worker has ended and all its messages are released. */
void kl_arena_close(kl_arena *arena, bool ended); /* NULL does nothing */

/* Let `buffer`, which is empty, lie in the arena, with room for `size` bytes or, if that is 0, for as many as
 * messages had lately. One buffer at a time. It is left as it is, or in memory of its own, when there is no
 * room. */
void kl_arena_lend(kl_arena *arena, size_t size, kl_buffer *buffer);
/* Put a message there, unless it is in the lent buffer and so lies there already. false: there is no room. */
bool kl_arena_put(kl_arena *arena, const void *data, size_t size, kl_arena_place *place);
void kl_arena_take_back(kl_arena *arena, const kl_arena_place *place); /* it could not be sent */
/* Give back the memory behind the last message that is held. false: some are, and so memory may be left. */
bool kl_arena_trim(kl_arena *arena);
/* The message that the other side of the pair has put there. false: none can lie there. */
bool kl_arena_get(kl_arena *arena, const kl_arena_place *place, kl_message *message);

#endif
