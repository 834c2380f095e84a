/* Edit the code outside of marked loops. All ranks run this code, but only rank 0 reads and writes files. A
 * distributed array is divided over the ranks. Before a statement that may touch such an array, the edits
 * insert a call that copies the complete array to all ranks. */
#include "outside.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "library.h"

enum { FUNCTIONS_MOST = 256 };

typedef struct kc_effects {
    bool reads, writes;
} kc_effects;

typedef struct outside {
    const kc_unit *unit;
    kc_edits *edits;
    kilter_error *error;
    kilter_status status;
    CXCursor marked[FUNCTIONS_MOST], seen[FUNCTIONS_MOST], all[FUNCTIONS_MOST];
    int marks, seens, count, lives;
    CXCursor here;  /* the function that is being edited */
    bool in_switch; /* this block may contain case labels of a switch */
} outside;

static void wrong(outside *o, CXCursor at, const char *what, const char *name) {
    if (o->status == KILTER_OK)
        o->status =
            kl_fail(o->error, KILTER_ERR_INPUT, "%s:%u: %s%s", o->unit->path, kc_line(at), name, what);
}

static bool has(const CXCursor *list, int count, CXCursor one) {
    for (int i = 0; i < count; i++)
        if (clang_equalCursors(list[i], one))
            return true;
    return false;
}

/* --- which functions have marked loops --- */

static bool is_marked(const kc_unit *u, CXCursor node) {
    for (int i = 0; i < u->loops; i++)
        if (u->loop[i].marked && kc_same(u->loop[i].loop, node))
            return true;
    return false;
}

typedef struct holds {
    outside *o;
    bool found;
} holds;

static enum CXChildVisitResult look_for_marked(CXCursor node, CXCursor parent, CXClientData data) {
    holds *h = data;
    (void)parent;
    CXCursor function = kc_kind(node) == CXCursor_CallExpr ? kc_callee(node) : clang_getNullCursor();
    if ((kc_kind(node) == CXCursor_ForStmt && is_marked(h->o->unit, node)) ||
        (!kc_is_null(function) && has(h->o->marked, h->o->marks, function)))
        h->found = true;
    return h->found ? CXChildVisit_Break : CXChildVisit_Recurse;
}

static bool is_local(const kc_unit *u, const char *name) {
    return kc_is_local(name) || kc_has_word(u->pure, name);
}

static bool holds_marked(outside *o, CXCursor node) {
    holds h = {o, false};
    if (kc_kind(node) == CXCursor_ForStmt && is_marked(o->unit, node))
        return true;
    CXCursor function = kc_kind(node) == CXCursor_CallExpr ? kc_callee(node) : clang_getNullCursor();
    if (!kc_is_null(function) && has(o->marked, o->marks, function))
        return true;
    clang_visitChildren(node, look_for_marked, &h);
    return h.found;
}

static enum CXChildVisitResult list_functions(CXCursor node, CXCursor parent, CXClientData data) {
    outside *o = data;
    (void)parent;
    if (kc_kind(node) == CXCursor_FunctionDecl && clang_isCursorDefinition(node) && kc_in_main_file(node) &&
        o->count < FUNCTIONS_MOST)
        o->all[o->count++] = node;
    return CXChildVisit_Continue;
}

static void find_marked(outside *o) {
    clang_visitChildren(clang_getTranslationUnitCursor(o->unit->tu), list_functions, o);
    if (o->count == FUNCTIONS_MOST)
        wrong(o, o->all[0], "the file has too many functions", "");
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < o->count; i++)
            if (!has(o->marked, o->marks, o->all[i]) && holds_marked(o, o->all[i])) {
                o->marked[o->marks++] = o->all[i];
                more = true;
            }
    }
}

CXCursor kc_function_named(const kc_unit *u, const char *name) {
    outside o = {.unit = u};
    clang_visitChildren(clang_getTranslationUnitCursor(u->tu), list_functions, &o);
    for (int i = 0; i < o.count; i++)
        if (kc_is_named(o.all[i], name))
            return o.all[i];
    return clang_getNullCursor();
}

/* --- what a statement touches --- */

