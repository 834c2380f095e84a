/* Memory that a master shares with the workers forked from it, for the contents of large messages. Private to
 * the folder transport, except for kl_arenas_open() and kl_arenas_close(), which transport.h declares.
 *
 *   kl_arenas   pair 0 [ to the worker | to the master ]  pair 1 [ … | … ]  …
 *   kl_arena    one half of a pair, as seen by the side that writes there
 *
 * The writer finds room for a message and sets a flag (called a note), which says that the room is in use. A
 * frame on the socket tells the reader where the message is. The reader uses the message without copying it,
 * and clears the note when it releases the message. Everything else about an arena is in the writer's own
 * memory. So a broken peer can spoil only the messages between itself and this side. */
#ifndef KL_ARENA_H
#define KL_ARENA_H

#include "transport/transport.h"

/* smallest message that is put into an arena, in bytes; sending a smaller one through the socket costs no
 * more */
enum { KL_ARENA_LEAST_BYTES = 16 * 1024 };

/* Place of a message in an arena, in the form in which a frame on the socket describes it. */
typedef struct kl_arena_place {
    uint64_t at, size;
    uint32_t slot; /* index of the note (flag) that marks this place as in use */
} kl_arena_place;

/* return a random number by which processes prove that they share this memory */
uint64_t kl_arenas_token(const kl_arenas *arenas);

/* Return the master's end of an unused pair of arenas, for the worker of process `pid`. NULL: no pair is
 * free. */
typedef struct kl_arena kl_arena;
kl_arena *kl_arena_to_worker(kl_arenas *arenas, uint64_t pid);
uint32_t kl_arena_pair(const kl_arena *arena);
/* Return the worker's end of the pair with number `pair`. NULL: there is no such pair, or memory ran out. */
kl_arena *kl_arena_to_master(kl_arenas *arenas, uint32_t pair);
/* Close one end of a pair; NULL: do nothing. ended: true if the peer no longer uses the pair, even if its
 * process continues. The pair becomes free when the worker no longer uses it and all its messages are
 * released. */
void kl_arena_close(kl_arena *arena, bool ended);

/* Place the empty `buffer` in the arena, with room for `size` bytes; 0: for as many bytes as the last
 * message had. Only one buffer at a time can be in the arena. If the arena has no room, the buffer uses
 * normal memory. */
void kl_arena_lend(kl_arena *arena, size_t size, kl_buffer *buffer);
/* Put a message into the arena. A message in the lent buffer is there already. false: the arena has no room.
 */
bool kl_arena_put(kl_arena *arena, const void *data, size_t size, kl_arena_place *place);
/* Free the place of a message that could not be sent. */
void kl_arena_take_back(kl_arena *arena, const kl_arena_place *place);
/* Return to the system the memory that lies after the last block in use. false: some messages are still in
 * use; a later call may return more memory. */
bool kl_arena_trim(kl_arena *arena);
/* Get the message that the writer of the pair has put at `place`. false: no message can be there. */
bool kl_arena_get(kl_arena *arena, const kl_arena_place *place, kl_message *message);

#endif
