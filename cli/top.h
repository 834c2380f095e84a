/* kilter top: find this user's runs that are in progress, show them on a screen, and handle keys. */
#ifndef KL_TOP_H
#define KL_TOP_H

#include "control/control.h"
#include "report/report.h"

enum {
    KL_TOP_COLUMNS_MOST = 240,
    KL_TOP_LINE_BYTES = 4 * KL_TOP_COLUMNS_MOST + 1,
    KL_TOP_ROWS_MOST = 200,
    KL_TOP_DECISIONS = 8,
    KL_TOP_WORD_BYTES = 512,
};

/* A run that is in progress, or that ended a moment ago. */
typedef struct kl_top_run {
    char *path;
    kl_report *report; /* what was read from the record. For a farm: only program, process and control socket.
                          For a loop: the whole record, read again at each update */
    kl_tuner *tuner;   /* connection to the farm; NULL: none */
    kl_control_state *state;      /* last state that the farm sent; NULL: none */
    char word[KL_TOP_WORD_BYTES]; /* why `state` is not up to date, in words; "": it is up to date */
    char decisions[KL_TOP_DECISIONS]
                  [KL_TOP_WORD_BYTES]; /* last decisions of the run, in order of time; "": unused entry */
    uint32_t looks_gone; /* number of screen updates since the run ended; 0: the run is in progress */
} kl_top_run;

typedef enum kl_top_mode {
    KL_TOP_WATCHING,
    KL_TOP_DRAINING, /* the screen asks whether to drain the chosen worker */
    KL_TOP_ENDING,   /* the screen asks whether to end the chosen run */
    KL_TOP_CHOOSING, /* the user is choosing a policy */
} kl_top_mode;

typedef struct kl_top {
    kl_top_run *runs;
    size_t run_count, run; /* run: number of the run that the user chose */
    uint32_t row;          /* number of the row that the user chose in the table of workers */
    size_t policy;         /* number of the policy that the user chose, as in kl_policy_at() */
    kl_top_mode mode;
    char message[KL_TOP_WORD_BYTES]; /* result of the last request, for the last line of the screen */
} kl_top;

/* --- drawing the screen and handling keys, as pure functions --- */

typedef enum kl_top_look { KL_TOP_PLAIN, KL_TOP_TITLE, KL_TOP_CHOSEN, KL_TOP_WARNING } kl_top_look;

typedef struct kl_top_line {
    kl_top_look look;
    char text[KL_TOP_LINE_BYTES];
} kl_top_line;

/* Draw the screen as `rows` lines of at most `columns` characters. Return the number of lines. */
size_t kl_top_screen(const kl_top *top, size_t columns, size_t rows, kl_top_line *lines);

typedef enum kl_top_key { /* keys that do not stand for a character */
                          KL_KEY_UP = 0x110000,
                          KL_KEY_DOWN,
                          KL_KEY_NEXT, /* choose the next run */
                          KL_KEY_ENTER,
                          KL_KEY_LEAVE,
} kl_top_key;

typedef enum kl_top_action {
    KL_TOP_NOTHING,
    KL_TOP_QUIT,
    KL_TOP_DRAIN,  /* drain the chosen worker */
    KL_TOP_POLICY, /* set the chosen policy */
    KL_TOP_END,    /* end the chosen run */
} kl_top_action;

kl_top_action kl_top_press(kl_top *top, int key);
/* Return the number of the worker in the chosen row; −1: no worker is chosen. */
int64_t kl_top_worker(const kl_top *top);
/* Return the run that the user chose; NULL: there are no runs. */
kl_top_run *kl_top_chosen(const kl_top *top);
/* Describe in words how much of a run is done. */
void kl_top_progress(const kl_top_run *run, char words[KL_TOP_WORD_BYTES]);

/* --- finding and following runs --- */

/* Update the state of the run in `file`, or of all this user's records that are being written. Errors:
 * KILTER_ERR_MEMORY; KILTER_ERR_INPUT: `file` cannot be read at the first update. */
kilter_status kl_top_update(kl_top *top, const char *file, kilter_error *error);
/* Carry out a request of the user, and put the result into top->message. */
void kl_top_do(kl_top *top, kl_top_action action);
void kl_top_free(kl_top *top);

/* Show the screen on the terminal until the user quits. Return the exit code. */
int kl_top_show(const char *file, double interval_s);

/* --- kilter top --serve --- */

/* Print the metrics of all runs for Prometheus. */
void kl_top_metrics(const kl_top *top, FILE *out);
/* Serve the page of `file`, or of the newest run, on this port of the loopback interface, until SIGINT or
 * SIGTERM. Return the exit code. */
int kl_top_serve(const char *file, uint32_t port, double interval_s);

#endif
