/* Inside of room decide: how the inputs of decisions are written for the record, and read again.
 *
 * The bytes of a row: KL_GROUNDS_VERSION, the row's number since the run began, then notes. Or
 * KL_GROUNDS_ALONE and a note that needs no other row. A note is one of kl_note and its arguments. Counts
 * have 7 bits a byte, the lowest first; the highest bit says that more follow. */
#ifndef KL_DECIDE_GROUNDS_H
#define KL_DECIDE_GROUNDS_H

#include "decide/policy.h"

enum { KL_GROUNDS_VERSION = 1, KL_GROUNDS_ALONE = 2 };

typedef enum kl_note {
    KL_NOTE_BEGINS =
        1,           /* a run: policy, its factor, whether that was set, state, each worker's ranked speed */
    KL_NOTE_GROWS,   /* tasks added, state */
    KL_NOTE_FACTOR,  /* the factor set */
    KL_NOTE_JOINED,  /* the place of a new worker */
    KL_NOTE_CHANGED, /* present workers are others */
    KL_NOTE_ANSWERS, /* state, the worker's place, tasks meant for it, whether fewer lie together */
    KL_NOTE_TEAM,    /* alone: team, iteration, speeds asked for */
    KL_NOTE_EXPECTS, /* alone: iteration, speeds asked for */
    KL_NOTE_LOOKS,   /* alone: glance, sight, load */
    KL_NOTE_RESCUES, /* state, sizes of tasks, units that are coming back, answers of the board */
} kl_note;

/* Members of a struct that are noted. New ones go to the end of the list, so that old records stay
 * readable. */
typedef enum kl_member_type {
    KL_MEMBER_U64,
    KL_MEMBER_U32,
    KL_MEMBER_FLAG,
    KL_MEMBER_REAL, /* a double, not below 0; from here on: doubles */
    KL_MEMBER_SUM,  /* a double that rounding may bring below 0 */
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
/* Write the members in which `is` differs from `was`. */
void kl_grounds_put_changes(kl_buffer *out, const kl_members *members, const void *was, const void *is);
/* Read them into `into`. Sets reader->bad where a member is unknown, or a value is none that a farm has. */
void kl_grounds_get_changes(kl_reader *reader, const kl_members *members, void *into);

/* Write what a dealer is given, before it takes it. NULL does nothing. */
void kl_grounds_begins(kl_grounds *grounds, const kl_dealer *dealer, const kl_snapshot *snapshot);
void kl_grounds_grows(kl_grounds *grounds, const kl_snapshot *snapshot, uint64_t tasks);
void kl_grounds_factor(kl_grounds *grounds, double factor);
void kl_grounds_joined(kl_grounds *grounds, uint32_t worker);
void kl_grounds_others(kl_grounds *grounds);
/* Where to put the answers of the board, from which kl_grounds_rescues() takes them; NULL: they are not
 * wanted.
 */
kl_buffer *kl_grounds_answers_of_board(kl_grounds *grounds);
void kl_grounds_rescues(kl_grounds *grounds, const kl_snapshot *snapshot, double coming_units);
void kl_grounds_get_sizes(kl_reader *reader, kl_sizes *sizes);
/* Choose again. false: it is asked what was not asked then. */
bool kl_rescue_again(const kl_snapshot *snapshot, kl_reader answers, double coming_units, kl_rescue *rescue);
/* Choose the number of workers again, from a note that stands alone. Forecasts count from the decision on.
 * false: the bytes do not tell enough. */
bool kl_staff_again(kl_reader *reader, kl_decision *decision);

#endif
