/* kilter-cc: `kilter cc` checks its options and then runs this program. The arguments are the options as
 * NAME=VALUE, then the files, then flags for the compiler. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "emit.h"
#include "run.h"
#include "sys/sys.h"

enum { FLAGS_MOST = 100 };

typedef struct request {
    const char *file; /* the file with marked loops */
    const char *input[FLAGS_MOST], *flag[FLAGS_MOST];
    int inputs, flags;
    bool explain, json;
    const char *keep, *output, *mpicc, *mpirun, *check;
} request;

static bool read_value(const char *word, const char *name, const char **value) {
    size_t length = strlen(name);
    if (strncmp(word, name, length) != 0 || word[length] != '=')
        return false;
    *value = word + length + 1;
    return true;
}

static void read_word(request *r, const char *word) {
    const char *truth = NULL;
    if (r->inputs > 0 && *word != '-' && r->flags == 0 && r->inputs < FLAGS_MOST) {
        r->input[r->inputs++] = word;
        return;
    }
    if (r->inputs > 0) {
        if (r->flags < FLAGS_MOST)
            r->flag[r->flags++] = word;
        return;
    }
    if (read_value(word, "explain", &truth))
        r->explain = true;
    else if (read_value(word, "json", &truth))
        r->json = true;
    else if (!read_value(word, "keep", &r->keep) && !read_value(word, "output", &r->output) &&
             !read_value(word, "mpicc", &r->mpicc) && !read_value(word, "mpirun", &r->mpirun) &&
             !read_value(word, "check", &r->check))
        r->input[r->inputs++] = strncmp(word, "file=", 5) == 0 ? word + 5 : word;
}

static bool is_source(const char *path) {
    size_t length = strlen(path);
    return length > 2 && strcmp(path + length - 2, ".c") == 0;
}

/* Find the file that has marked loops. The other files are compiled unchanged. */
static kilter_status find_marked(request *r, kilter_error *error) {
    const char *found = NULL;
    for (int i = 0; i < r->inputs && r->inputs > 1; i++) {
        bool has = false;
        kilter_status status = is_source(r->input[i]) ? kc_has_pragma(r->input[i], &has, error) : KILTER_OK;
        if (status != KILTER_OK)
            return status;
        if (has && found)
            return kl_fail(
                error, KILTER_ERR_INPUT,
                "%s and %s both have lines #pragma kilter; main() and all marked loops of a program must "
                "be in one file",
                found, r->input[i]);
        found = has ? r->input[i] : found;
    }
    r->file = found ? found : r->input[0];
    return KILTER_OK;
}

/* Read a source file. Use only the user's compiler flags that change the meaning of the source. */
static kilter_status open_unit(const request *r, const char *path, kc_unit *unit, kilter_error *error) {
    const char *flags[FLAGS_MOST];
    int count = 0;
    for (int i = 0; i < r->flags; i++)
        if (strncmp(r->flag[i], "-D", 2) == 0 || strncmp(r->flag[i], "-I", 2) == 0 ||
            strncmp(r->flag[i], "-U", 2) == 0 || strncmp(r->flag[i], "-std=", 5) == 0)
            flags[count++] = r->flag[i];
    return kc_unit_open(unit, path, flags, count, error);
}

/* --- compiling --- */

/* Return the flags that link Kilter's library for the MPI of this compiler. */
static char *library_flags(const char *mpicc) {
    const char *given = getenv("KILTER_CC_FLAGS");
    if (given)
        return strdup(given);
    char command[600];
    snprintf(command, sizeof command, "%.400s -showme:version 2>&1", mpicc);
    char *said = kc_output_of(command);
    snprintf(command, sizeof command, "pkg-config --cflags --libs kilter-%s 2>/dev/null",
             said && strstr(said, "Open MPI") ? "openmpi" : "mpich");
    free(said);
    return kc_output_of(command);
}

static kilter_status compile(const request *r, const char *source, const char *output, const char *library,
                             kilter_error *error) {
    kc_words words = {.count = 0};
    int code = 0;
    kc_add_text(&words, r->mpicc);
    kc_add_word(&words, "-O2"); /* a later optimization flag of the user overrides this one */
    for (int i = 0; i < r->flags; i++)
        kc_add_word(&words, r->flag[i]);
    for (int i = 0; i < r->inputs; i++)
        kc_add_word(&words, r->input[i] == r->file ? source : r->input[i]);
    kc_add_word(&words, "-o");
    kc_add_word(&words, output);
    kc_add_text(&words, library);
    kc_add_word(&words, "-lm");
    kilter_status status = kc_run(&words, NULL, &code, error);
    kc_words_free(&words);
    if (status == KILTER_OK && code != 0)
        return kl_fail(error, KILTER_ERR_INPUT, "%s: %s could not compile the program (exit code %d)",
                       r->file, r->mpicc, code);
    return status;
}

/* --- comparing with the sequential program --- */

static kilter_status run_program(const request *r, const char *program, const char *ranks, const char *output,
                                 int *code, kilter_error *error) {
    kc_words words = {.count = 0};
    char *path = program && !strchr(program, '/') ? kl_text("./%s", program) : strdup(program ? program : "");
    if (ranks) {
        kc_add_text(&words, r->mpirun);
        kc_add_word(&words, "-n");
        kc_add_word(&words, ranks);
    }
    kc_add_word(&words, path);
    kilter_status status = kc_run(&words, output, code, error);
    kc_words_free(&words);
    free(path);
    return status;
}

