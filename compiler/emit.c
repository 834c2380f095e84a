/* Write the MPI program: edit the marked loops, and print code before the first function and after the last
 * function. */
#include "emit.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "edit.h"
#include "outside.h"

typedef struct emission {
    kc_unit *unit;
    kc_edits edits;
    kilter_error *error;
    kilter_status status;
    kc_loop *site[KC_LOOPS];
    /* for each site (marked loop): its group, and its number in the group */
    int group[KC_LOOPS], number[KC_LOOPS];
    int sites;
} emission;

static void wrong(emission *e, unsigned line, const char *what, const char *more) {
    if (e->status == KILTER_OK)
        e->status = kl_fail(e->error, KILTER_ERR_INPUT, "%s:%u: %s%s%s", e->unit->path, line, what,
                            *more ? ". " : "", more);
}

/* --- which loops belong together --- */

static bool has_rows(const kc_loop *l, CXCursor variable, const kc_decided **found) {
    for (int a = 0; a < l->nest->arrays; a++)
        if (!l->nest->array[a].scalar && l->decision.array[a].role == KC_ROWS &&
            clang_equalCursors(l->nest->array[a].variable, variable)) {
            *found = &l->decision.array[a];
            return true;
        }
    return false;
}

static bool share_rows(const kc_loop *a, const kc_loop *b) {
    const kc_decided *found;
    for (int i = 0; i < a->nest->arrays; i++)
        if (!a->nest->array[i].scalar && a->decision.array[i].role == KC_ROWS &&
            has_rows(b, a->nest->array[i].variable, &found))
            return true;
    return false;
}

static void find_groups(emission *e) {
    for (int i = 0; i < e->sites; i++)
        e->group[i] = i;
    for (int i = 0; i < e->sites; i++)
        for (int k = 0; k < i; k++)
            if (share_rows(e->site[i], e->site[k])) {
                int from = e->group[i], to = e->group[k];
                for (int s = 0; s < e->sites; s++)
                    if (e->group[s] == from)
                        e->group[s] = to;
            }
    for (int i = 0; i < e->sites; i++)
        for (int k = 0; k < i; k++)
            e->number[i] += e->group[k] == e->group[i];
}

typedef struct depth_search {
    CXCursor loop;
    int depth;
} depth_search;

static enum CXChildVisitResult count_around(CXCursor node, CXCursor parent, CXClientData data) {
    depth_search *s = data;
    (void)parent;
    enum CXCursorKind kind = kc_kind(node);
    bool is_loop = kind == CXCursor_ForStmt || kind == CXCursor_WhileStmt || kind == CXCursor_DoStmt;
    if (is_loop && !kc_same(node, s->loop) && kc_is_within(s->loop, node))
        s->depth++;
    return CXChildVisit_Recurse;
}

/* Return the number of the group's leader. A group is a set of marked loops that share distributed arrays.
 * The leader is the loop with the most loops around it. Rows move between ranks when the leader begins. */
static int leader_of(const emission *e, int group) {
    int best = -1, most = -1;
    for (int i = 0; i < e->sites; i++) {
        depth_search s = {e->site[i]->loop, 0};
        if (e->group[i] != group)
            continue;
        clang_visitChildren(e->site[i]->function, count_around, &s);
        if (s.depth > most) {
            most = s.depth;
            best = e->number[i];
        }
    }
    return best;
}

/* --- checks --- */

static enum CXChildVisitResult look_for_sizeof(CXCursor node, CXCursor parent, CXClientData data) {
    kc_loop *l = data;
    const kc_decided *found;
    (void)parent;
    CXCursor variable =
        kc_kind(node) == CXCursor_UnaryExpr ? kc_declaration(kc_child(node, 0)) : clang_getNullCursor();
    if (!kc_is_null(variable) && has_rows(l, variable, &found) &&
        clang_getCanonicalType(clang_getCursorType(variable)).kind != CXType_Pointer)
        l->decision.line = kc_line(node);
    return CXChildVisit_Recurse;
}

static void check_scalar(emission *e, const kc_loop *l, int array) {
    const kc_array *a = &l->nest->array[array];
    const kc_decided *d = &l->decision.array[array];
    unsigned line = 0;
    char text[KC_TEXT];
    if (d->role == KC_REDUCED && d->needs_clause) {
        snprintf(text, sizeof text, "the iterations add to %s in another order, which changes its last bits",
                 a->name);
        wrong(e, kc_line(l->loop), text, "If that is allowed, write #pragma kilter loop reduction(op:name)");
    }
    bool is_index = clang_equalCursors(a->variable, l->nest->outer.index);
    if (d->role == KC_PRIVATE && !is_index && kc_lives_on(e->unit, l, a->variable, &line)) {
        snprintf(text, sizeof text, "%s may be used with the value that this loop left", a->name);
        wrong(e, line, text, "Declare it within the loop");
    }
}

static void check_inner_indices(emission *e, const kc_loop *l) {
    for (int i = 0; i < l->nest->symbols; i++) {
        const kc_symbol *s = &l->nest->symbol[i];
        unsigned line;
        if (s->loops > 1 && clang_equalCursors(clang_getCursorSemanticParent(s->variable), l->function) &&
            !kc_is_within(s->variable, l->loop) && kc_lives_on(e->unit, l, s->variable, &line))
            wrong(e, line, "the index of a loop within a marked loop is used afterwards",
                  "Declare it in the loop's header");
    }
}