static bool is_distributed(const kc_unit *u, CXCursor variable) {
    for (int i = 0; i < u->loops; i++)
        for (int a = 0; u->loop[i].marked && a < u->loop[i].nest->arrays; a++)
            if (u->loop[i].decision.array[a].role == KC_ROWS && !u->loop[i].nest->array[a].scalar &&
                clang_equalCursors(u->loop[i].nest->array[a].variable, variable))
                return true;
    return false;
}

static bool has_pointers(const kc_unit *u) {
    for (int i = 0; i < u->loops; i++)
        for (int a = 0; u->loop[i].marked && a < u->loop[i].nest->arrays; a++)
            if (u->loop[i].decision.array[a].role == KC_ROWS && u->loop[i].nest->array[a].pointer)
                return true;
    return false;
}

static bool is_array(CXCursor node) {
    enum CXTypeKind kind = clang_getCanonicalType(clang_getCursorType(node)).kind;
    return kind == CXType_ConstantArray || kind == CXType_VariableArray || kind == CXType_IncompleteArray;
}

/* Is the variable a distributed array, or may a distributed pointer point to it? */
static bool leads_to_rows(const outside *o, CXCursor variable) {
    if (kc_kind(variable) != CXCursor_VarDecl && kc_kind(variable) != CXCursor_ParmDecl)
        return false;
    return is_distributed(o->unit, variable) || (has_pointers(o->unit) && kc_has_address(variable));
}

/* May the element be part of a distributed array? The answer is no for an element of a declared array if the
 * array is not distributed and no pointer points to it. */
static bool may_be_distributed(const outside *o, CXCursor node) {
    for (;;) {
        node = kc_plain(node);
        enum CXCursorKind kind = kc_kind(node);
        CXCursor base = kc_child(node, 0);
        if (kind == CXCursor_DeclRefExpr)
            return kc_is_array_parameter(clang_getCursorReferenced(node)) ||
                   leads_to_rows(o, clang_getCursorReferenced(node));
        if (kind == CXCursor_MemberRefExpr && !kc_is_null(base) &&
            clang_getCanonicalType(clang_getCursorType(base)).kind != CXType_Pointer) {
            node = base;
            continue;
        }
        if ((kind == CXCursor_ArraySubscriptExpr || kind == CXCursor_UnaryOperator) &&
            is_array(kc_plain(base))) {
            node = base;
            continue;
        }
        return true;
    }
}

typedef struct look {
    outside *o;
    kc_effects *effects;
} look;

static enum CXChildVisitResult look_at(CXCursor node, CXCursor parent, CXClientData data);

/* Record what a call of a C library function does: it reads the memory that its arguments point to, and some
 * functions also write this memory. */
static void look_at_arguments(look *l, CXCursor call, const char *name) {
    bool writes = strcmp(name, "sprintf") == 0 || strcmp(name, "snprintf") == 0 ||
                  strcmp(name, "sscanf") == 0 || strcmp(name, "strcpy") == 0 ||
                  strcmp(name, "strncpy") == 0 || strcmp(name, "strcat") == 0 ||
                  strncmp(name, "strto", 5) == 0 || strstr(name, "time") != NULL;
    for (int i = 0; strcmp(name, "free") != 0 && i < clang_Cursor_getNumArguments(call); i++) {
        CXCursor value = kc_plain(clang_Cursor_getArgument(call, (unsigned)i));
        CXType type = clang_getCanonicalType(clang_getCursorType(value));
        CXString spelling = clang_getTypeSpelling(clang_getPointeeType(type));
        const char *pointee = clang_getCString(spelling);
        bool file = pointee && strstr(pointee, "_IO_FILE");
        clang_disposeString(spelling);
        if (!kc_is_pointer(type) || file || kc_kind(value) == CXCursor_StringLiteral)
            continue;
        bool address = kc_kind(value) == CXCursor_UnaryOperator &&
                       clang_getCursorUnaryOperatorKind(value) == CXUnaryOperator_AddrOf;
        CXCursor element = address ? kc_child(value, 0) : value;
        if ((address || type.kind != CXType_Pointer) && !may_be_distributed(l->o, element))
            continue;
        l->effects->reads = true;
        l->effects->writes = l->effects->writes || writes;
    }
}

