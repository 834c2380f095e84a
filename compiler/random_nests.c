/* Check kilter cc's verdicts on random loop nests. Run the iterations of each nest one by one, and compare
 * the verdict with the dependences found.
 *
 *   random_nests [NESTS [SEED]]
 *
 * Each nest has two or three loops and one to three statements with affine subscripts. The program finds the
 * dependences by running all iterations for small bounds. A verdict is wrong if kilter cc accepts a loop
 * although these dependences forbid it. The program counts refusals of loops that could be DOALL loops over
 * rows. In some nests the bound is a member of a structure. If such a nest also changes the structure, kilter
 * cc must refuse it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "unit.h"

enum { STATEMENTS = 3, REFERENCES = 4, LOOPS = 3, N = 6, PAD = 64, CELLS = 1 << 16 };

typedef struct affine {
    int of[LOOPS], constant, n; /* of: factors of the indices; n: factor of N */
} affine;

typedef struct reference {
    int array; /* 0 to 2 */
    affine row, column;
    /* used only in a statement's first reference: the statement runs only if (i + j) % 2 equals parity, or
     * always if parity is −1 */
    int parity;
} reference;

typedef struct statement {
    /* count: number of references; the statement writes the first and reads the others; depth: number of
     * loops around the statement */
    int count, depth;
    reference at[REFERENCES];
} statement;

typedef struct nest {
    int loops, statements, step;
    /* member: index of the bound's text in BOUND; change: index in CHANGE of a statement that changes a
     * structure; changed_in: number of the loop that contains this statement; index 0 uses no structure */
    int member, change, changed_in;
    affine lo[LOOPS], hi[LOOPS];
    statement at[STATEMENTS];
} nest;

static uint64_t state;

static int draw(int below) {
    return (int)(kl_mix64(state++) % (uint64_t)below);
}

/* --- making a nest --- */

static affine draw_bound(int loop, bool upper) {
    affine a = {.constant = upper ? -draw(2) : 1 + draw(2), .n = upper};
    if (loop > 0 && draw(4) == 0) { /* the bound depends on an outer index */
        a = (affine){.constant = 0};
        a.of[draw(loop)] = 1;
        a.constant = upper ? draw(2) : 0;
    }
    return a;
}

static affine draw_subscript(int loop, int depth) {
    affine a = {.constant = draw(3) == 0 ? draw(5) - 2 : 0};
    if (draw(12) == 0) {
        a.constant = 2 + draw(3);
        return a; /* the subscript is constant */
    }
    a.of[draw(10) == 0 ? draw(depth) : loop < depth ? loop : depth - 1] = draw(12) == 0 ? 2 : 1;
    return a;
}

static reference draw_reference(int depth) {
    reference r = {
        .array = draw(3), .row = draw_subscript(0, depth), .column = draw_subscript(1, depth), .parity = -1};
    return r;
}

/* Draw a nest that computes a stencil over one or two arrays, as pipelines do. */
static nest draw_stencil(void) {
    nest n = {.loops = 2 + draw(2), .statements = 1 + draw(2), .step = 1};
    for (int l = 0; l < n.loops; l++) {
        n.lo[l] = (affine){.constant = 1};
        n.hi[l] = l > 0 && draw(5) == 0 ? (affine){.of = {1}} : (affine){.constant = -1, .n = 1};
    }
    for (int s = 0; s < n.statements; s++) {
        n.at[s].depth = draw(8) == 0 ? n.loops - 1 : n.loops;
        n.at[s].count = 1 + draw(REFERENCES);
        for (int r = 0; r < n.at[s].count; r++) {
            affine row = {.of = {1}, .constant = r > 0 ? draw(3) - 1 : 0},
                   column = {.constant = r > 0 ? draw(3) - 1 : 0};
            column.of[n.at[s].depth > 1] = 1;
            n.at[s].at[r] = (reference){.array = draw(2), .row = row, .column = column, .parity = -1};
        }
        if (n.at[s].depth > 1 && draw(6) == 0)
            n.at[s].at[0].parity = draw(2);
    }
    return n;
}

