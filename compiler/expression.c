/* Record the reads and writes of expressions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library.h"
#include "walk.h"

static bool is_pure(const kc_walk *w, CXCursor call) {
    char *name = kc_name(call);
    bool pure = kc_kind(clang_getCursorReferenced(call)) == CXCursor_FunctionDecl &&
                (kc_is_pure(name) || kc_has_word(w->nest->pure, name));
    free(name);
    return pure;
}

static void enter(kc_walk *w) { /* enter code that may run never, once or several times */
    if (w->depth < KC_DEPTH)
        w->region[w->depth] = ++w->regions;
    else
        kc_wrong(w->nest, w->loop, "the loop is nested too deeply");
    w->depth++;
}

/* --- updates --- */

static bool same_scalar(CXCursor a, CXCursor b) {
    CXCursor one = kc_declaration(a), other = kc_declaration(b);
    return !kc_is_null(one) && clang_equalCursors(one, other);
}

static kc_update update_of_operator(enum CXBinaryOperatorKind op) {
    switch ((int)op) {
    case CXBinaryOperator_Add:
    case CXBinaryOperator_Sub:
    case CXBinaryOperator_AddAssign:
    case CXBinaryOperator_SubAssign:
        return KC_SUM;
    case CXBinaryOperator_Mul:
    case CXBinaryOperator_MulAssign:
        return KC_PRODUCT;
    default:
        return KC_NO_UPDATE;
    }
}

/* Return the kind of update if the assignment is s = s + e, s = e + s, s = fmax(s, e) or the like, and set
 * *operand to e. */
static kc_update update_by_value(CXCursor target, CXCursor value, CXCursor *operand) {
    value = kc_plain(value);
    if (kc_kind(value) == CXCursor_BinaryOperator) {
        enum CXBinaryOperatorKind op = clang_getCursorBinaryOperatorKind(value);
        CXCursor left = kc_child(value, 0), right = kc_child(value, 1);
        bool first = same_scalar(target, left),
             second = same_scalar(target, right) && op != CXBinaryOperator_Sub;
        *operand = first ? right : left;
        return first || second ? update_of_operator(op) : KC_NO_UPDATE;
    }
    if (kc_kind(value) != CXCursor_CallExpr || clang_Cursor_getNumArguments(value) != 2)
        return KC_NO_UPDATE;
    CXCursor left = clang_Cursor_getArgument(value, 0), right = clang_Cursor_getArgument(value, 1);
    bool first = same_scalar(target, left);
    if (!first && !same_scalar(target, right))
        return KC_NO_UPDATE;
    *operand = first ? right : left;
    if (kc_is_named(value, "fmax") || kc_is_named(value, "fmaxf"))
        return KC_FMAX;
    return kc_is_named(value, "fmin") || kc_is_named(value, "fminf") ? KC_FMIN : KC_NO_UPDATE;
}

/* --- changes --- */

/* Record the reads in the subscripts of an element. */
static void subscripts(kc_walk *w, CXCursor base) {
    for (;;) {
        base = kc_plain(base);
        enum CXCursorKind kind = kc_kind(base);
        if (kind == CXCursor_ArraySubscriptExpr)
            kc_expression(w, kc_child(base, 1));
        else if (kind != CXCursor_MemberRefExpr && kind != CXCursor_UnaryOperator)
            break;
        base = kc_child(base, 0);
        if (kc_is_null(base))
            return;
    }
    if (kc_kind(base) != CXCursor_DeclRefExpr)
        kc_expression(w, base);
}

static void change(kc_walk *w, CXCursor target, bool reads, kc_update update) {
    CXCursor plain = kc_plain(target);
    enum CXCursorKind kind = kc_kind(plain);
    if (kind == CXCursor_ArraySubscriptExpr || kind == CXCursor_UnaryOperator ||
        kind == CXCursor_MemberRefExpr) {
        subscripts(w, plain);
    } else if (kind != CXCursor_DeclRefExpr) {
        kc_wrong(w->nest, target, "cannot tell which variable this changes");
        return;
    }
    bool own_pointer = kind == CXCursor_DeclRefExpr && kc_is_own(w, kc_declaration(plain));
    if (own_pointer)
        return; /* each iteration has its own copy of this variable */
    if (kind == CXCursor_DeclRefExpr &&
        clang_getCanonicalType(clang_getCursorType(plain)).kind == CXType_Pointer) {
        kc_wrong(w->nest, target, "a pointer from outside of the loop changes");
        return;
    }
    if (clang_getCanonicalType(clang_getCursorType(plain)).kind == CXType_Pointer) {
        kc_wrong(w->nest, target, "a pointer is stored in memory");
        return;
    }
    if (reads)
        kc_touch(w, plain, kc_place_of(w, plain), false, update);
    kc_touch(w, plain, kc_place_of(w, plain), true, update);
}

