/* Make the command lines that start the ranks of a program. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keeper/keeper.h"

typedef struct words {
    char **at;
    uint64_t room;
    size_t count;
    bool failed;
} words;

static void add(words *w, const char *word, size_t bytes) {
    char **at = kl_array_grow(w->at, &w->room, w->count + 2, sizeof *at);
    char *copy = at ? malloc(bytes + 1) : NULL;
    w->at = at ? at : w->at;
    w->failed |= !copy;
    if (!copy)
        return;
    memcpy(copy, word, bytes);
    copy[bytes] = '\0';
    w->at[w->count++] = copy;
    w->at[w->count] = NULL;
}

static void add_text(words *w, const char *word) {
    add(w, word, strlen(word));
}

static void add_number(words *w, const char *option, uint32_t number) {
    char text[16];
    snprintf(text, sizeof text, "%u", number);
    add_text(w, option);
    add_text(w, text);
}

/* Split a command at spaces, and add its words. */
static void add_command(words *w, const char *command) {
    for (command += strspn(command, " \t"); *command; command += strspn(command, " \t")) {
        size_t bytes = strcspn(command, " \t");
        add(w, command, bytes);
        command += bytes;
    }
}

static void add_program(words *w, const kl_launch *l) {
    for (size_t i = 0; l->program[i]; i++)
        add_text(w, l->program[i]);
}

/* Write "a:2,b:1". */
static void put_hosts(const kl_launch *l, kl_buffer *text) {
    for (size_t i = 0; i < l->count; i++) {
        char one[KL_KEEPER_NAME_BYTES + 16];
        if (l->hosts[i].ranks == 0)
            continue;
        int bytes = snprintf(one, sizeof one, "%s%s:%u", text->size > 0 ? "," : "", l->hosts[i].name,
                             l->hosts[i].ranks);
        kl_put_bytes(text, one, (size_t)bytes);
    }
}

static void add_hosts(words *w, const char *option, const kl_launch *l) {
    kl_buffer hosts = {0};
    put_hosts(l, &hosts);
    w->failed |= hosts.failed;
    if (hosts.size > 0) {
        add_text(w, option);
        add(w, (const char *)hosts.data, hosts.size);
    }
    kl_buffer_free(&hosts);
}

/* Add mpirun of Open MPI and its options. With odls_base_sigkill_timeout 0, mpirun kills the other ranks at
 * once when a rank has died. By default, mpirun waits a second before it kills them. Ranks are not bound to
 * cores, because each mpirun on a host would bind its first rank to the first core. */
static void add_openmpi(words *w, const kl_launch *l) {
    add_command(w, l->command ? l->command : "mpirun");
    add_command(w, "--mca odls_base_sigkill_timeout 0");
    if (!l->command || !strstr(l->command, "-bind-to"))
        add_command(w, "--bind-to none");
    add_hosts(w, "--host", l);
    add_number(w, "-n", l->ranks);
    for (size_t i = 0; l->variables && l->variables[i]; i++) {
        add_text(w, "-x");
        add_text(w, l->variables[i]);
    }
}

static void add_mpich(words *w, const kl_launch *l) {
    add_command(w, l->command ? l->command : "mpiexec");
    add_hosts(w, "-hosts", l);
    add_number(w, "-n", l->ranks);
}

static uint32_t hosts_used(const kl_launch *l) {
    uint32_t used = 0;
    for (size_t i = 0; i < l->count; i++)
        used += l->hosts[i].ranks > 0;
    return used;
}

/* Add srun and its options. In a batch job, l->ranks is 0, and srun uses all nodes of the job. Otherwise srun
 * reads the host of each rank from the file that SLURM_HOSTFILE names. */
static void add_srun(words *w, const kl_launch *l) {
    add_command(w, l->command ? l->command : "srun");
    add_text(w, "--kill-on-bad-exit=1");
    if (l->mpi) {
        add_text(w, "--mpi");
        add_text(w, l->mpi);
    }
    if (l->ranks == 0)
        return;
    add_number(w, "-n", l->ranks);
    add_number(w, "-N", hosts_used(l));
    add_text(w, "--distribution=arbitrary");
}