static nest draw_loops(void) {
    if (draw(3) == 0)
        return draw_stencil();
    nest n = {.loops = 2 + draw(2), .statements = 1 + draw(STATEMENTS), .step = draw(8) == 0 ? 2 : 1};
    for (int l = 0; l < n.loops; l++) {
        n.lo[l] = draw_bound(l, false);
        n.hi[l] = draw_bound(l, true);
    }
    for (int s = 0; s < n.statements; s++) {
        n.at[s].depth = draw(4) == 0 ? n.loops - 1 : n.loops;
        n.at[s].count = 1 + draw(REFERENCES);
        for (int r = 0; r < n.at[s].count; r++)
            n.at[s].at[r] = draw_reference(n.at[s].depth);
        if (n.at[s].depth > 1 && draw(6) == 0)
            n.at[s].at[0].parity = draw(2);
    }
    return n;
}

/* Texts of bounds and of changes; root: the variable whose structure the text uses. */
static const struct {
    const char *text, *root;
} BOUND[] = {{"n", ""},           {"p->n", "p"},    {"g.n", "g"},
             {"all[2].n", "all"}, {"p->in.n", "p"}, {"all[1].in.n", "all"}},
  CHANGE[] = {{"", "-"},
              {"p->n = 5;", "p"},
              {"p->in.n++;", "p"},
              {"g.n = i;", "g"},
              {"all[2].n = i;", "all"},
              {"*p = g;", "p"},
              {"p->in = g.in;", "p"},
              {"g = all[3];", "g"},
              {"all[i % 4] = g;", "all"},
              {"grow(p);", "p"},
              {"put(&p->n);", "p"},
              {"put(&all[2].n);", "all"},
              {"put(&p->in.n);", "p"},
              {"{ pair *q = p; q->n = 3; q->in.n = 4; }", "p"},
              {"{ int *q = &p->in.n; q[0] = 3; }", "p"},
              {"for (p->n = 0; p->n < 2; p->n++) ;", "p"},
              {"for (g.n = 0; g.n < 2; g.n++) ;", "g"}};

enum { BOUNDS = sizeof BOUND / sizeof *BOUND, CHANGES = sizeof CHANGE / sizeof *CHANGE };

static nest draw_nest(void) {
    nest n = draw_loops();
    n.member = draw(2) ? draw(BOUNDS) : 0;
    n.change = n.member > 0 && draw(4) == 0 ? draw(CHANGES) : 0;
    n.changed_in = draw(n.loops);
    return n;
}

/* --- printing a nest as C --- */

static const char INDEX[] = "ijk";
static const char ARRAY[] = "abc";

static void print_affine(const affine *a, const char *n, FILE *out) {
    fprintf(out, "%d", a->constant);
    for (int l = 0; l < LOOPS; l++)
        if (a->of[l])
            fprintf(out, " + %d * %c", a->of[l], INDEX[l]);
    if (a->n)
        fprintf(out, " + %s", n);
}

static void print_reference(const reference *r, FILE *out) {
    fprintf(out, "%c[", ARRAY[r->array]);
    print_affine(&r->row, "n", out);
    fputs("][", out);
    print_affine(&r->column, "n", out);
    fputs("]", out);
}

static void print_statement(const statement *s, FILE *out) {
    if (s->at[0].parity >= 0)
        fprintf(out, "if ((i + j) %% 2 == %d)\n", s->at[0].parity);
    print_reference(&s->at[0], out);
    fputs(" = 1", out);
    for (int r = 1; r < s->count; r++) {
        fputs(" + ", out);
        print_reference(&s->at[r], out);
    }
    fputs(";\n", out);
}

