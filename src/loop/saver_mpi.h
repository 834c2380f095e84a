/* Private to the folder loop: checkpoints of a loop. Rank 0 decides before which sweep all ranks save
 * their rows, and tells them by messages, called words. All ranks know before which sweep the next word
 * comes, so sweeps without a word cost nothing. Each rank copies its rows, a thread writes the copy, and
 * the loop goes on. When all ranks have reported that their rows are on the disk, rank 0 gives the file
 * its name. */
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

/* --- words: schedule_mpi.c --- */

typedef struct kl_word { /* a word: message from rank 0 to all ranks */
    uint64_t sends,
        due; /* rank 0 sends the next word before sweep `sends`; all ranks receive it before sweep `due` */
    uint64_t save_at, stops; /* sweep before which all ranks save; stops 1: they then stop the loop */
} kl_word;
static const uint64_t KL_NO_SWEEP = UINT64_MAX;

typedef struct kl_schedule {
    kl_word word;  /* the last word that took effect; on rank 0, the word that is under way */
    kl_word now;   /* the word that is in effect now */
    bool on_way;   /* true: a word was sent and has not taken effect */
    bool by_sweep; /* a word takes effect one sweep after it is sent */
    kl_requests requests;
} kl_schedule;

/* Begin with a word that is due before sweep `first`. */
void kl_schedule_init(kl_schedule *schedule, uint64_t first);
/* Send the word that rank 0 has set in schedule->word. Each rank calls this before the sweep for it. */
kilter_status kl_schedule_send(kl_group *group, kl_schedule *schedule, kilter_error *error);
/* Receive the word that was sent, and let it take effect. */
kilter_status kl_schedule_take(kl_group *group, kl_schedule *schedule, kilter_error *error);

/* --- one checkpoint that is under way: save_mpi.c --- */

typedef struct kl_saving_report { /* message of a rank to rank 0 */
    double blocked_s, write_s, cpu_s;
    kilter_error error; /* the status says whether the rank's rows are on the disk */
} kl_saving_report;

typedef struct kl_saving kl_saving;

typedef struct kl_job { /* what a thread has to do */
    void (*body)(kl_saving *save, kilter_error *error);
    kl_saving *save;
    pthread_t thread;
    atomic_bool done;
    bool joined;
    double took_s, cpu_s;
    kilter_error error;
} kl_job;

struct kl_saving {
    bool under_way; /* true: this rank's part is not reported yet; on rank 0: the file has no name yet */
    bool reported;
    uint64_t generation, token, sweeps;
    double began_s, blocked_s;
    double removing_s; /* on rank 0: it is time to remove older checkpoints */
    kl_ckpt_plan plan;
    kl_ckpt_share share;
    uint64_t piece_room;
    char *path; /* true: the file before this one is complete */
    kl_parcel content;
    kl_ckpt_kept *values; /* copies of the kept values */
    uint8_t *copy;
    uint64_t copy_room;
    uint64_t *bytes; /* bytes[ranks]: content of each rank */
    void *layout;    /* message of rank 0 with the places in the file */
    kl_job job;
    kl_saving_report report, heard; /* report of this rank; the last report that rank 0 has received */
    kl_saving_report worst;         /* on rank 0: all reports so far, combined */
    uint32_t reports;
    bool commits; /* on rank 0: all ranks have reported success */
    struct kl_saver *saver;
    kl_requests requests;
};

/* --- all checkpoints of a loop: saver_mpi.c --- */

typedef struct kl_saver {
    kl_ckpt_folder folder;          /* this and the next fields are the same on all ranks */
    const kl_ckpt_library *library; /* rank 0 */
    uint64_t every;
    double fixed_s;       /* on rank 0: seconds between checkpoints; 0: Kilter chooses */
    unsigned generations; /* on rank 0: number of checkpoints to keep */
    uint64_t newest; /* on rank 0: number of the newest checkpoint file (generation) that this loop knows */
    bool settled;    /* true: the loop was resumed, or there was nothing to resume from */
    bool stopping;   /* true: the loop saves in order to stop, and the keeper gets its answer when all ranks
                        know */
    bool stopped;    /* saved and stopped on request */
    /* Counts from before this process: sweeps, seconds, and failures. */
    uint64_t sweeps_before, failures;
    double before_s;
    double load_s;
    /* on rank 0: time at which the present interval began; time and sweep of the last word */
    double since_s, word_s;
    uint64_t word_sweep;
    double cost_s, save_s, write_s; /* seconds of the last checkpoint: its whole cost; the part that blocked
                                       the loop; until the file was complete */
    bool asked;                     /* on rank 0: the checkpoint that is under way was requested */
    double saving_s;                /* total seconds for which sweeps of this rank waited */
    uint64_t saves, saved_sweeps;
    kilter_error failure;  /* on rank 0: why the last checkpoint failed; KILTER_OK: it did not fail */
    bool news, unrecorded; /* on rank 0: a checkpoint was completed or failed */
    kl_schedule schedule;
    kl_saving save;
} kl_saver;

/* schedule_mpi.c and save_mpi.c: functions for the structs above. */
struct kilter_loop;
/* Get the memory that checkpoints need in addition to copies, so that later they do not fail for lack of
 * it. false: memory ran out. */
bool kl_saving_prepare(struct kilter_loop *loop);
/* Save the rows before a sweep. Collective. Failing to write a checkpoint is no error of the loop. stops:
 * the program stops afterwards. */
kilter_status kl_saving_begin(struct kilter_loop *loop, uint64_t sweeps, bool stops, kilter_error *error);
/* Continue with a checkpoint that is under way, without waiting. */
kilter_status kl_saving_look(struct kilter_loop *loop, kilter_error *error);
/* Wait until the checkpoint is complete or has failed. Collective. */
kilter_status kl_saving_finish(struct kilter_loop *loop, kilter_error *error);
void kl_saving_free(kl_saving *save);

#endif