static void look_at_call(look *l, CXCursor call) {
    CXCursor function = kc_callee(call);
    char *name = kc_name(call);
    if (kc_is_null(function) && !kc_is_memory(name))
        look_at_arguments(l, call, name);
    if (!kc_is_null(function)) {
        if (!has(l->o->seen, l->o->seens, function) && l->o->seens < FUNCTIONS_MOST) {
            l->o->seen[l->o->seens++] = function;
            clang_visitChildren(function, look_at, l);
        }
    } else if (kc_is_memory(name)) {
        l->effects->reads = true;
        l->effects->writes = l->effects->writes || strcmp(name, "fwrite") != 0;
    } else if (!is_local(l->o->unit, name) && !kc_is_root(name) && strcmp(name, "free") != 0 &&
               strcmp(name, "clock_gettime") != 0 && strcmp(name, "gettimeofday") != 0 &&
               strcmp(name, "timespec_get") != 0) {
        wrong(l->o, call, "(): kilter cc does not know what it does; define it in this file",
              *name ? name : "a function");
    }
    free(name);
}

static enum CXChildVisitResult look_at(CXCursor node, CXCursor parent, CXClientData data) {
    look *l = data;
    enum CXCursorKind kind = kc_kind(node);
    (void)parent;
    if (kc_root_of(l->o->unit, node)) {
        *l->effects = (kc_effects){true, true};
        return CXChildVisit_Continue;
    }
    if (kc_is_assignment(node)) {
        CXCursor target = kc_plain(kc_child(node, 0));
        bool whole = clang_getCanonicalType(clang_getCursorType(target)).kind == CXType_Record;
        if ((whole || kc_kind(target) != CXCursor_DeclRefExpr) && may_be_distributed(l->o, target))
            l->effects->writes = true;
    }
    if (kind == CXCursor_CallExpr)
        look_at_call(l, node);
    bool element =
        kind == CXCursor_ArraySubscriptExpr ||
        (kind == CXCursor_UnaryOperator && clang_getCursorUnaryOperatorKind(node) == CXUnaryOperator_Deref) ||
        kind == CXCursor_MemberRefExpr ||
        (kind == CXCursor_DeclRefExpr &&
         clang_getCanonicalType(clang_getCursorType(node)).kind == CXType_Record);
    if (element && may_be_distributed(l->o, node))
        l->effects->reads = true;
    if (kind == CXCursor_UnaryExpr)
        return CXChildVisit_Continue; /* sizeof */
    return CXChildVisit_Recurse;
}

static kc_effects effects_of(outside *o, CXCursor node) {
    kc_effects e = {false, false};
    look l = {o, &e};
    o->seens = 0;
    if (look_at(node, node, &l) == CXChildVisit_Recurse)
        clang_visitChildren(node, look_at, &l);
    return e;
}

/* --- statements --- */

unsigned kc_end_of(const kc_unit *u, CXCursor node) {
    unsigned from, to;
    const char *text = u->text;
    if (!kc_extent(node, &from, &to))
        return 0;
    if (text[to - 1] == '}' || text[to - 1] == ';')
        return to;
    while (text[to] == ' ' || text[to] == '\n' || text[to] == '\t' || text[to] == '\r' || text[to] == ')')
        to++;
    return text[to] == ';' ? to + 1 : 0;
}

static void make_whole_before(outside *o, CXCursor node, bool alone, kc_effects e) {
    unsigned from, to, end = kc_end_of(o->unit, node);
    if (!kc_extent(node, &from, &to) || (!alone && end == 0)) {
        wrong(o, node, "a macro makes a statement that touches a distributed array", "");
        return;
    }
    kc_replace(o->edits, from, from, "%skcc_all(%s); ", alone ? "" : "{ ", e.writes ? "true" : "false");
    if (!alone)
        kc_replace(o->edits, end, end, " }");
}

static void statement(outside *o, CXCursor node, bool alone);

typedef struct jumps {
    unsigned before;
    bool found;
} jumps;

static enum CXChildVisitResult look_for_jump(CXCursor node, CXCursor parent, CXClientData data) {
    jumps *j = data;
    unsigned from, to;
    (void)parent;
    if (kc_kind(node) == CXCursor_GotoStmt && (!kc_extent(node, &from, &to) || from < j->before))
        j->found = true;
    return CXChildVisit_Recurse;
}

/* Insert calls that tell the runtime about declared arrays that may be distributed. When the block of an
 * automatic array ends, the runtime must forget the array's memory. */
