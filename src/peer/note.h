/* Messages between peers, called notes. Private to the folder peer. */
#ifndef KL_NOTE_H
#define KL_NOTE_H

#include "peer/peer.h"

#define KL_NOBODY UINT32_MAX

typedef enum kl_note_kind {
    KL_NOTE_ASK = 1, /* a question: can the receiver give tasks to the sender, whose rate is `rate`? */
    KL_NOTE_EMPTY,   /* an answer: the sender has no tasks to give */
    KL_NOTE_REFUSED, /* an answer to COPY: the sender does not do the copy */
    KL_NOTE_GIFT,    /* the tasks in `spans` belong to the receiver from now on */
    KL_NOTE_GOT,     /* an acknowledgement: gift `number` has arrived */
    KL_NOTE_SIGN_UP, /* a request: when there are tasks to give, give them to the sender, whose rate is `rate`
                      */
    KL_NOTE_COPY,    /* a request: do a copy of task `number` */
    KL_NOTE_COPIED,  /* an answer to COPY: the copy of task `number` is done, with result `value` */
    KL_NOTE_POST,    /* to the root: number = 1: the sender is late; 0: it is not late any more */
    KL_NOTE_QUERY,   /* a question to the root: which peer is late? */
    KL_NOTE_VICTIM,  /* the answer to QUERY: `peer` is late */
    KL_NOTE_HURRY,   /* a request to the root: begin a round */
    KL_NOTE_LATE,    /* tasks that the sender, and peers below it, did after their reports of round `round` */
    KL_NOTE_LOSS,    /* a report: the peers in `gone` are gone */
    /* a copy of the sender's results, in case it dies. `spans`: tasks done after its report of round
     * `round`; `held`: tasks of this report, until it is known to be committed */
    KL_NOTE_SAVE,
    KL_NOTE_CALL,   /* a census: round `round` begins; report at once, with all tasks that you hold */
    KL_NOTE_REPORT, /* a report of the sender and of all peers below it */
    KL_NOTE_PLAN,   /* round `round` is committed; the note holds the orders that follow from it */
} kl_note_kind;

typedef struct kl_standing { /* one peer's entry in a report */
    uint32_t peer;
    double left, rate; /* number of tasks left; tasks per second, 0: not known */
} kl_standing;

/* An order to give tasks: peer `from` gives `to` any span.hi − span.lo tasks. If `from` is KL_NOBODY, `to`
 * owns the tasks of the span from now on. */
typedef struct kl_order {
    uint32_t from, to;
    kl_span span;
} kl_order;

typedef struct kl_standings {
    kl_standing *at;
    size_t count;
    uint64_t room;
} kl_standings;

typedef struct kl_orders {
    kl_order *at;
    size_t count;
    uint64_t room;
} kl_orders;

typedef struct kl_numbers { /* numbers of peers */
    uint32_t *at;
    size_t count;
    uint64_t room;
} kl_numbers;

typedef struct kl_note {
    kl_note_kind kind;
    uint32_t census; /* number of the last census that the sender knows */
    uint32_t round;
    uint32_t peer, peers; /* peers: number of peers that have ever taken part */
    uint64_t number;
    double rate;           /* tasks per second of the sender; in PLAN, the mean of all peers */
    double left_s, next_s; /* in PLAN: seconds until all tasks are done, and until the next report */
    /* in PLAN: closing: peers report when they have no task left; over: the run has ended */
    bool closing, over;
    kl_ranges spans; /* in REPORT: tasks done; in GIFT: tasks given */
    kl_ranges held;  /* in REPORT after a CALL: tasks that the peer owns or is giving away */
    kl_standings standings;
    kl_orders orders;
    kl_numbers gone;
    /* the result of a copied task, or the combined results of `spans` (value) and of `held` (held_value) */
    kilter_bytes value, held_value;
} kl_note;

bool kl_standings_add(kl_standings *list, kl_standing one);
bool kl_orders_add(kl_orders *list, kl_order one);
bool kl_numbers_add(kl_numbers *list, uint32_t one);

void kl_note_put(kl_buffer *out, const kl_note *note);
/* Read a message from untrusted bytes into a note, whose lists are reused. false: the message is malformed,
 * or memory ran out. Spans are not empty and end at `tasks` or before. Values point into `data`. */
bool kl_note_get(const void *data, size_t size, uint64_t tasks, kl_note *note);
void kl_note_free(kl_note *note);

#endif
