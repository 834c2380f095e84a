/* Turn integer expressions of the source into affine expressions of the library isl. */
#include <isl/id.h>
#include <isl/ilp.h>
#include <isl/local_space.h>
#include <isl/space.h>
#include <isl/val.h>
#include <stdlib.h>
#include <string.h>

#include "walk.h"

/* --- symbols and bound variables --- */

bool kc_has(const CXCursor *list, int count, CXCursor one) {
    for (int i = 0; i < count; i++)
        if (clang_equalCursors(list[i], one))
            return true;
    return false;
}

const kc_bound *kc_lookup(const kc_walk *w, CXCursor variable) {
    for (int i = w->bounds; i-- > 0;)
        if (clang_equalCursors(w->bound[i].variable, variable))
            return &w->bound[i];
    return NULL;
}

void kc_bind(kc_walk *w, kc_bound bound) {
    if (w->bounds < KC_BOUND) {
        w->bound[w->bounds++] = bound;
        return;
    }
    kc_wrong(w->nest, bound.variable, "the loop has too many variables");
    isl_pw_aff_free(bound.value);
    kc_place_free(&bound.place);
}

void kc_unbind(kc_walk *w, int count) {
    while (w->bounds > count) {
        kc_bound *b = &w->bound[--w->bounds];
        isl_pw_aff_free(b->value);
        kc_place_free(&b->place);
    }
}

static isl_space *no_dimensions(const kc_walk *w) {
    return isl_space_set_alloc(w->nest->isl, 0, 0);
}

isl_pw_aff *kc_number(kc_walk *w, long long number) {
    isl_local_space *space = isl_local_space_from_space(no_dimensions(w));
    isl_val *value = isl_val_int_from_si(w->nest->isl, (long)number);
    return isl_pw_aff_from_aff(isl_aff_val_on_domain(space, value));
}

isl_pw_aff *kc_of_symbol(kc_walk *w, int symbol) {
    isl_id *id = isl_id_copy(w->nest->symbol[symbol].id);
    isl_space *space = isl_space_add_param_id(no_dimensions(w), isl_id_copy(id));
    return isl_pw_aff_from_aff(isl_aff_param_on_domain_space_id(space, id));
}

static isl_val *power_of_two(isl_ctx *isl, long long bits) {
    return isl_val_2exp(isl_val_int_from_si(isl, (long)bits));
}

/* Return the least or the greatest value of an integer type. */
static isl_pw_aff *limit(kc_walk *w, CXType type, bool greatest) {
    isl_ctx *isl = w->nest->isl;
    long long bits = 8 * clang_Type_getSizeOf(type);
    bool is_unsigned = kc_is_unsigned(type);
    isl_val *value = power_of_two(isl, is_unsigned ? bits : bits - 1);
    if (clang_getCanonicalType(type).kind == CXType_Bool)
        value = isl_val_set_si(value, 2);
    if (!greatest)
        value = is_unsigned ? isl_val_set_si(value, 0) : isl_val_neg(value);
    else
        value = isl_val_sub_ui(value, 1);
    return isl_pw_aff_from_aff(isl_aff_val_on_domain(isl_local_space_from_space(no_dimensions(w)), value));
}

/* Add the known condition that the symbol's value is within the limits of its type. */
static void know_limits(kc_walk *w, int symbol, CXType type) {
    isl_set *low = isl_pw_aff_ge_set(kc_of_symbol(w, symbol), limit(w, type, false));
    isl_set *high = isl_pw_aff_le_set(kc_of_symbol(w, symbol), limit(w, type, true));
    w->nest->context = isl_set_intersect(w->nest->context, isl_set_intersect(low, high));
}

static int add_symbol(kc_walk *w, kc_symbol symbol, const char *text) {
    kc_nest *n = w->nest;
    if (n->symbols == KC_SYMBOLS) {
        kc_wrong(n, symbol.variable, "the loop has too many variables");
        return -1;
    }
    n->symbol[n->symbols] = symbol;
    n->symbol[n->symbols].id = isl_id_alloc(n->isl, text, &n->symbol[n->symbols]);
    return n->symbols++;
}

