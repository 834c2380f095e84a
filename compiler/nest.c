/* Read a loop: visit its statements in the order of the source, and record what they access. */
#include "nest.h"

#include <isl/id.h>
#include <isl/space.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library.h"
#include "walk.h"

void kc_wrong(kc_nest *nest, CXCursor at, const char *format, ...) {
    if (*nest->wrong)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(nest->wrong, sizeof nest->wrong, format, args);
    va_end(args);
    nest->wrong_line = kc_line(at);
}

const char *kc_text_of(const kc_nest *nest, int symbol) {
    return isl_id_get_name(nest->symbol[symbol].id);
}

/* --- which variables change --- */

typedef struct search {
    CXCursor variable;
    bool found;
} search;

static bool changes(CXCursor node) {
    return kc_is_assignment(node) || (kc_kind(node) == CXCursor_UnaryOperator &&
                                      clang_getCursorUnaryOperatorKind(node) == CXUnaryOperator_AddrOf);
}

static enum CXChildVisitResult look_for_change(CXCursor node, CXCursor parent, CXClientData data) {
    search *s = data;
    (void)parent;
    CXCursor target = changes(node) ? kc_declaration(kc_child(node, 0)) : clang_getNullCursor();
    if (!kc_is_null(target) && clang_equalCursors(target, s->variable))
        s->found = true;
    return s->found ? CXChildVisit_Break : CXChildVisit_Recurse;
}

bool kc_is_stable(CXCursor variable) {
    CXCursor parent = clang_getCursorSemanticParent(variable);
    search s = {.variable = variable};
    clang_visitChildren(parent, look_for_change, &s);
    return !s.found;
}

/* Return the variable whose memory contains an element. Return the null cursor if the element is reached
 * through a pointer. */
static CXCursor root_of(CXCursor node) {
    for (;;) {
        node = kc_plain(node);
        enum CXCursorKind kind = kc_kind(node);
        CXCursor base = kc_child(node, 0);
        if (kind == CXCursor_ArraySubscriptExpr && !kc_is_pointer(clang_getCursorType(base)))
            base = kc_child(node, 1); /* the form i[x], with the array as second child */
        if (kind == CXCursor_DeclRefExpr) {
            CXCursor variable = clang_getCursorReferenced(node);
            return kc_is_array_parameter(variable) ? clang_getNullCursor() : variable;
        }
        bool member = kind == CXCursor_MemberRefExpr && !kc_is_null(base) &&
                      clang_getCanonicalType(clang_getCursorType(base)).kind != CXType_Pointer;
        bool deref =
            kind == CXCursor_UnaryOperator && clang_getCursorUnaryOperatorKind(node) == CXUnaryOperator_Deref;
        CXType type = clang_getCanonicalType(clang_getCursorType(kc_plain(base)));
        bool element = (kind == CXCursor_ArraySubscriptExpr || deref) && kc_is_pointer(type) &&
                       type.kind != CXType_Pointer;
        if (!member && !element)
            return clang_getNullCursor();
        node = base;
    }
}

/* Is this a call of a C library function that does not store its pointer arguments for later use? */
static bool keeps_nothing(CXCursor call) {
    static const char *const after[] = {"gettimeofday", "clock_gettime", "timespec_get", "memset", "memcpy",
                                        "sprintf",      "snprintf",      "sscanf",       "strlen", "strcmp",
                                        "atoi",         "atof",          "fread",        "fwrite", "strcpy"};
    char *name = kc_name(call);
    bool is = kc_kind(call) == CXCursor_CallExpr && kc_is_null(kc_callee(call)) && kc_is_root(name);
    for (size_t i = 0; i < sizeof after / sizeof *after; i++)
        is = is || (kc_kind(call) == CXCursor_CallExpr && kc_is_null(kc_callee(call)) &&
                    strcmp(name, after[i]) == 0);
    free(name);
    return is;
}

