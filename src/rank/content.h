/* Private to the folder rank: content of rows, whose size changes. rank.h includes this header. The
 * program keeps the content. When rows move, the driver packs their content into parcels and unpacks it,
 * with functions of the program. */
#ifndef KL_CONTENT_H
#define KL_CONTENT_H

#include "base/base.h"
#include "rank/action.h"
#include "rank/layout.h"
#include "steer/steer.h"

enum { KL_ALIGNED = 16 }; /* bytes */

typedef struct kl_item { /* a row in a parcel; ranks send the struct without conversion */
    uint64_t row, bytes;
} kl_item;

struct kl_parcel { /* contents of rows for one peer, or from one peer; all zero: no rows */
    int peer;
    bool sends;
    kl_item *items; /* rows in the order in which their contents follow each other */
    uint64_t count, room;
    uint8_t *data; /* the driver allocates the data; kl_parcel_free() frees it */
};

typedef struct kl_content {
    bool on; /* true: the rows have content */
    kl_parcel *parcels;
    uint64_t count, room;
    kl_mail *mails;
    uint64_t mail_room;
    uint64_t packed;   /* the driver's answer to KL_PACK; 1: all rows were packed */
    double began_s;    /* time at which packing began */
    kl_ranges present; /* argument of KL_WEIGH: rows on this rank */
    uint64_t weight;   /* the driver's answer to KL_WEIGH: bytes of the content of these rows */
    bool weighed;      /* true: the next report already contains the weight */
} kl_content;

/* Return the bytes that a row takes in a parcel. Each row begins at a multiple of the largest alignment. */
static inline uint64_t kl_item_room(const kl_item *item) {
    return (item->bytes + KL_ALIGNED - 1) / KL_ALIGNED * KL_ALIGNED;
}
bool kl_parcel_add(kl_parcel *parcel, kl_span rows); /* false: memory ran out */
uint64_t kl_parcel_bytes(const kl_parcel *parcel);   /* bytes of all rows in the parcel */
void kl_parcel_free(kl_parcel *parcel);

/* List a parcel for each rank to which rows leave, or from which rows come. false: memory ran out */
bool kl_content_plan(kl_content *content, const kl_layout *layout);
/* Return the bytes of all parcels, or only of those that this rank receives. */
uint64_t kl_content_bytes(const kl_content *content, bool coming_only);
void kl_content_clear(kl_content *content); /* forget the parcels */
void kl_content_free(kl_content *content);

/* Stages of a call: pack the rows that leave this rank, and exchange the sizes of contents. */
kl_act kl_content_pack(kl_rank *rank);
kl_act kl_content_post_sizes(kl_rank *rank);
kl_act kl_content_await_sizes(kl_rank *rank);
/* Weigh the rows in content.present for the next report. listed: false: memory for the list ran out. */
kl_act kl_content_weigh(kl_rank *rank, bool listed);
/* Return whether the rows must be weighed before the next report. */
static inline bool kl_content_unweighed(const kl_content *content) {
    return content->on && !content->weighed;
}
/* Put the weight into a report. */
void kl_content_tell(kl_content *content, const kl_layout *layout, kl_rank_report *report);

#endif