int kc_symbol_of(kc_walk *w, CXCursor variable, int loop) {
    kc_nest *n = w->nest;
    for (int i = 0; i < n->symbols && !loop; i++)
        if (!n->symbol[i].is_index && n->symbol[i].array < 0 &&
            clang_equalCursors(n->symbol[i].variable, variable))
            return i;
    char *name = kc_name(variable);
    int symbol = add_symbol(
        w, (kc_symbol){.variable = variable, .loops = loop, .is_index = loop > 0, .array = -1}, name);
    free(name);
    if (symbol >= 0 && !loop)
        know_limits(w, symbol, clang_getCursorType(variable));
    return symbol;
}

int kc_symbol_of_member(kc_walk *w, CXCursor variable, int array, const char *text, CXType type) {
    for (int i = 0; i < w->nest->symbols; i++)
        if (w->nest->symbol[i].array == array && strcmp(kc_text_of(w->nest, i), text) == 0)
            return i;
    int symbol = add_symbol(w, (kc_symbol){.variable = variable, .array = array}, text);
    if (symbol >= 0 && kc_is_integer(type))
        know_limits(w, symbol, type);
    return symbol;
}

bool kc_is_own(const kc_walk *w, CXCursor variable) {
    CXCursor parent = clang_getCursorSemanticParent(variable);
    if (kc_kind(parent) == CXCursor_TranslationUnit ||
        clang_Cursor_getStorageClass(variable) == CX_SC_Static ||
        clang_Cursor_getStorageClass(variable) == CX_SC_Extern)
        return false;
    return !clang_equalCursors(parent, w->nest->function) || kc_is_within(variable, w->loop);
}

/* --- limits of types --- */

void kc_add_check(kc_walk *w, isl_pw_aff *value, CXType type) {
    if (!value)
        return;
    if (w->checks == KC_CHECKS || w->ignore) {
        if (!w->ignore)
            kc_wrong(w->nest, w->loop, "an expression is too long");
        isl_pw_aff_free(value);
        return;
    }
    w->check[w->checks++] = (kc_check){value, type};
}

bool kc_settle(kc_walk *w, isl_set *where) {
    bool good = true;
    where = isl_set_intersect(where, isl_set_copy(w->nest->context));
    for (int i = w->settled; i < w->checks; i++) {
        kc_check *c = &w->check[i];
        isl_set *low = isl_pw_aff_lt_set(isl_pw_aff_copy(c->value), limit(w, c->type, false));
        isl_set *high = isl_pw_aff_gt_set(c->value, limit(w, c->type, true));
        isl_set *bad = isl_set_intersect(isl_set_union(low, high), isl_set_copy(where));
        good = isl_set_is_empty(bad) == isl_bool_true && good;
        isl_set_free(bad);
    }
    w->checks = w->settled;
    isl_set_free(where);
    return good;
}

/* --- expressions --- */

void kc_value_free(kc_value value) {
    isl_pw_aff_free(value.aff);
    isl_pw_aff_free(value.rows);
}

static kc_value unknown(void) {
    return (kc_value){.stride = -1};
}

static kc_value known(isl_pw_aff *aff) {
    kc_value v = unknown();
    v.aff = aff;
    return v;
}

bool kc_fixed(isl_pw_aff *aff, long long *value) {
    if (!aff || isl_pw_aff_is_cst(aff) != isl_bool_true)
        return false;
    isl_set *range = isl_map_range(isl_map_from_pw_aff(isl_pw_aff_copy(aff)));
    range = isl_set_project_out(range, isl_dim_param, 0, (unsigned)isl_set_dim(range, isl_dim_param));
    isl_val *least = isl_set_dim_min_val(isl_set_copy(range), 0), *most = isl_set_dim_max_val(range, 0);
    bool fixed = isl_val_is_int(least) == isl_bool_true && isl_val_eq(least, most) == isl_bool_true &&
                 isl_val_cmp_si(least, 1L << 60) < 0 && isl_val_cmp_si(least, -(1L << 60)) > 0;
    if (fixed)
        *value = isl_val_get_num_si(least);
    isl_val_free(least);
    isl_val_free(most);
    return fixed;
}