/* May the operand be combined with the target? A floating-point operand may not be combined with an integer
 * target, because each step would cut off the fraction of the sum. */
static bool may_combine(CXCursor target, CXCursor operand) {
    CXType to = clang_getCanonicalType(clang_getCursorType(target)), from = clang_getCursorType(operand);
    if (kc_is_floating(to))
        return kc_is_floating(from) || kc_is_integer(from);
    return kc_is_integer(to) && kc_is_integer(from) && to.kind != CXType_Bool;
}

/* Record an assignment. If the program uses the assignment's value (`used`), do not record the assignment as
 * an update. */
static void assignment(kc_walk *w, CXCursor node, bool used) {
    CXCursor target = kc_child(node, 0), value = kc_child(node, 1), operand;
    if (kc_kind(node) == CXCursor_UnaryOperator) {
        change(w, target, true, used || !may_combine(target, target) ? KC_NO_UPDATE : KC_SUM);
        return;
    }
    enum CXBinaryOperatorKind op = clang_getCursorBinaryOperatorKind(node);
    if (kc_kind(node) == CXCursor_CompoundAssignOperator) {
        kc_expression(w, value);
        change(w, target, true, used || !may_combine(target, value) ? KC_NO_UPDATE : update_of_operator(op));
        return;
    }
    kc_update update = used ? KC_NO_UPDATE : update_by_value(target, value, &operand);
    if (update && (!may_combine(target, operand) || (kc_is_integer(clang_getCursorType(target)) &&
                                                     !kc_is_integer(clang_getCursorType(kc_plain(value))))))
        update = KC_NO_UPDATE;
    kc_expression(w, update ? operand : value);
    change(w, target, update != KC_NO_UPDATE, update);
}

static bool same_tree(CXCursor a, CXCursor b) {
    long long x, y;
    a = kc_plain(a);
    b = kc_plain(b);
    kc_children one = kc_children_of(a), other = kc_children_of(b);
    bool same = kc_kind(a) == kc_kind(b) && one.count == other.count;
    if (same && kc_kind(a) == CXCursor_DeclRefExpr)
        same = clang_equalCursors(clang_getCursorReferenced(a), clang_getCursorReferenced(b));
    else if (same && kc_kind(a) == CXCursor_BinaryOperator)
        same = clang_getCursorBinaryOperatorKind(a) == clang_getCursorBinaryOperatorKind(b);
    else if (same && one.count == 0)
        same = kc_constant(a, &x) && kc_constant(b, &y) && x == y;
    else if (same)
        same = kc_kind(a) == CXCursor_ArraySubscriptExpr;
    for (size_t i = 0; same && i < one.count; i++)
        same = same_tree(one.at[i], other.at[i]);
    free(one.at);
    free(other.at);
    return same;
}

static bool keeps_values(CXType to, CXType from) {
    to = clang_getCanonicalType(to);
    from = clang_getCanonicalType(from);
    if (kc_is_floating(to) && kc_is_floating(from))
        return true;
    return kc_is_integer(to) && kc_is_integer(from) &&
           (to.kind == from.kind || (!kc_is_unsigned(to) && !kc_is_unsigned(from) &&
                                     clang_Type_getSizeOf(from) <= clang_Type_getSizeOf(to)));
}

/* Do all conversions from the value's type to the target's type keep every value? */
static bool is_comparable(CXCursor target, CXCursor value) {
    CXCursor inner;
    CXType to = clang_getCursorType(target);
    for (; kc_is_wrapper(value, &inner); value = inner)
        if (!keeps_values(clang_getCursorType(value), clang_getCursorType(inner)))
            return false;
    return keeps_values(to, clang_getCursorType(value));
}

