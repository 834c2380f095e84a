/* Inside of the master: what its parts share. Nobody else includes this. */
#ifndef KL_MASTER_PRIVATE_H
#define KL_MASTER_PRIVATE_H

#include "farm/farm.h"
#include "probe/probe.h"

typedef enum stage {
    GREETING, /* joined, has not said who it is */
    STARTING, /* its start function runs */
    PROBING,  /* messages to it are being timed */
    WORKING,  /* it is dealt work */
    LEAVING,  /* it was told to finish its task and go */
    GONE,
} stage;

typedef struct member {
    kl_peer peer;
    stage stage;
    uint32_t worker; /* index; from STARTING on */
    kl_hello hello;
    double joined_s;
    kl_probe probe;
    uint64_t shared; /* generation of the shared data it has; 0: none */
    bool hungry, held, resting;
    double asked_s;   /* since when it is hungry */
    kl_chunk *chunks; /* at the worker, oldest first */
    size_t chunk_count, chunk_capacity;
} member;

struct kl_master {
    kl_master_options options;
    kl_transport *transport;
    kl_balance balance;
    kl_trace *trace;
    double opened_s;

    member *members; /* by rising peer id */
    size_t member_count, member_capacity;
    uint32_t ready, resting, refused; /* ready: those resting included */
    uint32_t probing, leaving;
    uint32_t coming; /* workers being started */
    char last_loss[256];

    kl_buffer shared; /* the SHARED message in force */
    uint64_t shared_generation;

    bool running;
    uint64_t runs, done, failed;
    uint64_t finished; /* tasks, in all runs */
    double began_s, ended_s;
    kl_spans done_before; /* of the next run */
    uint64_t unsafe;      /* results taken, of those in `done`, that may still be lost */
    bool holds;           /* too many: nothing is dealt */
    bool feed_all;        /* something changed for everybody */
    double look_again_s;  /* at workers held back; 0: none is */
    kl_delivery_list results;
    char decision[512];
    kilter_farm_summary summary;

    kl_tuning pending; /* for the next run */
    uint32_t seats;    /* workers wanted in a run; 0: all */
    bool by_hand;      /* `seats` was set from outside */
    bool chooses;      /* the farm chooses `seats` itself */
    kl_team team;
    double master_s;     /* the master's own time since the last run [l_m] */
    size_t shared_sent;  /* bytes of shared data that the run sent to each worker */
    kl_farm_state state; /* what of it changes only between runs */
};

/* Rest and wake as `seats` wants it: the fastest work. */
kilter_status kl_master_seat(kl_master *master, kilter_error *error);
/* One that worked is lost: another one, resting, takes its place. */
void kl_master_wake_for_lost(kl_master *master);
/* A run is about to begin: what was set or is to be decided between runs takes effect. */
kilter_status kl_master_between_runs(kl_master *master, kilter_error *error);
void kl_master_note_iteration(kl_master *master); /* a run has ended */

#endif
