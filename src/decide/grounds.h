/* Private to the folder decide: write the inputs of decisions for the record, and read them. A row that
 * depends on earlier rows begins with KL_GROUNDS_VERSION. The row's number since the run began and a series
 * of inputs follow. A row that needs no other row begins with KL_GROUNDS_ALONE, and has one input. An input
 * begins with its kind (kl_ground), and its values follow. A count has 7 bits in each byte, lowest bits
 * first; the highest bit of a byte says that more bytes follow. */
#ifndef KL_DECIDE_GROUNDS_H
#define KL_DECIDE_GROUNDS_H

#include "decide/policy.h"

enum { KL_GROUNDS_VERSION = 1, KL_GROUNDS_ALONE = 2 };

typedef enum kl_ground {
    /* a run begins. Stored: policy, its factor, whether the user set the factor, snapshot, changed workers,
     * the workers' speeds in order */
    KL_GROUND_BEGINS = 1,
    KL_GROUND_GROWS,   /* tasks are added to a run. Stored: their number, snapshot, changed workers */
    KL_GROUND_FACTOR,  /* the user sets the policy's factor. Stored: the new factor */
    KL_GROUND_JOINED,  /* a worker joins. Stored: its place in the snapshot */
    KL_GROUND_CHANGED, /* workers joined or left. Nothing else is stored */
    /* a worker asks for tasks. Stored: snapshot, changed workers, the place of the worker that asks,
     * kl_plan.meant, kl_plan.cut_short */
    KL_GROUND_ANSWERS,
    /* the number of workers is chosen. Stored in a row of its own: team, iteration, the speeds that were
     * used */
    KL_GROUND_TEAM,
    /* a new farm's first number of workers is chosen. Stored in a row of its own: iteration, the speeds that
     * were used */
    KL_GROUND_EXPECTS,
    KL_GROUND_LOOKS, /* a run in progress is looked at. Stored in a row of its own: glance, sight, load */
    /* a recall or copy is chosen. Stored: snapshot, changed workers, sizes of tasks, units of work that were
     * recalled and have not come back, the tasks that workers hold */
    KL_GROUND_RESCUES,
} kl_ground;

/* The types of the members in a kl_members list. A new member goes to the end of the list, so that old
 * records stay readable. */
typedef enum kl_member_type {
    KL_MEMBER_U64,
    KL_MEMBER_U32,
    KL_MEMBER_FLAG,
    KL_MEMBER_REAL, /* a double that is not negative; all types from this one on are doubles */
    KL_MEMBER_SUM,  /* a double that may be slightly below 0 because of rounding */
} kl_member_type;

typedef struct kl_member {
    kl_member_type type;
    size_t offset;
} kl_member;

typedef struct kl_members {
    const kl_member *list;
    size_t count; /* number of members, at most KL_MEMBERS_MOST */
} kl_members;
enum { KL_MEMBERS_MOST = 32 };

extern const kl_members kl_members_of_snapshot, kl_members_of_view;

void kl_grounds_put_count(kl_buffer *out, uint64_t count);
uint64_t kl_grounds_get_count(kl_reader *reader);
/* Write the members whose values differ between `was` and `is`. */
void kl_grounds_put_changes(kl_buffer *out, const kl_members *members, const void *was, const void *is);
/* Read what kl_grounds_put_changes() wrote, and set the changed members of `into`. Set reader->bad if a
 * member is unknown, or if its value is out of range. */
void kl_grounds_get_changes(kl_reader *reader, const kl_members *members, void *into);

/* Store an input of a dealer before the dealer uses it. If `grounds` is NULL, do nothing. */
void kl_grounds_begins(kl_grounds *grounds, const kl_dealer *dealer, const kl_snapshot *snapshot);
void kl_grounds_grows(kl_grounds *grounds, const kl_snapshot *snapshot, uint64_t tasks);
void kl_grounds_factor(kl_grounds *grounds, double factor);
void kl_grounds_joined(kl_grounds *grounds, uint32_t worker);
void kl_grounds_others(kl_grounds *grounds);
/* Return an empty buffer. The caller writes to it which tasks workers hold and which workers wait, as the
 * board (kl_board) answers. kl_grounds_rescues() stores the buffer's content later. Return NULL if nothing is
 * stored. */
kl_buffer *kl_grounds_answers_of_board(kl_grounds *grounds);
void kl_grounds_rescues(kl_grounds *grounds, const kl_snapshot *snapshot, double coming_units);
void kl_grounds_get_sizes(kl_reader *reader, kl_sizes *sizes);
/* Make a decision on a recall or a copy again, from the recorded answers of the board (kl_board). Return
 * false if a needed answer was not recorded. */
bool kl_rescue_again(const kl_snapshot *snapshot, kl_reader answers, double coming_units, kl_rescue *rescue);
/* Choose the number of workers again, from a row that begins with KL_GROUNDS_ALONE. The times in *decision
 * are seconds after the decision. Return false if bytes are missing. */
bool kl_staff_again(kl_reader *reader, kl_decision *decision);

#endif
