/* Private to the folder rank: the actions that a rank asks its driver to carry out. rank.h includes this
 * header. */
#ifndef KL_ACTION_H
#define KL_ACTION_H

#include "base/base.h"

typedef struct kl_rank kl_rank;
typedef struct kl_parcel kl_parcel;

enum { /* tags of messages */
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

typedef struct kl_mail { /* a message of any size from one peer or to one peer */
    void *data;
    size_t bytes;
    int peer, tag;
    bool calls;  /* the message compares calls, and is sent separately from rows and reports */
    bool silent; /* the receiver is not woken by this message */
} kl_mail;

typedef struct kl_set { /* messages that are awaited together, or one collective operation; all zero: none */
    bool open;          /* true: some messages may be incomplete; the driver sets this */
    struct kl_requests *requests; /* the driver's own handle of the requests */
} kl_set;

typedef enum kl_act {
    KL_GO_ON,  /* used only inside the folder rank: the stage is over */
    KL_REPEAT, /* used only inside the folder rank: call the stage again */
    KL_RETURN, /* end the program's call, and give no work to the body */
    KL_GIVE,   /* end the program's call, and give `given` to the body */
    KL_POST,   /* begin to receive and send `mails` as messages of `set` */
    KL_SHARE,  /* begin to gather `bytes` bytes of `mine` from all ranks in `all` on all ranks */
    KL_LOOK,   /* check whether all messages of `set` are complete */
    KL_AWAIT,  /* wait until all messages of `set` are complete */
    KL_ROOM,   /* get memory for the target rows on all ranks or on none, then call kl_exchange_room_is() */
    KL_GIVE_BACK, /* free the memory of rows outside the target */
    KL_MOST,      /* replace each value by the largest value on any rank */
    KL_TAKE, /* get memory for `bytes` bytes: rows in `ranges`, and the content of `count` parcels; set *all
                to uint64_t 1 if there is enough */
    KL_DROP, /* free the memory of `ranges`, except where it holds a row of `kept` */
    KL_PACK, /* pack the content of `count` parcels that this rank sends, and set the bytes of their rows; set
              *all to uint64_t 1 if this succeeded */
    KL_UNPACK,  /* unpack the parcels that this rank received, and drop the rows of those that it sent */
    KL_WEIGH,   /* set *all to uint64_t: bytes of the content of the rows in `ranges` */
    KL_REST,    /* wait for a message, or for a short time */
    KL_FORGET,  /* free `set`, which is complete */
    KL_QUANTUM, /* measure the scheduler's quantum (its time slice), then call kl_meter_quantum_is() */
    KL_RECORD,  /* record rounds.all and rounds.plan */
    KL_REFUSED, /* record a refused move; `text` gives the reason */
    KL_FAIL,    /* end the loop: memory ran out while doing `text` */
} kl_act;

/* Work for the body: rows. In a pipeline, the work is only the elements `inner` of each row. */
typedef struct kl_given {
    kl_span rows, inner;
} kl_given;

typedef struct kl_action {
    kl_act act;
    kl_set *set;
    bool again; /* used only inside the folder rank: the stage is not over */
    kl_given given;
    const kl_mail *mails; /* receives come before sends */
    size_t receives, count;
    double *values; /* values[count] */
    const kl_ranges *ranges, *kept;
    kl_parcel *parcels; /* parcels[count] */
    const void *mine;
    void *all;
    size_t bytes;
    const char *text;
} kl_action;

/* A stage of a call. It is called again while its action says `again`. */
typedef kl_act (*kl_stage)(kl_rank *rank);

#endif