/* --- a launcher of the user --- */

static void put_text(kl_buffer *out, const char *text) {
    kl_put_bytes(out, text, strlen(text));
}

/* If one of the words {ranks}, {hosts} and {hostfile} begins at `at`, write its replacement and return the
 * length of the word. Otherwise return 0. */
static size_t put_replaced(kl_buffer *out, const char *at, const kl_launch *l) {
    char number[16];
    if (strncmp(at, "{ranks}", 7) == 0) {
        snprintf(number, sizeof number, "%u", l->ranks);
        put_text(out, number);
        return 7;
    }
    if (strncmp(at, "{hosts}", 7) == 0) {
        kl_buffer hosts = {0};
        put_hosts(l, &hosts);
        kl_put_bytes(out, hosts.data, hosts.size);
        kl_buffer_free(&hosts);
        return 7;
    }
    if (strncmp(at, "{hostfile}", 10) == 0) {
        put_text(out, l->hostfile ? l->hostfile : "");
        return 10;
    }
    return 0;
}

static void add_replaced(words *w, const char *word, const kl_launch *l) {
    kl_buffer text = {0};
    for (size_t bytes; *word; word += bytes) {
        bytes = put_replaced(&text, word, l);
        if (bytes == 0) {
            kl_put_bytes(&text, word, 1);
            bytes = 1;
        }
    }
    w->failed |= text.failed;
    add(w, text.size > 0 ? (const char *)text.data : "", text.size);
    kl_buffer_free(&text);
}

char **kl_launch_words(const kl_launch *l) {
    words w = {0};
    if (l->kind == KL_LAUNCH_OPENMPI)
        add_openmpi(&w, l);
    else if (l->kind == KL_LAUNCH_MPICH)
        add_mpich(&w, l);
    else if (l->kind == KL_LAUNCH_SRUN)
        add_srun(&w, l);
    if (l->kind != KL_LAUNCH_OWN)
        add_program(&w, l);
    for (size_t i = 0; l->kind == KL_LAUNCH_OWN && l->program[i]; i++)
        add_replaced(&w, l->program[i], l);
    if (!w.failed)
        return w.at;
    kl_launch_words_free(w.at);
    return NULL;
}

void kl_launch_words_free(char **w) {
    for (size_t i = 0; w && w[i]; i++)
        free(w[i]);
    free(w);
}

void kl_launch_hostfile(const kl_launch *l, kl_buffer *text) {
    for (size_t i = 0; i < l->count; i++)
        for (uint32_t rank = 0; rank < l->hosts[i].ranks; rank++) {
            put_text(text, l->hosts[i].name);
            put_text(text, "\n");
        }
}

/* --- which MPI --- */

static bool holds(const char *data, size_t size, const char *name) {
    size_t bytes = strlen(name);
    for (const char *at = data; size >= bytes;) {
        const char *first = memchr(at, name[0], size - bytes + 1);
        if (!first)
            return false;
        if (memcmp(first, name, bytes) == 0)
            return true;
        size -= (size_t)(first + 1 - at);
        at = first + 1;
    }
    return false;
}

/* Find the MPI by the names of its libraries. The program file contains the names of libraries it needs. */
kl_launcher kl_launcher_of_program(const void *data, size_t size) {
    bool openmpi = holds(data, size, "libmpi.so.") || holds(data, size, "libkilter-openmpi.so");
    bool mpich = holds(data, size, "libmpich.so.") || holds(data, size, "libkilter-mpich.so");
    return openmpi == mpich ? KL_LAUNCH_OWN : openmpi ? KL_LAUNCH_OPENMPI : KL_LAUNCH_MPICH;
}

kl_launcher kl_launcher_of_version(const char *text) {
    if (strstr(text, "Open MPI") || strstr(text, "OpenRTE") || strstr(text, "open-mpi"))
        return KL_LAUNCH_OPENMPI;
    if (strstr(text, "HYDRA") || strstr(text, "Intel(R) MPI") || strstr(text, "mpich"))
        return KL_LAUNCH_MPICH;
    return KL_LAUNCH_OWN;
}
