/* Memory that a master shares with the workers forked from it, for the contents of large messages. Private to
 * room transport, except for kl_arenas_open() and kl_arenas_close(), which its door declares.
 *
 *   kl_arenas   pair 0 [ to the worker | to the master ]  pair 1 [ … | … ]  …
 *   kl_arena    one half of a pair, as seen by the side that writes there
 *
 * The writer finds room for a message and notes that it is in use. A frame on the socket tells the reader the
 * message's place. The reader uses the message in place, and clears the note when it releases the message.
 * Everything else about an arena is in the writer's own memory, so a broken peer can spoil only the messages
 * between the two. */
#ifndef KL_ARENA_H
#define KL_ARENA_H

#include "transport/transport.h"

/* least bytes of a message in an arena; sending a smaller message through the socket costs no more */
enum { KL_ARENA_LEAST_BYTES = 16 * 1024 };

/* Place of a message in an arena, as a frame on the socket describes it. */
typedef struct kl_arena_place {
    uint64_t at, size;
    uint32_t slot; /* index of the note that marks the place as in use */
} kl_arena_place;

/* a random number by which processes prove that they share this memory */
uint64_t kl_arenas_token(const kl_arenas *arenas);

/* Return the master's end of an unused pair, for the worker of process `pid`. NULL: no pair is free. */
typedef struct kl_arena kl_arena;
kl_arena *kl_arena_to_worker(kl_arenas *arenas, uint64_t pid);
uint32_t kl_arena_pair(const kl_arena *arena);
/* Return the worker's end of the pair. NULL: there is no such pair, or memory ran out. */
kl_arena *kl_arena_to_master(kl_arenas *arenas, uint32_t pair);
/* Call this when the peer is gone or this end is closed. If `ended`, the peer no longer uses the pair, even
 * if its process goes on. The master's pair becomes free when the worker has
 * ended and all its messages are released. */
void kl_arena_close(kl_arena *arena, bool ended); /* NULL does nothing */

/* Place the empty `buffer` in the arena, with room for `size` bytes; 0: for the size of the last message.
 * Only one buffer at a time can be there. If the arena has no room, the buffer uses normal memory. */
void kl_arena_lend(kl_arena *arena, size_t size, kl_buffer *buffer);
/* Put a message into the arena, unless it is in the lent buffer and so is there already. false: there is no
 * room. */
bool kl_arena_put(kl_arena *arena, const void *data, size_t size, kl_arena_place *place);
/* Free the place of a message that could not be sent. */
void kl_arena_take_back(kl_arena *arena, const kl_arena_place *place);
/* Return the memory after the last message in use to the system. false: other memory is still in use. */
bool kl_arena_trim(kl_arena *arena);
/* Get the message that the other side of the pair has put at `place`. false: no message can be there. */
bool kl_arena_get(kl_arena *arena, const kl_arena_place *place, kl_message *message);

#endif
