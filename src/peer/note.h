/* Notes: the messages between peers. Private to the folder peer. */
#ifndef KL_NOTE_H
#define KL_NOTE_H

#include "peer/peer.h"

#define KL_NOBODY UINT32_MAX

typedef enum kl_note_kind {
    /* a question: does the receiver have tasks for the sender, which does `rate` tasks per second? */
    KL_NOTE_ASK = 1,
    /* an answer to ASK or QUERY: the sender has no tasks to give, or the root knows no late peer */
    KL_NOTE_EMPTY,
    KL_NOTE_REFUSED, /* an answer to COPY: the sender of this note does not do the copy */
    KL_NOTE_GIFT,    /* the tasks in `spans` belong to the receiver from now on */
    KL_NOTE_GOT,     /* an acknowledgement: gift `number` has arrived */
    KL_NOTE_SIGN_UP, /* a request: if the receiver gets more tasks than it needs, it should give some to the
                        sender, which does `rate` tasks per second */
    KL_NOTE_COPY,    /* a request: do a speculative copy of task `number` */
    KL_NOTE_COPIED,  /* an answer to COPY: the copy of task `number` has ended with the result `value` */
    KL_NOTE_POST,    /* to the root: the sender is late (number = 1), or no longer late (number = 0) */
    KL_NOTE_QUERY,   /* a question to the root: which peer is late? */
    KL_NOTE_VICTIM,  /* the root's answer to QUERY: `peer` is late */
    KL_NOTE_HURRY,   /* a request to the root to begin a round */
    KL_NOTE_LATE,    /* tasks that the sender and peers below it did after their reports of round `round` */
    KL_NOTE_LOSS,    /* a report: the peers listed in `gone` are gone */
    /* a copy of the sender's results, in case the sender dies. `spans`: tasks that it did after its report of
       round `round`; `held`: tasks of that report, until its round is committed */
    KL_NOTE_SAVE,
    KL_NOTE_CALL,   /* a call to a census: round `round` begins, and the receiver reports at once, with all
                       tasks that it holds */
    KL_NOTE_REPORT, /* a report about the tasks of the sender and of all peers below it */
    KL_NOTE_PLAN,   /* round `round` is committed; `orders` lists the tasks that peers give to each other next
                     */
} kl_note_kind;

typedef struct kl_standing { /* the state of one peer in a report */
    uint32_t peer;
    double left, rate; /* left: number of tasks left; rate: tasks per second, 0: not known */
} kl_standing;

/* An order to give tasks: peer `from` gives span.hi − span.lo of its tasks to peer `to`. If `from` is
 * KL_NOBODY, peer `to` gets the tasks of the span itself. */
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

typedef struct kl_numbers { /* a list of numbers of peers */
    uint32_t *at;
    size_t count;
    uint64_t room;
} kl_numbers;

typedef struct kl_note {
    kl_note_kind kind;
    uint32_t census; /* number of the last census (search for lost tasks) of which the sender knows */
    uint32_t round;
    uint32_t peer, peers; /* peers: number of peers that have ever taken part */
    uint64_t number;
    double rate; /* tasks per second that the sender does; in PLAN: mean of all peers */
    /* only in PLAN. left_s: seconds until all tasks are done; next_s: seconds until the next report */
    double left_s, next_s;
    /* only in PLAN. closing: true if peers report when they have no task left; over: true if the run has
     * ended */
    bool closing, over;
    kl_ranges spans; /* in REPORT: tasks that are done; in GIFT: tasks that are given */
    kl_ranges held;  /* in REPORT after a CALL: tasks that the peer owns, or is giving away */
    kl_standings standings;
    kl_orders orders;
    kl_numbers gone;
    /* value: result of a copied task, or combined results of `spans`; held_value: combined results of `held`
     */
    kilter_bytes value, held_value;
} kl_note;

bool kl_standings_add(kl_standings *list, kl_standing one);
bool kl_orders_add(kl_orders *list, kl_order one);
bool kl_numbers_add(kl_numbers *list, uint32_t one);
bool kl_numbers_has(const kl_numbers *list, uint32_t one);

void kl_note_put(kl_buffer *out, const kl_note *note);
/* Read a message from untrusted bytes into a note, whose lists are reused. false: the message is malformed,
 * or memory ran out. No span is empty or ends after `tasks`. Values point into `data`. */
bool kl_note_get(const void *data, size_t size, uint64_t tasks, kl_note *note);
void kl_note_free(kl_note *note);

#endif