static void print_loops(const nest *n, int loop, FILE *out) {
    fprintf(out, "for (int %c = ", INDEX[loop]);
    print_affine(&n->lo[loop], BOUND[n->member].text, out);
    fprintf(out, "; %c < ", INDEX[loop]);
    print_affine(&n->hi[loop], BOUND[n->member].text, out);
    fprintf(out, "; %c += %d) {\n", INDEX[loop], loop == 0 ? n->step : 1);
    if (loop == n->changed_in)
        fprintf(out, "%s\n", CHANGE[n->change].text);
    for (int s = 0; s < n->statements; s++) /* print this loop's own statements before the loop inside it */
        if (n->at[s].depth == loop + 1)
            print_statement(&n->at[s], out);
    if (loop + 1 < n->loops)
        print_loops(n, loop + 1, out);
    fputs("}\n", out);
}

static void print_nest(const nest *n, FILE *out) {
    fprintf(out,
            "double a[%d][%d], b[%d][%d], c[%d][%d];\ntypedef struct pair {\n    int n;\n    struct {\n      "
            "  int "
            "n;\n    } in;\n} pair;\npair g, all[4];\nstatic void grow(pair *p) { p->n++; p->in.n++; }\n"
            "static void put(int *at) { *at = 3; }\nvoid f(int n, pair *p) {\n",
            PAD, PAD, PAD, PAD, PAD, PAD);
    fputs("#pragma kilter loop\n", out);
    print_loops(n, 0, out);
    fputs("}\n", out);
}

/* --- running a nest --- */

typedef struct touch { /* a read or write of a cell by iteration (i, j) */
    int i, j, array, row, column;
    bool write;
} touch;

typedef struct trace {
    touch *at;
    size_t count, room;
} trace;

static int value_of(const affine *a, const int *index, int n) {
    int value = a->constant + a->n * n;
    for (int l = 0; l < LOOPS; l++)
        value += a->of[l] * index[l];
    return value;
}

static void note(trace *t, const reference *r, const int *index, int n, bool write) {
    if (t->count == t->room) {
        t->room = t->room ? 2 * t->room : 1024;
        t->at = realloc(t->at, t->room * sizeof *t->at);
        if (!t->at)
            abort();
    }
    t->at[t->count++] = (touch){
        index[0], index[1], r->array, value_of(&r->row, index, n), value_of(&r->column, index, n), write};
}

static void carry_out(const nest *n, int loop, int *index, int bound, trace *t) {
    int lo = value_of(&n->lo[loop], index, bound), hi = value_of(&n->hi[loop], index, bound);
    for (index[loop] = lo; index[loop] < hi; index[loop] += loop == 0 ? n->step : 1) {
        for (int s = 0; s < n->statements; s++) {
            const statement *st = &n->at[s];
            int rest = (index[0] + index[1]) % 2;
            if (st->depth != loop + 1 || (st->at[0].parity >= 0 && rest != st->at[0].parity))
                continue;
            for (int r = 1; r < st->count; r++)
                note(t, &st->at[r], index, bound, false);
            note(t, &st->at[0], index, bound, true);
        }
        if (loop + 1 < n->loops)
            carry_out(n, loop + 1, index, bound, t);
    }
    index[loop] = 0;
}

/* --- dependences between the iterations --- */

typedef struct truth {
    /* blocks: an iteration touches an element that an earlier iteration touched in a later block */
    bool carried, anti_only, far, blocks;
    bool rows; /* each row subscript of a written array is the index plus a constant */
} truth;

static void compare_touches(const touch *x, const touch *y, int step, truth *t) {
    if (x->array != y->array || x->row != y->row || x->column != y->column || x->i == y->i ||
        (!x->write && !y->write))
        return;
    const touch *first = x->i < y->i ? x : y, *second = x->i < y->i ? y : x;
    t->carried = true;
    if (first->write)
        t->anti_only = false;
    if (first->write && !second->write && second->i - first->i != step)
        t->far = true;
    if (second->j < first->j)
        t->blocks = true;
}

