/* Edit statements that only rank 0 runs. The edits copy the changed variables, and changed memory behind
 * pointers, from rank 0 to all ranks. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "library.h"
#include "outside.h"

enum { SHARED_MOST = 64, FUNCTIONS_MOST = 64 };

typedef struct root_walk {
    const kc_unit *unit;
    const kc_root *root;
    /* the function being searched: it contains the statement, or the statement calls it */
    CXCursor function;
    CXCursor shared[SHARED_MOST];
    bool by_pointer[SHARED_MOST]; /* true: share the memory behind the pointer, not the variable */
    int count;
    CXCursor seen[FUNCTIONS_MOST];
    int seens;
    kilter_error *error;
    kilter_status status;
} root_walk;

static void wrong(root_walk *w, CXCursor at, const char *name, const char *what) {
    if (w->status == KILTER_OK)
        w->status = kl_fail(w->error, KILTER_ERR_INPUT, "%s:%u: in a root statement: %s%s", w->unit->path,
                            kc_line(at), name, what);
}

/* --- what may change --- */

static bool holds_pointer(CXType type);

static enum CXVisitorResult look_at_field(CXCursor field, CXClientData data) {
    *(bool *)data = *(bool *)data || holds_pointer(clang_getCursorType(field));
    return CXVisit_Continue;
}

static bool holds_pointer(CXType type) {
    type = clang_getCanonicalType(type);
    bool found = false;
    if (type.kind == CXType_Record)
        clang_Type_visitFields(type, look_at_field, &found);
    else if (kc_is_pointer(type))
        found = type.kind == CXType_Pointer || holds_pointer(clang_getArrayElementType(type));
    return found;
}

static CXType pointee_of(CXType type) { /* `type` is a pointer, or the array type of a parameter */
    type = clang_getCanonicalType(type);
    return type.kind == CXType_Pointer ? clang_getPointeeType(type) : clang_getArrayElementType(type);
}

typedef struct name_search {
    CXCursor variable;
    char *name;
    bool found;
} name_search;

static enum CXChildVisitResult look_for_name(CXCursor node, CXCursor parent, CXClientData data) {
    name_search *s = data;
    enum CXCursorKind kind = kc_kind(node);
    (void)parent;
    if ((kind == CXCursor_VarDecl || kind == CXCursor_ParmDecl) && kc_is_named(node, s->name) &&
        !clang_equalCursors(node, s->variable))
        s->found = true;
    return CXChildVisit_Recurse;
}

static void add(root_walk *w, CXCursor at, CXCursor variable, bool by_pointer) {
    name_search s = {variable, kc_name(variable), false};
    clang_visitChildren(w->root->function, look_for_name, &s);
    for (int i = 0; i < w->count; i++)
        if (clang_equalCursors(w->shared[i], variable) && w->by_pointer[i] == by_pointer) {
            free(s.name);
            return;
        }
    if (s.found)
        wrong(w, at, s.name, " is the name of two variables");
    else if (w->count == SHARED_MOST)
        wrong(w, at, "it changes too many variables", "");
    else {
        w->shared[w->count] = variable;
        w->by_pointer[w->count++] = by_pointer;
    }
    free(s.name);
}

static bool is_called(const root_walk *w) {
    return !clang_equalCursors(w->function, w->root->function);
}

static bool is_own(const root_walk *w, CXCursor variable) {
    bool inside = kc_is_within(variable, w->root->statement);
    return (inside ||
            (is_called(w) && clang_equalCursors(clang_getCursorSemanticParent(variable), w->function))) &&
           clang_Cursor_getStorageClass(variable) != CX_SC_Static;
}

/* Is a static variable invisible outside of the marked statement? */
static bool is_hidden(const root_walk *w, CXCursor variable) {
    bool global = kc_kind(clang_getCursorSemanticParent(variable)) == CXCursor_TranslationUnit;
    return (is_called(w) && !global) || kc_is_within(variable, w->root->statement);
}

/* Record that an element of type `of` may change. The element is in the variable, or in memory that the
 * variable points to. */