typedef struct hides {
    const kc_loop *loop;
    CXCursor variable;
    char *name;
    bool found;
} hides;

static enum CXChildVisitResult look_for_name(CXCursor node, CXCursor parent, CXClientData data) {
    hides *h = data;
    enum CXCursorKind kind = kc_kind(node);
    (void)parent;
    if ((kind == CXCursor_VarDecl || kind == CXCursor_ParmDecl) && kc_is_named(node, h->name) &&
        !clang_equalCursors(node, h->variable) && !kc_is_within(node, h->loop->loop))
        h->found = true;
    return CXChildVisit_Recurse;
}

/* Check that a variable's name means the same variable just before the loop. kilter cc inserts code before
 * the loop. This code uses names from inside the loop, even names from functions that the loop calls. */
static void check_name(emission *e, const kc_loop *l, CXCursor variable) {
    CXCursor parent = clang_getCursorSemanticParent(variable);
    bool global = kc_kind(parent) == CXCursor_TranslationUnit;
    if (clang_equalCursors(parent, l->function))
        return;
    hides h = {l, variable, kc_name(variable), !global};
    clang_visitChildren(l->function, look_for_name, &h);
    if (h.found) {
        char text[KC_TEXT];
        snprintf(text, sizeof text, "a called function has a variable %.100s that this function cannot name",
                 h.name);
        wrong(e, kc_line(l->loop), text, "Give variables of the file other names than those of functions");
    }
    free(h.name);
}

static void check_site(emission *e, kc_loop *l) {
    const kc_decision *d = &l->decision;
    if (d->kind == KC_REFUSED) {
        wrong(e, d->line, d->why, d->advice);
        return;
    }
    for (int a = 0; a < l->nest->arrays; a++)
        if (l->nest->array[a].scalar)
            check_scalar(e, l, a);
    check_inner_indices(e, l);
    for (int i = 0; i < l->nest->symbols; i++)
        if (!l->nest->symbol[i].is_index)
            check_name(e, l, l->nest->symbol[i].variable);
    for (int a = 0; a < l->nest->arrays; a++)
        if (!l->nest->array[a].scalar || l->decision.array[a].role != KC_PARAMETER)
            check_name(e, l, l->nest->array[a].variable);
    unsigned line = l->decision.line;
    clang_visitChildren(l->loop, look_for_sizeof, l);
    if (l->decision.line != line)
        wrong(e, l->decision.line, "the loop uses sizeof with a distributed array", "");
    if (!l->nest->outer.declared &&
        !clang_equalCursors(clang_getCursorSemanticParent(l->nest->outer.index), l->function))
        wrong(e, kc_line(l->loop), "the loop's index is a global variable",
              "Declare it in the loop's header");
}

/* --- text of the source --- */

static char *source_of(const emission *e, CXCursor node) {
    unsigned from, to;
    char *text = NULL;
    if (kc_extent(node, &from, &to) && asprintf(&text, "%.*s", (int)(to - from), e->unit->text + from) < 0)
        abort();
    return text ? text : strdup("kcc_unknown");
}

static char *type_of(CXCursor variable) {
    CXString spelling = clang_getTypeSpelling(
        clang_getUnqualifiedType(clang_getCanonicalType(clang_getCursorType(variable))));
    char *text = strdup(clang_getCString(spelling));
    clang_disposeString(spelling);
    return text;
}

/* --- exact sums --- */

typedef struct addends {
    emission *e;
    CXCursor variable;
    int sum; /* number of this exact sum in the loop */
} addends;

/* Return the addend e of s += e, s = s + e or s++, and its sign. The null cursor means that e is 1. */
static CXCursor addend_of(CXCursor node, CXCursor variable, bool *minus) {
    CXCursor value = kc_child(node, 1), declared;
    if (kc_kind(node) == CXCursor_UnaryOperator) {
        enum CXUnaryOperatorKind op = clang_getCursorUnaryOperatorKind(node);
        *minus = op == CXUnaryOperator_PreDec || op == CXUnaryOperator_PostDec;
        return clang_getNullCursor();
    }
    *minus = clang_getCursorBinaryOperatorKind(node) == CXBinaryOperator_SubAssign;
    if (kc_kind(node) == CXCursor_CompoundAssignOperator)
        return value;
    value = kc_plain(value);
    *minus = clang_getCursorBinaryOperatorKind(value) == CXBinaryOperator_Sub;
    declared = kc_declaration(kc_child(value, 0));
    bool first = !kc_is_null(declared) && clang_equalCursors(declared, variable);
    return kc_child(value, first ? 1 : 0);
}

