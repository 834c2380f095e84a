/* Private to the folder steer: choose shares for sweeps that are shorter than the scheduler's time slices,
 * on cores that other processes use as well. */
#ifndef KL_STEER_SLICES_H
#define KL_STEER_SLICES_H

#include "steer/steer.h"

typedef enum kl_choice {                  /* in the order in which they are tried */
                         KL_CHOICE_EQUAL, /* choice: equal shares */
                         /* choice: no iterations for ranks on shared cores; if this is much better, the next
                            trials are short */
                         KL_CHOICE_OUT,
                         KL_CHOICE_PROPORTION, /* choice: shares in proportion to each rank's part of its core
                                                */
                         /* choice: fewer iterations for ranks on shared cores, so that these ranks run at
                            once when they wake */
                         KL_CHOICE_LESS,
                         KL_CHOICE_DEEP, /* choice: shares in proportion, and ghost rows for several sweeps in
                                            one exchange */
                         KL_CHOICES
} kl_choice;

typedef struct kl_tried {
    uint32_t rounds; /* number of rounds that were measured */
    double executions, elapsed_s;
    bool refused; /* true: the move to the shares of this choice was refused */
} kl_tried;

typedef struct kl_slices { /* The state of trials of shares. All zero: no choice is tried. */
    /* active: choices are tried, or the best one is kept; holds: all choices were tried, and the best one is
     * kept */
    bool active, holds;
    int choice; /* the choice that is in use */
    int held;   /* the choice that was kept last; at first KL_CHOICE_EQUAL */
    /* tries: number of choices tried so far; rounds: number of rounds of the present trial, or since the
     * trials ended; hold: number of rounds for which the best choice is kept before choices are tried again;
     * 0: it is kept until there is time for trials */
    uint32_t tries, rounds, hold;
    /* switches: how often another choice was taken since the trials ended; switched: value of `rounds` when
     * this last happened */
    uint32_t switches, switched;
    double trying_s; /* seconds of all rounds in which choices were tried */
    kl_tried tried[KL_CHOICES];
    kl_tried before; /* what was measured of the present choice before its present trial */
} kl_slices;

/* Return the limit between free and shared cores. A rank that gets a smaller part of its core is on a shared
 * core. `shares` has the part of its core that each rank gets. */
double kl_slices_limit(uint32_t ranks, const double *shares);
/* Return whether a sweep is shorter than the scheduler's time slices. */
bool kl_slices_short(double sweep_s, double quantum_s);
/* Return whether shares should be chosen by trials: a core is shared, and sweeps are shorter than time
 * slices. */
bool kl_slices_apply(const kl_slices *slices, uint32_t ranks, const double *shares, double sweep_s,
                     double quantum_s);
/* Return the part of its core share that a rank may use so that it still runs at once when it wakes. The
 * arguments include the seconds of a sweep and of the scheduler's time slice. */
double kl_slices_part(double sweep_s, double quantum_s, double share);
/* Return the number of sweeps for which ghost rows should be exchanged at once. Together these sweeps take
 * about five time slices. The number is smaller if a rank would have to compute too many rows of its
 * neighbours: more than a twentieth of its own rows. The computation of a row reads rows up to `reach`
 * away. */
uint64_t kl_slices_depth(double sweep_s, double quantum_s, double rows_of_rank, uint64_t reach,
                         uint64_t deepest);
/* Add the sweeps and seconds of a round with the present choice, and choose for the next round. If
 * `changed` is true, ranks get other parts of their cores than when the trials began. The loop was opened
 * now_s seconds ago. Choices are tried again only if trials have taken a small part of this time. Until
 * then the last best choice is kept. Return whether a new series of trials begins, or would begin if
 * there were time. */
bool kl_slices_next(kl_slices *slices, double executions, double elapsed_s, bool changed, double now_s);
/* Keep the choice that earlier trials under this load found best. The next trials begin some rounds later. */
void kl_slices_resume(kl_slices *slices, int choice);
/* In a series of trials that has just begun, use an earlier measurement of equal shares instead of a trial.
 */
void kl_slices_know_equal(kl_slices *slices, const kl_tried *equal);
/* Store that the present choice cannot be used or is not worth trying, and try the next one. */
void kl_slices_refuse(kl_slices *slices);
/* Try a choice that was refused in the last series of trials. The measurements of the other choices stay
 * valid. The best two choices may then be tried once more, as at the end of a series. */
void kl_slices_offer(kl_slices *slices, int choice);
/* Store that the kept choice cannot be used, because its move was refused. From now on keep `placed`, the
 * choice by whose shares the rows lie now. If `placed` is KL_CHOICES, the rows do not lie by any choice, and
 * the kept choice stays. */
void kl_slices_return(kl_slices *slices, int placed);
void kl_slices_leave(kl_slices *slices); /* Stop choosing by trials. */
/* Return whether a choice with work for ranks on shared cores may be better than the best choice so far. The
 * array `shares` has the part of its core that each rank gets. */
bool kl_slices_may_share(const kl_slices *slices, uint32_t ranks, const double *shares);
/* Return the least seconds of a sweep with any choice; HUGE_VAL: not known. */
double kl_slices_best_s(const kl_slices *slices);
/* Return the measured seconds of a sweep with this choice; 0: not known. */
double kl_slices_sweep_s(const kl_slices *slices, int choice);
/* Write to `reason` which choice is tried, or why the present choice was made. */
void kl_slices_say(const kl_slices *slices, double sweep_s, double quantum_s, char reason[KL_REASON_BYTES]);

#endif