static void changes(root_walk *w, CXCursor at, CXCursor variable, bool by_pointer, CXType of) {
    char *name = kc_name(variable);
    bool own = is_own(w, variable);
    bool parameter = own && is_called(w) && kc_kind(variable) == CXCursor_ParmDecl;
    if (own && !by_pointer) {
        free(name); /* no code outside of the statement sees the variable */
        return;
    }
    if (parameter && !clang_isConstQualifiedType(pointee_of(clang_getCursorType(variable)))) {
        free(name); /* the caller's argument shows which memory changes */
        return;
    }
    if (own || clang_getCanonicalType(of).kind == CXType_Void)
        wrong(w, at, name, ": cannot tell which memory changes through this pointer");
    else if (is_hidden(w, variable))
        wrong(w, at, name, ": a static variable changes that code elsewhere cannot name");
    else if (holds_pointer(of))
        wrong(w, at, name, ": a pointer changes, but its new value would be wrong on other ranks");
    else
        add(w, at, variable, by_pointer);
    free(name);
}

/* Find the variable that contains an element or points to it. Return the null cursor if this variable is not
 * known. */
static CXCursor variable_of(CXCursor node, bool *by_pointer) {
    for (int steps = 0; steps < 64; steps++) {
        node = kc_plain(node);
        enum CXCursorKind kind = kc_kind(node);
        CXCursor base = kc_child(node, 0);
        if (kind == CXCursor_DeclRefExpr) {
            CXCursor variable = clang_getCursorReferenced(node);
            bool is = kc_kind(variable) == CXCursor_VarDecl || kc_kind(variable) == CXCursor_ParmDecl;
            return is ? variable : clang_getNullCursor();
        }
        bool deref =
            kind == CXCursor_UnaryOperator && clang_getCursorUnaryOperatorKind(node) == CXUnaryOperator_Deref;
        bool address = kind == CXCursor_UnaryOperator &&
                       clang_getCursorUnaryOperatorKind(node) == CXUnaryOperator_AddrOf;
        bool sum = kind == CXCursor_BinaryOperator && kc_is_pointer(clang_getCursorType(node));
        if ((sum || kind == CXCursor_ArraySubscriptExpr) && !kc_is_pointer(clang_getCursorType(base)))
            base = kc_child(node, 1);
        if (!deref && !address && !sum && kind != CXCursor_ArraySubscriptExpr &&
            kind != CXCursor_MemberRefExpr)
            break;
        CXCursor below = kc_plain(base);
        bool pointer = clang_getCanonicalType(clang_getCursorType(below)).kind == CXType_Pointer && !address;
        CXCursor variable = kc_declaration(below);
        pointer = pointer || (!kc_is_null(variable) && kc_is_array_parameter(variable));
        bool arithmetic =
            kc_kind(below) == CXCursor_BinaryOperator || kc_kind(below) == CXCursor_UnaryOperator;
        if (pointer && !sum && kc_is_null(variable) && !arithmetic)
            break; /* the pointer itself is an element in memory */
        *by_pointer = *by_pointer || pointer;
        node = base;
    }
    return clang_getNullCursor();
}

static void changes_element(root_walk *w, CXCursor node) {
    bool by_pointer = false;
    CXCursor variable = variable_of(node, &by_pointer);
    if (kc_is_null(variable))
        wrong(w, node, "cannot tell which memory this changes", "");
    else
        changes(w, node, variable, by_pointer, clang_getCursorType(node));
}

/* --- calls --- */

static enum CXChildVisitResult look(CXCursor node, CXCursor parent, CXClientData data);

static void look_into(root_walk *w, CXCursor function) {
    for (int i = 0; i < w->seens; i++)
        if (clang_equalCursors(w->seen[i], function))
            return;
    if (w->seens == FUNCTIONS_MOST) {
        wrong(w, function, "it calls too many functions", "");
        return;
    }
    CXCursor before = w->function;
    w->seen[w->seens++] = function;
    w->function = function;
    clang_visitChildren(function, look, w);
    w->function = before;
}