static enum CXChildVisitResult edit_addition(CXCursor node, CXCursor parent, CXClientData data) {
    addends *a = data;
    bool minus;
    unsigned from, to, begin, end;
    (void)parent;
    CXCursor target = kc_is_assignment(node) ? kc_declaration(kc_child(node, 0)) : clang_getNullCursor();
    if (kc_is_null(target) || !clang_equalCursors(target, a->variable))
        return CXChildVisit_Recurse;
    CXCursor value = addend_of(node, a->variable, &minus);
    bool one = kc_is_null(value);
    if (!kc_extent(node, &from, &to) || (!one && !kc_extent(value, &begin, &end)))
        wrong(a->e, kc_line(node), "a macro adds to a variable that has an exact sum", "");
    else if (one)
        kc_replace(&a->e->edits, from, to, "kilter_sum_add(&kcc_sum_%d, %s1)", a->sum, minus ? "-" : "");
    else
        kc_replace(&a->e->edits, from, to, "kilter_sum_add(&kcc_sum_%d, %s(%.*s))", a->sum, minus ? "-" : "",
                   (int)(end - begin), a->e->unit->text + begin);
    return CXChildVisit_Continue;
}

static void edit_sums(emission *e, const kc_loop *l) {
    int sums = 0;
    for (int i = 0; i < l->nest->arrays; i++)
        if (l->decision.array[i].role == KC_EXACT) {
            addends a = {e, l->nest->array[i].variable, sums++};
            clang_visitChildren(l->nest->outer.body, edit_addition, &a);
        }
}

static void print_sums(const kc_loop *l, FILE *out) {
    int sums = 0;
    for (int i = 0; i < l->nest->arrays; i++)
        if (l->decision.array[i].role == KC_EXACT)
            fprintf(out, "    kilter_sum kcc_sum_%d = {{0}, 0};\n", sums++);
}

static void print_after_sums(const kc_loop *l, FILE *out) {
    int sums = 0;
    for (int i = 0; i < l->nest->arrays; i++) {
        if (l->decision.array[i].role != KC_EXACT)
            continue;
        const char *name = l->nest->array[i].name;
        char *type = type_of(l->nest->array[i].variable);
        fprintf(out, "    %s = (%s)kcc_sum_of_all(&kcc_sum_%d, %s);\n", name, type, sums++, name);
        free(type);
    }
}

/* --- before a loop --- */

static bool is_reassigned(const kc_array *a) {
    return a->pointer && !kc_is_stable(a->variable);
}

/* Print the number of halo rows that an array needs in each loop of its group. The program may swap pointers
 * that it reassigns, so all arrays behind such pointers get the same halo. */
static void print_ghosts(const emission *e, int site, int array, FILE *out) {
    const kc_loop *l = e->site[site];
    const kc_array *a = &l->nest->array[array];
    bool moves = is_reassigned(a);
    for (int s = 0; s < e->sites; s++) {
        long long ghost = 0;
        const kc_loop *other = e->site[s];
        for (int b = 0; b < other->nest->arrays && e->group[s] == e->group[site]; b++) {
            const kc_decided *d = &other->decision.array[b];
            bool same = clang_equalCursors(other->nest->array[b].variable, a->variable);
            bool partner = moves && other->nest->array[b].pointer && is_reassigned(&other->nest->array[b]);
            long long halo = d->before > d->after ? d->before : d->after;
            if (d->role == KC_ROWS && (same || partner) && halo > ghost)
                ghost = halo;
        }
        if (e->group[s] == e->group[site])
            fprintf(out, "%s%lld", e->number[s] ? ", " : "", ghost);
    }
}

static void print_bytes(const kc_nest *n, const kc_array *a, FILE *out) {
    if (a->stride >= 0)
        fprintf(out, "(size_t)%s * sizeof(%s)[0]", kc_text_of(n, a->stride), a->name);
    else if (a->width > 0 && a->dims == 2)
        fprintf(out, "%lld * sizeof(%s)[0]", a->width, a->name);
    else
        fprintf(out, "sizeof(%s)[0]", a->name);
}

static void print_array(emission *e, int site, int array, FILE *out) {
    const kc_loop *l = e->site[site];
    const kc_array *a = &l->nest->array[array];
    char *from, *to;
    if (!kc_row_range(l->nest, array, &from, &to)) {
        char text[160];
        snprintf(text, sizeof text, "cannot tell which rows of array %.100s the loop uses", a->name);
        wrong(e, kc_line(l->loop), text, "");
        return;
    }
    fprintf(out, "        {.name = \"%s\", .whole = &(%s)[0], .bytes = ", a->name, a->name);
    print_bytes(l->nest, a, out);
    fprintf(out, ", .lo = %s, .hi = %s", from, to);
    if (!a->pointer &&
        clang_getCanonicalType(clang_getCursorType(a->variable)).kind != CXType_IncompleteArray)
        fprintf(out, ", .size = sizeof(%s)", a->name);
    else if (kc_touches_all(l->nest, array))
        fputs(", .sure = true", out);
    fprintf(out, ", .writes = %s, .ghost = (const int[]){",
            l->decision.array[array].written ? "true" : "false");
    print_ghosts(e, site, array, out);
    fputs("}},\n", out);
    free(from);
    free(to);
}

