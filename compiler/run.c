/* Start compilers and programs. */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"

void kc_add_word(kc_words *w, const char *word) {
    if (w->count == KC_WORDS || !(w->at[w->count] = strdup(word)))
        abort();
    w->at[++w->count] = NULL;
}

void kc_add_text(kc_words *w, const char *text) {
    char *copy = strdup(text), *rest = NULL;
    for (char *word = strtok_r(copy, " \t\n", &rest); word; word = strtok_r(NULL, " \t\n", &rest))
        kc_add_word(w, word);
    free(copy);
}

void kc_words_free(kc_words *w) {
    for (int i = 0; i < w->count; i++)
        free(w->at[i]);
    w->count = 0;
}

kilter_status kc_run(const kc_words *w, const char *output, int *code, kilter_error *error) {
    extern char **environ;
    pid_t pid;
    int status;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (output)
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    fflush(NULL);
    int failed = posix_spawnp(&pid, w->at[0], &actions, NULL, w->at, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed)
        return kl_fail(error, KILTER_ERR_SYSTEM, "cannot start %s: %s", w->at[0], strerror(failed));
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return KILTER_OK;
}

char *kc_output_of(const char *command) {
    FILE *in = popen(command, "r"); // NOLINT(cert-env33-c): what the user gave as the compiler is a command
    char *text = calloc(1, 8192);
    if (in && text)
        text[fread(text, 1, 8191, in)] = '\0';
    bool good = in && pclose(in) == 0 && text;
    if (good)
        return text;
    free(text);
    return NULL;
}
