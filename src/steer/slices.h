/* Private to room steer: sweeps shorter than the scheduler's slices, on cores that other processes use as
 * well. */
#ifndef KL_STEER_SLICES_H
#define KL_STEER_SLICES_H

#include "steer/steer.h"

typedef enum kl_choice {
    KL_CHOICE_EQUAL,      /* equal shares */
    KL_CHOICE_PROPORTION, /* shares in proportion to each rank's part of its core */
    KL_CHOICE_LESS,       /* so few for ranks on shared cores that they run at once when woken */
    KL_CHOICE_OUT,        /* no iterations for ranks on shared cores */
    KL_CHOICE_DEEP,       /* shares in proportion, and ghost rows for several sweeps in one exchange */
    KL_CHOICES
} kl_choice;

typedef struct kl_tried {
    double executions, elapsed_s;
    bool refused; /* the move to this choice was refused */
} kl_tried;

typedef struct kl_slices {        /* zeroed: no choice is tried */
    bool active, holds;           /* holds: all choices were tried, and the best choice stays */
    int choice;                   /* present choice */
    int held;                     /* the choice that held last; at first equal shares */
    uint32_t tries, rounds, hold; /* hold 0 while a choice holds: trying begins as soon as there is time */
    double trying_s;              /* seconds of all rounds in which choices were tried */
    kl_tried tried[KL_CHOICES];
} kl_slices;

bool kl_slices_shared(double share); /* do other processes use the core, by a rank's share of it? */
/* Return whether shares should be chosen by trying them, because sweeps are shorter than slices. */
bool kl_slices_apply(const kl_slices *slices, uint32_t ranks, const double *shares, double sweep_s,
                     double quantum_s);
/* Return the fraction of its core share that a rank may use and still run at once when woken. sweep_s:
 * seconds of a sweep; quantum_s: seconds of the scheduler's slice. */
double kl_slices_part(double sweep_s, double quantum_s, double share);
/* Return the number of sweeps whose ghost rows should be exchanged at once. These sweeps take five slices,
 * but a rank does at most a twentieth of its rows twice. A sweep reads rows up to `reach` away. */
uint64_t kl_slices_depth(double sweep_s, double quantum_s, double rows_of_rank, uint64_t reach,
                         uint64_t deepest);
/* Add the sweeps and seconds of a round with the present choice, and choose for the next round. If
 * `changed`, ranks get other parts of their cores than when trying began. now_s: seconds since the loop was
 * opened. Trying begins again only if it has taken a small part of them; until then the choice that held last
 * holds. Return whether either begins. */
bool kl_slices_next(kl_slices *slices, double executions, double elapsed_s, bool changed, double now_s);
void kl_slices_refuse(kl_slices *slices);         /* note that the move to the present choice was refused */
void kl_slices_leave(kl_slices *slices);          /* stop choosing by trying */
double kl_slices_best_s(const kl_slices *slices); /* least seconds of a sweep; HUGE_VAL: not known */
double kl_slices_sweep_s(const kl_slices *slices,
                         int choice); /* seconds measured with this choice; 0: not known */
/* Print which choice is tried, or why the present choice was made. */
void kl_slices_say(const kl_slices *slices, double sweep_s, double quantum_s, char reason[KL_REASON_BYTES]);

#endif