static int print_arrays(emission *e, int site, FILE *out) {
    const kc_loop *l = e->site[site];
    int count = 0;
    fputs("    kcc_array kcc_at[] = {\n", out);
    for (int a = 0; a < l->nest->arrays; a++)
        if (l->decision.array[a].role == KC_ROWS && !l->nest->array[a].scalar) {
            print_array(e, site, a, out);
            count++;
        }
    for (int a = 0; a < l->nest->arrays; a++)
        if (l->decision.array[a].role == KC_REDUCED)
            fprintf(out, "        {.name = \"%s\", .bytes = sizeof %s, .ghost = kcc_key_%d_%d},\n",
                    l->nest->array[a].name, l->nest->array[a].name, site, count++);
    if (count == 0)
        fputs("        {.name = NULL},\n", out);
    fputs("    };\n", out);
    fprintf(out, "    kcc_cut(&kcc_site_%d, kcc_at, %d);\n", site, count);
    return count;
}

/* Print calls that bring structure members of `array` up to date. The calls also check that the loop does not
 * overwrite the members. If the loop reads `array` only through members, print a call for each of these
 * members. Otherwise print calls only for members whose values the loop uses. If `array` is −1, print calls
 * without the check for the members of all arrays. The program makes these calls before it computes the
 * loop's limits. */
static void print_members(const kc_loop *l, int site, int array, int count, FILE *out) {
    bool all = array >= 0 && kc_is_read_by_members(l->nest, array);
    for (int s = 0; s < l->nest->symbols; s++) {
        const kc_symbol *m = &l->nest->symbol[s];
        if (m->array < 0 || (array >= 0 && m->array != array) || (array >= 0 && !all && !m->used))
            continue;
        const char *text = kc_text_of(l->nest, s);
        fprintf(out, "    kcc_copied(&kcc_site_%d, \"%s\", &%s, &%s + 1, ", site, text, text, text);
        if (array >= 0)
            fprintf(out, "kcc_at, %d);\n", count);
        else
            fputs("NULL, 0);\n", out);
    }
}

static void print_copies(emission *e, int site, int count, FILE *out) {
    const kc_loop *l = e->site[site];
    for (int i = 0; i < l->nest->arrays; i++) {
        const kc_array *a = &l->nest->array[i];
        char *from = NULL, *to = NULL;
        if (!a->scalar || kc_has_address(a->variable))
            print_members(l, site, i, count, out);
        if (kc_is_read_by_members(l->nest, i))
            continue;
        CXType type = clang_getCursorType(a->variable);
        if (a->scalar && l->decision.array[i].role == KC_PARAMETER && !kc_is_integer(type) &&
            !kc_is_floating(type) && kc_has_address(a->variable))
            fprintf(out, "    kcc_copied(&kcc_site_%d, \"%s\", &%s, &%s + 1, kcc_at, %d);\n", site, a->name,
                    a->name, a->name, count);
        if (a->scalar || l->decision.array[i].role != KC_COPIED)
            continue;
        if (!a->pointer)
            fprintf(out, "    kcc_copied(&kcc_site_%d, \"%s\", &%s, &%s + 1, kcc_at, %d);\n", site, a->name,
                    a->name, a->name, count);
        else if (kc_row_range(l->nest, i, &from, &to)) /* the range counts rows, or single elements */
            fprintf(out, "    kcc_copied(&kcc_site_%d, \"%s\", (const char *)%s + %s * (long long)(", site,
                    a->name, a->name, from);
        else if (a->fresh)
            fprintf(out, "    kcc_copied(&kcc_site_%d, \"%s\", %s, NULL, kcc_at, %d);\n", site, a->name,
                    a->name, count);
        else
            wrong(e, kc_line(l->loop),
                  "a pointer may point to memory that the iterations write, and kilter cc cannot tell how "
                  "much of this memory the loop reads; declare this pointer with restrict",
                  a->name);
        if (from) {
            print_bytes(l->nest, a, out);
            fprintf(out, "), (const char *)%s + %s * (long long)(", a->name, to);
            print_bytes(l->nest, a, out);
            fprintf(out, "), kcc_at, %d);\n", count);
        }
        free(from);
        free(to);
    }
}

/* Print the length of a row, in elements, which the pipeline divides into blocks. Print 0 for other loops. */
static void print_inner(const kc_loop *l, FILE *out) {
    const kc_array *a = &l->nest->array[l->decision.pipelined];
    if (l->decision.kind != KC_DOACROSS)
        fputs("0", out);
    else if (a->stride >= 0)
        fprintf(out, "(uint64_t)%s", kc_text_of(l->nest, a->stride));
    else if (a->width > 0 && a->dims == 2)
        fprintf(out, "%lld", a->width);
    else
        fprintf(out, "sizeof(%s)[0] / sizeof(%s)[0][0]", a->name, a->name);
}

static void print_shadows(emission *e, int site, FILE *out) {
    const kc_loop *l = e->site[site];
    int count = 0, reductions = 0;
    for (int a = 0; a < l->nest->arrays; a++)
        if (l->decision.array[a].role == KC_ROWS && !l->nest->array[a].scalar) {
            const char *name = l->nest->array[a].name;
            fprintf(out, "    __typeof__(&(%s)[0]) restrict %s = KCC_ROWS(&kcc_site_%d, kcc_at[%d]);\n", name,
                    name, site, count++);
        }
    for (int a = 0; a < l->nest->arrays; a++)
        if (l->decision.array[a].role == KC_REDUCED) {
            char *type = type_of(l->nest->array[a].variable);
            fprintf(out, "    %s *const kcc_part_%d = KCC_ROWS(&kcc_site_%d, kcc_at[%d]);\n", type,
                    reductions++, site, count++);
            free(type);
        }
}