static enum CXChildVisitResult look_for_address(CXCursor node, CXCursor parent, CXClientData data) {
    search *s = data;
    enum CXCursorKind kind = kc_kind(node), around = kc_kind(parent);
    CXCursor inner, target = clang_getNullCursor();
    if (kind == CXCursor_UnaryOperator && clang_getCursorUnaryOperatorKind(node) == CXUnaryOperator_AddrOf &&
        !keeps_nothing(parent))
        target = root_of(kc_child(node, 0));
    bool subscript = around == CXCursor_ArraySubscriptExpr ||
                     (around == CXCursor_UnaryOperator &&
                      clang_getCursorUnaryOperatorKind(parent) == CXUnaryOperator_Deref);
    if (kc_is_wrapper(node, &inner) && !subscript && !keeps_nothing(parent) &&
        clang_getCanonicalType(clang_getCursorType(node)).kind == CXType_Pointer) {
        CXType type = clang_getCanonicalType(clang_getCursorType(kc_plain(inner)));
        if (kc_is_pointer(type) && type.kind != CXType_Pointer)
            target = root_of(inner);
    }
    if (!kc_is_null(target) && clang_equalCursors(target, s->variable))
        s->found = true;
    return s->found ? CXChildVisit_Break : CXChildVisit_Recurse;
}

bool kc_has_address(CXCursor variable) {
    search s = {.variable = variable};
    clang_visitChildren(clang_getCursorSemanticParent(variable), look_for_address, &s);
    return s.found;
}

static void add(kc_walk *w, CXCursor *list, int *count, CXCursor variable) {
    if (kc_is_null(variable) || kc_has(list, *count, variable))
        return;
    if (*count == KC_CHANGED)
        kc_wrong(w->nest, variable, "the loop changes too many variables");
    else
        list[(*count)++] = variable;
}

static enum CXChildVisitResult collect(CXCursor node, CXCursor parent, CXClientData data);

static void collect_in_function(kc_walk *w, CXCursor function) {
    if (kc_is_null(function) || kc_has(w->function, w->functions, function))
        return;
    if (w->functions == KC_FUNCTIONS) {
        kc_wrong(w->nest, function, "the loop calls too many functions");
        return;
    }
    w->function[w->functions++] = function;
    clang_visitChildren(function, collect, w);
}

static bool begins_loop(CXCursor node, CXCursor parent) {
    return kc_kind(parent) == CXCursor_ForStmt && kc_kind(node) == CXCursor_BinaryOperator &&
           kc_is_assignment(node) && kc_same(kc_child(parent, 0), node);
}

static bool steps_loop(CXCursor node, CXCursor parent) {
    return kc_kind(parent) == CXCursor_ForStmt && kc_is_assignment(node) && kc_child_count(parent) == 4 &&
           kc_same(kc_child(parent, 2), node);
}

static enum CXChildVisitResult collect(CXCursor node, CXCursor parent, CXClientData data) {
    kc_walk *w = data;
    if (changes(node)) {
        CXCursor target = kc_declaration(kc_child(node, 0));
        bool header = begins_loop(node, parent) || steps_loop(node, parent);
        add(w, header ? w->index : w->changed, header ? &w->indices : &w->changes, target);
    }
    if (kc_kind(node) == CXCursor_CallExpr)
        collect_in_function(w, kc_callee(node));
    return *w->nest->wrong ? CXChildVisit_Break : CXChildVisit_Recurse;
}

static enum CXChildVisitResult register_arrays(CXCursor node, CXCursor parent, CXClientData data) {
    kc_walk *w = data;
    (void)parent;
    CXCursor variable = kc_kind(node) == CXCursor_DeclRefExpr ? clang_getCursorReferenced(node) : node;
    if (kc_kind(node) == CXCursor_DeclRefExpr && kc_is_pointer(clang_getCursorType(variable)) &&
        !kc_is_own(w, variable)) {
        kc_place place = kc_place_of(w, node); /* the call records the limits of the array's dimensions */
        kc_place_free(&place);
    }
    return CXChildVisit_Recurse;
}

/* --- statements --- */

static void statement(kc_walk *w, CXCursor node);

static void enter(kc_walk *w, CXCursor at) {
    if (w->depth < KC_DEPTH)
        w->region[w->depth++] = ++w->regions;
    else
        kc_wrong(w->nest, at, "the loop is nested too deeply");
}

static enum CXChildVisitResult look_for_jump(CXCursor node, CXCursor parent, CXClientData data) {
    enum CXCursorKind kind = kc_kind(node);
    (void)parent;
    *(bool *)data =
        kind == CXCursor_BreakStmt || kind == CXCursor_ContinueStmt || kind == CXCursor_ReturnStmt;
    return *(bool *)data ? CXChildVisit_Break : CXChildVisit_Recurse;
}