static void end_lives(outside *o, CXCursor declarations) {
    kc_children parts = kc_children_of(declarations);
    for (size_t i = 0; i < parts.count && o->status == KILTER_OK; i++) {
        CXCursor variable = parts.at[i], function = clang_getCursorSemanticParent(variable);
        CXType type = clang_getCanonicalType(clang_getCursorType(variable));
        enum CX_StorageClass storage = clang_Cursor_getStorageClass(variable);
        bool memory = kc_kind(variable) == CXCursor_VarDecl && storage != CX_SC_Extern &&
                      (is_array(variable) || type.kind == CXType_Record);
        unsigned end = kc_end_of(o->unit, declarations), from, to;
        if (!memory || !leads_to_rows(o, variable) || (storage == CX_SC_Static && end == 0))
            continue;
        jumps j = {end, end == 0 || o->in_switch || !kc_extent(variable, &from, &to)};
        clang_visitChildren(function, look_for_jump, &j);
        char *name = kc_name(variable);
        if (storage == CX_SC_Static)
            kc_replace(o->edits, end, end, " kcc_own(&%s, sizeof %s);", name, name);
        else if (j.found)
            wrong(o, variable, ": a jump or a macro may skip the declaration of this distributed array",
                  name);
        else
            kc_replace(o->edits, end, end,
                       " kcc_memory kcc_life_%d __attribute__((cleanup(kcc_end_life))) = {&%s, sizeof %s}; "
                       "kcc_own(&%s, sizeof %s);",
                       o->lives++, name, name, name, name);
        free(name);
    }
    free(parts.at);
}

/* Insert calls that tell the runtime about static arrays of a function without marked loops. The function may
 * return pointers to these arrays. */
static enum CXChildVisitResult note_statics(CXCursor node, CXCursor parent, CXClientData data) {
    if (kc_kind(node) != CXCursor_DeclStmt)
        return CXChildVisit_Recurse;
    if (kc_kind(parent) == CXCursor_CompoundStmt &&
        clang_Cursor_getStorageClass(kc_child(node, 0)) == CX_SC_Static)
        end_lives(data, node);
    return CXChildVisit_Continue;
}

static void children(outside *o, CXCursor node, size_t first, bool alone) {
    kc_children parts = kc_children_of(node);
    bool in_switch = o->in_switch;
    for (size_t i = first; i < parts.count && o->status == KILTER_OK; i++) {
        o->in_switch = kc_kind(node) == CXCursor_SwitchStmt ||
                       (in_switch && kc_kind(node) != CXCursor_CompoundStmt) ||
                       (in_switch && kc_kind(parts.at[i]) != CXCursor_CompoundStmt);
        statement(o, parts.at[i], alone);
        if (kc_kind(parts.at[i]) == CXCursor_DeclStmt && kc_kind(node) == CXCursor_CompoundStmt)
            end_lives(o, parts.at[i]);
    }
    o->in_switch = in_switch;
    free(parts.at);
}

/* Refuse the header of a loop around a marked loop if the header reads or writes memory. All ranks compute
 * the header in every iteration, but a rank has only a part of a distributed array. */
static void header(outside *o, CXCursor node, size_t from, size_t to) {
    kc_children parts = kc_children_of(node);
    for (size_t i = from; i < to && i < parts.count; i++) {
        kc_effects e = effects_of(o, parts.at[i]);
        if (e.reads || e.writes || holds_marked(o, parts.at[i]))
            wrong(o, parts.at[i],
                  "the header of a loop around a marked loop reads memory; use a variable instead", "");
    }
    free(parts.at);
}

static void statement(outside *o, CXCursor node, bool alone) {
    enum CXCursorKind kind = kc_kind(node);
    if (o->status != KILTER_OK || kc_root_of(o->unit, node) ||
        (kind == CXCursor_ForStmt && is_marked(o->unit, node)))
        return;
    size_t count = kc_child_count(node);
    if (!holds_marked(o, node)) {
        kc_effects e = effects_of(o, node);
        if (e.reads || e.writes)
            make_whole_before(o, node, alone, e);
        return;
    }
    switch ((int)kind) {
    case CXCursor_CompoundStmt:
        children(o, node, 0, true);
        return;
    case CXCursor_ForStmt:
    case CXCursor_WhileStmt:
        header(o, node, 0, count - 1);
        children(o, node, count - 1, false);
        return;
    case CXCursor_DoStmt:
        header(o, node, 1, count);
        statement(o, kc_child(node, 0), false);
        return;
    case CXCursor_IfStmt:
    case CXCursor_SwitchStmt: {
        kc_effects e = effects_of(o, kc_child(node, 0));
        if (holds_marked(o, kc_child(node, 0)))
            wrong(o, node,
                  "a condition calls a function with a marked loop; call the function before the condition",
                  "");
        else if (e.reads || e.writes)
            make_whole_before(o, node, alone, e);
        children(o, node, 1, false);
        return;
    }
    case CXCursor_CaseStmt:
    case CXCursor_DefaultStmt:
    case CXCursor_LabelStmt:
        children(o, node, count - 1, false);
        return;
    default: /* a call of a function with marked loops: the function itself is edited, not the call */
        return;
    }
}