static bool is_one_of(const char *const *names, const char *name) {
    for (; *names; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

static void look_at_argument(root_walk *w, CXCursor call, unsigned nth) {
    CXCursor value = kc_plain(clang_Cursor_getArgument(call, nth)), function = kc_callee(value);
    CXType type = clang_getCanonicalType(clang_getCursorType(value));
    CXType takes = clang_getCursorType(clang_getCursorReferenced(call));
    bool fixed = (int)nth < clang_getNumArgTypes(takes);
    CXType to = fixed ? clang_getPointeeType(clang_getCanonicalType(clang_getArgType(takes, nth))) : type;
    CXString spelling = clang_getTypeSpelling(clang_getCanonicalType(clang_getPointeeType(type)));
    bool file = strstr(clang_getCString(spelling), "_IO_FILE") != NULL;
    clang_disposeString(spelling);
    bool reads = fixed && clang_isConstQualifiedType(to);
    CXCursor variable = kc_declaration(value);
    bool pointer = kc_is_pointer(type) || (!kc_is_null(variable) && kc_is_array_parameter(variable));
    if (kc_kind(value) == CXCursor_DeclRefExpr && !kc_is_null(function))
        look_into(w, function);
    else if (pointer && !file && !reads && kc_kind(value) != CXCursor_StringLiteral) {
        bool by_pointer = type.kind == CXType_Pointer && kc_kind(value) == CXCursor_DeclRefExpr;
        by_pointer = by_pointer || (!kc_is_null(variable) && kc_is_array_parameter(variable));
        variable = variable_of(value, &by_pointer);
        if (kc_is_null(variable))
            wrong(w, value, "cannot tell which memory this call changes", "");
        else
            changes(w, value, variable, by_pointer, pointee_of(type));
    }
}

static void look_at_call(root_walk *w, CXCursor call) {
    static const char *const all[] = {"exit",    "abort",   "_Exit",     "quick_exit", "atexit",  "rand",
                                      "srand",   "random",  "srandom",   "drand48",    "srand48", "strtok",
                                      "signal",  "longjmp", "_setjmp",   "setjmp",     "fork",    "free",
                                      "lrand48", "realloc", "setlocale", "raise",      NULL};
    static const char *const readers[] = {"printf", "fprintf", "puts",    "fputs", "fwrite",
                                          "fputc",  "perror",  "putchar", NULL};
    CXCursor function = kc_callee(call), named = clang_getCursorReferenced(call);
    char *name = kc_name(call);
    bool known = clang_Location_isInSystemHeader(clang_getCursorLocation(named)) || kc_is_pure(name) ||
                 kc_has_word(w->unit->pure, name);
    if (kc_kind(named) != CXCursor_FunctionDecl || (kc_is_null(function) && !known))
        wrong(w, call, *name ? name : "a call", ": what it changes is not known");
    else if (is_one_of(all, name))
        wrong(w, call, name, "() must be called on all ranks");
    for (int i = 0; !is_one_of(readers, name) && i < clang_Cursor_getNumArguments(call); i++)
        look_at_argument(w, call, (unsigned)i);
    if (!kc_is_null(function) && !known)
        look_into(w, function);
    free(name);
}

/* --- statements --- */

static bool is_marked(const root_walk *w, CXCursor node) {
    for (int i = 0; i < w->unit->loops; i++)
        if (w->unit->loop[i].marked && kc_same(w->unit->loop[i].loop, node))
            return true;
    return false;
}

static enum CXChildVisitResult look(CXCursor node, CXCursor parent, CXClientData data) {
    root_walk *w = data;
    enum CXCursorKind kind = kc_kind(node);
    (void)parent;
    if (w->status != KILTER_OK)
        return CXChildVisit_Break;
    if (kc_is_assignment(node))
        changes_element(w, kc_child(node, 0));
    else if (kind == CXCursor_CallExpr)
        look_at_call(w, node);
    else if (kind == CXCursor_ForStmt && is_marked(w, node))
        wrong(w, node, "it contains a marked loop, which all ranks must run", "");
    else if (kind == CXCursor_GotoStmt || kind == CXCursor_IndirectGotoStmt || kind == CXCursor_LabelStmt ||
             kind == CXCursor_GCCAsmStmt || kind == CXCursor_MSAsmStmt ||
             (kind == CXCursor_ReturnStmt && !is_called(w)))
        wrong(w, node, "it contains a jump, a label or assembler code", "");
    return CXChildVisit_Recurse;
}

typedef struct leaving {
    bool in_loop, found;
} leaving;

/* Find a break or continue that leaves the marked statement. */
static enum CXChildVisitResult look_for_leave(CXCursor node, CXCursor parent, CXClientData data) {
    leaving *l = data;
    enum CXCursorKind kind = kc_kind(node);
    (void)parent;
    if (kind == CXCursor_ForStmt || kind == CXCursor_WhileStmt || kind == CXCursor_DoStmt)
        return CXChildVisit_Continue;
    if (kind == CXCursor_SwitchStmt) {
        leaving inner = {true, false};
        clang_visitChildren(node, look_for_leave, &inner);
        l->found = l->found || inner.found;
        return CXChildVisit_Continue;
    }
    l->found = l->found || kind == CXCursor_ContinueStmt || (kind == CXCursor_BreakStmt && !l->in_loop);
    return CXChildVisit_Recurse;
}

typedef struct use_search {
    const kc_root *root;
    CXCursor seen[FUNCTIONS_MOST];
    int seens;
    bool found;
} use_search;

static enum CXChildVisitResult look_for_statement(CXCursor node, CXCursor parent, CXClientData data) {
    use_search *s = data;
    (void)parent;
    s->found = s->found || kc_same(node, s->root->statement);
    CXCursor function = kc_kind(node) == CXCursor_CallExpr ? kc_callee(node) : clang_getNullCursor();
    bool fresh = !kc_is_null(function) && s->seens < FUNCTIONS_MOST;
    for (int i = 0; fresh && i < s->seens; i++)
        fresh = !clang_equalCursors(s->seen[i], function);
    if (fresh) {
        s->seen[s->seens++] = function;
        clang_visitChildren(function, look_for_statement, s);
    }
    return s->found ? CXChildVisit_Break : CXChildVisit_Recurse;
}

static void check(root_walk *w) {
    CXCursor node = w->root->statement;
    leaving leaves = {false, false};
    for (int i = 0; i < w->unit->loops; i++) {
        use_search s = {.root = w->root};
        if (w->unit->loop[i].marked)
            clang_visitChildren(w->unit->loop[i].loop, look_for_statement, &s);
        if (s.found)
            wrong(w, node, "a marked loop contains it, so all ranks would run it", "");
    }
    if (look_for_leave(node, node, &leaves) == CXChildVisit_Recurse)
        clang_visitChildren(node, look_for_leave, &leaves);
    if (leaves.found)
        wrong(w, node, "break or continue leaves the statement", "");
    if (look(node, node, w) == CXChildVisit_Recurse)
        clang_visitChildren(node, look, w);
}

static void print_keep(const root_walk *w, int nth, FILE *out) {
    char *name = kc_name(w->shared[nth]);
    if (w->by_pointer[nth])
        fprintf(out, " kcc_kept kcc_k%d = kcc_keep_home(%u, \"%s\", %s);", nth, w->root->line, name, name);
    else
        fprintf(out, " kcc_kept kcc_k%d = kcc_keep(&%s, sizeof %s);", nth, name, name);
    free(name);
}

static void edit(root_walk *w, kc_edits *edits) {
    const kc_root *r = w->root;
    unsigned end = kc_end_of(w->unit, r->statement);
    char *text = NULL;
    size_t size = 0;
    if (end == 0) {
        wrong(w, r->statement, "a macro makes the statement", "");
        return;
    }
    FILE *out = open_memstream(&text, &size);
    fprintf(out, "{ kcc_begin_root(%s);", w->count ? "true" : "false");
    for (int i = 0; i < w->count; i++)
        print_keep(w, i, out);
    fprintf(out, " if (kcc_root) {\n#line %u \"%s\"\n", kc_line(r->statement), w->unit->path);
    fclose(out);
    kc_replace(edits, r->from, r->next, "%s", text);
    free(text);
    out = open_memstream(&text, &size);
    fputs(" } kcc_end_root();", out);
    for (int i = 0; i < w->count; i++)
        fprintf(out, " kcc_share_changes(&kcc_k%d);", i);
    fputs(" }", out);
    fclose(out);
    kc_replace(edits, end, end, "%s", text);
    free(text);
}

kilter_status kc_emit_roots(const kc_unit *u, kc_edits *edits, kilter_error *error) {
    root_walk *w = calloc(1, sizeof *w);
    kilter_status status = w ? KILTER_OK : kl_fail(error, KILTER_ERR_MEMORY, "%s: memory ran out", u->path);
    for (int i = 0; w && i < u->roots && status == KILTER_OK; i++) {
        *w = (root_walk){.unit = u, .root = &u->root[i], .function = u->root[i].function, .error = error};
        check(w);
        if (w->status == KILTER_OK)
            edit(w, edits);
        status = w->status;
    }
    free(w);
    return status;
}