static enum CXChildVisitResult look_for_return(CXCursor node, CXCursor parent, CXClientData data) {
    (void)parent;
    *(bool *)data = kc_kind(node) == CXCursor_ReturnStmt;
    return *(bool *)data ? CXChildVisit_Break : CXChildVisit_Recurse;
}

/* May a jump make the program skip parts of a loop? */
static bool has_jump(CXCursor node) {
    bool found = false;
    clang_visitChildren(node, look_for_jump, &found);
    return found;
}

static enum CXChildVisitResult look_for_end(CXCursor node, CXCursor parent, CXClientData data) {
    enum CXCursorKind kind = kc_kind(node);
    bool *found = data, returns = false;
    (void)parent;
    bool inner = kind == CXCursor_ForStmt || kind == CXCursor_WhileStmt || kind == CXCursor_DoStmt ||
                 kind == CXCursor_SwitchStmt;
    if (inner)
        clang_visitChildren(node, look_for_return, &returns);
    *found = returns || kind == CXCursor_BreakStmt || kind == CXCursor_ReturnStmt;
    return *found ? CXChildVisit_Break : inner ? CXChildVisit_Continue : CXChildVisit_Recurse;
}

/* May a jump in this body end the loop before the loop's test fails? */
static bool ends_early(CXCursor body) {
    bool found = false;
    if (look_for_end(body, body, &found) == CXChildVisit_Recurse)
        clang_visitChildren(body, look_for_end, &found);
    return found;
}

static void within(kc_walk *w, CXCursor node, isl_set *where) { /* the function frees `where` */
    isl_set *before = isl_set_copy(w->domain);
    int depth = w->depth;
    enter(w, node);
    w->domain = isl_set_intersect(w->domain, where);
    statement(w, node);
    isl_set_free(w->domain);
    w->domain = before;
    w->depth = depth;
}

static isl_set *everywhere(kc_walk *w) {
    return isl_set_universe(isl_space_set_alloc(w->nest->isl, 0, 0));
}

static void if_statement(kc_walk *w, CXCursor node) {
    kc_children parts = kc_children_of(node);
    bool exact = false;
    if (parts.count < 2) {
        free(parts.at);
        return;
    }
    if (parts.count == 2 && kc_extreme(w, parts.at[0], parts.at[1])) {
        free(parts.at);
        return;
    }
    kc_expression(w, parts.at[0]);
    isl_set *when = kc_condition(w, parts.at[0], &exact);
    bool good = kc_settle(w, isl_set_copy(w->domain));
    isl_set *other = good && exact ? isl_set_complement(isl_set_copy(when)) : everywhere(w);
    if (!good) {
        isl_set_free(when);
        when = everywhere(w);
    }
    bool unsure = !good || !exact;
    w->unsure += unsure;
    within(w, parts.at[1], when);
    if (parts.count > 2)
        within(w, parts.at[2], isl_set_copy(other));
    w->unsure -= unsure;
    isl_set_free(other);
    free(parts.at);
}

static void unknown_loop(kc_walk *w, CXCursor node) {
    kc_children parts = kc_children_of(node);
    w->loops++;
    w->unsure++;
    for (size_t i = 0; i < parts.count; i++) {
        if (kc_kind(node) == CXCursor_ForStmt && i == 0 && parts.count == 4)
            statement(w, parts.at[i]); /* the first part of a `for` header always runs */
        else
            within(w, parts.at[i], everywhere(w));
    }
    w->unsure--;
    w->loops--;
    free(parts.at);
}

static void known_loop(kc_walk *w, kc_header *h, int symbol) {
    bool is_inner = w->nest->has_inner && kc_same(h->loop, w->nest->inner.loop);
    kc_expression(w, h->test);
    kc_bind(w, (kc_bound){.variable = h->index, .value = kc_of_symbol(w, symbol)});
    int bounds = w->bounds, depth = w->depth;
    w->loops++;
    w->in_inner = w->in_inner || is_inner;
    h->ends = ends_early(h->body);
    enter(w, h->loop);
    bool unsure = h->unsure || has_jump(h->body);
    w->unsure += unsure;
    statement(w, h->body);
    w->unsure -= unsure;
    w->depth = depth;
    w->in_inner = w->in_inner && !is_inner;
    w->loops--;
    kc_unbind(w, bounds - 1);
    if (is_inner)
        w->nest->inner = *h;
    else
        kc_header_free(h);
}

