/* Public header of the folder fitness: lists of hosts, how fit each host is, and which hosts to use. All
 * functions are pure. */
#ifndef KL_FITNESS_H
#define KL_FITNESS_H

#include "base/base.h"

/* --- list.c, slurm.c: lists of hosts --- */

enum { KL_LISTED_MOST = 65536, KL_LISTED_BYTES = 256 };

typedef struct kl_listed_host {
    char *name;     /* the name as the list spells it, with "user@" if the list has it */
    uint32_t slots; /* number of ranks that the list allows on the host; 0: the list does not say */
} kl_listed_host;

/* Hosts in the order of a list; each name occurs once. All zero: empty. */
typedef struct kl_host_list {
    kl_listed_host *at;
    size_t count;
    uint64_t room;
    uint32_t *index; /* hash table of the names: number of a host + 1; 0: free */
    size_t index_room;
} kl_host_list;

/* Add a host; the name is copied. If the name is in the list already, its host gets more slots, as in
 * MPI's hostfiles. KILTER_ERR_INPUT: not the name of a host, or too many hosts. KILTER_ERR_MEMORY */
kilter_status kl_host_list_add(kl_host_list *list, const char *name, uint32_t slots, kilter_error *error);
/* Read an MPI hostfile (name slots=4, or name:4), a list of names, or the names without wildcards of an
 * ssh configuration. Errors name `file` and the line. KILTER_ERR_INPUT, KILTER_ERR_MEMORY */
kilter_status kl_host_list_parse(const char *file, const char *text, size_t size, kl_host_list *list,
                                 kilter_error *error);
/* Read Slurm's list of nodes, such as node[01-03,7],login, and its numbers for the nodes, such as 4(x2),2.
 * numbers NULL or "": not known. KILTER_ERR_INPUT, KILTER_ERR_MEMORY */
kilter_status kl_host_list_slurm(const char *nodes, const char *numbers, kl_host_list *list,
                                 kilter_error *error);
/* Return the number of the host with this name; SIZE_MAX: there is none. */
size_t kl_host_list_find(const kl_host_list *list, const char *name);
void kl_host_list_free(kl_host_list *list); /* free the names and zero the list */

/* --- fit.c, net.c: readings → fitness --- */

/* Measured numbers of a host. NAN: not known. */
typedef struct kl_reading {
    double
        at_s; /* time when the reading arrived, by the receiver's clock; NAN: the host has never answered */
    uint32_t cores;      /* number of cores that a process may use on the host, at least 1 */
    double probe;        /* part of 0.2 s in which a thread on every core could run, 0 … 1 */
    double steps_per_s;  /* steps of a fixed computation per second of processor time on one core */
    double quota;        /* number of cores that control groups allow; INFINITY: no limit */
    double memory_left;  /* bytes of memory that a process could still get */
    double memory_total; /* memory in bytes of the host, or of the control group that leaves the least */
    double swap_free, swap_total; /* bytes */
    double load;                  /* mean number of running threads in the last minute */
    /* parts of the last 10 s in which some processes waited for a core, and in which all waited for memory
     * or the disk */
    double waits_cpu, waits_memory, waits_io;
    double own; /* number of threads of the user's program that ran on the host during the probe */
    double
        measured; /* part of a core that each rank of the user's program really gets; it replaces the probe */
} kl_reading;

kl_reading kl_reading_none(void); /* all fields not known: the host has never answered */

/* A measured link. Readings of both directions have equal weight. */
typedef struct kl_link {
    uint32_t from, to;  /* numbers of the two hosts */
    double trip_s;      /* round-trip time of an empty message */
    double bytes_per_s; /* bytes per second; 0: no connection */
} kl_link;

typedef enum kl_fit_state { KL_FIT_KNOWN, KL_FIT_UNREACHABLE, KL_FIT_STALE } kl_fit_state;

/* Fitness of a host: numbers from 0 to 1, where 1 is best. */
typedef struct kl_fit {
    kl_fit_state state;
    double cpu, memory, swap, disk; /* factors of `host` */
    double host, net, qos;          /* qos is w·host + (1 − w)·net; it is 0 unless the state is `known` */
    double speed; /* speed that the program gets on the host, in cores of the fastest host */
    double pace;  /* the same for one thread; 1: a whole core of the fastest host */
} kl_fit;

typedef struct kl_fit_ask {
    const kl_reading *readings;
    const uint32_t
        *slots; /* number of threads that the program would have on each host; 0 or NULL: one per core */
    size_t count;
    const kl_link *links;
    size_t link_count;
    double now_s;        /* present time, by the receiver's clock */
    double weight;       /* the weight w, 0 … 1; 1 for programs that only compute */
    double stale_s;      /* greatest age in seconds of a reading that counts; 0: any age */
    double memory_bytes; /* memory that the program needs on a host; 0: a tenth of the host's memory */
} kl_fit_ask;

