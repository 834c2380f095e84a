/* Private to room decide: how the inputs of decisions are written into the record and read from the record. A
 * row that depends on earlier rows is KL_GROUNDS_VERSION, the row's number since the run began, and grounds.
 * A row that needs no other row is KL_GROUNDS_ALONE and one ground. A ground is a kl_ground and its values. A
 * count has 7 bits in each byte, lowest bits first; the highest bit of a byte says that more bytes follow. */
#ifndef KL_DECIDE_GROUNDS_H
#define KL_DECIDE_GROUNDS_H

#include "decide/policy.h"

enum { KL_GROUNDS_VERSION = 1, KL_GROUNDS_ALONE = 2 };

typedef enum kl_ground {
    /* a run begins: policy, its factor, whether the user set the factor, state, each worker's ranked speed */
    KL_GROUND_BEGINS = 1,
    KL_GROUND_GROWS,   /* the run grows: number of tasks added, state */
    KL_GROUND_FACTOR,  /* the user sets a factor: the factor */
    KL_GROUND_JOINED,  /* a worker joins: its place */
    KL_GROUND_CHANGED, /* other workers are present now */
    KL_GROUND_ANSWERS, /* a worker asks: state, its place, tasks meant for it, whether it got fewer because
                        tasks are not consecutive */
    KL_GROUND_TEAM, /* number of workers chosen, in a row of its own: team, iteration, speeds that were used
                     */
    KL_GROUND_EXPECTS, /* number of workers expected, in a row of its own: iteration, speeds that were used */
    KL_GROUND_LOOKS,   /* look within a run, in a row of its own: glance, sight, load */
    KL_GROUND_RESCUES, /* a rescue: state, sizes of tasks, units in recalls under way, answers of the board */
} kl_ground;

/* The members of a struct that are written. New members are added at the end of the list, so old records stay
 * readable. */
typedef enum kl_member_type {
    KL_MEMBER_U64,
    KL_MEMBER_U32,
    KL_MEMBER_FLAG,
    KL_MEMBER_REAL, /* a double, not below 0; all types from here on are doubles */
    KL_MEMBER_SUM,  /* a double that may be slightly below 0 because of rounding */
} kl_member_type;

typedef struct kl_member {
    kl_member_type type;
    size_t offset;
} kl_member;

typedef struct kl_members {
    const kl_member *list;
    size_t count; /* at most KL_MEMBERS_MOST */
} kl_members;
enum { KL_MEMBERS_MOST = 32 };

extern const kl_members kl_members_of_snapshot, kl_members_of_view;

void kl_grounds_put_count(kl_buffer *out, uint64_t count);
uint64_t kl_grounds_get_count(kl_reader *reader);
/* Write the members whose values differ between `was` and `is`. */
void kl_grounds_put_changes(kl_buffer *out, const kl_members *members, const void *was, const void *is);
/* Read changes into `into`. Set reader->bad if a member is unknown, or if a value is impossible in a farm. */
void kl_grounds_get_changes(kl_reader *reader, const kl_members *members, void *into);

/* Write an input of a dealer before the dealer uses it. If `grounds` is NULL, do nothing. */
void kl_grounds_begins(kl_grounds *grounds, const kl_dealer *dealer, const kl_snapshot *snapshot);
void kl_grounds_grows(kl_grounds *grounds, const kl_snapshot *snapshot, uint64_t tasks);
void kl_grounds_factor(kl_grounds *grounds, double factor);
void kl_grounds_joined(kl_grounds *grounds, uint32_t worker);
void kl_grounds_others(kl_grounds *grounds);
/* Return the buffer for the board's answers, which kl_grounds_rescues() reads; NULL: nothing is recorded. */
kl_buffer *kl_grounds_answers_of_board(kl_grounds *grounds);
void kl_grounds_rescues(kl_grounds *grounds, const kl_snapshot *snapshot, double coming_units);
void kl_grounds_get_sizes(kl_reader *reader, kl_sizes *sizes);
/* Choose a rescue again from the recorded answers. false: a needed answer was not recorded. */
bool kl_rescue_again(const kl_snapshot *snapshot, kl_reader answers, double coming_units, kl_rescue *rescue);
/* Choose the number of workers again, from a ground in a row of its own. Times are relative to the decision.
 * false: the bytes are not enough. */
bool kl_staff_again(kl_reader *reader, kl_decision *decision);

#endif