static kc_value of_variable(kc_walk *w, CXCursor node) {
    CXCursor variable = clang_getCursorReferenced(node);
    CXType type = clang_getCursorType(variable);
    const kc_bound *b = kc_lookup(w, variable);
    if (b)
        return known(b->value && !b->is_place ? isl_pw_aff_copy(b->value) : NULL);
    bool is_variable = kc_kind(variable) == CXCursor_VarDecl || kc_kind(variable) == CXCursor_ParmDecl;
    if (!is_variable || !kc_is_integer(type) || clang_isVolatileQualifiedType(type) ||
        kc_is_own(w, variable) || kc_has(w->changed, w->changes, variable) ||
        kc_has(w->index, w->indices, variable))
        return unknown();
    long long number;
    if (clang_isConstQualifiedType(type) &&
        kc_constant(clang_Cursor_getVarDeclInitializer(variable), &number))
        return known(kc_number(w, number));
    int symbol = kc_symbol_of(w, variable, 0);
    return symbol < 0 ? unknown() : known(kc_of_symbol(w, symbol));
}

static kc_value of_member(kc_walk *w, CXCursor node) {
    int symbol = kc_member(w, node);
    if (symbol < 0)
        return unknown();
    w->nest->symbol[symbol].used = true;
    return known(kc_of_symbol(w, symbol));
}

/* Return the symbol that always has this value, or −1 if there is none. Indices of loops are not
 * considered. */
static int symbol_with(kc_walk *w, const isl_pw_aff *value) {
    for (int i = 0; value && i < w->nest->symbols; i++) {
        isl_pw_aff *symbol = kc_of_symbol(w, i);
        bool is =
            !w->nest->symbol[i].is_index && isl_pw_aff_is_equal(symbol, (isl_pw_aff *)value) == isl_bool_true;
        isl_pw_aff_free(symbol);
        if (is)
            return i;
    }
    return -1;
}

/* Return a product as rows × stride, if one factor is a symbol (the stride) and the other factor is affine
 * (the rows). */
static kc_value flat_product(kc_walk *w, CXCursor left, CXCursor right) {
    for (int i = 0; i < 2; i++) {
        kc_value other = kc_eval(w, i ? right : left), plain = kc_eval(w, i ? left : right);
        int stride = plain.rows ? -1 : symbol_with(w, plain.aff);
        kc_value_free(plain);
        if (stride >= 0 && other.aff && !other.rows)
            return (kc_value){kc_number(w, 0), other.aff, stride};
        kc_value_free(other);
    }
    return unknown();
}

static kc_value product(kc_walk *w, CXCursor left, CXCursor right) {
    kc_value a = kc_eval(w, left), b = kc_eval(w, right);
    long long number;
    bool affine =
        a.aff && b.aff && !a.rows && !b.rows && (kc_fixed(a.aff, &number) || kc_fixed(b.aff, &number));
    if (affine)
        return known(isl_pw_aff_mul(a.aff, b.aff));
    kc_value_free(a);
    kc_value_free(b);
    return flat_product(w, left, right);
}

static kc_value sum(kc_value a, kc_value b, bool minus) {
    if (!a.aff || !b.aff || (a.rows && b.rows) || (minus && b.rows)) {
        kc_value_free(a);
        kc_value_free(b);
        return unknown();
    }
    kc_value s = {.rows = a.rows ? a.rows : b.rows, .stride = a.rows ? a.stride : b.stride};
    s.aff = minus ? isl_pw_aff_sub(a.aff, b.aff) : isl_pw_aff_add(a.aff, b.aff);
    return s;
}

