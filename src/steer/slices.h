/* Sweeps shorter than the scheduler's slices, on cores that others want, too. Within room steer. */
#ifndef KL_STEER_SLICES_H
#define KL_STEER_SLICES_H

#include "steer/steer.h"

typedef enum kl_choice {
    KL_CHOICE_EQUAL,      /* equal shares */
    KL_CHOICE_PROPORTION, /* in proportion to what each rank gets of its core */
    KL_CHOICE_LESS,       /* less for ranks on shared cores: so much that they are let in at once */
    KL_CHOICE_OUT,        /* nothing for them */
    KL_CHOICE_DEEP,       /* in proportion, and the ghost rows of several sweeps at once */
    KL_CHOICES
} kl_choice;

typedef struct kl_tried {
    double executions, elapsed_s;
    bool refused; /* it could not be had */
} kl_tried;

typedef struct kl_slices { /* zeroed: nothing is tried */
    bool active, holds;    /* holds: all are tried */
    int choice;            /* in force */
    uint32_t tries, rounds, hold;
    kl_tried tried[KL_CHOICES];
} kl_slices;

bool kl_slices_shared(double share); /* of a core: others want it, too */
/* Are shares to be chosen by trying, as sweeps are shorter than slices? */
bool kl_slices_apply(const kl_slices *slices, uint32_t ranks, const double *shares, double sweep_s,
                     double quantum_s);
/* The part of its share of the core that a rank may use in sweeps so short, and still be let in at once
 * when it wakes. */
double kl_slices_part(double sweep_s, double quantum_s, double share);
/* How many sweeps one exchange shall be for: enough for five slices, as long as a rank does at most a
 * twentieth of its rows twice; a sweep reads rows up to `reach` away. 1: one exchange for each. */
uint64_t kl_slices_depth(double sweep_s, double quantum_s, double rows_of_rank, uint64_t reach,
                         uint64_t deepest);
/* A round with the choice in force is over: what was done in it; changed: ranks get other shares of their
 * cores than when it began. Sets `choice` for the next one. */
void kl_slices_next(kl_slices *slices, double executions, double elapsed_s, bool changed);
void kl_slices_refuse(kl_slices *slices);                      /* the choice in force cannot be had */
void kl_slices_leave(kl_slices *slices);                       /* nothing is chosen by trying any more */
double kl_slices_best_s(const kl_slices *slices);              /* HUGE_VAL: none is known */
double kl_slices_sweep_s(const kl_slices *slices, int choice); /* as tried; 0: not known */
/* Say what is tried, or why the choice in force was chosen. */
void kl_slices_say(const kl_slices *slices, double sweep_s, double quantum_s, char reason[KL_REASON_BYTES]);

#endif
