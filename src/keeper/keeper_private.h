/* Private to the folder keeper: functions that its files share. A file uses only functions of files named
 * before it. */
#ifndef KL_KEEPER_PRIVATE_H
#define KL_KEEPER_PRIVATE_H

#include "keeper/keeper.h"

/* --- say.c --- */

/* Append an action for the driver. The returned pointer is valid until the next call. */
kl_keeper_action *kl_keeper_ask_for(kl_keeper *keeper, kl_keeper_act act);
/* Append a decision that the driver must record, and give it a new number. The text is made from `format`. */
kl_keeper_action *kl_keeper_decide(kl_keeper *keeper, kl_decision_kind kind, const char *format, ...)
    KILTER_PRINTF(3, 4);
/* Store the answer to the last request of a person. */
void kl_keeper_answer(kl_keeper *keeper, bool refused, const char *format, ...) KILTER_PRINTF(3, 4);

enum { KL_KEEPER_LIST_BYTES = 120 };
typedef struct kl_keeper_list { /* names of hosts for a message, such as "a (2), b" */
    char text[KL_KEEPER_LIST_BYTES];
} kl_keeper_list;
kl_keeper_list kl_keeper_say_hosts(const kl_keeper *keeper,
                                   bool next); /* Return the names of the hosts in use, or, if `next` is true,
                                                  of those chosen for the next attempt. */
uint32_t kl_keeper_ranks(const kl_keeper *keeper, bool next);

/* --- table.c: the table of hosts --- */

kl_keeper_host *kl_keeper_find(const kl_keeper *keeper,
                               const char *name); /* Return the host with this name, or with the same first
                                                     label, as "n1" for "n1.site.org"; NULL: there is none. */
bool kl_keeper_take_views(kl_keeper *keeper, const kl_keeper_view *views, size_t count);
/* Store on which hosts the ranks run and how fast they are, as the report says. The argument `weight`,
 * 0 … 1, is the weight of this report in the averages over time. */
bool kl_keeper_take_rates(kl_keeper *keeper, const kl_keeper_report *report, double weight);
/* Return an average over time after one more value. mean: the average so far; 0: there is none. */
double kl_keeper_smooth(double mean, double value, double weight);
bool kl_keeper_can_use(const kl_keeper_host *host);
/* Return whether a name is in a list separated by commas. An empty list contains every name. */
bool kl_keeper_listed(const char *names, const char *name);
bool kl_keeper_names_known(const kl_keeper *keeper, const char *names, char unknown[KL_KEEPER_NAME_BYTES]);

/* --- chance.c --- */

/* A greater change counts as a change of this size, because other programs came or went. */
#define KL_KEEPER_CHANGE_MOST 0.3
/* Measurements that are fewer seconds apart differ little by chance. */
static const double KL_KEEPER_APART_S = 5;

/* Note a value, to learn by how much values change by chance. since_s: time at which the present attempt
 * began; a change from an earlier attempt does not count. */
void kl_keeper_note_change(kl_keeper_change *change, double value, double now_s, double since_s);
/* Return the standard deviation of values that differ by chance. */
double kl_keeper_sigma(const kl_keeper_change *change);
/* Return the greatest difference of a value's logarithm from that of the mean which is still due to chance.
 */
double kl_keeper_alike(const kl_keeper_mean *mean);
/* Take one more value into the mean. passed_s: seconds for which the value stands. */
void kl_keeper_learn(kl_keeper_mean *mean, double value, double passed_s);

/* --- speed.c --- */

/* Return the speed of a rank on this host: the measured speed, or else a forecast. The unit is rows per
 * second if the speed of any rank was measured so far. */
double kl_keeper_rank_speed(const kl_keeper *keeper, const kl_keeper_host *host);
/* Return the forecast seconds of a sweep on the hosts that were chosen for the next attempt; 0: there is no
 * forecast. */
double kl_keeper_forecast_sweep_s(const kl_keeper *keeper);
/* Learn from the last report how fast the program is when no other program slows it down. passed_s: seconds
 * since the report before it; 0: it is the attempt's first report. */
void kl_keeper_learn_speed(kl_keeper *keeper, double passed_s);

/* --- place.c --- */

/* Choose the hosts for the next attempt, among those in `names`. Return the number of ranks that they can
 * take. */
uint32_t kl_keeper_place(kl_keeper *keeper, const char *names);
/* Return the number of ranks on the hosts that a planned move chose; 0: one of these hosts is no longer fit.
 */
uint32_t kl_keeper_planned(const kl_keeper *keeper);
bool kl_keeper_same_place(const kl_keeper *keeper); /* Return whether the next attempt would run on the same
                                                       hosts as the present one. */

