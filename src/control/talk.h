/* Private to the folder control: the bytes of its messages. Any bytes can be decoded safely: a decoder reads
 * nothing outside of the given bytes, and returns false unless they are exactly one valid message. In every
 * version of the protocol, a message begins with a magic number, the version and the message's kind. */
#ifndef KL_CONTROL_TALK_H
#define KL_CONTROL_TALK_H

#include <sys/socket.h>
#include <sys/un.h>

#include "control/control.h"

enum { KL_REQUEST_BYTES_MOST = 512, KL_REPLY_BYTES_MOST = 16 * 1024 };

typedef enum kl_talk {
    KL_TALK_NONE, /* the bytes are not a message of Kilter */
    KL_TALK_LOOK, /* requests */
    KL_TALK_SET,
    KL_TALK_DRAIN,
    KL_TALK_NOTE,
    KL_TALK_STATE, /* replies */
    KL_TALK_TAKEN,
    KL_TALK_REFUSED,
    KL_TALK_ENDED, /* the farm has ended; the farm sends this message without a request */
} kl_talk;

/* Fill in the address of the socket with the name that is in the run record, "@…". Such a socket has no file
 * and ends with its process. Return false if `name` is not such a name. */
bool kl_control_address(const char *name, struct sockaddr_un *address, socklen_t *size);

/* Fill in the error for a client that is neither the farm's owner nor root. */
kilter_status kl_talk_fail_not_owner(kilter_error *error);

/* Return the kind of the message; KL_TALK_NONE: this version of Kilter does not know it. *version: version
 * of the message's protocol; 0: the message is not from Kilter. */
kl_talk kl_talk_kind(const void *data, size_t size, uint32_t *version);

void kl_talk_put_ended(kl_buffer *out);
bool kl_talk_get_ended(const void *data, size_t size);
void kl_talk_put_look(kl_buffer *out);
bool kl_talk_get_look(const void *data, size_t size);
void kl_talk_put_set(kl_buffer *out, const kl_control_setting *setting);
bool kl_talk_get_set(const void *data, size_t size, kl_control_setting *setting);
void kl_talk_put_drain(kl_buffer *out, const kl_control_drain *drain);
bool kl_talk_get_drain(const void *data, size_t size, kl_control_drain *drain);
void kl_talk_put_note(kl_buffer *out, const kl_decision *decision);
bool kl_talk_get_note(const void *data, size_t size, kl_decision *decision);
void kl_talk_put_state(kl_buffer *out, const kl_control_state *state);
bool kl_talk_get_state(const void *data, size_t size, kl_control_state *state);
void kl_talk_put_taken(kl_buffer *out, const char *answer);
bool kl_talk_get_taken(const void *data, size_t size, char answer[KL_CONTROL_ANSWER_BYTES]);
void kl_talk_put_refused(kl_buffer *out, const kilter_error *why);
bool kl_talk_get_refused(const void *data, size_t size, kilter_error *why);

#endif
