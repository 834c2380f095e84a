/**
 * @file
 * The status that Kilter calls return, and errors with a text.
 *
 * One list defines the enum and its texts. Errors are grouped by what the program loses by them: nothing, a
 * task, a peer, or the run.
 */
#ifndef KILTER_STATUS_H
#define KILTER_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define KILTER_API          __attribute__((visibility("default")))
#define KILTER_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define KILTER_API
#define KILTER_PRINTF(f, a)
#endif

/** All statuses, each with its name and its meaning. */
#define KILTER_STATUS_LIST(X)                                                                                \
    X(OK, "done")                                                                                            \
    X(ENDED, "the work of this process is over, without an error")                                           \
    /* errors before anything was started: */                                                                \
    X(ERR_USAGE, "an option or argument cannot be used")                                                     \
    X(ERR_INPUT, "a file or message does not have the expected format")                                      \
    X(ERR_RANGE, "a number is outside the range that the call accepts")                                      \
    /* errors that lose one task: */                                                                         \
    X(ERR_TASK, "a task reported a failure")                                                                 \
    /* errors that lose one peer: */                                                                         \
    X(ERR_PEER, "a peer is lost, or uses another version")                                                   \
    /* errors that end the run: */                                                                           \
    X(ERR_NO_WORKER, "no worker is left to do the work")                                                     \
    X(ERR_MEMORY, "memory ran out")                                                                          \
    X(ERR_SYSTEM, "a call of the operating system failed")                                                   \
    X(ERR_RECORD, "the run record could not be written or read")                                             \
    X(ERR_MPI, "a call of MPI failed")                                                                       \
    X(ERR_CANCELLED, "the run was cancelled")                                                                \
    /* errors after which no task and no result is lost: */                                                  \
    X(ERR_STOPPED, "the run was saved and stopped on request")

/** Result of a call. New statuses are added at the end, so that each keeps its number. */
typedef enum kilter_status {
#define KILTER_STATUS_ENUM(name, text) KILTER_##name,
    KILTER_STATUS_LIST(KILTER_STATUS_ENUM)
#undef KILTER_STATUS_ENUM
} kilter_status;

enum { KILTER_ERROR_TEXT_BYTES = 512 };

/**
 * An error, described in one sentence: what failed, on which object, and how to mend the cause. The caller
 * owns the struct. Calls accept NULL, and write the struct only on failure.
 */
typedef struct kilter_error {
    kilter_status status;               /**< status that the failed call returned */
    char text[KILTER_ERROR_TEXT_BYTES]; /**< one line of text without a newline at the end; Kilter cuts a
                                           longer text */
} kilter_error;

/** Return the general meaning of `status`. Local, never fails; the text is static. */
KILTER_API const char *kilter_status_text(kilter_status status);

/**
 * Print `error` to stderr as "PROGRAM: text", unless its status is KILTER_OK or KILTER_ENDED. Return the exit
 * code for main(): 0 for KILTER_OK and KILTER_ENDED; 2 for errors that the user can mend (USAGE, INPUT,
 * RANGE); 128 + N if signal N cancelled a farm; 1 for other errors.   Local.
 *
 * @param program  name that is printed before the text; NULL: no name
 */
KILTER_API int kilter_exit(const char *program, const kilter_error *error);

#ifdef __cplusplus
}
#endif
#endif