/* --- watch.c --- */

void kl_keeper_watch_launch(kl_keeper *keeper);
/* Take in a report of the program. Return whether it is the first report of the attempt. */
bool kl_keeper_watch_report(kl_keeper *keeper, const kl_keeper_report *report);
void kl_keeper_watch_time(kl_keeper *keeper, double passed_s);
double
kl_keeper_hang_s(const kl_keeper *keeper); /* Return for how many seconds a program may make no progress
                                              before it counts as hanging; 0: no limit is known. */
double kl_keeper_margin_s(
    const kl_keeper *keeper); /* Return how many seconds before a time limit the run must be saved. */
/* Learn how long the program takes to stop. The program has just ended after a request to stop. */
void kl_keeper_watch_stopped(kl_keeper *keeper);

/* --- prospect.c --- */

typedef struct kl_keeper_prospect {
    double stay_sweep_s, sweep_s; /* seconds of a sweep: stay_sweep_s: on the present hosts; sweep_s: on the
                                     hosts chosen for the next attempt */
    double left;                  /* number of sweeps that are left */
    double gain_s, cost_s;
    bool pays;
} kl_keeper_prospect;

/* Return whether the gain of a move exceeds its cost by the required factor. */
bool kl_keeper_pays(const kl_keeper *keeper, const kl_keeper_prospect *prospect);
/* Compare staying on the present hosts with moving to the hosts chosen for the next attempt. */
kl_keeper_prospect kl_keeper_look_ahead(const kl_keeper *keeper);

/* Add what a measurement of hosts says for a move. The argument `others` is true if the hosts chosen for the
 * next attempt are enough, and differ from the present ones. */
void kl_keeper_weigh(kl_keeper *keeper, const kl_keeper_prospect *prospect, bool others);
/* Return whether the measurements so far are more than differences by chance. */
bool kl_keeper_is_evident(const kl_keeper *keeper);

/* --- outcome.c --- */

/* greatest value of costs.doubt. It is large, so that even a long run makes only some 20 moves that bring
 * nothing. */
#define KL_KEEPER_DOUBT_MOST 1e6

void kl_keeper_promise_make(kl_keeper *keeper, uint64_t number, const kl_keeper_prospect *prospect);
void kl_keeper_promise_began(kl_keeper *keeper);  /* Handle the first report after the planned move. */
void kl_keeper_promise_settle(kl_keeper *keeper); /* Record the outcome of the planned move: the time that it
                                                     has saved so far. The move is then no longer observed. */

/* --- tally.c --- */

void kl_keeper_tally_launch(kl_keeper *keeper);
void kl_keeper_tally_first(kl_keeper *keeper); /* Handle the first report of an attempt. */
/* Count an attempt that has ended. planned: the attempt ended because it was asked to stop. */
void kl_keeper_tally_end(kl_keeper *keeper, bool planned);
bool kl_keeper_tally_is_full(
    const kl_keeper *keeper); /* Return whether too many attempts in a row have saved nothing new. */

/* --- attempt.c: an attempt begins and ends --- */

void kl_keeper_set(kl_keeper *keeper, kl_keeper_state state);
void kl_keeper_look(kl_keeper *keeper, bool others);
void kl_keeper_look_for_hosts(kl_keeper *keeper, kl_keeper_cause cause);
void kl_keeper_begin_attempt(
    kl_keeper *keeper); /* Begin an attempt on the hosts that are fit now, or wait for more hosts. */
/* Ask the program to save and stop, so that the run can move or end. */
void kl_keeper_save_and_stop(kl_keeper *keeper, kl_keeper_cause cause);
void kl_keeper_kill(kl_keeper *keeper, kl_keeper_cause cause);
void kl_keeper_kill_again(kl_keeper *keeper);
void kl_keeper_over(kl_keeper *keeper, kl_keeper_result result, const char *format, ...) KILTER_PRINTF(3, 4);

/* --- moves.c: leave the present hosts --- */

/* After a measurement, decide whether the run stays on its hosts, or is saved and moved. */
void kl_keeper_consider(kl_keeper *keeper);
/* Save the run if the time limit is near. */
void kl_keeper_mind_limit(kl_keeper *keeper);

/* --- wishes.c: requests of people --- */

void kl_keeper_take_wish(kl_keeper *keeper, const kl_keeper_event *event);

/* --- ends.c: the launcher and all its processes have ended --- */

void kl_keeper_take_end(kl_keeper *keeper, const kl_keeper_end *end);

#endif
