/* Public header of the folder fitness: lists of hosts, how fit each host is, and which hosts to use. All
 * functions are pure. */
#ifndef KL_FITNESS_H
#define KL_FITNESS_H

#include "base/base.h"

/* --- list.c and slurm.c: lists of hosts --- */

enum { KL_LISTED_MOST = 65536, KL_LISTED_BYTES = 256 };

typedef struct kl_listed_host {
    char *name;     /* the host's name as the list spells it, with "user@" if the list has it */
    uint32_t slots; /* number of ranks that the list allows on the host; 0: the list does not say */
} kl_listed_host;

/* Hosts in the order of a list. Each name occurs once. If all fields are zero, the list is empty. */
typedef struct kl_host_list {
    kl_listed_host *at;
    size_t count;
    uint64_t room;
    uint32_t *index; /* hash table of the names: index of the host in `at` + 1; 0: no entry */
    size_t index_room;
} kl_host_list;

/* Add a host and copy its name. If the list has the name already, that host gets more slots, as in MPI's
 * hostfiles. KILTER_ERR_INPUT: this cannot be the name of a host, or there are too many hosts;
 * KILTER_ERR_MEMORY */
kilter_status kl_host_list_add(kl_host_list *list, const char *name, uint32_t slots, kilter_error *error);
/* Read an MPI hostfile (name slots=4, or name:4), a list of names, or an ssh configuration, whose names with
 * wildcards are left out. Messages of errors name `file` and the line. Errors: KILTER_ERR_INPUT,
 * KILTER_ERR_MEMORY */
kilter_status kl_host_list_parse(const char *file, const char *text, size_t size, kl_host_list *list,
                                 kilter_error *error);
/* Read Slurm's list of nodes, such as node[01-03,7],login. `numbers` lists the number of ranks on each node
 * in Slurm's notation: 4(x2),2 stands for 4, 4 and 2 ranks. NULL or "": not known. Errors: KILTER_ERR_INPUT,
 * KILTER_ERR_MEMORY */
kilter_status kl_host_list_slurm(const char *nodes, const char *numbers, kl_host_list *list,
                                 kilter_error *error);
/* Return the index of the host with this name; SIZE_MAX: there is none. */
size_t kl_host_list_find(const kl_host_list *list, const char *name);
void kl_host_list_free(kl_host_list *list); /* free the names and empty the list */

/* --- fit.c, net.c: readings → fitness --- */

/* The measured values of a host. NAN means that a value is not known. */
typedef struct kl_reading {
    double at_s;    /* time when the reading arrived, by the clock of the process that measures; NAN: the host
                       has never answered */
    uint32_t cores; /* number of cores that a process may use on the host, at least 1 */
    double probe;   /* the probe runs a thread on every core for 0.2 s; this is the part of the time that the
                       threads got, 0 … 1 */
    double steps_per_s;  /* steps of a fixed computation per second of processor time on one core */
    double quota;        /* number of cores that control groups allow; INFINITY: no limit */
    double memory_left;  /* bytes of memory that a process could still get */
    double memory_total; /* bytes of memory of the host, or of the control group that leaves the least memory
                            free */
    double swap_free, swap_total; /* bytes */
    double load;                  /* mean number of running threads in the last minute */
    /* fractions of the last 10 s. waits_cpu: some process waited for a core. waits_memory and waits_io: all
     * processes waited for memory, or for the disk. */
    double waits_cpu, waits_memory, waits_io;
    double own;      /* number of threads of the user's program that ran on the host during the probe */
    double measured; /* part of a core that each rank of the user's program gets, as the program has measured
                        it; if known, it replaces the probe */
} kl_reading;

kl_reading kl_reading_none(void); /* the reading of a host that has never answered: no field is known */

/* A measured link between two hosts. It does not matter which of the two hosts is `from`. */
typedef struct kl_link {
    uint32_t from, to;  /* indices of the two hosts that the link connects */
    double trip_s;      /* round-trip time of an empty message */
    double bytes_per_s; /* bytes per second of a transfer; 0: no connection */
} kl_link;

typedef enum kl_fit_state { KL_FIT_KNOWN, KL_FIT_UNREACHABLE, KL_FIT_STALE } kl_fit_state;

/* Fitness of a host: numbers from 0 to 1, where 1 is best. */
typedef struct kl_fit {
    kl_fit_state state;
    double cpu, memory, swap, disk; /* four factors, 0 … 1; `host` is their product */
    double host, net, qos; /* qos is w·host + (1 − w)·net, where w is kl_fit_ask.weight; qos is 0 unless the
                              state is KL_FIT_KNOWN */
    double speed; /* speed that the program gets on the host, as a number of cores of the fastest host */
    double pace;  /* speed of a single thread of the program on the host, divided by the speed of a whole core
                     of the fastest host */
} kl_fit;

typedef struct kl_fit_ask {
    const kl_reading *readings;
    const uint32_t *slots; /* number of the program's threads on each host; 0: one thread per core; slots
                              NULL: one thread per core on all hosts */
    size_t count;
    const kl_link *links;
    size_t link_count;
    double now_s;  /* present time, by the clock of the process that measures */
    double weight; /* weight of `host` in `qos`, 0 … 1; the weight of `net` is 1 − weight. 1 suits programs
                      that only compute */
    double stale_s; /* greatest age in seconds of a reading that counts; 0: any age */
    double
        memory_bytes; /* bytes of memory that the program needs on a host; 0: a tenth of the host's memory */
} kl_fit_ask;