bool kc_extreme(kc_walk *w, CXCursor test, CXCursor body) {
    test = kc_plain(test);
    while (kc_kind(body) == CXCursor_CompoundStmt && kc_child_count(body) == 1)
        body = kc_child(body, 0);
    if (kc_kind(test) != CXCursor_BinaryOperator || kc_kind(body) != CXCursor_BinaryOperator ||
        !kc_is_assignment(body))
        return false;
    CXCursor target = kc_child(body, 0), value = kc_child(body, 1), left = kc_child(test, 0),
             right = kc_child(test, 1);
    enum CXBinaryOperatorKind op = clang_getCursorBinaryOperatorKind(test);
    bool greater = op == CXBinaryOperator_GT, less = op == CXBinaryOperator_LT;
    bool swapped = same_scalar(target, left);
    CXCursor scalar = kc_declaration(target);
    if (!(greater || less) || kc_is_null(scalar) || kc_is_own(w, scalar) || kc_lookup(w, scalar) ||
        kc_is_pointer(clang_getCursorType(scalar)) || (!swapped && !same_scalar(target, right)) ||
        !same_tree(value, swapped ? right : left) || !is_comparable(target, value) ||
        !is_comparable(target, swapped ? right : left))
        return false;
    kc_expression(w, value);
    change(w, target, true, greater != swapped ? KC_MOST : KC_LEAST);
    return true;
}

/* --- calls --- */

/* Does a call convert the value when it passes the value to this parameter? A function without a prototype
 * converts its arguments itself. */
static bool is_converted(CXCursor parameter, CXCursor value) {
    CXType to = clang_getCanonicalType(clang_getCursorType(parameter));
    CXType from = clang_getCanonicalType(clang_getCursorType(value));
    return !kc_is_pointer(to) && to.kind != from.kind;
}

static void bind_parameters(kc_walk *w, CXCursor call, CXCursor function) {
    kc_bound bound[KC_DEPTH];
    int count = clang_Cursor_getNumArguments(function), given = clang_Cursor_getNumArguments(call);
    if (count != given || count > KC_DEPTH) {
        kc_wrong(w->nest, call, "the call has the wrong number of arguments, or too many for kilter cc");
        return;
    }
    for (int i = 0; i < count; i++) {
        CXCursor parameter = clang_Cursor_getArgument(function, (unsigned)i);
        CXCursor value = clang_Cursor_getArgument(call, (unsigned)i);
        bool changed = kc_has(w->changed, w->changes, parameter) || is_converted(parameter, value);
        bound[i] =
            (kc_bound){.variable = parameter, .is_place = kc_is_pointer(clang_getCursorType(parameter))};
        bound[i].place = (kc_place){.array = KC_UNKNOWN, .stride = -1};
        if (bound[i].is_place && !changed)
            bound[i].place = kc_place_of(w, value);
        else if (!bound[i].is_place && !changed)
            bound[i].value = kc_affine(w, value);
    }
    for (int i = 0; i < count; i++)
        kc_bind(w, bound[i]);
}

static void call_of_own(kc_walk *w, CXCursor call, CXCursor function) {
    if (w->calls == KC_DEPTH / 2) {
        kc_wrong(w->nest, call,
                 "calls are nested too deeply; a function that calls itself is not understood");
        return;
    }
    int bounds = w->bounds;
    bind_parameters(w, call, function);
    w->calls++;
    if (!*w->nest->wrong)
        kc_body_of_call(w, function);
    w->calls--;
    kc_unbind(w, bounds);
}

static void call_of(kc_walk *w, CXCursor call) {
    int count = clang_Cursor_getNumArguments(call);
    for (int i = 0; i < count; i++) {
        CXCursor value = clang_Cursor_getArgument(call, (unsigned)i);
        kc_expression(w, value);
    }
    if (is_pure(w, call))
        return;
    CXCursor function = kc_callee(call);
    if (!kc_is_null(function)) {
        call_of_own(w, call, function);
        return;
    }
    char *name = kc_name(call);
    kc_wrong(w->nest, call, "%s%s: what it reads and changes is not known", *name ? name : "a call",
             *name ? "()" : "");
    free(name);
}

/* --- expressions --- */

/* Is the expression a pointer or an array? The value of such an expression is an address; using it does not
 * read the memory there. */
static bool is_address(CXCursor node) {
    return kc_is_pointer(clang_getCursorType(node));
}