static void print_identity(const kc_loop *l, int array, const char *type, FILE *out) {
    kc_update update = l->decision.array[array].update;
    bool floating = kc_is_floating(clang_getCursorType(l->nest->array[array].variable));
    if (update == KC_SUM || update == KC_PRODUCT)
        fputs(update == KC_SUM ? "0" : "1", out);
    else if (update == KC_FMIN || update == KC_FMAX)
        fputs("__builtin_nan(\"\")", out);
    else if (floating)
        fputs(update == KC_MOST ? "-__builtin_inf()" : "__builtin_inf()", out);
    else
        fprintf(out, "%s(%s)", update == KC_MOST ? "KCC_LOWEST" : "KCC_HIGHEST", type);
}

/* Print code that sets each row of a reduction to the neutral value, such as 0 for a sum. Rows that no
 * iteration writes then do not change the combined value. */
static void print_fill(emission *e, int site, FILE *out) {
    const kc_loop *l = e->site[site];
    int reductions = 0;
    for (int a = 0; a < l->nest->arrays; a++) {
        if (l->decision.array[a].role != KC_REDUCED)
            continue;
        char *type = type_of(l->nest->array[a].variable);
        fprintf(out,
                "        for (uint64_t kcc_k = kcc_r.lo; kcc_k < kcc_r.hi; kcc_k++)\n            "
                "kcc_part_%d[kcc_k] = ",
                reductions++);
        print_identity(l, a, type, out);
        fputs(";\n", out);
        free(type);
    }
}

static const char *kind_name(const kc_loop *l) {
    static const char *const names[] = {
        [KC_DOALL] = "DOALL", [KC_DOACROSS] = "a pipeline", [KC_OLD] = "DOALL with old values"};
    return names[l->decision.kind];
}

/* Return the difference between the first value that the index does not reach and the bound in the source. */
static long long past(const kc_header *h) {
    return (h->inclusive ? (h->step > 0 ? 1 : -1) : 0) - h->shift;
}

static void print_before(emission *e, int site, FILE *out) {
    const kc_loop *l = e->site[site];
    const kc_header *h = &l->nest->outer;
    const kc_decision *d = &l->decision;
    char *lower = source_of(e, h->lower), *bound = source_of(e, h->bound);
    fprintf(out, "{ /* kilter cc: %s */\n", kind_name(l));
    print_members(l, site, -1, 0, out);
    fprintf(out, "    const long long kcc_lo = (long long)(%s), kcc_hi = (long long)(%s) + %lld;\n", lower,
            bound, past(h));
    int count = print_arrays(e, site, out);
    print_copies(e, site, count, out);
    fprintf(out, "    kcc_enter(&kcc_site_%d, kcc_at, %d, %s + %lld, ", site, count,
            h->step > 0 ? "kcc_hi" : "kcc_lo + 1", d->shift);
    print_inner(l, out);
    fputs(");\n", out);
    print_shadows(e, site, out);
    print_sums(l, out);
    if (d->kind == KC_DOACROSS)
        fprintf(out,
                "    for (kilter_range kcc_r, kcc_b; kilter_loop_next_block(kcc_site_%d.loop, &kcc_r, "
                "&kcc_b);) {\n",
                site);
    else
        fprintf(out, "    for (kilter_range kcc_r; kilter_loop_next(kcc_site_%d.loop, &kcc_r);) {\n", site);
    print_fill(e, site, out);
    fprintf(out, "        const kcc_span kcc_s = kcc_part(kcc_lo, kcc_hi, %lld, kcc_r, %lld);\n", h->step,
            d->shift);
    fprintf(out, "#line %u \"%s\"\n        ", kc_line(l->loop), e->unit->path);
    free(lower);
    free(bound);
}

/* --- headers and bodies --- */

static void edit_text(emission *e, CXCursor node, const char *text) {
    unsigned from, to;
    if (kc_extent(node, &from, &to))
        kc_replace(&e->edits, from, to, "%s", text);
}

/* Does each part of the header have its own text in the source? The answer is no if one macro expands to
 * several parts. */
static bool is_apart(const kc_header *h) {
    unsigned from[5], to[5];
    CXCursor nodes[] = {h->loop, h->lower, h->bound, h->test, h->body};
    for (int i = 0; i < 5; i++)
        if (!kc_extent(nodes[i], &from[i], &to[i]))
            return false;
    return from[0] < from[1] && to[1] <= from[3] && from[3] < from[2] && to[2] <= to[3] && to[3] <= from[4] &&
           to[4] <= to[0];
}

static void edit_outer(emission *e, const kc_loop *l) {
    const kc_header *h = &l->nest->outer;
    char text[400], *bound = source_of(e, h->bound), *type = type_of(h->index);
    snprintf(text, sizeof text, "(%s)kcc_s.from", type);
    edit_text(e, h->lower, text);
    snprintf(text, sizeof text, "(__typeof__(%.300s))(kcc_s.to + %lld)", bound, -past(h));
    edit_text(e, h->bound, text);
    free(bound);
    free(type);
}