/* Compute the fitness of all hosts into fits[count]. A failure gives KILTER_ERR_MEMORY. */
kilter_status kl_fit_hosts(const kl_fit_ask *ask, kl_fit *fits, kilter_error *error);
/* Return the part of a core that each of `threads` new threads would get on the host. */
double kl_fit_cpu(const kl_reading *reading, double threads);
/* Return the seconds that a message of 64 KiB takes on the link; INFINITY: no connection. */
double kl_link_message_s(const kl_link *link);
double kl_fit_mean(const kl_fit *fits, size_t count); /* mean of the hosts' `qos`; 0 if there are no hosts */

enum { KL_FIT_WHY_BYTES = 80 };
/* Write in a few words what lowers the fitness of the host. Write "" if nothing does. */
void kl_fit_why(const kl_fit *fit, const kl_reading *reading, char why[KL_FIT_WHY_BYTES]);

/* Return the number of rounds in which links are measured, at most 9. A host measures one link in each round.
 */
uint32_t kl_link_rounds(uint32_t hosts);
/* Return the host to which `host` measures its link in this round. If there is none, return `host` itself. */
uint32_t kl_link_partner(uint32_t hosts, uint32_t round, uint32_t host);

/* --- pick.c and forecast.c: which hosts to use --- */

/* A host that may be chosen. */
typedef struct kl_candidate {
    double qos;       /* fitness; 0: the host is never chosen */
    double speed;     /* work per second that the program does on the host */
    double message_s; /* seconds by which messages to this host prolong each sweep */
    bool current;     /* true: the program runs on the host now */
    bool last;        /* true: choose the host only if the other hosts are not enough */
} kl_candidate;

typedef struct kl_pick_ask {
    const kl_candidate *candidates;
    uint32_t count;   /* number of candidates in the array */
    uint32_t wanted;  /* number of hosts to choose; 0: the picker `forecast` chooses the best number itself,
                         and other pickers take all hosts */
    double threshold; /* least QoS of a host for the pickers round-robin and random; 0: their defaults, 0.7
                         and 0.5 */
    uint64_t seed;    /* seed of the pickers random and best-few; equal seeds give equal choices */
    uint32_t start;   /* for the picker round-robin: the candidate that comes first */
    /* The next fields are for the picker `forecast`. */
    double work;   /* work that is left, in the unit of speed × seconds */
    double sweeps; /* number of sweeps that are left */
    double move_s; /* seconds to save, stop and restart the program, if other hosts than the current ones are
                      chosen */
    bool equal;    /* true: all hosts get equal work, so the slowest host decides; false: each gets work in
                      proportion to its speed */
} kl_pick_ask;

struct kl_ranking; /* a type that is private to the folder fitness */
enum { KL_PICK_WHY_BYTES = 160 };
typedef struct kl_pick {
    uint32_t *at; /* the chosen candidates, in the order of choice; the caller frees them */
    uint32_t count;
    uint32_t next; /* the value of `start` for the next choice by round-robin */
    double end_s;  /* for the picker `forecast`: seconds until the end of the run on the chosen hosts */
    double stay_s; /* for the picker `forecast`: seconds until the end of the run on the current hosts;
                      INFINITY: there are none */
    char why[KL_PICK_WHY_BYTES]; /* a remark on the choice, such as that the threshold was lowered; "": there
                                    is none */
} kl_pick;

typedef struct kl_picker {
    const char *name, *summary;
    kilter_status (*pick)(const struct kl_picker *self, const kl_pick_ask *ask, kl_pick *pick,
                          kilter_error *error);
    /* for pickers that use pick_ranked(): moves the chosen hosts to the front of the ranking; NULL: the
     * fittest hosts are chosen */
    void (*choose)(const kl_pick_ask *ask, struct kl_ranking *ranking, kl_pick *pick);
} kl_picker;

size_t kl_picker_count(void);
const kl_picker *kl_picker_at(size_t i); /* return picker number i; number 0 is the default */
const kl_picker *
kl_picker_find(const char *name); /* Return the picker with this name; NULL: there is none. */
/* Choose the wanted number of hosts, or all that may be chosen if there are fewer. After
 * KILTER_ERR_MEMORY, *pick is unchanged. */
kilter_status kl_pick_hosts(const kl_picker *picker, const kl_pick_ask *ask, kl_pick *pick,
                            kilter_error *error);
void kl_pick_free(kl_pick *pick);
/* Sort all candidates into order[count]. First come the hosts that the picker chooses, just enough of them
 * for the ranks. The other hosts follow, the fittest first. `ask->wanted` is ignored. If memory runs out, the
 * candidates keep their order. */
void kl_pick_order(const kl_picker *picker, const kl_pick_ask *ask, const uint32_t *slots, uint32_t ranks,
                   uint32_t *order);
/* Make candidates for a run about which only `weight` is known. Also set the work and the number of sweeps in
 * `ask`. On the fastest hosts with the best links, computing then takes the part `weight` of the forecast
 * time. Messages take the part 1 − weight. */
void kl_pick_by_weight(const kl_fit *fits, uint32_t count, double weight, kl_candidate *candidates,
                       kl_pick_ask *ask);

#endif
