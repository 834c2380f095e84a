/* Read headers of loops with the form for (index = lower; index < bound; index += step). */
#include <isl/id.h>
#include <isl/val.h>
#include <stdlib.h>

#include "walk.h"

static bool read_start(CXCursor start, kc_header *h) {
    if (kc_kind(start) == CXCursor_DeclStmt && kc_child_count(start) == 1) {
        h->index = kc_child(start, 0);
        h->declared = true;
        h->lower = kc_kind(h->index) == CXCursor_VarDecl ? clang_Cursor_getVarDeclInitializer(h->index)
                                                         : clang_getNullCursor();
    } else if (kc_kind(start) == CXCursor_BinaryOperator && kc_is_assignment(start)) {
        h->index = kc_declaration(kc_child(start, 0));
        h->lower = kc_child(start, 1);
    } else {
        return false;
    }
    return !kc_is_null(h->index) && !kc_is_null(h->lower) && kc_is_integer(clang_getCursorType(h->index)) &&
           !clang_isVolatileQualifiedType(clang_getCursorType(h->index));
}

static bool is_index(const kc_header *h, CXCursor node) {
    CXCursor variable = kc_declaration(node);
    return !kc_is_null(variable) && clang_equalCursors(variable, h->index);
}

static bool read_by(CXCursor node, bool negative, kc_header *h) {
    long long by;
    if (!kc_constant(kc_plain(node), &by) || by < 1 || by > 1 << 20)
        return false;
    h->step = negative ? -by : by;
    return true;
}

/* Read the step of a loop: i++, i += 2 or i = i + 2, or the same downwards. */
static bool read_step(CXCursor step, kc_header *h) {
    step = kc_plain(step);
    if (!kc_is_assignment(step) || !is_index(h, kc_child(step, 0)))
        return false;
    if (kc_kind(step) == CXCursor_UnaryOperator) {
        enum CXUnaryOperatorKind op = clang_getCursorUnaryOperatorKind(step);
        h->step = op == CXUnaryOperator_PostInc || op == CXUnaryOperator_PreInc ? 1 : -1;
        return true;
    }
    enum CXBinaryOperatorKind op = clang_getCursorBinaryOperatorKind(step);
    if (op == CXBinaryOperator_AddAssign || op == CXBinaryOperator_SubAssign)
        return read_by(kc_child(step, 1), op == CXBinaryOperator_SubAssign, h);
    CXCursor value = kc_plain(kc_child(step, 1));
    if (op != CXBinaryOperator_Assign || kc_kind(value) != CXCursor_BinaryOperator ||
        !is_index(h, kc_child(value, 0)))
        return false;
    op = clang_getCursorBinaryOperatorKind(value);
    return (op == CXBinaryOperator_Add || op == CXBinaryOperator_Sub) &&
           read_by(kc_child(value, 1), op == CXBinaryOperator_Sub, h);
}

bool kc_header_read(kc_walk *w, CXCursor loop, kc_header *h) {
    kc_children parts = kc_children_of(loop);
    *h = (kc_header){.loop = loop};
    bool good = parts.count == 4 && read_start(parts.at[0], h) && read_step(parts.at[2], h);
    if (good) {
        h->test = parts.at[1];
        h->body = parts.at[3];
        good = !kc_has(w->changed, w->changes, h->index);
    }
    free(parts.at);
    return good;
}

void kc_header_free(kc_header *h) {
    isl_pw_aff_free(h->from);
    isl_pw_aff_free(h->to);
    h->from = h->to = NULL;
}

static void bind_index(kc_walk *w, const kc_header *h, int symbol, long long shift) {
    isl_pw_aff *value = isl_pw_aff_add(kc_of_symbol(w, symbol), kc_number(w, shift));
    kc_bind(w, (kc_bound){.variable = h->index, .value = value});
}

/* Return the values of the index for which the loop's test may hold after `shift` is added to the index. */
static isl_set *tested(kc_walk *w, kc_header *h, int symbol, long long shift) {
    bool exact;
    bind_index(w, h, symbol, shift);
    isl_set *set = kc_condition(w, h->test, &exact);
    h->unsure = h->unsure || !exact;
    kc_unbind(w, w->bounds - 1);
    isl_pw_aff *index = isl_pw_aff_add(kc_of_symbol(w, symbol), kc_number(w, shift));
    isl_set *after = h->step > 0 ? isl_pw_aff_ge_set(index, isl_pw_aff_copy(h->from))
                                 : isl_pw_aff_le_set(index, isl_pw_aff_copy(h->from));
    return isl_set_intersect(set, after);
}