static void edit_inner(emission *e, const kc_header *h, long long shift, const char *lo, const char *hi,
                       kc_edits *edits) {
    char *lower = source_of(e, h->lower), *bound = source_of(e, h->bound), *type = type_of(h->index);
    unsigned from, to;
    bool up = h->step > 0;
    if (kc_extent(h->lower, &from, &to))
        kc_replace(edits, from, to, "(%s)%s(%s, (long long)%s - %lld)", type, up ? "kcc_more" : "kcc_less",
                   lower, up ? lo : hi, up ? shift : shift + 1);
    if (kc_extent(h->bound, &from, &to))
        kc_replace(edits, from, to, "(__typeof__(%s))%s((long long)(%s), (long long)%s - %lld)", bound,
                   up ? "kcc_less" : "kcc_more", bound, up ? hi : lo, (up ? shift : shift + 1) + past(h));
    free(lower);
    free(bound);
    free(type);
}

/* If the inner loop is in a called function, make a copy of that function. The copy computes one block of the
 * inner loop. */
static void clone_function(emission *e, int site, const kc_loop *l) {
    CXCursor call = l->nest->calls[0], function = kc_callee(call);
    unsigned from, to, name_at, here, end, unused;
    char *name = kc_name(function), *text = NULL;
    size_t size, length = strlen(name);
    int count = clang_Cursor_getNumArguments(function);
    CXFile file;
    clang_getExpansionLocation(clang_getCursorLocation(function), &file, NULL, NULL, &name_at);
    bool good = l->nest->call_count == 1 && kc_extent(function, &from, &to) && kc_in_main_file(function) &&
                count > 0 &&
                kc_extent(clang_Cursor_getArgument(function, (unsigned)count - 1), &unused, &end) &&
                kc_extent(l->function, &here, &unused) && to <= here &&
                strncmp(e->unit->text + name_at, name, length) == 0 && is_apart(&l->nest->inner);
    if (!good) {
        wrong(e, kc_line(call), "a pipeline whose inner loop is in this function cannot be made",
              "Define the function before, with parameters, and without macros around its loop");
        free(name);
        return;
    }
    kc_edits edits = {.at = NULL};
    FILE *out = open_memstream(&text, &size);
    fprintf(out, "\n#line %u \"%s\"\n", kc_line(function), e->unit->path);
    if (clang_Cursor_getStorageClass(function) != CX_SC_Static)
        fputs("static ", out);
    kc_replace(&edits, name_at, name_at + (unsigned)length, "%s_kcc_%d", name, site);
    kc_replace(&edits, end, end, ", kilter_range kcc_b");
    edit_inner(e, &l->nest->inner, l->decision.inner_shift, "kcc_b.lo", "kcc_b.hi", &edits);
    kc_print_edited(&edits, e->unit->text, from, to, out);
    CXFile ends;
    unsigned line;
    clang_getExpansionLocation(clang_getRangeEnd(clang_getCursorExtent(function)), &ends, &line, NULL, NULL);
    fprintf(out, "\n#line %u \"%s\"\n", line, e->unit->path);
    fclose(out);
    kc_replace(&e->edits, to, to, "%s", text);
    kc_edits_free(&edits);
    free(text);
    if (kc_extent(call, &from, &to) && strncmp(e->unit->text + from, name, length) == 0) {
        kc_replace(&e->edits, from, from + (unsigned)length, "%s_kcc_%d", name, site);
        kc_replace(&e->edits, to - 1, to - 1, ", kcc_b");
    } else {
        wrong(e, kc_line(call), "a macro makes this call", "");
    }
    free(name);
}

static void edit_reductions(emission *e, const kc_loop *l) {
    unsigned from, to;
    int reductions = 0;
    if (!kc_extent(l->nest->outer.body, &from, &to))
        return;
    char *index = kc_name(l->nest->outer.index);
    for (int a = 0; a < l->nest->arrays; a++) {
        if (l->decision.array[a].role != KC_REDUCED)
            continue;
        const char *name = l->nest->array[a].name;
        char *type = type_of(l->nest->array[a].variable), *identity = NULL;
        size_t size;
        FILE *out = open_memstream(&identity, &size);
        print_identity(l, a, type, out);
        fclose(out);
        kc_replace(
            &e->edits, from, from,
            "for (%s %s = %s, *kcc_to_%d = &kcc_part_%d[(long long)%s + %lld]; kcc_to_%d; *kcc_to_%d = %s, "
            "kcc_to_%d = NULL) ",
            type, name, identity, reductions, reductions, index, l->decision.shift, reductions, reductions,
            name, reductions);
        reductions++;
        free(type);
        free(identity);
    }
    free(index);
}

/* --- after a loop --- */