/* Refuse a statement that calls a function with a marked loop and also touches memory that may be
 * distributed. */
static enum CXChildVisitResult look_for_mix(CXCursor node, CXCursor parent, CXClientData data) {
    outside *o = data;
    (void)parent;
    enum CXCursorKind kind = kc_kind(node);
    if (kind == CXCursor_UnaryExpr)
        return CXChildVisit_Continue; /* sizeof */
    bool element =
        kind == CXCursor_ArraySubscriptExpr ||
        (kind == CXCursor_UnaryOperator && clang_getCursorUnaryOperatorKind(node) == CXUnaryOperator_Deref);
    CXCursor function = kind == CXCursor_CallExpr ? kc_callee(node) : clang_getNullCursor();
    bool touches = (element || kind == CXCursor_MemberRefExpr) && may_be_distributed(o, node);
    if (!kc_is_null(function) && !has(o->marked, o->marks, function)) {
        kc_effects e = effects_of(o, node);
        touches = touches || e.reads || e.writes;
    }
    if (touches)
        wrong(o, node,
              "a statement calls a function with a marked loop and touches memory; use two statements", "");
    return CXChildVisit_Recurse;
}

static enum CXChildVisitResult check_mixes(CXCursor node, CXCursor parent, CXClientData data) {
    outside *o = data;
    enum CXCursorKind kind = kc_kind(node);
    if (kind == CXCursor_ForStmt && is_marked(o->unit, node))
        return CXChildVisit_Continue;
    bool is_statement = kc_kind(parent) == CXCursor_CompoundStmt || kind == CXCursor_DeclStmt;
    bool simple = clang_isExpression(kind) || kind == CXCursor_DeclStmt || kind == CXCursor_ReturnStmt;
    if (is_statement && simple && holds_marked(o, node)) {
        clang_visitChildren(node, look_for_mix, o);
        return CXChildVisit_Continue;
    }
    return CXChildVisit_Recurse;
}

/* --- calls --- */

static bool changes_something(const kc_unit *u, CXCursor function, int depth);

typedef struct change_search {
    const kc_unit *unit;
    bool found;
} change_search;

static enum CXChildVisitResult look_for_change(CXCursor node, CXCursor parent, CXClientData data) {
    change_search *s = data;
    bool *changes = &s->found;
    (void)parent;
    if (kc_is_assignment(node))
        *changes = true;
    if (kc_kind(node) == CXCursor_CallExpr) {
        char *name = kc_name(node);
        CXCursor function = kc_callee(node);
        bool vouched = kc_has_word(s->unit->pure, name);
        if (!kc_is_null(function) && !vouched)
            *changes = *changes || changes_something(s->unit, function, 0);
        else if (!kc_is_pure(name) && !vouched && strcmp(name, "strlen") != 0 &&
                 strcmp(name, "strerror") != 0 && strcmp(name, "__errno_location") != 0)
            *changes = true;
        free(name);
    }
    return CXChildVisit_Recurse;
}

typedef struct effect_search {
    const kc_unit *unit;
    CXCursor function;
    int depth;
    bool found;
} effect_search;