static void for_statement(kc_walk *w, CXCursor node) {
    kc_header h;
    isl_set *before = isl_set_copy(w->domain);
    bool is_inner = w->nest->has_inner && kc_same(node, w->nest->inner.loop);
    int bounds = w->bounds, symbol = -1;
    bool known = kc_header_read(w, node, &h);
    if (known && kc_lookup(w, h.index))
        kc_wrong(w->nest, node, "a loop changes the index of the loop around it");
    if (known) {
        kc_expression(w, h.lower);
        if (!h.declared && !kc_is_own(w, h.index))
            kc_touch(w, node, kc_place_of(w, kc_child(kc_child(node, 0), 0)), true, KC_NO_UPDATE);
        symbol = kc_symbol_of(w, h.index, is_inner ? 2 : 3 + w->loops);
        known = kc_header_enter(w, &h, symbol);
    }
    if (known && !*w->nest->wrong) {
        known_loop(w, &h, symbol);
    } else {
        kc_header_free(&h);
        if (is_inner)
            w->nest->has_inner = false;
        unknown_loop(w, node);
    }
    kc_unbind(w, bounds);
    isl_set_free(w->domain);
    w->domain = before;
}

static void declaration(kc_walk *w, CXCursor variable) {
    if (kc_kind(variable) != CXCursor_VarDecl || !kc_is_own(w, variable))
        return;
    kc_children parts = kc_children_of(variable);
    for (size_t i = 0; i < parts.count; i++)
        kc_expression(w, parts.at[i]);
    free(parts.at);
    CXCursor value = clang_Cursor_getVarDeclInitializer(variable);
    if (kc_is_null(value) || kc_has(w->changed, w->changes, variable) ||
        kc_has(w->index, w->indices, variable))
        return;
    CXType type = clang_getCanonicalType(clang_getCursorType(variable));
    kc_bound b = {.variable = variable, .is_place = type.kind == CXType_Pointer};
    if (b.is_place)
        b.place = kc_place_of(w, value);
    else if (kc_is_integer(type))
        b.value = kc_affine(w, value);
    else
        return;
    kc_bind(w, b);
}

static void declarations(kc_walk *w, CXCursor node) {
    kc_children parts = kc_children_of(node);
    for (size_t i = 0; i < parts.count; i++)
        declaration(w, parts.at[i]);
    free(parts.at);
}

static void compound(kc_walk *w, CXCursor node, bool each_may) {
    kc_children parts = kc_children_of(node);
    int bounds = w->bounds, depth = w->depth;
    bool conditional = w->returned;
    for (size_t i = 0; i < parts.count && !*w->nest->wrong; i++) {
        if (each_may)
            within(w, parts.at[i], everywhere(w));
        else
            statement(w, parts.at[i]);
        if (w->returned && !conditional && i + 1 < parts.count) {
            /* if the function returns here, the statements after this one do not run */
            enter(w, parts.at[i]);
            conditional = true;
        }
    }
    w->depth = depth;
    kc_unbind(w, bounds);
    free(parts.at);
}

static void switch_statement(kc_walk *w, CXCursor node) {
    CXCursor body = kc_child(node, 1);
    kc_expression(w, kc_child(node, 0));
    w->loops++;
    w->unsure++;
    if (kc_kind(body) == CXCursor_CompoundStmt)
        compound(w, body, true); /* the switch may jump to any labelled statement */
    else
        kc_wrong(w->nest, node, "the body of a switch has no braces");
    w->unsure--;
    w->loops--;
}

static void leave(kc_walk *w, CXCursor node) {
    kc_children parts = kc_children_of(node);
    for (size_t i = 0; i < parts.count; i++)
        kc_expression(w, parts.at[i]);
    free(parts.at);
    if (kc_kind(node) == CXCursor_ReturnStmt && w->calls == 0)
        kc_wrong(w->nest, node, "return leaves the loop early");
    if (kc_kind(node) == CXCursor_ReturnStmt)
        w->returned = true;
    if (kc_kind(node) == CXCursor_BreakStmt && w->loops == 0)
        kc_wrong(w->nest, node, "break leaves the loop early");
}