/* Return a / b, or the remainder a % b if `rest` is set. Division in C rounds towards zero, as isl's tdiv
 * does. */
static kc_value quotient(kc_value a, kc_value b, bool rest) {
    long long number;
    if (a.rows || b.rows || !a.aff || !kc_fixed(b.aff, &number) || number <= 0) {
        kc_value_free(a);
        kc_value_free(b);
        return unknown();
    }
    return known(rest ? isl_pw_aff_tdiv_r(a.aff, b.aff) : isl_pw_aff_tdiv_q(a.aff, b.aff));
}

static kc_value of_binary(kc_walk *w, CXCursor node) {
    CXCursor left = kc_child(node, 0), right = kc_child(node, 1);
    enum CXBinaryOperatorKind op = clang_getCursorBinaryOperatorKind(node);
    kc_value v = unknown();
    if (op == CXBinaryOperator_Add || op == CXBinaryOperator_Sub)
        v = sum(kc_eval(w, left), kc_eval(w, right), op == CXBinaryOperator_Sub);
    else if (op == CXBinaryOperator_Mul)
        v = product(w, left, right);
    else if (op == CXBinaryOperator_Div || op == CXBinaryOperator_Rem)
        v = quotient(kc_eval(w, left), kc_eval(w, right), op == CXBinaryOperator_Rem);
    if (v.aff && !v.rows && kc_is_unsigned(clang_getCursorType(node)))
        kc_add_check(w, isl_pw_aff_copy(v.aff), clang_getCursorType(node));
    return v;
}

static kc_value of_unary(kc_walk *w, CXCursor node) {
    enum CXUnaryOperatorKind op = clang_getCursorUnaryOperatorKind(node);
    if (op != CXUnaryOperator_Minus && op != CXUnaryOperator_Plus)
        return unknown();
    kc_value v = kc_eval(w, kc_child(node, 0));
    if (v.rows) {
        kc_value_free(v);
        return unknown();
    }
    if (op == CXUnaryOperator_Minus)
        v.aff = isl_pw_aff_neg(v.aff);
    kc_add_check(w, isl_pw_aff_copy(v.aff), clang_getCursorType(node));
    return v;
}

/* Evaluate the expression `condition ? a : b`. */
static kc_value of_choice(kc_walk *w, CXCursor node) {
    bool exact;
    isl_set *when = kc_condition(w, kc_child(node, 0), &exact);
    kc_value a = kc_eval(w, kc_child(node, 1)), b = kc_eval(w, kc_child(node, 2));
    if (exact && a.aff && b.aff && !a.rows && !b.rows) {
        isl_set *other = isl_set_complement(isl_set_copy(when));
        return known(isl_pw_aff_union_add(isl_pw_aff_intersect_domain(a.aff, when),
                                          isl_pw_aff_intersect_domain(b.aff, other)));
    }
    isl_set_free(when);
    kc_value_free(a);
    kc_value_free(b);
    return unknown();
}

/* Evaluate a conversion between integer types. It keeps the value if the new type can represent the value. */
static kc_value of_conversion(kc_walk *w, CXCursor node, CXCursor inner) {
    CXType to = clang_getCursorType(node), from = clang_getCursorType(inner);
    if (!kc_is_integer(to) || !kc_is_integer(from))
        return unknown();
    kc_value v = kc_eval(w, inner);
    if (v.aff && !v.rows && clang_getCanonicalType(to).kind != clang_getCanonicalType(from).kind)
        kc_add_check(w, isl_pw_aff_copy(v.aff), to);
    return v;
}