/* Compute the fitness of all hosts; fits[count]. KILTER_ERR_MEMORY */
kilter_status kl_fit_hosts(const kl_fit_ask *ask, kl_fit *fits, kilter_error *error);
/* Return the part of a core that each of `threads` new threads would get. */
double kl_fit_cpu(const kl_reading *reading, double threads);
/* Return the seconds that a message of 64 KiB takes; INFINITY: no connection. */
double kl_link_message_s(const kl_link *link);
double kl_fit_mean(const kl_fit *fits, size_t count); /* mean QoS; 0 hosts: 0 */

enum { KL_FIT_WHY_BYTES = 80 };
/* Write in a few words what makes the host less fit; "": nothing does. */
void kl_fit_why(const kl_fit *fit, const kl_reading *reading, char why[KL_FIT_WHY_BYTES]);

/* Return the number of rounds in which links are measured. A host measures one link per round, and at most
 * 9 in total. */
uint32_t kl_link_rounds(uint32_t hosts);
/* Return the host with which a host measures its link in a round. If it has none, return the host itself. */
uint32_t kl_link_partner(uint32_t hosts, uint32_t round, uint32_t host);

/* --- pick.c, forecast.c: which hosts to use --- */

/* A host that may be chosen. */
typedef struct kl_candidate {
    double qos;       /* fitness; 0: the host is never chosen */
    double speed;     /* work per second that the program gets there */
    double message_s; /* seconds by which messages to this host prolong each sweep */
    bool current;     /* true: the program is on the host now */
    bool last;        /* true: choose the host only if the other hosts are not enough */
} kl_candidate;

typedef struct kl_pick_ask {
    const kl_candidate *candidates;
    uint32_t count;   /* number of candidates */
    uint32_t wanted;  /* number of hosts to choose; 0: the picker `forecast` chooses the number, and the other
                         pickers take all */
    double threshold; /* least QoS for the pickers round-robin and random; 0: 0.7 and 0.5 */
    uint64_t seed;    /* seed for random and best-few; the same seed gives the same hosts */
    uint32_t start;   /* for round-robin: the candidate with which the turn begins */
    /* for forecast: */
    double work;   /* work left, in the unit of speed × seconds */
    double sweeps; /* number of sweeps left */
    double
        move_s; /* seconds to save, start and restore, if the chosen hosts are not exactly the current ones */
    bool equal; /* true: all hosts get equal work, so the slowest one decides; false: work is proportional to
                   speed */
} kl_pick_ask;

struct kl_ranking; /* private to the folder */
enum { KL_PICK_WHY_BYTES = 160 };
typedef struct kl_pick {
    uint32_t *at; /* the chosen candidates, in the order of choice; the caller frees them */
    uint32_t count;
    uint32_t next; /* candidate with which the next turn of round-robin begins */
    double end_s;  /* for forecast: seconds until the end with these hosts */
    double stay_s; /* for forecast: seconds until the end with the current hosts; INFINITY: there are none */
    char
        why[KL_PICK_WHY_BYTES]; /* how the request was changed, such as a lowered threshold; "": not at all */
} kl_pick;

typedef struct kl_picker {
    const char *name, *summary;
    kilter_status (*pick)(const struct kl_picker *self, const kl_pick_ask *ask, kl_pick *pick,
                          kilter_error *error);
    /* sorts the ranked hosts, for pickers that differ only in the order */
    void (*choose)(const kl_pick_ask *ask, struct kl_ranking *ranking, kl_pick *pick);
} kl_picker;

size_t kl_picker_count(void);
const kl_picker *kl_picker_at(size_t i); /* the first picker is the default */
const kl_picker *
kl_picker_find(const char *name); /* Return the picker with this name; NULL: there is none. */
/* Choose the wanted number of hosts, or all that may be chosen if there are fewer. After
 * KILTER_ERR_MEMORY, *pick is unchanged. */
kilter_status kl_pick_hosts(const kl_picker *picker, const kl_pick_ask *ask, kl_pick *pick,
                            kilter_error *error);
void kl_pick_free(kl_pick *pick);
/* Sort all candidates into order[count]. First come the chosen ones, just enough to have slots for the
 * ranks. The others follow by fitness. `wanted` of the ask is ignored. If memory runs out, the order is
 * that of the list. */
void kl_pick_order(const kl_picker *picker, const kl_pick_ask *ask, const uint32_t *slots, uint32_t ranks,
                   uint32_t *order);
/* Make candidates of hosts for a run of which nothing is known, and set the ask's work and number of
 * sweeps. They are set so that on the fastest hosts, computing takes the part `weight` of the time. The
 * rest is messages over the best links. */
void kl_pick_by_weight(const kl_fit *fits, uint32_t count, double weight, kl_candidate *candidates,
                       kl_pick_ask *ask);

#endif
