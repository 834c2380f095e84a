/* Private to the folder keeper: functions that its files share, from the lowest file to the highest. */
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
typedef struct kl_keeper_list { /* Write names of hosts as a sentence needs them. */
    char text[KL_KEEPER_LIST_BYTES];
} kl_keeper_list;
kl_keeper_list kl_keeper_say_hosts(const kl_keeper *keeper,
                                   bool next); /* next: the hosts of the next attempt */
uint32_t kl_keeper_ranks(const kl_keeper *keeper, bool next);

/* --- table.c: the hosts --- */

kl_keeper_host *kl_keeper_find(const kl_keeper *keeper,
                               const char *name); /* Find a host by its name or by the name's first part. */
bool kl_keeper_take_views(kl_keeper *keeper, const kl_keeper_view *views, size_t count);
/* Find out on which hosts the ranks of a report are, and how fast. weight: weight of this report in the
 * means over time. */
bool kl_keeper_take_rates(kl_keeper *keeper, const kl_keeper_report *report, double weight);
/* Return the mean after one more value. mean 0: there is no mean yet. */
double kl_keeper_smooth(double mean, double value, double weight);
bool kl_keeper_can_use(const kl_keeper_host *host);
/* Return whether the name is in a list with commas. An empty list contains every name. */
bool kl_keeper_listed(const char *names, const char *name);
bool kl_keeper_names_known(const kl_keeper *keeper, const char *names, char unknown[KL_KEEPER_NAME_BYTES]);

/* --- speed.c --- */

/* Return the speed of a rank on the host: the measured one, else a forecast. If any rate was measured, the
 * unit is rows per second. */
double kl_keeper_rank_speed(const kl_keeper *keeper, const kl_keeper_host *host);
/* Return the sweep time on the next attempt's hosts; 0: no forecast. */
double kl_keeper_forecast_sweep_s(const kl_keeper *keeper);

/* --- place.c --- */

/* Choose the hosts for the next attempt among those in `names`. Return the number of ranks. */
uint32_t kl_keeper_place(kl_keeper *keeper, const char *names);
/* Return the number of ranks on the hosts that were chosen before; 0: one of these hosts is no longer fit. */
uint32_t kl_keeper_planned(const kl_keeper *keeper);
bool kl_keeper_same_place(
    const kl_keeper *keeper); /* Return whether the next attempt would run where the present one runs. */

/* --- watch.c --- */

void kl_keeper_watch_launch(kl_keeper *keeper);
/* Take in a report. Return whether it is the first one of the attempt. */
bool kl_keeper_watch_report(kl_keeper *keeper, const kl_keeper_report *report);
void kl_keeper_watch_time(kl_keeper *keeper, double passed_s);
double kl_keeper_hang_s(
    const kl_keeper *keeper); /* Return the longest silence that is no hang; 0: no limit is known. */
double
kl_keeper_margin_s(const kl_keeper *keeper); /* Return the time at which to save before a time limit. */
/* Handle that the program has ended after it was asked to stop. */
void kl_keeper_watch_stopped(kl_keeper *keeper);

/* --- prospect.c --- */

typedef struct kl_keeper_prospect {
    double stay_sweep_s, sweep_s; /* seconds of a sweep on the present hosts, and on the others */
    double left;                  /* sweeps left */
    double gain_s, cost_s;
    bool pays;
} kl_keeper_prospect;

/* Return whether the gain exceeds the cost by the required factor. */
bool kl_keeper_pays(const kl_keeper *keeper, const kl_keeper_prospect *prospect);
/* Compare staying with moving to the hosts chosen for the next attempt. */
kl_keeper_prospect kl_keeper_look_ahead(const kl_keeper *keeper);

/* --- outcome.c --- */

void kl_keeper_promise_make(kl_keeper *keeper, uint64_t number, const kl_keeper_prospect *prospect);
void kl_keeper_promise_began(kl_keeper *keeper); /* Handle that the attempt after the move has reported. */
void kl_keeper_promise_settle(
    kl_keeper *keeper); /* Take as the move's outcome the seconds that it has saved so far. */

/* --- tally.c --- */

void kl_keeper_tally_launch(kl_keeper *keeper);
void kl_keeper_tally_first(kl_keeper *keeper); /* Handle the first report of the attempt. */
/* Count an attempt that has ended. planned: it was asked to stop, and it did. */
void kl_keeper_tally_end(kl_keeper *keeper, bool planned);
bool kl_keeper_tally_is_full(
    const kl_keeper *keeper); /* Return whether too many attempts in a row made no progress. */

/* --- attempt.c: an attempt begins and ends --- */

void kl_keeper_set(kl_keeper *keeper, kl_keeper_state state);
void kl_keeper_look(kl_keeper *keeper, bool others);
void kl_keeper_look_for_hosts(kl_keeper *keeper, kl_keeper_cause cause);
void kl_keeper_begin_attempt(
    kl_keeper *keeper); /* Begin an attempt on the hosts that are known now, or wait for more. */
/* Ask the program to save and stop, because a move was decided. */
void kl_keeper_save_and_stop(kl_keeper *keeper, kl_keeper_cause cause);
void kl_keeper_kill(kl_keeper *keeper, kl_keeper_cause cause);
void kl_keeper_kill_again(kl_keeper *keeper);
void kl_keeper_over(kl_keeper *keeper, kl_keeper_result result, const char *format, ...) KILTER_PRINTF(3, 4);

/* --- moves.c: leave the present hosts --- */

/* After a measurement, decide whether to go on here, or to save and move. */
void kl_keeper_consider(kl_keeper *keeper);
/* Save the run if the time limit is near. */
void kl_keeper_mind_limit(kl_keeper *keeper);

/* --- wishes.c: requests of people --- */

void kl_keeper_take_wish(kl_keeper *keeper, const kl_keeper_event *event);

/* --- ends.c: the launcher has ended --- */

void kl_keeper_take_end(kl_keeper *keeper, const kl_keeper_end *end);

#endif