static enum CXChildVisitResult look_for_effect(CXCursor node, CXCursor parent, CXClientData data) {
    effect_search *s = data;
    (void)parent;
    CXCursor target = kc_is_assignment(node) ? kc_declaration(kc_child(node, 0)) : clang_getNullCursor();
    bool own = !kc_is_null(target) &&
               clang_equalCursors(clang_getCursorSemanticParent(target), s->function) &&
               clang_Cursor_getStorageClass(target) != CX_SC_Static;
    s->found = s->found || (kc_is_assignment(node) && !own) || kc_root_of(s->unit, node);
    if (kc_kind(node) == CXCursor_CallExpr) {
        char *name = kc_name(node);
        CXCursor function = kc_callee(node);
        bool pure = kc_is_pure(name) || kc_has_word(s->unit->pure, name) || strcmp(name, "strlen") == 0;
        s->found = s->found ||
                   (!pure && (kc_is_null(function) || changes_something(s->unit, function, s->depth + 1)));
        free(name);
    }
    return s->found ? CXChildVisit_Break : CXChildVisit_Recurse;
}

/* Does the function change more than its own variables? */
static bool changes_something(const kc_unit *u, CXCursor function, int depth) {
    effect_search s = {u, function, depth, depth > 8};
    if (!s.found)
        clang_visitChildren(function, look_for_effect, &s);
    return s.found;
}

static void check_arguments(outside *o, CXCursor call) {
    change_search changes = {o->unit, false};
    for (int i = 0; i < clang_Cursor_getNumArguments(call); i++) {
        CXCursor value = clang_Cursor_getArgument(call, (unsigned)i);
        changes.found = changes.found || holds_marked(o, value);
        look_for_change(value, value, &changes);
        clang_visitChildren(value, look_for_change, &changes);
    }
    if (changes.found)
        wrong(o, call, "only rank 0 makes this call, so its arguments must not change anything", "");
}

static void wrap(outside *o, CXCursor call, const char *macro) {
    unsigned from, to;
    if (!kc_extent(call, &from, &to)) {
        wrong(o, call, "a macro makes a call that only rank 0 may make", "");
        return;
    }
    kc_replace(o->edits, from, from, "%s(", macro);
    kc_replace(o->edits, to, to, ")");
}

static void wrap_filled(outside *o, CXCursor call, unsigned argument) {
    unsigned from, to, begin, end;
    CXCursor value = clang_Cursor_getArgument(call, argument);
    if (!kc_extent(call, &from, &to) || !kc_extent(value, &begin, &end)) {
        wrong(o, call, "a macro makes a call that only rank 0 may make", "");
        return;
    }
    kc_replace(o->edits, from, from, "KCC_FILLED(");
    kc_replace(o->edits, to, to, ", %.*s)", (int)(end - begin), o->unit->text + begin);
}

static void rename_call(outside *o, CXCursor call, const char *name) {
    unsigned from, to;
    char *old = kc_name(call);
    if (kc_extent(call, &from, &to) && strncmp(o->unit->text + from, old, strlen(old)) == 0)
        kc_replace(o->edits, from, from + (unsigned)strlen(old), "%s", name);
    else
        wrong(o, call, "(): a macro makes this call", old);
    free(old);
}

static bool is_statement(CXCursor node, CXCursor parent) {
    switch ((int)kc_kind(parent)) {
    case CXCursor_CompoundStmt:
    case CXCursor_CaseStmt:
    case CXCursor_DefaultStmt:
    case CXCursor_LabelStmt:
        return true;
    case CXCursor_IfStmt:
        return !kc_same(kc_child(parent, 0), node);
    case CXCursor_ForStmt:
    case CXCursor_WhileStmt:
        return kc_same(kc_child(parent, kc_child_count(parent) - 1), node);
    default:
        return false;
    }
}

/* kilter cc does not edit functions in included files. So refuse such a function if one of the calls in it
 * would need an edit. */
static enum CXChildVisitResult look_for_root(CXCursor node, CXCursor parent, CXClientData data) {
    outside *o = data;
    (void)parent;
    if (kc_kind(node) != CXCursor_CallExpr)
        return CXChildVisit_Recurse;
    CXCursor function = kc_callee(node);
    char *name = kc_name(node);
    if (kc_is_null(function) && !is_local(o->unit, name) && (!kc_is_memory(name) || kc_is_root(name)))
        wrong(o, node,
              "() is called by a function of an included file; define that function in the file itself",
              name);
    free(name);
    if (!kc_is_null(function) && !kc_in_main_file(function) && !has(o->seen, o->seens, function) &&
        o->seens < FUNCTIONS_MOST) {
        o->seen[o->seens++] = function;
        clang_visitChildren(function, look_for_root, o);
    }
    return CXChildVisit_Recurse;
}

