/* The messages between peers. Private to room peer. */
#ifndef KL_NOTE_H
#define KL_NOTE_H

#include "peer/peer.h"

#define KL_NOBODY UINT32_MAX

typedef enum kl_note_kind {
    KL_NOTE_ASK = 1, /* a question: has the receiver tasks for a peer of this rate? */
    KL_NOTE_EMPTY,   /* an answer: the sender has no tasks to give */
    KL_NOTE_REFUSED, /* an answer: the sender does not make the copy */
    KL_NOTE_GIFT,    /* the tasks in `spans` belong to the receiver from now on */
    KL_NOTE_GOT,     /* gift `number` has arrived */
    KL_NOTE_SIGN_UP, /* the sender, of this rate, waits for tasks: give it some when there are more */
    KL_NOTE_COPY,    /* a request: do a copy of task `number` */
    KL_NOTE_COPIED,  /* the copy of task `number` is done, with result `value` */
    KL_NOTE_POST,    /* number = 1: the sender is late; 0: it is late no longer */
    KL_NOTE_QUERY,   /* a question to the root: which peer is late? */
    KL_NOTE_VICTIM,  /* the answer: `peer` is late */
    KL_NOTE_HURRY,   /* a request to the root: begin a round */
    KL_NOTE_LATE,    /* tasks that the sender and peers below it did after their reports of round `round` */
    KL_NOTE_LOSS,    /* the peers in `gone` are gone */
    KL_NOTE_SAVE,    /* a copy in case the sender dies. `spans`: tasks done since round `round` was committed;
                        `held`: tasks of its last report, if that was not committed */
    KL_NOTE_CALL,    /* round `round` begins: report at once, with all tasks that are held */
    KL_NOTE_REPORT,  /* a report of the sender and of all peers below it */
    KL_NOTE_PLAN,    /* round `round` is committed, and these are its orders */
} kl_note_kind;

typedef struct kl_standing { /* one peer's line in a report */
    uint32_t peer;
    double left, rate; /* tasks left; tasks per second, 0: not known */
} kl_standing;

/* `from` gives `to` as many tasks as the span has; from KL_NOBODY: `to` owns the span. */
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
    uint32_t census; /* number of the last called round that the sender knows */
    uint32_t round;
    uint32_t peer, peers; /* peers: number of peers that ever took part */
    uint64_t number;
    double rate;           /* tasks per second of the sender; in PLAN the mean of all peers */
    double left_s, next_s; /* PLAN: seconds until all is done, and until the next report */
    /* PLAN. closing: peers report when they have nothing left to do; over: the run has ended */
    bool closing, over;
    kl_ranges spans; /* REPORT: tasks done; GIFT: tasks given */
    kl_ranges held;  /* REPORT after a CALL: tasks that peers own or give away */
    kl_standings standings;
    kl_orders orders;
    kl_numbers gone;
    /* values: the result of a copied task, or the results of `spans` and of `held` combined */
    kilter_bytes value, held_value;
} kl_note;

bool kl_standings_add(kl_standings *list, kl_standing one);
bool kl_orders_add(kl_orders *list, kl_order one);
bool kl_numbers_add(kl_numbers *list, uint32_t one);

void kl_note_put(kl_buffer *out, const kl_note *note);
/* Read a message from untrusted bytes into a note, whose lists are used again. false: it is malformed, or
 * memory ran out. Spans are not empty and end at `tasks` or before. Values stay in `data`. */
bool kl_note_get(const void *data, size_t size, uint64_t tasks, kl_note *note);
void kl_note_free(kl_note *note);

#endif