static isl_set *on_step(kc_walk *w, const kc_header *h, int symbol) {
    isl_pw_aff *way = isl_pw_aff_sub(kc_of_symbol(w, symbol), isl_pw_aff_copy(h->from));
    isl_val *step = isl_val_int_from_si(w->nest->isl, (long)llabs(h->step));
    return isl_pw_aff_eq_set(isl_pw_aff_mod_val(way, step), kc_number(w, 0));
}

/* Read the bound, if the test compares index + shift with a bound that does not depend on the index. */
static void read_bound(kc_walk *w, kc_header *h, int symbol) {
    CXCursor test = kc_plain(h->test);
    if (kc_kind(test) != CXCursor_BinaryOperator)
        return;
    enum CXBinaryOperatorKind op = clang_getCursorBinaryOperatorKind(test);
    bool up = op == CXBinaryOperator_LT || op == CXBinaryOperator_LE;
    bool down = op == CXBinaryOperator_GT || op == CXBinaryOperator_GE;
    if (!(h->step > 0 ? up : down))
        return;
    bind_index(w, h, symbol, 0);
    kc_value left = kc_eval(w, kc_child(test, 0)), right = kc_eval(w, kc_child(test, 1));
    kc_unbind(w, w->bounds - 1);
    w->ignore = true;
    isl_pw_aff *shift = isl_pw_aff_sub(isl_pw_aff_copy(left.aff), kc_of_symbol(w, symbol));
    /* position of the loop's index among the parameters of the bound; −1: the bound does not use the index */
    int at = -1;
    for (int i = 0; right.aff && i < isl_pw_aff_dim(right.aff, isl_dim_param); i++) {
        isl_id *id = isl_pw_aff_get_dim_id(right.aff, isl_dim_param, (unsigned)i);
        at = id == w->nest->symbol[symbol].id ? i : at;
        isl_id_free(id);
    }
    bool fixed =
        at < 0 || isl_pw_aff_involves_dims(right.aff, isl_dim_param, (unsigned)at, 1) == isl_bool_false;
    if (fixed && left.aff && !left.rows && right.aff && !right.rows && kc_fixed(shift, &h->shift)) {
        h->bound = kc_child(test, 1);
        h->inclusive = op == CXBinaryOperator_LE || op == CXBinaryOperator_GE;
        h->to = isl_pw_aff_sub(right.aff, shift);
        right.aff = shift = NULL;
        if (h->inclusive)
            h->to = isl_pw_aff_add(h->to, kc_number(w, h->step > 0 ? 1 : -1));
    }
    isl_pw_aff_free(shift);
    kc_value_free(left);
    kc_value_free(right);
    w->ignore = false;
}

bool kc_header_enter(kc_walk *w, kc_header *h, int symbol) {
    h->from = kc_affine(w, h->lower);
    if (!h->from || symbol < 0)
        return false;
    read_bound(w, h, symbol);
    kc_settle(w, isl_set_copy(w->domain)); /* drop the checks of the bound; tested() adds them again */
    /* this call adds checks for the values that the test computes */
    isl_set *inside = tested(w, h, symbol, 0);
    w->ignore = true;
    isl_set *next = tested(w, h, symbol, -h->step);
    w->ignore = false;
    isl_set *first = isl_pw_aff_eq_set(kc_of_symbol(w, symbol), isl_pw_aff_copy(h->from));
    CXType type = clang_getCursorType(h->index);
    /* C programs must not let a signed int overflow, so a signed index needs no check */
    if (kc_is_unsigned(type) || clang_Type_getSizeOf(type) < 4)
        kc_add_check(w, kc_of_symbol(w, symbol), type);
    isl_set *visited = isl_set_intersect(isl_set_union(first, next), isl_set_copy(w->domain));
    bool good = kc_settle(w, visited);
    if (llabs(h->step) > 1)
        inside = isl_set_intersect(inside, on_step(w, h, symbol));
    if (good)
        w->domain = isl_set_intersect(w->domain, inside);
    else
        isl_set_free(inside);
    return good;
}