/* --- errno --- */

typedef struct errno_search {
    outside *o;
    unsigned before;
    bool found;
} errno_search;

static enum CXChildVisitResult look_for_math(CXCursor node, CXCursor parent, CXClientData data) {
    errno_search *s = data;
    (void)parent;
    if (kc_kind(node) != CXCursor_CallExpr)
        return CXChildVisit_Recurse;
    CXCursor function = kc_callee(node);
    char *name = kc_name(node);
    s->found = s->found || (kc_is_null(function) && kc_sets_errno(name));
    free(name);
    if (!kc_is_null(function) && !has(s->o->seen, s->o->seens, function) && s->o->seens < FUNCTIONS_MOST) {
        s->o->seen[s->o->seens++] = function;
        clang_visitChildren(function, look_for_math, s);
    }
    return s->found ? CXChildVisit_Break : CXChildVisit_Recurse;
}

static enum CXChildVisitResult look_for_marked_before(CXCursor node, CXCursor parent, CXClientData data) {
    errno_search *s = data;
    unsigned from, to;
    (void)parent;
    CXCursor function = kc_kind(node) == CXCursor_CallExpr ? kc_callee(node) : clang_getNullCursor();
    bool marked = (kc_kind(node) == CXCursor_ForStmt && is_marked(s->o->unit, node)) ||
                  (!kc_is_null(function) && has(s->o->marked, s->o->marks, function));
    if (marked && (!kc_extent(node, &from, &to) || from < s->before))
        s->found = true;
    return s->found ? CXChildVisit_Break : CXChildVisit_Recurse;
}

/* Refuse the use of errno after a marked loop that may set errno. An iteration sets errno only on the rank
 * that runs this iteration. */
static void check_errno(outside *o, CXCursor call) {
    errno_search math = {.o = o}, before = {.o = o};
    unsigned to;
    o->seens = 0;
    for (int i = 0; i < o->unit->loops; i++)
        if (o->unit->loop[i].marked)
            clang_visitChildren(o->unit->loop[i].loop, look_for_math, &math);
    if (math.found && kc_extent(call, &before.before, &to))
        clang_visitChildren(o->here, look_for_marked_before, &before);
    if (before.found)
        wrong(o, call,
              "errno is used after a marked loop whose mathematical functions may set it; test the arguments "
              "instead",
              "");
}

static enum CXChildVisitResult edit_calls(CXCursor node, CXCursor parent, CXClientData data) {
    outside *o = data;
    if ((kc_kind(node) == CXCursor_ForStmt && is_marked(o->unit, node)) || kc_root_of(o->unit, node))
        return CXChildVisit_Continue;
    if (kc_kind(node) != CXCursor_CallExpr)
        return CXChildVisit_Recurse;
    if (!kc_is_null(kc_callee(node))) {
        o->seens = 0;
        if (!kc_in_main_file(kc_callee(node)))
            look_for_root(node, parent, o);
        return CXChildVisit_Recurse;
    }
    char *name = kc_name(node);
    if (strcmp(name, "fread") == 0 || strcmp(name, "fgets") == 0 || strcmp(name, "free") == 0) {
        rename_call(o, node,
                    *name == 'f' && name[1] == 'g'     ? "kcc_fgets"
                    : name[2] == 'e' && name[3] == 'e' ? "kcc_free"
                                                       : "kcc_fread");
    } else if (kc_is_root(name)) {
        check_arguments(o, node);
        wrap(o, node, is_statement(node, parent) ? "KCC_ROOT" : "KCC_SAME");
    } else if (strcmp(name, "__errno_location") == 0) {
        check_errno(o, node);
    } else if (strcmp(name, "clock_gettime") == 0) {
        wrap_filled(o, node, 1);
    } else if (strcmp(name, "gettimeofday") == 0 || strcmp(name, "timespec_get") == 0) {
        wrap_filled(o, node, 0);
    } else if (!is_local(o->unit, name) && !kc_is_memory(name)) {
        wrong(o, node, "(): kilter cc does not know what it does; define it in this file",
              *name ? name : "a function");
    }
    free(name);
    return CXChildVisit_Recurse;
}