kc_value kc_eval(kc_walk *w, CXCursor node) {
    CXCursor inner;
    long long number;
    if (!kc_is_integer(clang_getCursorType(node)) && kc_kind(node) != CXCursor_ParenExpr)
        return unknown();
    if (kc_is_wrapper(node, &inner))
        return of_conversion(w, node, inner);
    if (kc_constant(node, &number))
        return known(kc_number(w, number));
    switch ((int)kc_kind(node)) {
    case CXCursor_DeclRefExpr:
        return of_variable(w, node);
    case CXCursor_MemberRefExpr:
        return of_member(w, node);
    case CXCursor_BinaryOperator:
        return of_binary(w, node);
    case CXCursor_UnaryOperator:
        return of_unary(w, node);
    case CXCursor_ConditionalOperator:
        return of_choice(w, node);
    default:
        return unknown();
    }
}

isl_pw_aff *kc_affine(kc_walk *w, CXCursor node) {
    kc_value v = kc_eval(w, node);
    bool good = kc_settle(w, isl_set_copy(w->domain)) && !v.rows;
    if (good)
        return v.aff;
    kc_value_free(v);
    return NULL;
}

/* --- conditions --- */

static isl_set *anything(const kc_walk *w, bool *exact) {
    *exact = false;
    return isl_set_universe(no_dimensions(w));
}

static isl_set *comparison(kc_walk *w, CXCursor node, bool *exact) {
    kc_value a = kc_eval(w, kc_child(node, 0)), b = kc_eval(w, kc_child(node, 1));
    if (!a.aff || !b.aff || a.rows || b.rows) {
        kc_value_free(a);
        kc_value_free(b);
        return anything(w, exact);
    }
    *exact = true;
    switch ((int)clang_getCursorBinaryOperatorKind(node)) {
    case CXBinaryOperator_LT:
        return isl_pw_aff_lt_set(a.aff, b.aff);
    case CXBinaryOperator_LE:
        return isl_pw_aff_le_set(a.aff, b.aff);
    case CXBinaryOperator_GT:
        return isl_pw_aff_gt_set(a.aff, b.aff);
    case CXBinaryOperator_GE:
        return isl_pw_aff_ge_set(a.aff, b.aff);
    case CXBinaryOperator_EQ:
        return isl_pw_aff_eq_set(a.aff, b.aff);
    default:
        return isl_pw_aff_ne_set(a.aff, b.aff);
    }
}

/* Return the iterations in which a && b, or a || b, may hold. Set *exact only if it is known exactly where a
 * and b hold. */
static isl_set *junction(kc_walk *w, CXCursor node, bool both, bool *exact) {
    bool exact_a, exact_b;
    isl_set *a = kc_condition(w, kc_child(node, 0), &exact_a);
    isl_set *b = kc_condition(w, kc_child(node, 1), &exact_b);
    *exact = exact_a && exact_b;
    return both ? isl_set_intersect(a, b) : isl_set_union(a, b);
}

static isl_set *not_zero(kc_walk *w, CXCursor node, bool *exact) {
    kc_value v = kc_eval(w, node);
    if (!v.aff || v.rows) {
        kc_value_free(v);
        return anything(w, exact);
    }
    *exact = true;
    return isl_pw_aff_ne_set(v.aff, kc_number(w, 0));
}

isl_set *kc_condition(kc_walk *w, CXCursor node, bool *exact) {
    CXCursor plain = kc_plain(node);
    enum CXBinaryOperatorKind op = CXBinaryOperator_Invalid;
    if (kc_kind(plain) == CXCursor_BinaryOperator)
        op = clang_getCursorBinaryOperatorKind(plain);
    if (op == CXBinaryOperator_LAnd || op == CXBinaryOperator_LOr)
        return junction(w, plain, op == CXBinaryOperator_LAnd, exact);
    if (op >= CXBinaryOperator_LT && op <= CXBinaryOperator_NE)
        return comparison(w, plain, exact);
    if (kc_kind(plain) == CXCursor_UnaryOperator &&
        clang_getCursorUnaryOperatorKind(plain) == CXUnaryOperator_LNot) {
        isl_set *set = kc_condition(w, kc_child(plain, 0), exact);
        if (*exact)
            return isl_set_complement(set);
        isl_set_free(set);
        return anything(w, exact);
    }
    return not_zero(w, node, exact);
}