static void print_after(emission *e, int site, FILE *out) {
    const kc_loop *l = e->site[site];
    int count = 0, reductions = 0;
    for (int a = 0; a < l->nest->arrays; a++)
        count += l->decision.array[a].role == KC_ROWS && !l->nest->array[a].scalar;
    fprintf(out, "\n    }\n    kcc_leave(&kcc_site_%d);\n", site);
    for (int a = 0; a < l->nest->arrays; a++) {
        if (l->decision.array[a].role != KC_REDUCED)
            continue;
        char *type = type_of(l->nest->array[a].variable);
        fprintf(out,
                "    %s kcc_all_%d;\n    kcc_reduce(&kcc_site_%d, &kcc_at[%d], kcc_combine_%d_%d, "
                "&kcc_all_%d);\n",
                type, reductions, site, count, site, reductions, reductions);
        fprintf(out, "    kcc_combine_%d_%d(&%s, &kcc_all_%d, sizeof %s, NULL);\n", site, reductions,
                l->nest->array[a].name, reductions, l->nest->array[a].name);
        reductions++;
        count++;
        free(type);
    }
    print_after_sums(l, out);
    if (!l->nest->outer.declared) {
        char *index = kc_name(l->nest->outer.index), *type = type_of(l->nest->outer.index);
        fprintf(out, "    %s = (%s)kcc_after(kcc_lo, kcc_hi, %lld);\n", index, type, l->nest->outer.step);
        free(index);
        free(type);
    }
}

static void edit_site(emission *e, int site) {
    kc_loop *l = e->site[site];
    unsigned from, to, line;
    char *text = NULL;
    size_t size;
    CXFile file;
    const char *source = e->unit->text;
    bool inside = l->decision.kind == KC_DOACROSS && l->nest->call_count == 0;
    if (!kc_extent(l->loop, &from, &to) || !is_apart(&l->nest->outer) ||
        (inside && !is_apart(&l->nest->inner))) {
        wrong(e, kc_line(l->loop), "a macro makes part of the loop's header", "");
        return;
    }
    FILE *out = open_memstream(&text, &size);
    print_before(e, site, out);
    fclose(out);
    kc_replace(&e->edits, l->pragma_from, from, "%s", text);
    free(text);
    edit_outer(e, l);
    edit_reductions(e, l);
    edit_sums(e, l);
    if (inside)
        edit_inner(e, &l->nest->inner, l->decision.inner_shift, "kcc_b.lo", "kcc_b.hi", &e->edits);
    else if (l->decision.kind == KC_DOACROSS)
        clone_function(e, site, l);
    while (source[to - 1] != '}' && source[to - 1] != ';' && source[to])
        to++;
    clang_getExpansionLocation(clang_getRangeEnd(clang_getCursorExtent(l->loop)), &file, &line, NULL, NULL);
    out = open_memstream(&text, &size);
    print_after(e, site, out);
    fprintf(out, "}\n#line %u \"%s\"\n", line, e->unit->path);
    fclose(out);
    kc_replace(&e->edits, to, to, "%s", text);
    free(text);
}

/* --- around the functions --- */

static void print_combiner(const kc_loop *l, int array, int site, int reduction, FILE *out) {
    static const char *const statements[] = {[KC_SUM] = "a = a + b",
                                             [KC_PRODUCT] = "a = a * b",
                                             [KC_LEAST] = "a = b < a ? b : a",
                                             [KC_MOST] = "a = b > a ? b : a",
                                             [KC_FMIN] = "a = b < a || a != a ? b : a",
                                             [KC_FMAX] = "a = b > a || a != a ? b : a"};
    char *type = type_of(l->nest->array[array].variable);
    fprintf(out, "KCC_COMBINE(kcc_combine_%d_%d, %s, %s)\n", site, reduction, type,
            statements[l->decision.array[array].update]);
    free(type);
}

static void print_site(const emission *e, int site, FILE *out) {
    const kc_loop *l = e->site[site];
    const kc_decision *d = &l->decision;
    int count = 0, reductions = 0;
    fprintf(
        out,
        "static kcc_group kcc_group_%d;\nstatic kcc_site kcc_site_%d = {.group = &kcc_group_%d, .name = \"",
        e->group[site], site, e->group[site]);
    const char *slash = strrchr(e->unit->path, '/');
    if (*l->clauses.name)
        fputs(l->clauses.name, out);
    else
        fprintf(out, "%s:%u", slash ? slash + 1 : e->unit->path, kc_line(l->loop));
    fprintf(out, "\", .line = %u, .kind = %s, .backward = %s, .ordered = %s, .number = %d};\n",
            kc_line(l->loop), d->kind == KC_DOACROSS ? "KILTER_DOACROSS" : "KILTER_DOALL",
            d->backward ? "true" : "false", d->kind == KC_OLD ? "true" : "false", e->number[site]);
    for (int a = 0; a < l->nest->arrays; a++)
        count += d->array[a].role == KC_ROWS && !l->nest->array[a].scalar;
    for (int a = 0; a < l->nest->arrays; a++)
        if (d->array[a].role == KC_REDUCED) {
            fprintf(out, "static const int kcc_key_%d_%d[KCC_SITES];\n", site, count++);
            print_combiner(l, a, site, reductions++, out);
        }
}

static void print_groups(const emission *e, FILE *out) {
    for (int g = 0; g < e->sites; g++) {
        int count = 0;
        for (int s = 0; s < e->sites; s++) {
            if (e->group[s] != g)
                continue;
            if (count++ == 0)
                fprintf(out, "static kcc_group kcc_group_%d = {.site = {", g);
            fprintf(out, "%s&kcc_site_%d", count > 1 ? ", " : "", s);
        }
        if (count > 0)
            fprintf(out, "}, .sites = %d, .leader = %d};\n", count, leader_of(e, g));
    }
}