static void labelled(kc_walk *w, CXCursor node) {
    kc_children parts = kc_children_of(node);
    if (parts.count > 0)
        within(w, parts.at[parts.count - 1], everywhere(w));
    free(parts.at);
}

static void statement(kc_walk *w, CXCursor node) {
    if (*w->nest->wrong)
        return;
    switch ((int)kc_kind(node)) {
    case CXCursor_CompoundStmt:
        compound(w, node, false);
        return;
    case CXCursor_DeclStmt:
        declarations(w, node);
        return;
    case CXCursor_IfStmt:
        if_statement(w, node);
        return;
    case CXCursor_ForStmt:
        for_statement(w, node);
        return;
    case CXCursor_WhileStmt:
    case CXCursor_DoStmt:
        unknown_loop(w, node);
        return;
    case CXCursor_SwitchStmt:
        switch_statement(w, node);
        return;
    case CXCursor_CaseStmt:
    case CXCursor_DefaultStmt:
        labelled(w, node);
        return;
    case CXCursor_BreakStmt:
    case CXCursor_ReturnStmt:
        leave(w, node);
        return;
    case CXCursor_ContinueStmt:
    case CXCursor_NullStmt:
        return;
    case CXCursor_GotoStmt:
    case CXCursor_LabelStmt:
    case CXCursor_IndirectGotoStmt:
    case CXCursor_GCCAsmStmt:
    case CXCursor_MSAsmStmt:
        kc_wrong(w->nest, node, "the loop contains a jump or assembler code");
        return;
    default:
        kc_expression_statement(w, node);
    }
}

static bool returns_early(CXCursor body) {
    kc_children parts = kc_children_of(body);
    bool early = false;
    for (size_t i = 0; i < parts.count; i++)
        early = early || has_jump(parts.at[i]) ||
                (i + 1 < parts.count && kc_kind(parts.at[i]) == CXCursor_ReturnStmt);
    free(parts.at);
    return early;
}

void kc_body_of_call(kc_walk *w, CXCursor function) {
    kc_children parts = kc_children_of(function);
    int loops = w->loops;
    bool returned = w->returned;
    w->loops = 0;
    w->returned = false;
    bool has_body = parts.count > 0 && kc_kind(parts.at[parts.count - 1]) == CXCursor_CompoundStmt;
    bool unsure = has_body && returns_early(parts.at[parts.count - 1]);
    w->unsure += unsure;
    if (has_body)
        statement(w, parts.at[parts.count - 1]);
    w->unsure -= unsure;
    w->loops = loops;
    w->returned = returned;
    free(parts.at);
}

/* --- the whole loop --- */

/* If the body consists of one loop only, find this inner loop. The inner loop may be in a function that the
 * body calls. */
static void find_inner(kc_nest *n) {
    CXCursor node = n->outer.body;
    for (int steps = 0; steps < 64; steps++) {
        if (kc_kind(node) == CXCursor_ForStmt) {
            n->has_inner = true;
            n->inner.loop = node;
            return;
        }
        CXCursor function = kc_kind(node) == CXCursor_CallExpr ? kc_callee(node) : clang_getNullCursor();
        if (kc_kind(node) == CXCursor_CompoundStmt && kc_child_count(node) == 1) {
            node = kc_child(node, 0);
        } else if (!kc_is_null(function) && n->call_count < KC_DEPTH / 2) {
            n->calls[n->call_count++] = node;
            node = kc_child(function, kc_child_count(function) - 1);
        } else {
            return;
        }
    }
}

