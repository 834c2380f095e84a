/* Private to the folder rank: the content of rows. Content is data of the program that belongs to a row and
 * whose size may change. rank.h includes this header. The program holds the content. When rows move, the
 * driver uses functions of the program to pack content into parcels and to unpack it. */
#ifndef KL_CONTENT_H
#define KL_CONTENT_H

#include "base/base.h"
#include "rank/action.h"
#include "rank/layout.h"
#include "steer/steer.h"

enum { KL_ALIGNED = 16 }; /* bytes */

typedef struct kl_item { /* A row in a parcel. Ranks send this struct without conversion. */
    uint64_t row, bytes;
} kl_item;

/* A parcel: the contents of rows that go to one peer, or come from one peer. All zero: no rows. */
struct kl_parcel {
    int peer;
    bool sends;
    kl_item *items; /* the rows, in the order in which their contents follow each other in `data` */
    uint64_t count, room;
    uint8_t *data; /* the contents; the driver allocates this memory, and kl_parcel_free() frees it */
};

typedef struct kl_content {
    bool on; /* true: the rows have content */
    kl_parcel *parcels;
    uint64_t count, room;
    kl_mail *mails;
    uint64_t mail_room;
    uint64_t packed;   /* the driver's answer to KL_PACK; 1: all rows were packed */
    double began_s;    /* time at which packing began */
    kl_ranges present; /* the rows on this rank; the action KL_WEIGH has this list as its argument */
    uint64_t weight;   /* the driver's answer to KL_WEIGH: bytes of the content of the rows in `present` */
    bool weighed;      /* true: the driver was already asked to set `weight` for the next report */
} kl_content;

/* Return the bytes that a row takes in a parcel. Each row begins at a multiple of the largest alignment. */
static inline uint64_t kl_item_room(const kl_item *item) {
    return (item->bytes + KL_ALIGNED - 1) / KL_ALIGNED * KL_ALIGNED;
}
bool kl_parcel_add(kl_parcel *parcel, kl_span rows); /* Return false if memory ran out. */
uint64_t kl_parcel_bytes(const kl_parcel *parcel);   /* Return the bytes of all rows in the parcel. */
void kl_parcel_free(kl_parcel *parcel);

/* Make a parcel for each rank that gets rows of this rank, or from which rows come to this rank. Return false
 * if memory ran out. */
bool kl_content_plan(kl_content *content, const kl_layout *layout);
/* Return the bytes of all parcels, or only of those that this rank receives. */
uint64_t kl_content_bytes(const kl_content *content, bool coming_only);
void kl_content_clear(kl_content *content); /* Forget all parcels. */
void kl_content_free(kl_content *content);

/* Stages of a call: pack the rows that leave this rank, and exchange the sizes of contents. */
kl_act kl_content_pack(kl_rank *rank);
kl_act kl_content_post_sizes(kl_rank *rank);
kl_act kl_content_await_sizes(kl_rank *rank);
/* Ask the driver for the bytes of content of the rows in content.present, for the next report. The argument
 * `listed` is false if memory for the list of rows ran out. */
kl_act kl_content_weigh(kl_rank *rank, bool listed);
/* Return whether the driver must be asked for the bytes of content before the next report. */
static inline bool kl_content_unweighed(const kl_content *content) {
    return content->on && !content->weighed;
}
/* Put the bytes of content into a report. */
void kl_content_tell(kl_content *content, const kl_layout *layout, kl_rank_report *report);

#endif
