/* Private to room keeper: what its files offer each other, from the lowest to the highest. */
#ifndef KL_KEEPER_PRIVATE_H
#define KL_KEEPER_PRIVATE_H

#include "keeper/keeper.h"

/* --- say.c --- */

/* Append an action. The returned slot is valid until the next call. */
kl_keeper_action *kl_keeper_ask_for(kl_keeper *keeper, kl_keeper_act act);
/* Append a decision to record, with a new number; its reason is `format`. */
kl_keeper_action *kl_keeper_decide(kl_keeper *keeper, kl_decision_kind kind, const char *format, ...)
    KILTER_PRINTF(3, 4);
/* Store the answer to a person's request. */
void kl_keeper_answer(kl_keeper *keeper, bool refused, const char *format, ...) KILTER_PRINTF(3, 4);

enum { KL_KEEPER_LIST_BYTES = 120 };
typedef struct kl_keeper_list { /* names of hosts, as a sentence has them */
    char text[KL_KEEPER_LIST_BYTES];
} kl_keeper_list;
kl_keeper_list kl_keeper_say_hosts(const kl_keeper *keeper, bool next); /* next: those of the next attempt */
uint32_t kl_keeper_ranks(const kl_keeper *keeper, bool next);

/* --- table.c: the hosts --- */

kl_keeper_host *kl_keeper_find(const kl_keeper *keeper, const char *name); /* also by its first label */
bool kl_keeper_take_views(kl_keeper *keeper, const kl_keeper_view *views, size_t count);
/* Find out on which hosts the ranks of a report are, and how fast. weight: of the report in means over
 * time. */
bool kl_keeper_take_rates(kl_keeper *keeper, const kl_keeper_report *report, double weight);
/* Return the mean after one more value; mean 0: there is none yet. */
double kl_keeper_smooth(double mean, double value, double weight);
bool kl_keeper_can_use(const kl_keeper_host *host);
/* Is the name in a list of names with commas between them? An empty list has every name. */
bool kl_keeper_listed(const char *names, const char *name);
bool kl_keeper_names_known(const kl_keeper *keeper, const char *names, char unknown[KL_KEEPER_NAME_BYTES]);

/* --- speed.c --- */

/* Return the speed of a rank on the host: measured, or else forecast. In rows per second when any rate was
 * measured. */
double kl_keeper_rank_speed(const kl_keeper *keeper, const kl_keeper_host *host);
/* Return the sweep time on the next attempt's hosts; 0: no forecast. */
double kl_keeper_forecast_sweep_s(const kl_keeper *keeper);

/* --- place.c --- */

/* Choose hosts for the next attempt, of those in `names`. Return the number of ranks. */
uint32_t kl_keeper_place(kl_keeper *keeper, const char *names);
/* Return the ranks of the hosts chosen before; 0: one of them is not fit any more. */
uint32_t kl_keeper_planned(const kl_keeper *keeper);
bool kl_keeper_same_place(const kl_keeper *keeper); /* Would the next attempt be where the present one is? */

/* --- watch.c --- */

void kl_keeper_watch_launch(kl_keeper *keeper);
/* Take a report. Return whether it is the attempt's first. */
bool kl_keeper_watch_report(kl_keeper *keeper, const kl_keeper_report *report);
void kl_keeper_watch_time(kl_keeper *keeper, double passed_s);
double kl_keeper_hang_s(const kl_keeper *keeper); /* longest silence that is no hang; 0: no limit is known */
double kl_keeper_margin_s(const kl_keeper *keeper); /* time to save before a time limit */
/* Note that the program, which was asked to stop, has ended. */
void kl_keeper_watch_stopped(kl_keeper *keeper);

/* --- prospect.c --- */

typedef struct kl_keeper_prospect {
    double stay_sweep_s, sweep_s; /* seconds of a sweep here, and there */
    double left;                  /* sweeps left */
    double gain_s, cost_s;
    bool pays;
} kl_keeper_prospect;

/* Is the gain worth the cost, with a margin? */
bool kl_keeper_pays(const kl_keeper *keeper, const kl_keeper_prospect *prospect);
/* Compare staying with the next attempt's hosts. */
kl_keeper_prospect kl_keeper_look_ahead(const kl_keeper *keeper);

/* --- outcome.c --- */

void kl_keeper_promise_make(kl_keeper *keeper, uint64_t number, const kl_keeper_prospect *prospect);
void kl_keeper_promise_began(kl_keeper *keeper);  /* the attempt after the move has reported */
void kl_keeper_promise_settle(kl_keeper *keeper); /* what it has brought so far is its outcome */

/* --- tally.c --- */

void kl_keeper_tally_launch(kl_keeper *keeper);
void kl_keeper_tally_first(kl_keeper *keeper); /* the attempt has reported for the first time */
/* Count an attempt that has ended. planned: it was asked to stop, and did. */
void kl_keeper_tally_end(kl_keeper *keeper, bool planned);
bool kl_keeper_tally_is_full(const kl_keeper *keeper); /* Are there too many idle attempts? */

/* --- attempt.c: an attempt begins and ends --- */

void kl_keeper_set(kl_keeper *keeper, kl_keeper_state state);
void kl_keeper_look(kl_keeper *keeper, bool others);
void kl_keeper_look_for_hosts(kl_keeper *keeper, kl_keeper_cause cause);
void kl_keeper_begin_attempt(kl_keeper *keeper); /* with the hosts known now; or wait for more */
/* Ask the program to save and stop, for a move that was decided. */
void kl_keeper_save_and_stop(kl_keeper *keeper, kl_keeper_cause cause);
void kl_keeper_kill(kl_keeper *keeper, kl_keeper_cause cause);
void kl_keeper_kill_again(kl_keeper *keeper);
void kl_keeper_over(kl_keeper *keeper, kl_keeper_result result, const char *format, ...) KILTER_PRINTF(3, 4);

/* --- moves.c: leave the present hosts --- */

/* Decide after a look whether to go on, or to save and move. */
void kl_keeper_consider(kl_keeper *keeper);
/* Save before the time limit, if it is near. */
void kl_keeper_mind_limit(kl_keeper *keeper);

/* --- wishes.c: requests of people --- */

void kl_keeper_take_wish(kl_keeper *keeper, const kl_keeper_event *event);

/* --- ends.c: the launcher has ended --- */

void kl_keeper_take_end(kl_keeper *keeper, const kl_keeper_end *end);

#endif