static truth find_truth(const nest *n) {
    truth t = {.anti_only = true, .rows = true};
    for (int bound = 3; bound <= N; bound++) {
        trace all = {.at = NULL};
        int index[LOOPS] = {0};
        carry_out(n, 0, index, bound, &all);
        for (size_t a = 0; a < all.count; a++)
            for (size_t b = 0; b < a; b++)
                compare_touches(&all.at[a], &all.at[b], n->step, &t);
        free(all.at);
    }
    bool known = false;
    int shift = 0;
    for (int s = 0; s < n->statements; s++) { /* all statements must write row (index + the same constant) */
        const affine *row = &n->at[s].at[0].row;
        bool plain = row->of[0] == 1 && !row->of[1] && !row->of[2] && (!known || row->constant == shift);
        shift = row->constant;
        known = true;
        t.rows = t.rows && plain;
    }
    for (int s = 0; s < n->statements; s++)
        for (int r = 1; r < n->at[s].count; r++) {
            const affine *row = &n->at[s].at[r].row;
            bool near = row->of[0] == 1 && !row->of[1] && !row->of[2], written = false;
            for (int w = 0; w < n->statements; w++)
                written = written || n->at[w].at[0].array == n->at[s].at[r].array;
            t.rows = t.rows && (near || !written);
        }
    return t;
}

/* --- verdicts --- */

static bool judge(const char *path, const nest *n, kc_decision *d) {
    FILE *out = fopen(path, "w");
    kilter_error error;
    kc_unit *unit = calloc(1, sizeof *unit);
    if (!out || !unit)
        abort();
    print_nest(n, out);
    fclose(out);
    bool good = kc_unit_open(unit, path, NULL, 0, &error) == KILTER_OK && unit->loops == 1;
    if (good)
        *d = unit->loop[0].decision;
    else
        fprintf(stderr, "%s\n", error.text);
    kc_unit_close(unit);
    free(unit);
    return good;
}

static bool is_unsound(const kc_decision *d, const truth *t) {
    switch (d->kind) {
    case KC_DOALL:
        return t->carried;
    case KC_DOACROSS:
        return t->far || t->blocks;
    case KC_OLD:
        return t->carried && !t->anti_only;
    default:
        return false;
    }
}

/* Does the loop change the structure that its bound is a member of? */
static bool changes_bound(const nest *n) {
    return strcmp(BOUND[n->member].root, CHANGE[n->change].root) == 0;
}

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 1000, kinds[4] = {0}, unsound = 0, parallel = 0, refused = 0;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    char path[64];
    snprintf(path, sizeof path, "/tmp/kilter-nest-%ld.c", (long)getpid());
    for (int i = 0; i < count; i++) {
        kc_decision d;
        state = kl_mix64(seed + (uint64_t)i) | 1;
        nest n = draw_nest();
        truth t = find_truth(&n);
        if (!judge(path, &n, &d))
            return 1;
        kinds[d.kind]++;
        bool could = t.rows && !t.carried && n.change == 0;
        parallel += could;
        refused += could && d.kind == KC_REFUSED;
        if (could && d.kind == KC_REFUSED)
            printf("refused, seed %" PRIu64 ": %s\n", seed + (uint64_t)i, d.why);
        if (is_unsound(&d, &t) || (d.kind != KC_REFUSED && changes_bound(&n))) {
            unsound++;
            printf("WRONG, seed %" PRIu64 ":\n", seed + (uint64_t)i);
            print_nest(&n, stdout);
        }
    }
    unlink(path);
    printf("nests %d, seeds %" PRIu64 " to %" PRIu64 ": DOALL %d, DOACROSS %d, old values %d, refused %d\n"
           "wrong verdicts: %d\nof %d nests without dependences over rows, refused: %d\n",
           count, seed, seed + (uint64_t)count - 1, kinds[KC_DOALL], kinds[KC_DOACROSS], kinds[KC_OLD],
           kinds[KC_REFUSED], unsound, parallel, refused);
    return unsound > 0;
}