static void read_element(kc_walk *w, CXCursor node) {
    subscripts(w, node);
    bool address_of = kc_kind(node) == CXCursor_UnaryOperator &&
                      clang_getCursorUnaryOperatorKind(node) == CXUnaryOperator_AddrOf;
    if (!address_of &&
        (!is_address(node) || clang_getCanonicalType(clang_getCursorType(node)).kind == CXType_Pointer)) {
        int before = w->nest->accesses;
        kc_touch(w, node, kc_place_of(w, node), false, KC_NO_UPDATE);
        if (w->nest->accesses > before && kc_kind(node) == CXCursor_MemberRefExpr)
            w->nest->access[before].member = kc_member(w, node);
    }
}

static void read_variable(kc_walk *w, CXCursor node) {
    CXCursor variable = clang_getCursorReferenced(node);
    enum CXCursorKind kind = kc_kind(variable);
    if (clang_isVolatileQualifiedType(clang_getCursorType(variable)))
        kc_wrong(w->nest, node, "a volatile variable is used");
    if (is_address(node) || (kind != CXCursor_VarDecl && kind != CXCursor_ParmDecl) ||
        kc_is_own(w, variable) || kc_lookup(w, variable))
        return;
    kc_touch(w, node, kc_place_of(w, node), false, KC_NO_UPDATE);
}

static void unary(kc_walk *w, CXCursor node) {
    enum CXUnaryOperatorKind op = clang_getCursorUnaryOperatorKind(node);
    if (op == CXUnaryOperator_AddrOf && kc_kind(kc_plain(kc_child(node, 0))) == CXCursor_DeclRefExpr) {
        CXCursor variable = kc_declaration(kc_child(node, 0));
        if (!kc_is_own(w, variable) && !kc_is_pointer(clang_getCursorType(variable)))
            kc_wrong(w->nest, node, "the address of a variable from outside of the loop is taken");
    } else if (op == CXUnaryOperator_AddrOf || op == CXUnaryOperator_Deref)
        read_element(w, node);
    else
        kc_expression(w, kc_child(node, 0));
}

static void children(kc_walk *w, CXCursor node, bool conditional) {
    kc_children parts = kc_children_of(node);
    for (size_t i = 0; i < parts.count; i++) {
        int depth = w->depth;
        bool unsure = conditional && i > 0;
        if (unsure)
            enter(w);
        w->unsure += unsure;
        kc_expression(w, parts.at[i]);
        w->unsure -= unsure;
        w->depth = depth;
    }
    free(parts.at);
}

void kc_expression(kc_walk *w, CXCursor node) {
    node = kc_plain(node);
    if (*w->nest->wrong || kc_is_null(node))
        return;
    if (kc_is_assignment(node)) {
        assignment(w, node, true);
        return;
    }
    switch ((int)kc_kind(node)) {
    case CXCursor_DeclRefExpr:
        read_variable(w, node);
        return;
    case CXCursor_ArraySubscriptExpr:
    case CXCursor_MemberRefExpr:
        read_element(w, node);
        return;
    case CXCursor_UnaryOperator:
        unary(w, node);
        return;
    case CXCursor_CallExpr:
        call_of(w, node);
        return;
    case CXCursor_BinaryOperator:
        children(w, node,
                 clang_getCursorBinaryOperatorKind(node) == CXBinaryOperator_LAnd ||
                     clang_getCursorBinaryOperatorKind(node) == CXBinaryOperator_LOr);
        return;
    case CXCursor_ConditionalOperator:
        children(w, node, true);
        return;
    case CXCursor_InitListExpr:
        children(w, node, false);
        return;
    case CXCursor_IntegerLiteral:
    case CXCursor_FloatingLiteral:
    case CXCursor_CharacterLiteral:
    case CXCursor_StringLiteral:
    case CXCursor_UnaryExpr: /* sizeof */
    case CXCursor_TypeRef:
        return;
    default:
        kc_wrong(w->nest, node, "this expression is not understood");
    }
}

void kc_expression_statement(kc_walk *w, CXCursor node) {
    node = kc_plain(node);
    bool comma = kc_kind(node) == CXCursor_BinaryOperator &&
                 clang_getCursorBinaryOperatorKind(node) == CXBinaryOperator_Comma;
    if (comma) {
        kc_expression_statement(w, kc_child(node, 0));
        kc_expression_statement(w, kc_child(node, 1));
    } else if (kc_is_assignment(node) && !*w->nest->wrong) {
        assignment(w, node, false);
    } else {
        kc_expression(w, node);
    }
}
