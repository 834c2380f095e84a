/* Find dependences between iterations, and decide from them whether and how a loop can be distributed. */
#include "decide.h"

#include <isl/ilp.h>
#include <isl/space.h>
#include <isl/val.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library.h"

enum { HALO_MOST = 64 };

static void refuse(kc_decision *d, unsigned line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void refuse(kc_decision *d, unsigned line, const char *format, ...) {
    if (*d->why)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(d->why, sizeof d->why, format, args);
    va_end(args);
    d->line = line;
    d->kind = KC_REFUSED;
}

static void advise(kc_decision *d, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void advise(kc_decision *d, const char *format, ...) {
    if (*d->advice)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(d->advice, sizeof d->advice, format, args);
    va_end(args);
}

/* --- scalars --- */

static bool is_before(const kc_access *first, const kc_access *other) {
    return first->depth <= other->depth &&
           memcmp(first->region, other->region, (size_t)first->depth * sizeof *first->region) == 0;
}

/* Does each iteration write the scalar before it reads it? */
static bool is_private(const kc_nest *n, int array) {
    const kc_access *first = NULL;
    for (int i = 0; i < n->accesses; i++) {
        const kc_access *a = &n->access[i];
        if (a->array != array)
            continue;
        if (!first)
            first = a;
        if (!first->write || !is_before(first, a))
            return false;
    }
    return first != NULL;
}

/* If all accesses to the scalar are updates of one kind, return this kind. Otherwise return KC_NO_UPDATE. */
static kc_update only_update(const kc_nest *n, int array) {
    kc_update update = KC_NO_UPDATE;
    for (int i = 0; i < n->accesses; i++) {
        const kc_access *a = &n->access[i];
        if (a->array != array)
            continue;
        if (!a->update || (update && update != a->update))
            return KC_NO_UPDATE;
        update = a->update;
    }
    return update;
}

static unsigned line_of_write(const kc_nest *n, int array) {
    for (int i = 0; i < n->accesses; i++)
        if (n->access[i].array == array && n->access[i].write)
            return n->access[i].line;
    return 0;
}

static bool is_number(const kc_nest *n, int array) {
    CXType type = clang_getCursorType(n->array[array].variable);
    return kc_is_integer(type) || kc_is_floating(type);
}

static void decide_scalar(kc_nest *n, int array, const kc_clauses *clauses, kc_decision *d) {
    kc_decided *s = &d->array[array];
    const kc_array *a = &n->array[array];
    CXType type = clang_getCursorType(a->variable);
    bool number = is_number(n, array);
    if (!s->written)
        return;
    kc_update update = only_update(n, array);
    if (kc_has_word(clauses->exact, a->name) && !kc_is_integer(type)) {
        s->role = KC_EXACT;
        s->update = KC_SUM;
        if (update != KC_SUM || clang_getCanonicalType(type).kind == CXType_LongDouble)
            refuse(d, line_of_write(n, array),
                   "the exact sum of %s needs a float or double that iterations only add to", a->name);
    } else if (number && update) {
        s->role = KC_REDUCED;
        s->update = update;
        s->needs_clause =
            kc_is_floating(type) && update <= KC_PRODUCT && !kc_has_word(clauses->reductions, a->name);
    } else if (number && is_private(n, array)) {
        s->role = KC_PRIVATE;
    } else {
        refuse(d, line_of_write(n, array), "%s carries a value from one iteration to the next", a->name);
        advise(d, "If each iteration needs a variable of its own, declare it within the loop.");
    }
}

/* --- maps --- */

/* Return all reads or all writes of an array as a map from iterations to elements. An iteration is [index],
 * or [index, index of the inner loop] if `inner` is set. */
static isl_map *accesses(const kc_nest *n, int array, bool write, bool inner) {
    isl_map *all = NULL;
    for (int i = 0; i < n->accesses; i++) {
        const kc_access *a = &n->access[i];
        if (a->array != array || a->write != write)
            continue;
        isl_map *one = isl_map_copy(a->where);
        int dims = n->array[array].dims - (int)isl_map_dim(one, isl_dim_out);
        one = isl_map_add_dims(one, isl_dim_out, (unsigned)(dims > 0 ? dims : 0));
        if (a->in_inner && !inner)
            one = isl_map_project_out(one, isl_dim_in, 1, 1);
        else if (!a->in_inner && inner)
            one = isl_map_add_dims(one, isl_dim_in, 1);
        all = all ? isl_map_union(all, one) : one;
    }
    return all;
}

/* Find pairs of iterations that touch the same element. The earlier iteration touches the element by an
 * access of the map `from`, the later iteration by an access of the map `to`. Return the distances between
 * the iterations of such pairs, or NULL if there are no pairs. */
static isl_set *distances(const kc_nest *n, isl_map *from, isl_map *to, bool *failed) {
    if (!from || !to)
        return NULL;
    isl_map *pairs = isl_map_apply_range(isl_map_copy(from), isl_map_reverse(isl_map_copy(to)));
    pairs = isl_map_intersect_params(pairs, isl_set_params(isl_set_copy(n->context)));
    isl_set *d = isl_map_deltas(pairs);
    d = isl_set_project_out(d, isl_dim_param, 0, (unsigned)isl_set_dim(d, isl_dim_param));
    if (n->outer.step > 0)
        d = isl_set_lower_bound_si(d, isl_dim_set, 0, 1);
    else
        d = isl_set_upper_bound_si(d, isl_dim_set, 0, -1);
    isl_bool empty = isl_set_is_empty(d);
    *failed = *failed || empty == isl_bool_error;
    if (empty != isl_bool_true)
        return d;
    isl_set_free(d);
    return NULL;
}

static bool bound(const isl_set *set, unsigned dim, bool most, long long *value) {
    isl_val *v = most ? isl_set_dim_max_val(isl_set_copy((isl_set *)set), (int)dim)
                      : isl_set_dim_min_val(isl_set_copy((isl_set *)set), (int)dim);
    bool is = isl_val_is_int(v) == isl_bool_true && isl_val_cmp_si(v, 1L << 60) < 0 &&
              isl_val_cmp_si(v, -(1L << 60)) > 0;
    if (is)
        *value = isl_val_get_num_si(v);
    isl_val_free(v);
    return is;
}

/* --- dependences of one array --- */

typedef struct kc_depends {
    bool flow, anti, output, failed;
    bool far; /* an iteration needs values of an iteration other than the previous one */
    /* a block of the inner loop needs elements of later blocks, or changes elements that later blocks need */
    bool skew;
    /* if skew is set: greatest distance from an element to an element of such a later block; −1: no limit */
    long long lean;
    long long least, most; /* least and greatest distance of a flow dependence; most = −1: no limit */
} kc_depends;

static void look_at_blocks(const kc_nest *n, const isl_set *d, kc_depends *found) {
    long long value = 0;
    bool falls = n->inner.step < 0, limited = bound(d, 1, falls, &value);
    long long lean = falls ? value : -value;
    if (limited && lean <= 0)
        return;
    found->lean = !limited || (found->skew && found->lean < 0) ? -1 : lean > found->lean ? lean : found->lean;
    found->skew = true;
}

static void look_at_flow(const kc_nest *n, const isl_set *d, kc_depends *found) {
    long long sign = n->outer.step > 0 ? 1 : -1, a, b;
    bool low = bound(d, 0, sign < 0, &a), high = bound(d, 0, sign > 0, &b);
    found->least = low ? sign * a : -1;
    found->most = high ? sign * b : -1;
    if (found->most != 1)
        found->far = true;
}

static kc_depends depends(const kc_nest *n, int array) {
    kc_depends found = {.least = 0};
    bool inner = n->has_inner;
    isl_map *writes = accesses(n, array, true, inner), *reads = accesses(n, array, false, inner);
    isl_set *flow = distances(n, writes, reads, &found.failed),
            *anti = distances(n, reads, writes, &found.failed);
    isl_set *output = distances(n, writes, writes, &found.failed);
    found.flow = flow != NULL;
    found.anti = anti != NULL;
    found.output = output != NULL;
    if (flow)
        look_at_flow(n, flow, &found);
    isl_set *all[] = {flow, anti, output};
    for (int i = 0; i < 3; i++) {
        if (all[i] && inner)
            look_at_blocks(n, all[i], &found);
        else if (all[i])
            found.skew = true;
        isl_set_free(all[i]);
    }
    isl_map_free(writes);
    isl_map_free(reads);
    return found;
}

/* --- rows --- */

/* Find the range of (subscript `dim` minus a loop's index), over all reads or all writes of an array. Return
 * false if the range has no limit. */
static bool offsets(const kc_nest *n, int array, bool write, unsigned dim, bool inner, long long range[2]) {
    isl_map *map = accesses(n, array, write, inner);
    if (!map) {
        range[0] = 1;
        range[1] = 0;
        return true;
    }
    map = isl_map_intersect_params(map, isl_set_params(isl_set_copy(n->context)));
    unsigned dims = (unsigned)isl_map_dim(map, isl_dim_out);
    map = isl_map_project_out(map, isl_dim_out, dim + 1, dims - dim - 1);
    map = isl_map_project_out(map, isl_dim_out, 0, dim);
    if (inner)
        map = isl_map_project_out(map, isl_dim_in, 0, 1);
    isl_set *d = isl_map_deltas(map);
    d = isl_set_project_out(d, isl_dim_param, 0, (unsigned)isl_set_dim(d, isl_dim_param));
    bool limited = isl_set_is_empty(d) == isl_bool_true;
    if (limited) { /* without any access, return an empty range */
        range[0] = 1;
        range[1] = 0;
    } else {
        limited = bound(d, 0, false, &range[0]) && bound(d, 0, true, &range[1]);
    }
    isl_set_free(d);
    return limited;
}

static bool is_empty_range(const long long range[2]) {
    return range[0] > range[1];
}

/* If flat memory has rows of a constant length, split its subscript into row and column. */
static void split_rows(kc_nest *n, int array) {
    kc_array *a = &n->array[array];
    if (a->dims != 1 || a->width < 2)
        return;
    char text[160];
    snprintf(text, sizeof text, "{ [s] -> [r, c] : s = %lldr + c and 0 <= c < %lld }", a->width, a->width);
    for (int i = 0; i < n->accesses; i++) {
        kc_access *x = &n->access[i];
        if (x->array == array && isl_map_dim(x->where, isl_dim_out) == 1)
            x->where = isl_map_apply_range(x->where, isl_map_read_from_str(n->isl, text));
    }
    a->dims = 2;
}

/* May the loop and its inner loop be interchanged? */
static bool may_interchange(const kc_nest *n) {
    bool may = n->has_inner && !n->inner.ends;
    for (int i = 0; i < n->arrays && may; i++)
        if (!n->array[i].scalar && line_of_write(n, i) != 0) {
            kc_depends f = depends(n, i);
            may = !f.failed && !f.skew;
        }
    return may;
}

static void advise_rows(const kc_nest *n, int array, kc_decision *d) {
    long long range[2];
    const char *name = n->array[array].name;
    if (n->has_inner && offsets(n, array, true, 0, true, range) && range[0] == range[1] && may_interchange(n))
        advise(d, "Interchange the loops: the first subscript of %s is the index of the loop inside.", name);
    else
        advise(d, "Store %s transposed, so that its row goes with the iteration.", name);
}

static void refuse_write(kc_nest *n, int array, kc_decision *d) {
    const kc_array *a = &n->array[array];
    long long range[2];
    for (unsigned dim = 1; dim < (unsigned)a->dims; dim++)
        if (offsets(n, array, true, dim, false, range) && range[0] == range[1]) {
            refuse(d, line_of_write(n, array),
                   "the iterations write columns of %s (subscript %u), and only rows can move", a->name,
                   dim + 1);
            advise_rows(n, array, d);
            return;
        }
    refuse(d, line_of_write(n, array),
           "%s is written with a first subscript that is not the index plus a constant", a->name);
    if (a->dims > 0 && n->has_inner && offsets(n, array, true, 0, true, range) && range[0] == range[1])
        advise_rows(n, array, d);
    advise(d, "Only arrays whose row goes with the iteration can be distributed.");
}

/* Find the number `shift` for which each iteration writes row (index + shift) of every array that the loop
 * changes. */
static void find_shift(kc_nest *n, kc_decision *d) {
    bool known = false;
    long long range[2];
    for (int i = 0; i < n->arrays && !*d->why; i++) {
        if (n->array[i].scalar || !d->array[i].written)
            continue;
        if (n->array[i].dims == 0 || !offsets(n, i, true, 0, false, range) || range[0] < range[1])
            refuse_write(n, i, d);
        else if (known && !is_empty_range(range) && range[0] != d->shift)
            refuse(d, line_of_write(n, i),
                   "an iteration writes different rows of different arrays, such as %s", n->array[i].name);
        else if (!is_empty_range(range)) {
            d->shift = range[0];
            known = true;
        }
        d->array[i].role = KC_ROWS;
    }
}

static void decide_reads(kc_nest *n, int array, kc_decision *d) {
    kc_decided *a = &d->array[array];
    long long range[2];
    bool near = n->array[array].dims > 0 && !kc_is_read_by_members(n, array) &&
                offsets(n, array, false, 0, false, range);
    if (near && is_empty_range(range))
        range[0] = range[1] = d->shift;
    near = near && range[0] >= d->shift - HALO_MOST && range[1] <= d->shift + HALO_MOST;
    if (near) {
        a->role = KC_ROWS;
        a->before = range[0] < d->shift ? d->shift - range[0] : 0;
        a->after = range[1] > d->shift ? range[1] - d->shift : 0;
    } else if (a->written) {
        refuse(d, line_of_write(n, array), "%s is written by rows, but an iteration may read any of its rows",
               n->array[array].name);
        advise(d, "Copy the old values to another array first, and read those.");
    } else {
        a->role = KC_COPIED;
    }
}

/* --- verdicts --- */

/* Advise the user how to skew the inner loop, so that each block needs only earlier blocks. */
static void advise_skewing(const kc_nest *n, int array, const kc_depends *f, kc_decision *d) {
    char *outer = kc_name(n->outer.index), *inner = kc_name(n->inner.index), times[24] = "";
    if (f->lean > 1)
        snprintf(times, sizeof times, "%lld * ", f->lean);
    if (f->lean > 0)
        advise(d,
               "Skew the loops: let the loop inside run over k = %s + %s%s, and store element %s of row %s "
               "of %s "
               "in column k.",
               inner, times, outer, inner, outer, n->array[array].name);
    free(outer);
    free(inner);
}

/* Is each written element accessed at only one index of the inner loop? */
static bool is_apart_inside(const kc_nest *n, int array) {
    isl_map *writes = accesses(n, array, true, true), *all = accesses(n, array, false, true);
    long long least, most;
    all = all ? isl_map_union(all, isl_map_copy(writes)) : isl_map_copy(writes);
    isl_map *pairs = isl_map_apply_range(writes, isl_map_reverse(all));
    isl_set *d = isl_map_deltas(isl_map_intersect_params(pairs, isl_set_params(isl_set_copy(n->context))));
    d = isl_set_project_out(d, isl_dim_param, 0, (unsigned)isl_set_dim(d, isl_dim_param));
    bool is = bound(d, 1, false, &least) && bound(d, 1, true, &most) && least == 0 && most == 0;
    isl_set_free(d);
    return is;
}

/* If the iterations of the inner loop do not depend on each other, advise the user how to distribute the
 * inner loop. */
static void advise_columns(const kc_nest *n, kc_decision *d) {
    bool apart = n->has_inner && !n->inner.ends;
    for (int i = 0; i < n->arrays && apart; i++)
        apart = n->array[i].scalar || line_of_write(n, i) == 0 || is_apart_inside(n, i);
    if (apart)
        advise(
            d,
            "The iterations of the loop inside do not depend on each other. Interchange the loops, and store "
            "the written arrays transposed.");
}

static void describe(const kc_nest *n, int array, const kc_depends *f, kc_decision *d) {
    const char *name = n->array[array].name;
    unsigned line = line_of_write(n, array);
    if (f->failed)
        refuse(d, line, "%s: it is too complicated to find out which iterations touch the same elements",
               name);
    else if (f->output && !f->flow)
        refuse(d, line, "several iterations write the same elements of %s", name);
    else if (f->flow && f->far && f->most > 0 && f->least == f->most)
        refuse(d, line, "an iteration needs values of %s from %lld iterations before", name, f->most);
    else if (f->flow && f->far)
        refuse(d, line, "an iteration needs values of %s from iterations far before", name);
    else if (f->flow && !n->has_inner)
        refuse(d, line, "an iteration needs values of %s from the one before, and its body is not one loop",
               name);
    else if (f->output)
        refuse(d, line, "several iterations write and read the same elements of %s", name);
    else {
        refuse(d, line, "a block of the loop inside would need elements of %s that later blocks compute",
               name);
        advise_skewing(n, array, f, d);
    }
    if (f->far)
        advise_columns(n, d);
}

/* Decide how a pipeline stores an array that it only reads. A block can read the previous row up to the
 * block's position, and the next row from this position on. If the loop reads other elements of neighbouring
 * rows, all ranks get copies of the array. */
static void pipeline_reads(const kc_nest *n, int array, kc_decision *d) {
    kc_decided *a = &d->array[array];
    long long range[2];
    bool near = n->array[array].dims > 1 && offsets(n, array, false, 1, true, range);
    bool falls = n->inner.step < 0;
    bool before = falls ? a->after > 0 : a->before > 0, after = falls ? a->before > 0 : a->after > 0;
    if (near && (!before || (falls ? range[0] >= 0 : range[1] <= 0)) &&
        (!after || (falls ? range[1] <= 0 : range[0] >= 0)))
        return;
    a->role = KC_COPIED;
    a->before = a->after = 0;
}

static void decide_pipeline(kc_nest *n, kc_decision *d) {
    long long range[2] = {0, 0};
    unsigned line = kc_line(n->outer.loop);
    if (n->outer.step != n->inner.step || (n->outer.step != 1 && n->outer.step != -1) || !n->inner.to)
        refuse(d, line, "a pipeline needs two loops that both count up by 1, or both down by 1");
    else if (n->inner.ends)
        refuse(d, kc_line(n->inner.loop),
               "a pipeline needs a loop inside that no break or return ends early");
    bool known = false;
    for (int i = 0; i < n->arrays && !*d->why; i++) {
        const kc_decided *a = &d->array[i];
        if (a->role == KC_REDUCED || a->role == KC_EXACT || a->role == KC_PRIVATE)
            refuse(d, line, "a pipeline cannot change the variable %s", n->array[i].name);
        if (a->role != KC_ROWS)
            continue;
        if (!a->written) {
            if (a->before > 1 || a->after > 1)
                d->array[i].role = KC_COPIED;
            else if (a->before || a->after)
                pipeline_reads(n, i, d);
            continue;
        }
        if (a->before > 1 || a->after > 1)
            refuse(d, line, "a pipeline may read only the rows next to its own, and %s is read further away",
                   n->array[i].name);
        if (n->array[i].dims < 2 || !offsets(n, i, true, 1, true, range) || range[0] < range[1] ||
            (known && range[0] != d->inner_shift))
            refuse(d, line_of_write(n, i),
                   "the second subscript of %s is not the index of the loop inside plus a constant",
                   n->array[i].name);
        d->inner_shift = range[0];
        d->pipelined = i;
        known = true;
    }
}

/* Choose the kind of loop. A pipeline is possible only if each iteration needs only values of the previous
 * iteration. */
static void decide_dependences(kc_nest *n, kc_decision *d) {
    bool flow = false, anti = false;
    kc_depends found[KC_ARRAYS];
    for (int i = 0; i < n->arrays; i++) {
        found[i] = (kc_depends){.flow = false};
        if (!n->array[i].scalar && d->array[i].written)
            found[i] = depends(n, i);
        flow = flow || found[i].flow;
        anti = anti || found[i].anti;
    }
    for (int i = 0; i < n->arrays; i++) {
        const kc_depends *f = &found[i];
        if (f->failed || f->output || (f->flow && (f->far || !n->has_inner)) || (flow && f->skew))
            describe(n, i, f, d);
    }
    if (*d->why)
        return;
    d->kind = flow ? KC_DOACROSS : anti ? KC_OLD : KC_DOALL;
    d->backward = (flow || anti) && n->outer.step < 0;
    if (flow)
        decide_pipeline(n, d);
}

/* Refuse the loop if it uses flat memory both with a row and without one. For example, x[i * n + j] has a
 * row, and x[k] has none. Refuse the loop also if a pointer in the loop may point to a variable of the loop.
 */
static void decide_aliases(const kc_nest *n, kc_decision *d) {
    bool written = false, used = false;
    for (int i = 0; i < n->accesses; i++) {
        const kc_access *a = &n->access[i];
        const kc_array *array = &n->array[a->array];
        used = used || array->pointer;
        written = written || (a->write && array->pointer);
        if (array->stride >= 0 && isl_map_dim(a->where, isl_dim_out) != 2)
            refuse(d, a->line, "%s is used both with a row, as in x[i * n + j], and without one, as in x[k]",
                   array->name);
    }
    CXCursor index = n->outer.index;
    if (used && kc_has_address(index)) {
        char *name = kc_name(index);
        refuse(d, kc_line(n->outer.loop), "the address of %s is taken, so a pointer may lead to it", name);
        free(name);
    }
    for (int i = 0; i < n->arrays && used; i++)
        if (n->array[i].scalar && (written || line_of_write(n, i)) && is_number(n, i) &&
            kc_has_address(n->array[i].variable))
            refuse(d, kc_line(n->outer.loop), "the address of %s is taken, so a pointer may lead to it",
                   n->array[i].name);
}

/* Refuse the loop if a function that it calls uses a distributed array by the array's name. The function
 * would access the program's memory, but the rows are stored elsewhere. */
static void decide_names(const kc_nest *n, kc_decision *d) {
    for (int i = 0; i < n->accesses; i++) {
        const kc_access *a = &n->access[i];
        kc_role role = d->array[a->array].role;
        if (a->by_own_name && (role == KC_ROWS || role == KC_REDUCED || role == KC_EXACT)) {
            refuse(d, a->line, "a called function uses %s by its name", n->array[a->array].name);
            advise(d, "Pass the array to the function as an argument.");
        }
    }
}

kc_decision kc_decide(kc_nest *n, const kc_clauses *clauses) {
    kc_decision d = {.kind = KC_REFUSED};
    if (*n->wrong) {
        refuse(&d, n->wrong_line, "%s", n->wrong);
        return d;
    }
    for (int i = 0; i < n->arrays; i++) {
        d.array[i].written = line_of_write(n, i) != 0;
        if (!n->array[i].scalar)
            split_rows(n, i);
        else
            decide_scalar(n, i, clauses, &d);
    }
    decide_aliases(n, &d);
    find_shift(n, &d);
    for (int i = 0; i < n->arrays && !*d.why; i++)
        if (!n->array[i].scalar)
            decide_reads(n, i, &d);
    decide_names(n, &d);
    if (!*d.why && clauses->independent)
        d.kind = KC_DOALL;
    else if (!*d.why)
        decide_dependences(n, &d);
    return d;
}
