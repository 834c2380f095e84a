/* kilter cc: turn marked loops of a sequential C program into loops whose rows move between ranks. The
 * program kilter-cc does the work. It is separate because it needs libclang, a large library. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "sys/sys.h"

static const char PROGRAM[] = "kilter-cc";

typedef struct request {
    bool explain, json;
    const char *output, *keep, *mpicc, *mpirun;
    uint32_t check;
} request;

#define AT(member) .offset = offsetof(request, member)

static const kl_option rows[] = {
    {"explain", NULL, "Say for each loop whether its iterations can run in parallel; if not, say why.",
     KL_OPTION_SWITCH, AT(explain)},
    {"json", NULL, "With --explain: print one JSON object for each file.", KL_OPTION_SWITCH, AT(json),
     .needs = "explain"},
    {"output", "FILE", "Name of the program (default: a.out).", KL_OPTION_TEXT, AT(output), .letter = 'o',
     .is_file = true, .except = "explain"},
    {"keep", "FILE.c",
     "Write the C source of the MPI program to this file. Without --output, do not compile it.",
     KL_OPTION_TEXT, AT(keep), .is_file = true, .except = "explain"},
    {"mpicc", "COMMAND", "The MPI's compiler, with flags (default: mpicc).", KL_OPTION_TEXT, AT(mpicc),
     .except = "explain"},
    {"sequential-check", "N",
     "Also compile the sequential program, run it and the MPI program on N ranks, and compare their outputs.",
     KL_OPTION_UINT32, AT(check), .least = 1, .most = 100000, .except = "explain"},
    {"mpirun", "COMMAND", "The MPI's launcher, with flags (default: mpirun).", KL_OPTION_TEXT, AT(mpirun),
     .needs = "sequential-check"},
};

/* --- finding kilter-cc: in KILTER_LIBEXEC, or else beside this program, in libexec or in the build --- */

static char *program_in(const char *folder, const char *below) {
    char *path = kl_text("%s/%s%s", folder, below, PROGRAM);
    if (path && access(path, X_OK) == 0)
        return path;
    free(path);
    return NULL;
}

static char *find_program(void) {
    const char *named = getenv("KILTER_LIBEXEC");
    if (named && *named)
        return program_in(named, "");
    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0)
        return NULL;
    self[length] = '\0';
    *strrchr(self, '/') = '\0';
    const char *const folders[] = {"", KL_LIBEXEC_FROM_BIN, "../compiler/"};
    char *path = NULL;
    for (size_t i = 0; !path && i < sizeof folders / sizeof *folders; i++)
        path = program_in(self, folders[i]);
    return path;
}

/* --- running kilter-cc --- */

enum { WORDS_MOST = 128 };

static int start(const kl_command *command, const char **words) {
    char *program = find_program();
    if (!program) {
        fprintf(stderr,
                "kilter cc: the compiler %s is not installed. It needs the packages libclang-19-dev and "
                "libisl-dev when Kilter is built; see docs/how-to/compile-loops.md\n",
                PROGRAM);
        return EXIT_FAILURE;
    }
    (void)command;
    words[0] = program;
    fflush(NULL);
    execv(program, (char **)words);
    fprintf(stderr, "kilter cc: cannot start %s: %s\n", program, strerror(errno));
    free(program);
    return EXIT_FAILURE;
}

/* Pass the options to kilter-cc as words NAME=VALUE. */
static int put_options(const request *r, const char **words, int count) {
    bool only_source = r->keep && !r->output && r->check == 0;
    const struct {
        const char *name, *value;
    } options[] = {
        {"explain", r->explain ? "1" : NULL},
        {"json", r->json ? "1" : NULL},
        {"keep", r->keep},
        {"output", r->output || r->explain || only_source ? r->output : "a.out"},
        {"mpicc", r->mpicc},
        {"mpirun", r->mpirun},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].value)
            words[count++] = kl_text("%s=%s", options[i].name, options[i].value);
    if (r->check > 0)
        words[count++] = kl_text("check=%u", r->check);
    return count;
}

static int run(const kl_command *command, int argc, char **argv) {
    request r = {.explain = false};
    const char *words[WORDS_MOST] = {NULL};
    int first, count = 1, code = kl_cmd_read(command, argc, argv, &r, &first);
    if (code != EXIT_SUCCESS)
        return code;
    if (first >= argc)
        return kl_cmd_usage(command, "no file given: name a C file");
    if (argc - first > WORDS_MOST - 16)
        return kl_cmd_usage(command, "too many arguments");
    count = put_options(&r, words, count);
    words[count++] = kl_text("file=%s", argv[first]);
    for (int i = first + 1; i < argc; i++)
        words[count++] = argv[i];
    return start(command, words);
}

const kl_command kl_cmd_cc = {
    .name = "cc",
    .summary = "Turn loops of a sequential C program into balanced parallel ones.",
    .text = "usage: kilter cc --explain FILE.c… [-- FLAG…]\n"
            "       kilter cc [OPTION]… FILE.c… [-- FLAG…]\n\n"
            "Makes an MPI program. Rows of arrays move to the ranks that compute them fastest.\n"
            "FILE.c is sequential. This line marks a loop:\n\n"
            "    #pragma kilter loop [reduction([exact] +:x)] [independent] [name(\"...\")]\n\n"
            "Other compilers ignore the line. A loop that cannot be proved to give the same\n"
            "result is refused, with the line and the reason. --explain judges all loops.\n\n"
            "    #pragma kilter pure(f, g)   these functions only compute a number from numbers\n"
            "    #pragma kilter root         rank 0 alone does the next statement\n\n"
            "main() and the marked loops are in one file; other files are compiled as they are.\n"
            "FLAG… are flags of the C compiler, such as -DN=1000 or -Iinclude.\n",
    .options = KL_OPTIONS(rows),
    .takes_files = true,
    .run = run,
};
