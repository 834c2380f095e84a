/* In checking mode, report an access to a row of another rank, and then let the memory fault happen. A
 * signal handler gets no user data, and a process has only one handler for SIGSEGV. So the guarded loops are
 * in a global list. The handler calls only async-signal-safe functions. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "loop/loop_mpi.h"

static kilter_loop *_Atomic guarded;
static struct sigaction before;
static pthread_mutex_t guarding = PTHREAD_MUTEX_INITIALIZER;

/* --- writing text without the C library --- */

typedef struct text {
    char at[512];
    size_t size;
} text;

static void add(text *t, const char *words) {
    for (; *words && t->size < sizeof t->at; words++)
        t->at[t->size++] = *words;
}

static void add_number(text *t, uint64_t number) {
    char digits[21], *first = digits + 20;
    for (*first = '\0'; number > 0 || !*first; number /= 10)
        *--first = (char)('0' + number % 10);
    add(t, first);
}

/* --- finding the rank that has a row --- */

static const kl_gone *when_gone(const kilter_loop *l, uint64_t row) {
    uint64_t known = l->rank.layout.gone_count < KL_GONE ? l->rank.layout.gone_count : KL_GONE;
    for (uint64_t k = 1; k <= known; k++) {
        const kl_gone *gone = &l->rank.layout.gone[(l->rank.layout.gone_count - k) % KL_GONE];
        if (row >= gone->rows.lo && row < gone->rows.hi)
            return gone;
    }
    return NULL;
}

static int owner_of(const kilter_loop *l, uint64_t row) {
    int rank = 0;
    while (row >= l->rank.layout.target[rank + 1])
        rank++;
    return rank;
}

/* Add to the text which rank has row `array_row` of an array. It is the rank that has row stride · array_row
 * + offset of the leading loop. */
static void say_where(const kilter_loop *l, const kl_map *map, uint64_t array_row, text *t) {
    uint64_t row = map->stride * array_row + map->offset;
    const kl_gone *gone = when_gone(l, row);
    if (array_row >= map->rows) {
        add(t, ", which does not exist");
        return;
    }
    if (!l->rank.kind->anywhere) {
        add(t, ", which is on rank ");
        add_number(t, (uint64_t)owner_of(l, row));
        add(t, " now");
    }
    if (gone) {
        add(t, l->rank.kind->anywhere ? ", which moved to rank " : " (moved in sweep ");
        if (l->rank.kind->anywhere) {
            add_number(t, (uint64_t)gone->to);
            add(t, " in sweep ");
        }
        add_number(t, gone->sweep);
        add(t, l->rank.kind->anywhere ? "" : ")");
    } else if (l->rank.layout.gone_count <= KL_GONE) {
        add(t, l->rank.kind->anywhere ? ", which was never on this rank" : " (it was never on this rank)");
    }
}

static void say(const kilter_loop *l, size_t array, uint64_t row) {
    text t = {.size = 0};
    add(&t, "loop '");
    add(&t, l->name);
    add(&t, "': rank ");
    add_number(&t, (uint64_t)l->bundle->group.rank);
    add(&t, " touched row ");
    add_number(&t, row);
    add(&t, " of array ");
    add_number(&t, array);
    say_where(l, &l->rank.layout.arrays[array].map, row, &t);
    add(&t, "\n");
    (void)!write(STDERR_FILENO, t.at, t.size);
}

/* Return the number of the row at an index. Index 0 is the first row that has address space. For a ghost row
 * beyond an end of a periodic array, return the number of the row that it copies. */
static uint64_t row_at(const kl_array *array, uint64_t index) {
    return array->periodic ? index % array->map.rows : index;
}

static void look(const uint8_t *address) {
    for (const kilter_loop *l = guarded; l; l = l->next_guarded)
        for (size_t a = 0; a < l->rank.layout.array_count; a++) {
            const kl_rows *rows = &l->bundle->memory.rows[a];
            if (address >= rows->base && address < kl_rows_mapping(rows) + rows->reserved)
                say(l, a, row_at(&l->rank.layout.arrays[a], (uint64_t)(address - rows->base) / rows->bytes));
        }
}

/* --- the handler of SIGSEGV --- */

/* Call the previous handler. If there was none, restore the default action: the instruction then faults
 * again, and the process ends. */
static void on_fault(int number, siginfo_t *info, void *context) {
    look(info->si_addr);
    if (before.sa_flags & SA_SIGINFO) {
        before.sa_sigaction(number, info, context);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(number);
    } else {
        sigaction(number, &before, NULL);
        if (info->si_code <= 0) /* another process sent the signal, so returning would not repeat it */
            raise(number);
    }
}

static kilter_loop *_Atomic *place_of(const kilter_loop *l) {
    kilter_loop *_Atomic *place = &guarded;
    while (*place && *place != l)
        place = &(*place)->next_guarded;
    return place;
}

void kl_guard(kilter_loop *l) {
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    if (!l->bundle->group.checks)
        return;
    pthread_mutex_lock(&guarding);
    if (!guarded)
        sigaction(SIGSEGV, &action, &before);
    if (*place_of(l) != l) {
        l->next_guarded = guarded;
        guarded = l;
    }
    pthread_mutex_unlock(&guarding);
}

/* Remove a loop from the list of guarded loops. If the program has set another signal handler meanwhile,
 * keep that handler. */
void kl_unguard(kilter_loop *l) {
    struct sigaction now;
    pthread_mutex_lock(&guarding);
    kilter_loop *_Atomic *place = place_of(l);
    if (*place == l) {
        *place = l->next_guarded;
        if (!guarded && sigaction(SIGSEGV, NULL, &now) == 0 && now.sa_sigaction == on_fault)
            sigaction(SIGSEGV, &before, NULL);
    }
    pthread_mutex_unlock(&guarding);
}