static kilter_status compare_files(const request *r, const char *one, const char *other,
                                   kilter_error *error) {
    FILE *a = fopen(one, "rb"), *b = fopen(other, "rb");
    unsigned long long at = 0;
    int x = EOF, y = EOF;
    if (a && b)
        while ((x = getc(a)) == (y = getc(b)) && x != EOF)
            at++;
    bool good = a && b && x == y;
    if (a)
        fclose(a);
    if (b)
        fclose(b);
    if (!good)
        return kl_fail(error, KILTER_ERR_TASK,
                       "%s: on %s ranks the output differs from the sequential program's at byte %llu",
                       r->file, r->check, at + 1);
    printf("on %s ranks: the output of %llu bytes is that of the sequential program\n", r->check, at);
    return KILTER_OK;
}

static kilter_status check(const request *r, kilter_error *error) {
    char *sequential = kl_text("%s.sequential", r->output), *first = kl_text("%s.1.out", r->output),
         *second = kl_text("%s.2.out", r->output);
    int one = 0, other = 0;
    kilter_status status = compile(r, r->file, sequential, "", error);
    if (status == KILTER_OK)
        status = run_program(r, sequential, NULL, first, &one, error);
    if (status == KILTER_OK)
        status = run_program(r, r->output, r->check, second, &other, error);
    if (status == KILTER_OK && one != other)
        status = kl_fail(error, KILTER_ERR_TASK,
                         "%s: the sequential program ends with code %d, the parallel one with %d", r->file,
                         one, other);
    if (status == KILTER_OK)
        status = compare_files(r, first, second, error);
    unlink(sequential);
    unlink(first);
    unlink(second);
    free(sequential);
    free(first);
    free(second);
    return status;
}

/* --- building and explaining --- */

static kilter_status write_source(const request *r, const char *path, kilter_error *error) {
    kc_unit *unit = calloc(1, sizeof *unit);
    if (!unit)
        return kl_fail(error, KILTER_ERR_MEMORY, "%s: memory ran out", r->file);
    kilter_status status = open_unit(r, r->file, unit, error);
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (status == KILTER_OK)
        status = kc_emit(unit, out, error);
    fclose(out);
    FILE *file = status == KILTER_OK ? fopen(path, "wb") : NULL;
    bool good = file && fwrite(text, 1, size, file) == size;
    good = (!file || fclose(file) == 0) && good;
    if (status == KILTER_OK && !good)
        status = kl_fail(error, KILTER_ERR_SYSTEM, "%s: cannot be written", path);
    free(text);
    kc_unit_close(unit);
    free(unit);
    return status;
}

static kilter_status build(const request *r, kilter_error *error) {
    char *source = r->keep ? strdup(r->keep) : kl_text("%s.kilter-%ld.c", r->output, (long)getpid());
    kilter_status status = write_source(r, source, error);
    if (status == KILTER_OK && r->output) {
        char *library = library_flags(r->mpicc);
        status = library ? compile(r, source, r->output, library, error)
                         : kl_fail(error, KILTER_ERR_SYSTEM,
                                   "pkg-config does not know Kilter's library for the MPI of %s; "
                                   "set PKG_CONFIG_PATH",
                                   r->mpicc);
        free(library);
    }
    if (!r->keep)
        unlink(source);
    free(source);
    if (status == KILTER_OK && r->check)
        status = check(r, error);
    return status;
}

static kilter_status explain_file(const request *r, const char *path, kilter_error *error) {
    kc_unit *unit = calloc(1, sizeof *unit);
    if (!unit)
        return kl_fail(error, KILTER_ERR_MEMORY, "%s: memory ran out", path);
    kilter_status status = open_unit(r, path, unit, error);
    if (status == KILTER_OK && r->json)
        kc_explain_json(unit, stdout);
    else if (status == KILTER_OK)
        kc_explain(unit, stdout);
    kc_unit_close(unit);
    free(unit);
    return status;
}

static kilter_status explain(const request *r, kilter_error *error) {
    kilter_status status = KILTER_OK;
    for (int i = 0; i < r->inputs && status == KILTER_OK; i++)
        if (r->inputs == 1 || is_source(r->input[i]))
            status = explain_file(r, r->input[i], error);
    return status;
}

int main(int argc, char **argv) {
    request r = {.mpicc = "mpicc", .mpirun = "mpirun"};
    kilter_error error;
    for (int i = 1; i < argc; i++)
        read_word(&r, argv[i]);
    if (r.inputs == 0 || (!r.explain && !r.keep && !r.output)) {
        fputs("kilter-cc: this is a part of kilter cc; try 'kilter cc --help'\n", stderr);
        return 2;
    }
    kilter_status status = find_marked(&r, &error);
    if (status == KILTER_OK)
        status = r.explain ? explain(&r, &error) : build(&r, &error);
    if (status != KILTER_OK)
        fprintf(stderr, "kilter cc: %s\n", error.text);
    return status == KILTER_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
