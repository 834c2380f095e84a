/* Private to the folder rank: the actions that a rank asks its driver to carry out. rank.h includes this
 * header. */
#ifndef KL_ACTION_H
#define KL_ACTION_H

#include "base/base.h"

typedef struct kl_rank kl_rank;
typedef struct kl_parcel kl_parcel;

enum { /* Tags of the messages between ranks. */
       KL_TAG_ROWS = 1,
       KL_TAG_LIST,
       KL_TAG_ANSWER,
       KL_TAG_SIZES,
       KL_TAG_CONTENT,
       KL_TAG_BLOCK,
       KL_TAG_GATHER,
       KL_TAG_PROBE,
       KL_TAG_REDUCE,
       KL_TAG_STEPS,
       KL_TAG_COUNT,
       KL_TAG_POSTED,
       KL_TAG_WORD,
       KL_TAG_SAVE,
       KL_TAGS = 16, /* all tags are below this number */
};

typedef struct kl_mail { /* A message of any size that a rank receives from a peer or sends to a peer. */
    void *data;
    size_t bytes;
    int peer, tag;
    /* true: the message serves to check that all ranks make the same calls; such messages have their own
     * communicator */
    bool calls;
    bool silent; /* true: the message does not wake a sleeping receiver */
} kl_mail;

/* A set of messages that are awaited together, or one collective operation. All zero: an empty set. */
typedef struct kl_set {
    bool open;                    /* true: some messages of the set may be incomplete; the driver sets this */
    struct kl_requests *requests; /* the MPI requests of the set; only the driver uses them */
} kl_set;

typedef enum kl_act {
    KL_GO_ON,  /* used only inside the folder rank: the stage is over */
    KL_REPEAT, /* used only inside the folder rank: call the stage again */
    KL_RETURN, /* end the program's call, and give no work to the body */
    KL_GIVE,   /* end the program's call, and give the body the work `given` */
    KL_POST,   /* begin to receive and send `mails` as messages of `set` */
    /* begin to exchange reports: send the `bytes` bytes at `mine` to all ranks, and gather the reports of all
       ranks in `all` */
    KL_SHARE,
    KL_LOOK,  /* check whether all messages of `set` are complete */
    KL_CLOCK, /* read the clock; needed only after actions that are `untimed` */
    KL_AWAIT, /* wait until all messages of `set` are complete */
    /* get memory for the rows that this rank will have after the move; if one rank cannot get it, no rank
     * moves rows; then call kl_exchange_room_is() */
    KL_ROOM,
    KL_GIVE_BACK, /* free the memory of rows that this rank will not have after the move */
    KL_MOST,      /* replace each of `values` by its largest value on any rank */
    /* get memory for the rows in `ranges` and for the content of `count` parcels, together `bytes` bytes;
     * set *all (a uint64_t) to 1 if there is enough memory */
    KL_TAKE,
    KL_DROP, /* free the memory of `ranges`, except where it holds a row of `kept` */
    /* pack the content of `count` parcels that this rank sends, and set the bytes of their rows; set *all
     * (a uint64_t) to 1 if all were packed */
    KL_PACK,
    /* unpack the parcels that this rank received, and drop the content of rows in the parcels that it
     * sent */
    KL_UNPACK,
    KL_WEIGH,   /* set *all (a uint64_t) to the bytes of content of the rows in `ranges` */
    KL_REST,    /* wait for a message, but only for a short time */
    KL_FORGET,  /* free the messages of `set`, which are complete */
    KL_QUANTUM, /* measure the scheduler's quantum (its time slice), then call kl_meter_quantum_is() */
    KL_RECORD,  /* a round has ended: record the sums of reports (rounds.all) and the plan (rounds.plan) */
    KL_REFUSED, /* record a refused move; `text` gives the reason */
    KL_FAIL,    /* end the loop: memory ran out while doing `text` */
} kl_act;

/* Work for the body, which is the program's code for the iterations: the rows `rows`. In a pipeline, the body
 * does only the elements `inner` of each of these rows. */
typedef struct kl_given {
    kl_span rows, inner;
} kl_given;

typedef struct kl_action {
    kl_act act;
    kl_set *set;
    bool again; /* true: the same stage is called again after this action; used only inside the folder rank */
    /* true: the rank does not need the time after this action, except after a KL_LOOK that found open
     * messages; so the driver need not read the clock */
    bool untimed;
    kl_given given;
    const kl_mail *mails; /* messages to receive and to send; the receives come first */
    size_t receives, count;
    double *values; /* values[count] */
    const kl_ranges *ranges, *kept;
    kl_parcel *parcels; /* parcels[count] */
    const void *mine;
    void *all;
    size_t bytes;
    const char *text;
} kl_action;

/* A stage of a call: a function that returns the next action. After the action, the stage is called again if
 * the action has `again` set. Otherwise the next stage follows. */
typedef kl_act (*kl_stage)(kl_rank *rank);

#endif