kilter_status kc_outside(const kc_unit *u, kc_edits *edits, kilter_error *error) {
    outside *o = calloc(1, sizeof *o);
    if (!o)
        return kl_fail(error, KILTER_ERR_MEMORY, "%s: memory ran out", u->path);
    *o = (outside){.unit = u, .edits = edits, .error = error};
    find_marked(o);
    for (int i = 0; i < o->marks; i++) {
        CXCursor body = kc_child(o->marked[i], kc_child_count(o->marked[i]) - 1);
        statement(o, body, true);
        clang_visitChildren(body, check_mixes, o);
    }
    for (int i = 0; i < o->count; i++) {
        o->here = o->all[i];
        if (!has(o->marked, o->marks, o->here))
            clang_visitChildren(o->here, note_statics, o);
        clang_visitChildren(o->here, edit_calls, o);
    }
    kilter_status status = o->status;
    if (status == KILTER_OK)
        status = kc_emit_roots(u, edits, error);
    free(o);
    return status;
}

/* --- variables that are used after the loop --- */

typedef struct lives {
    const kc_unit *unit;
    const kc_loop *loop;
    CXCursor variable;
    unsigned line;
} lives;

static enum CXChildVisitResult look_for_use(CXCursor node, CXCursor parent, CXClientData data) {
    lives *l = data;
    (void)parent;
    if (kc_kind(node) == CXCursor_DeclRefExpr &&
        clang_equalCursors(clang_getCursorReferenced(node), l->variable))
        l->line = kc_line(node);
    return CXChildVisit_Recurse;
}

static bool is_index_of(CXCursor loop, CXCursor variable) {
    CXCursor start = kc_child(loop, 0);
    lives uses = {.variable = variable};
    if (kc_is_assignment(start)) /* the assigned value may be computed from the variable itself */
        clang_visitChildren(kc_child(start, 1), look_for_use, &uses);
    if (kc_is_assignment(start) && kc_kind(start) == CXCursor_BinaryOperator &&
        !kc_is_null(kc_declaration(kc_child(start, 1))) &&
        clang_equalCursors(kc_declaration(kc_child(start, 1)), variable))
        return false;
    return uses.line == 0 && kc_kind(start) == CXCursor_BinaryOperator && kc_is_assignment(start) &&
           !kc_is_null(kc_declaration(kc_child(start, 0))) &&
           clang_equalCursors(kc_declaration(kc_child(start, 0)), variable);
}

/* Is the node another marked loop in which the variable is private, that is, set before it is read? */
static bool is_own_there(const lives *l, CXCursor node) {
    for (int i = 0; i < l->unit->loops; i++) {
        const kc_loop *other = &l->unit->loop[i];
        for (int a = 0; other->marked && kc_same(other->loop, node) && a < other->nest->arrays; a++)
            if (clang_equalCursors(other->nest->array[a].variable, l->variable) &&
                other->decision.array[a].role == KC_PRIVATE)
                return true;
    }
    return false;
}

static enum CXChildVisitResult look_for_life(CXCursor node, CXCursor parent, CXClientData data) {
    lives *l = data;
    (void)parent;
    if (kc_same(node, l->loop->loop))
        return CXChildVisit_Continue;
    if (kc_kind(node) == CXCursor_ForStmt && (is_index_of(node, l->variable) || is_own_there(l, node)))
        return CXChildVisit_Continue;
    if (kc_kind(node) == CXCursor_BinaryOperator && kc_is_assignment(node) &&
        !kc_is_null(kc_declaration(kc_child(node, 0))) &&
        clang_equalCursors(kc_declaration(kc_child(node, 0)), l->variable)) {
        CXCursor value = kc_child(node, 1);
        if (look_for_life(value, node, l) == CXChildVisit_Recurse)
            clang_visitChildren(value, look_for_life, l);
        return CXChildVisit_Continue;
    }
    if (kc_kind(node) == CXCursor_DeclRefExpr &&
        clang_equalCursors(clang_getCursorReferenced(node), l->variable) && l->line == 0)
        l->line = kc_line(node);
    return CXChildVisit_Recurse;
}

bool kc_lives_on(const kc_unit *u, const kc_loop *loop, CXCursor variable, unsigned *line) {
    lives l = {u, loop, variable, 0};
    clang_visitChildren(clang_getCursorSemanticParent(variable), look_for_life, &l);
    *line = l.line;
    return l.line != 0;
}
