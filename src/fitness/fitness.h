/* Door of room fitness: lists of hosts; how fit each host is, from readings; and which hosts to use. Pure. */
#ifndef KL_FITNESS_H
#define KL_FITNESS_H

#include "base/base.h"

/* --- list.c, slurm.c: lists of hosts --- */

enum { KL_LISTED_MOST = 65536, KL_LISTED_BYTES = 256 };

typedef struct kl_listed_host {
    char *name;     /* as the list spells it, with "user@" where that is given */
    uint32_t slots; /* ranks that the list allows on the host; 0: it does not say */
} kl_listed_host;

/* Hosts in the order of a list; each name occurs once. A zeroed list is empty. */
typedef struct kl_host_list {
    kl_listed_host *at;
    size_t count;
    uint64_t room;
    uint32_t *index; /* hash table of the names: number of a host + 1, 0: free */
    size_t index_room;
} kl_host_list;

/* Add a host; the name is copied. A name that is in the list already gets more slots, as in the hostfiles of
 * MPI.
 *
 * KILTER_ERR_INPUT: not the name of a host, or too many hosts. KILTER_ERR_MEMORY */
kilter_status kl_host_list_add(kl_host_list *list, const char *name, uint32_t slots, kilter_error *error);
/* Read an MPI hostfile (name slots=4, or name:4), a list of names, or an ssh configuration, of which the
 * names without wildcards count. Errors name `file` and the line. KILTER_ERR_INPUT, KILTER_ERR_MEMORY */
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
    double at_s;         /* when the reading arrived, on the receiver's clock; NAN: the host never answered */
    uint32_t cores;      /* cores that a process may use there, at least 1 */
    double probe;        /* part of 0.2 s that a thread on every core could run, 0 … 1 */
    double steps_per_s;  /* steps of a fixed computation per second of processor time on one core */
    double quota;        /* cores that control groups allow; INFINITY: no limit */
    double memory_left;  /* bytes that a process could still get */
    double memory_total; /* bytes of the host, or of the control group that leaves least */
    double swap_free, swap_total; /* bytes */
    double load;                  /* mean number of running threads in the last minute */
    /* parts of the last 10 s in which some processes waited for a core, or all for memory or the disk */
    double waits_cpu, waits_memory, waits_io;
    double own;      /* threads of the own program that ran there during the probe */
    double measured; /* part of a core that each rank of the own program really gets: it replaces the probe */
} kl_reading;

kl_reading kl_reading_none(void); /* nothing is known, and the host never answered */

/* A measured link. Readings of both directions count alike. */
typedef struct kl_link {
    uint32_t from, to;  /* numbers of the two hosts */
    double trip_s;      /* there and back for an empty message */
    double bytes_per_s; /* 0: no connection */
} kl_link;

typedef enum kl_fit_state { KL_FIT_KNOWN, KL_FIT_UNREACHABLE, KL_FIT_STALE } kl_fit_state;

/* Fitness of a host: numbers from 0 to 1, and 1 is best. */
typedef struct kl_fit {
    kl_fit_state state;
    double cpu, memory, swap, disk; /* factors of `host` */
    double host, net, qos;          /* qos is w·host + (1 − w)·net; 0 unless the state is known */
    double speed;                   /* what the program gets there, in cores of the fastest host */
    double pace;                    /* the same for one of its threads: 1 for a whole core of that host */
} kl_fit;

typedef struct kl_fit_ask {
    const kl_reading *readings;
    const uint32_t *slots; /* threads that the program would have on each host; 0, or NULL: one a core */
    size_t count;
    const kl_link *links;
    size_t link_count;
    double now_s;        /* on the receiver's clock */
    double weight;       /* w, 0 … 1: 1 for programs that only compute */
    double stale_s;      /* older readings do not count; 0: any age */
    double memory_bytes; /* memory that the program needs on a host; 0: a tenth of the host's */
} kl_fit_ask;

/* Find the fitness of all hosts; fits[count]. KILTER_ERR_MEMORY */
kilter_status kl_fit_hosts(const kl_fit_ask *ask, kl_fit *fits, kilter_error *error);
/* Return the part of a core that each of `threads` new threads would get. */
double kl_fit_cpu(const kl_reading *reading, double threads);
/* Return the seconds that a message of 64 KiB takes; INFINITY: no connection. */
double kl_link_message_s(const kl_link *link);
double kl_fit_mean(const kl_fit *fits, size_t count); /* mean QoS; 0 hosts: 0 */

