/* Private to the folder loop: checkpoints of a loop. Rank 0 decides before which sweep all ranks save their
 * rows, and tells them by messages, called words. All ranks know before which sweep the next word comes, so
 * sweeps without a word cost nothing. To save, each rank copies its rows, a thread writes the copy, and the
 * loop continues meanwhile. When all ranks have reported that their rows are on the disk, rank 0 gives the
 * file its name. */
#ifndef KL_SAVER_MPI_H
#define KL_SAVER_MPI_H

#include <stdatomic.h>

#include "ckpt/ckpt.h"
#include "loop/group_mpi.h"

typedef struct kl_kept { /* values that the program declared by kilter_loop_keep() */
    kl_ckpt_kept *list;
    size_t count;
    uint64_t room;
} kl_kept;

/* --- schedule_mpi.c: words, which are messages of rank 0 about checkpoints --- */

typedef struct kl_word { /* A word: a message from rank 0 to all ranks about checkpoints. */
    /* rank 0 sends the next word before sweep `sends`, and all ranks receive it before sweep `due` */
    uint64_t sends, due;
    /* save_at: number of the sweep before which all ranks save; stops: 1 if the ranks stop the loop after
     * saving, otherwise 0 */
    uint64_t save_at, stops;
} kl_word;
static const uint64_t KL_NO_SWEEP = UINT64_MAX;

typedef struct kl_schedule {
    kl_word word; /* the last word (message) that was received; on rank 0, the word that is being sent */
    kl_word now;  /* the word (message about checkpoints) that applies at present */
    bool on_way;  /* true: a word (message) was sent and does not apply yet */
    kl_requests requests;
} kl_schedule;

/* Begin the schedule of words (messages about checkpoints). All ranks receive the first word before sweep
 * `first`. */
void kl_schedule_init(kl_schedule *schedule, uint64_t first);
/* Begin to send the word that rank 0 has set in schedule->word. Each rank calls this once, before sweep
 * schedule->now.sends. */
kilter_status kl_schedule_send(kl_group *group, kl_schedule *schedule, kilter_error *error);
/* Wait for the word that was sent, and copy it to schedule->now. */
kilter_status kl_schedule_take(kl_group *group, kl_schedule *schedule, kilter_error *error);

/* --- save_mpi.c: one checkpoint that is being written --- */

typedef struct kl_saving_report { /* A rank's report to rank 0 about its part of a checkpoint. */
    double blocked_s, write_s, cpu_s;
    kilter_error error; /* error.status says whether the rank's rows are on the disk */
} kl_saving_report;

typedef struct kl_saving kl_saving;

typedef struct kl_job { /* Work for a thread. */
    void (*body)(kl_saving *save, kilter_error *error);
    kl_saving *save;
    pthread_t thread;
    atomic_bool done;
    bool joined;
    double took_s, cpu_s;
    kilter_error error;
} kl_job;

struct kl_saving {
    /* true: this rank has not reported yet about its part; on rank 0: the checkpoint is neither complete nor
     * failed */
    bool under_way;
    bool reported;
    uint64_t generation, token, sweeps;
    double began_s, blocked_s;
    double removing_s; /* on rank 0: seconds that removing older checkpoints took */
    kl_ckpt_plan plan;
    kl_ckpt_share share;
    uint64_t piece_room;
    char *path; /* path of the unfinished file */
    kl_parcel content;
    kl_ckpt_kept *values; /* copies of the kept values */
    uint8_t *copy;
    uint64_t copy_room;
    uint64_t *bytes; /* bytes[r]: bytes of row content of rank r */
    void *layout;    /* message of rank 0 with the positions in the file */
    kl_job job;
    /* report: report of this rank; heard: the last report that rank 0 has received */
    kl_saving_report report, heard;
    kl_saving_report worst; /* on rank 0: the worst error and longest times of all reports so far */
    uint32_t reports;
    bool commits; /* true: all ranks have reported success, so rank 0 names the file */
    struct kl_saver *saver;
    kl_requests requests;
};

/* --- saver_mpi.c: the sequence of checkpoints of a loop --- */

typedef struct kl_saver {
    /* folder of the checkpoints; this field and `every` are the same on all ranks */
    kl_ckpt_folder folder;
    const kl_ckpt_library *library; /* only used on rank 0 */
    uint64_t every;                 /* ranks save only before sweeps whose number is a multiple of this */
    double fixed_s;       /* on rank 0: seconds between checkpoints, as the user wants; 0: Kilter chooses */
    unsigned generations; /* on rank 0: number of checkpoints to keep */
    uint64_t newest; /* on rank 0: number of the newest generation (checkpoint file) that this loop knows */
    bool settled;    /* true: the loop was resumed, or there was nothing to resume from */
    /* true: the loop saves and then stops, as the keeper requested; rank 0 answers the keeper only when all
     * ranks know whether the loop stops */
    bool stopping;
    bool stopped; /* true: the loop was saved and stopped on request */
    /* totals of the program's earlier processes. sweeps_before: number of sweeps; failures: number of
     * failures; before_s: seconds for which they ran */
    uint64_t sweeps_before, failures;
    double before_s;
    double load_s;
    /* only on rank 0. since_s: time at which the present interval between checkpoints began; word_s,
     * word_sweep: time and sweep of the last word (message about checkpoints) */
    double since_s, word_s;
    uint64_t word_sweep;
    /* cost_s: seconds that the last checkpoint cost; save_s: seconds for which it blocked the loop;
     * write_s: seconds until its file was complete */
    double cost_s, save_s, write_s;
    /* true, on rank 0: the keeper has requested the checkpoint that is being written */
    bool asked;
    /* seconds for which sweeps of this rank waited for checkpoints, in total */
    double saving_s;
    uint64_t saves, saved_sweeps;
    kilter_error failure; /* on rank 0: why the last checkpoint failed; KILTER_OK: it did not fail */
    /* true, on rank 0: a checkpoint was completed or failed, and this is not reported to the keeper
     * (news) or recorded (unrecorded) yet */
    bool news, unrecorded;
    kl_schedule schedule;
    kl_saving save;
} kl_saver;

/* --- schedule_mpi.c and save_mpi.c: functions for the structs in this file --- */
struct kilter_loop;
/* Get the memory that a checkpoint needs besides the copy of the rows. This is done early, so that later
 * checkpoints do not fail for lack of memory. Return false if memory ran out. */
bool kl_saving_prepare(struct kilter_loop *loop);
/* Save the rows before a sweep. Collective. If the file cannot be written, the loop continues. sweeps: number
 * of sweeps done; stops: true if the program stops after saving. */
kilter_status kl_saving_begin(struct kilter_loop *loop, uint64_t sweeps, bool stops, kilter_error *error);
/* Continue with a checkpoint that is being written, without waiting. */
kilter_status kl_saving_look(struct kilter_loop *loop, kilter_error *error);
/* Wait until the checkpoint that is being written is complete or has failed. Collective. */
kilter_status kl_saving_finish(struct kilter_loop *loop, kilter_error *error);
void kl_saving_free(kl_saving *save);

#endif
