/* The messages between peers. Private to room peer. */
#ifndef KL_NOTE_H
#define KL_NOTE_H

#include "peer/peer.h"

#define KL_NOBODY UINT32_MAX

typedef enum kl_note_kind {
    KL_NOTE_ASK = 1, /* has it tasks for a peer of this rate? */
    KL_NOTE_EMPTY,   /* it has none */
    KL_NOTE_REFUSED, /* it does not make the copy */
    KL_NOTE_GIFT,    /* these tasks are the receiver's from now on */
    KL_NOTE_GOT,     /* gift `number` is here */
    KL_NOTE_SIGN_UP, /* think of a peer of this rate when there is more to do */
    KL_NOTE_COPY,    /* do task `number` as well */
    KL_NOTE_COPIED,  /* the copy of task `number` is done */
    KL_NOTE_POST,    /* the sender is late (number = 1), or no longer (0) */
    KL_NOTE_QUERY,   /* who is late? */
    KL_NOTE_VICTIM,  /* `peer` is */
    KL_NOTE_HURRY,   /* a round is wanted */
    KL_NOTE_LATE,    /* done after the report of round `round`: by the sender and those below */
    KL_NOTE_LOSS,    /* `peer` is gone */
    KL_NOTE_SAVE,    /* what the sender has done since round `round` was committed, for when it dies: `spans`,
                   and   `held` if its last report was not committed */
    KL_NOTE_CALL,    /* round `round` begins now: report at once, with all that is held */
    KL_NOTE_REPORT,  /* of the sender and all below it */
    KL_NOTE_PLAN,    /* round `round` is committed */
} kl_note_kind;

typedef struct kl_standing { /* of one peer, in a report */
    uint32_t peer;
    double left, rate; /* tasks; tasks per second, 0: not known */
} kl_standing;

typedef struct kl_order { /* `from` gives `to` as many tasks as are in the span; KL_NOBODY: `to` owns the span
                           */
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

typedef struct kl_numbers { /* of peers */
    uint32_t *at;
    size_t count;
    uint64_t room;
} kl_numbers;

typedef struct kl_note {
    kl_note_kind kind;
    uint32_t census; /* the last round that was called, as the sender knows */
    uint32_t round;
    uint32_t peer, peers; /* peers: how many ever were there */
    uint64_t number;
    double rate;           /* of the sender; PLAN: mean of all */
    double left_s, next_s; /* PLAN: until all is done, until the next report */
    bool closing, over;    /* PLAN: report when nothing is left to do; the run has ended */
    kl_ranges spans;       /* REPORT: tasks done; GIFT: those handed over */
    kl_ranges held;        /* REPORT after a CALL: tasks that peers own or give away */
    kl_standings standings;
    kl_orders orders;
    kl_numbers gone;
} kl_note;

bool kl_standings_add(kl_standings *list, kl_standing one);
bool kl_orders_add(kl_orders *list, kl_order one);
bool kl_numbers_add(kl_numbers *list, uint32_t one);

void kl_note_put(kl_buffer *out, const kl_note *note);
/* Read a message from untrusted bytes into a note, whose lists are used again. false: it is malformed, or
 * memory ran out. Spans are not empty and end at `tasks` or before. */
bool kl_note_get(const void *data, size_t size, uint64_t tasks, kl_note *note);
void kl_note_free(kl_note *note);

#endif