static void print_head(const emission *e, unsigned line, FILE *out) {
    fputs("\n/* --- made by kilter cc --- */\n#include <kilter_cc.h>\n\n", out);
    for (int s = 0; s < e->sites; s++)
        print_site(e, s, out);
    print_groups(e, out);
    fprintf(out, "\n#line %u \"%s\"\n", line, e->unit->path);
}

static enum CXChildVisitResult print_global(CXCursor node, CXCursor parent, CXClientData data) {
    CXType type = clang_getCanonicalType(clang_getCursorType(node));
    bool memory = (kc_is_pointer(type) && type.kind != CXType_Pointer) || type.kind == CXType_Record;
    (void)parent;
    if (kc_kind(node) != CXCursor_VarDecl || !memory || clang_Type_getSizeOf(type) <= 0 ||
        !kc_has_address(node))
        return CXChildVisit_Continue;
    char *name = kc_name(node);
    fprintf(data, "    kcc_own(&%s, sizeof %s);\n", name, name);
    free(name);
    return CXChildVisit_Continue;
}

static void print_main(const emission *e, CXCursor main_function, FILE *out) {
    int count = clang_Cursor_getNumArguments(main_function);
    fprintf(out,
            "\n/* --- made by kilter cc --- */\nint main(int argc, char **argv) {\n    kcc_start(&argc, "
            "&argv, \"%s\");\n",
            e->unit->path);
    clang_visitChildren(clang_getTranslationUnitCursor(e->unit->tu), print_global, out);
    fprintf(out, "    return kcc_main(%s);\n}\n", count == 2 ? "argc, argv" : "");
}

static enum CXChildVisitResult first_function(CXCursor node, CXCursor parent, CXClientData data) {
    CXCursor *first = data;
    (void)parent;
    if (kc_kind(node) != CXCursor_FunctionDecl || !clang_isCursorDefinition(node) || !kc_in_main_file(node))
        return CXChildVisit_Continue;
    *first = node;
    return CXChildVisit_Break;
}

static void write_all(emission *e, CXCursor main_function, FILE *out) {
    CXCursor first = clang_getNullCursor();
    unsigned from, to, at;
    CXFile file;
    char *name = kc_name(main_function);
    clang_visitChildren(clang_getTranslationUnitCursor(e->unit->tu), first_function, &first);
    clang_getExpansionLocation(clang_getCursorLocation(main_function), &file, NULL, NULL, &at);
    int parameters = clang_Cursor_getNumArguments(main_function);
    if (strncmp(e->unit->text + at, "main", 4) != 0 || !kc_extent(first, &from, &to) ||
        (parameters != 0 && parameters != 2)) {
        wrong(e, kc_line(main_function),
              "main() must be written as int main(void) or int main(int argc, char **argv)", "");
    } else {
        unsigned begin, end;
        kc_replace(&e->edits, at, at + 4, "kcc_main");
        /* without a return statement, main() returns 0, but kcc_main() would not */
        if (kc_extent(main_function, &begin, &end))
            kc_replace(&e->edits, end - 1, end - 1, " return 0; ");
        fprintf(out, "/* Made by kilter cc from %s: change that file, not this one. */\n#line 1 \"%s\"\n",
                e->unit->path, e->unit->path);
        kc_print_edited(&e->edits, e->unit->text, 0, from, out);
        print_head(e, kc_line(first), out);
        kc_print_edited(&e->edits, e->unit->text, from, (unsigned)e->unit->bytes, out);
        print_main(e, main_function, out);
    }
    free(name);
}

kilter_status kc_emit(kc_unit *u, FILE *out, kilter_error *error) {
    emission *e = calloc(1, sizeof *e);
    if (!e)
        return kl_fail(error, KILTER_ERR_MEMORY, "%s: memory ran out", u->path);
    e->unit = u;
    e->error = error;
    CXCursor main_function = kc_function_named(u, "main");
    for (int i = 0; i < u->loops; i++)
        if (u->loop[i].marked)
            e->site[e->sites++] = &u->loop[i];
    if (u->reserved_line)
        wrong(e, u->reserved_line, "names that begin with kcc_ are reserved for kilter cc",
              "Use another name");
    if (kc_is_null(main_function))
        wrong(e, 1, "the file has no main()", "main() and all marked loops of a program must be in one file");
    if (e->sites == 0 || e->sites > 32)
        wrong(e, 1, "mark the loops to distribute with #pragma kilter loop, at most 32",
              "kilter cc --explain tells which loops can be distributed");
    for (int i = 0; i < e->sites && e->status == KILTER_OK; i++)
        check_site(e, e->site[i]);
    if (e->status == KILTER_OK)
        find_groups(e);
    for (int i = 0; i < e->sites && e->status == KILTER_OK; i++)
        edit_site(e, i); /* edit the loops before kc_outside(), which may add braces at the same offsets */
    if (e->status == KILTER_OK)
        e->status = kc_outside(u, &e->edits, error);
    if (e->status == KILTER_OK)
        write_all(e, main_function, out);
    kilter_status status = e->status;
    kc_edits_free(&e->edits);
    free(e);
    return status;
}