/* Add the known condition that an enclosing loop's index is within the limits of this loop's header. */
static void know_header(kc_walk *outer, CXCursor around) {
    kc_nest *n = outer->nest;
    kc_walk *w = calloc(1, sizeof *w);
    kc_header h;
    if (!w)
        abort();
    *w = (kc_walk){.nest = n,
                   .loop = around,
                   .domain = isl_set_universe(isl_space_set_alloc(n->isl, 0, 0)),
                   /* treat members as unknown: the generated program does not check them before this loop */
                   .alone = true};
    clang_visitChildren(kc_child(around, kc_child_count(around) - 1), collect, w);
    bool known = kc_header_read(w, around, &h) && !kc_has(w->index, w->indices, h.index);
    clang_visitChildren(around, collect, w);
    int symbol = known && !*n->wrong ? kc_symbol_of(w, h.index, 0) : -1;
    isl_pw_aff *from = symbol >= 0 ? kc_affine(w, h.lower) : NULL;
    if (from) {
        bool exact;
        kc_bind(w, (kc_bound){.variable = h.index, .value = kc_of_symbol(w, symbol)});
        isl_set *when = kc_condition(w, h.test, &exact);
        isl_pw_aff *index = kc_of_symbol(w, symbol);
        isl_set *after = h.step > 0 ? isl_pw_aff_ge_set(index, from) : isl_pw_aff_le_set(index, from);
        if (kc_settle(w, isl_set_copy(after)))
            n->context = isl_set_intersect(n->context, isl_set_intersect(when, after));
        else {
            isl_set_free(when);
            isl_set_free(after);
        }
    }
    w->ignore = true;
    kc_settle(w, isl_set_copy(n->context));
    kc_unbind(w, 0);
    isl_set_free(w->domain);
    free(w);
}

static enum CXChildVisitResult look_around(CXCursor node, CXCursor parent, CXClientData data) {
    kc_walk *w = data;
    (void)parent;
    if (!kc_is_within(w->loop, node) || kc_same(node, w->loop))
        return CXChildVisit_Continue;
    if (kc_kind(node) == CXCursor_ForStmt)
        know_header(w, node);
    return CXChildVisit_Recurse;
}

static void read_loop(kc_walk *w, CXCursor loop) {
    kc_nest *n = w->nest;
    kc_header *h = &n->outer;
    clang_visitChildren(loop, collect, w);
    for (int i = 0; i < w->functions; i++)
        clang_visitChildren(w->function[i], register_arrays, w);
    clang_visitChildren(loop, register_arrays, w);
    clang_visitChildren(n->function, look_around, w);
    if (*n->wrong)
        return;
    if (kc_header_read(w, loop, h)) {
        kc_note_there(w, h->lower);
        kc_note_there(w, h->test);
    } else {
        kc_wrong(n, loop,
                 "the loop must have the form for (i = …; i < …; i++), and its body must not change i");
        return;
    }
    int symbol = kc_symbol_of(w, h->index, 1);
    if (!kc_header_enter(w, h, symbol) || !h->to) {
        kc_wrong(n, loop,
                 "the limits of the index are not sums of variables that the loop does not change, or "
                 "unsigned numbers may wrap around");
        return;
    }
    kc_expression(w, h->lower);
    kc_bind(w, (kc_bound){.variable = h->index, .value = kc_of_symbol(w, symbol)});
    kc_expression(w, h->test);
    find_inner(n);
    w->unsure = has_jump(h->body);
    statement(w, h->body);
    kc_check_members(w);
}

kc_nest *kc_nest_read(isl_ctx *isl, CXCursor function, CXCursor loop, const char *pure) {
    kc_nest *n = calloc(1, sizeof *n);
    kc_walk *w = calloc(1, sizeof *w);
    if (!n || !w)
        abort();
    n->isl = isl;
    n->function = function;
    n->pure = pure;
    n->context = isl_set_universe(isl_space_set_alloc(isl, 0, 0));
    *w = (kc_walk){.nest = n, .loop = loop, .domain = isl_set_copy(n->context)};
    read_loop(w, loop);
    kc_unbind(w, 0);
    isl_set_free(w->domain);
    w->domain = NULL;
    w->ignore = true;
    kc_settle(w, isl_set_copy(n->context));
    free(w);
    return n;
}

void kc_nest_free(kc_nest *n) {
    for (int i = 0; i < n->accesses; i++)
        isl_map_free(n->access[i].where);
    for (int i = 0; i < n->arrays; i++)
        free(n->array[i].name);
    for (int i = 0; i < n->symbols; i++)
        isl_id_free(n->symbol[i].id);
    kc_header_free(&n->outer);
    kc_header_free(&n->inner);
    isl_set_free(n->context);
    free(n);
}