enum { KL_FIT_WHY_BYTES = 80 };
/* Say in a few words what makes the host less fit; "": nothing does. */
void kl_fit_why(const kl_fit *fit, const kl_reading *reading, char why[KL_FIT_WHY_BYTES]);

/* Return the number of rounds of measuring links. A host measures one link in a round, and at most 9 in all.
 */
uint32_t kl_link_rounds(uint32_t hosts);
/* Return the partner of a host in a round; the host itself: it has none. */
uint32_t kl_link_partner(uint32_t hosts, uint32_t round, uint32_t host);

/* --- pick.c, forecast.c: which hosts to use --- */

/* A host that may be picked. */
typedef struct kl_candidate {
    double qos;       /* 0: it is never picked */
    double speed;     /* work per second that the program gets there */
    double message_s; /* seconds by which messages to this host prolong each sweep */
    bool current;     /* the program is there now */
    bool last;        /* it is picked only if the other hosts do not suffice */
} kl_candidate;

typedef struct kl_pick_ask {
    const kl_candidate *candidates;
    uint32_t count;   /* number of candidates */
    uint32_t wanted;  /* hosts to pick; 0: `forecast` chooses the number, and the other pickers take all */
    double threshold; /* least QoS for round-robin and random; 0: 0.7 and 0.5 */
    uint64_t seed;    /* for random and best-few: the same seed gives the same hosts */
    uint32_t start;   /* for round-robin: the candidate where the turn begins */
    /* for forecast: */
    double work;   /* work left, in the unit of speed × seconds */
    double sweeps; /* sweeps left */
    double move_s; /* seconds to save, start and restore, if the hosts are not exactly the current ones */
    bool equal;    /* all hosts get equal work, so that the slowest one decides; false: work follows speed */
} kl_pick_ask;

struct kl_ranking; /* private to the room */
enum { KL_PICK_WHY_BYTES = 160 };
typedef struct kl_pick {
    uint32_t *at; /* the picked candidates, in the order of choice; malloc'd */
    uint32_t count;
    uint32_t next;               /* start of the next turn of round-robin */
    double end_s;                /* forecast: seconds until the end with these hosts */
    double stay_s;               /* forecast: the same with the current ones; INFINITY: there are none */
    char why[KL_PICK_WHY_BYTES]; /* what was done to the wishes, such as a lowered threshold; "": nothing */
} kl_pick;

typedef struct kl_picker {
    const char *name, *summary;
    kilter_status (*pick)(const struct kl_picker *self, const kl_pick_ask *ask, kl_pick *pick,
                          kilter_error *error);
    /* orders the ranked hosts, for the pickers that share a body */
    void (*choose)(const kl_pick_ask *ask, struct kl_ranking *ranking, kl_pick *pick);
} kl_picker;

size_t kl_picker_count(void);
const kl_picker *kl_picker_at(size_t i);           /* the first one is the default */
const kl_picker *kl_picker_find(const char *name); /* NULL: there is none */
/* Pick the wanted number of hosts, or all that may be picked if they are fewer. KILTER_ERR_MEMORY; *pick is
 * then as it was. */
kilter_status kl_pick_hosts(const kl_picker *picker, const kl_pick_ask *ask, kl_pick *pick,
                            kilter_error *error);
void kl_pick_free(kl_pick *pick);
/* Put all candidates into order[count]. The fewest picked ones whose slots suffice for the ranks come first.
 * The others follow by fitness. `wanted` of the ask does not count. Without memory the order is that of the
 * list. */
void kl_pick_order(const kl_picker *picker, const kl_pick_ask *ask, const uint32_t *slots, uint32_t ranks,
                   uint32_t *order);
/* Make candidates of hosts when nothing is known of a run, and set work and sweeps of the ask. With the
 * fastest hosts, a part `weight` of the time is then computing. The rest is messages over the best links. */
void kl_pick_by_weight(const kl_fit *fits, uint32_t count, double weight, kl_candidate *candidates,
                       kl_pick_ask *ask);

#endif
