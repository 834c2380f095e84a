/* Read the pragmas by which the user vouches for something: functions that are pure, and statements that only
 * rank 0 runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "library.h"
#include "unit.h"

/* --- pure functions --- */

typedef struct declared {
    const char *name;
    CXCursor function;
} declared;

static enum CXChildVisitResult look_for_function(CXCursor node, CXCursor parent, CXClientData data) {
    declared *d = data;
    (void)parent;
    if (kc_kind(node) == CXCursor_FunctionDecl && kc_is_named(node, d->name))
        d->function = node;
    return CXChildVisit_Continue;
}

/* Find the line in which a function changes a global or static variable by its name. *line stays 0 if there
 * is no such line. */
static enum CXChildVisitResult look_for_change(CXCursor node, CXCursor parent, CXClientData data) {
    unsigned *line = data;
    (void)parent;
    CXCursor target = kc_is_assignment(node) ? kc_declaration(kc_child(node, 0)) : clang_getNullCursor();
    if (!kc_is_null(target) && *line == 0 &&
        (kc_kind(clang_getCursorSemanticParent(target)) == CXCursor_TranslationUnit ||
         clang_Cursor_getStorageClass(target) == CX_SC_Static))
        *line = kc_line(node);
    return CXChildVisit_Recurse;
}

/* Return the reason why a function cannot be pure, or NULL if it can. */
static const char *not_pure(const char *name, CXCursor function) {
    CXType type = clang_getCursorType(function);
    if (kc_is_null(function))
        return "is not declared before it is named here, or is no function";
    if (kc_is_root(name) || kc_is_memory(name) || (kc_is_local(name) && !kc_is_pure(name)))
        return "is a function of the C library with other effects";
    if (type.kind != CXType_FunctionProto || clang_isFunctionTypeVariadic(type))
        return "has no fixed parameters; declare it with a prototype";
    if (!kc_is_integer(clang_getResultType(type)) && !kc_is_floating(clang_getResultType(type)))
        return "does not return a number";
    for (int i = 0; i < clang_getNumArgTypes(type); i++)
        if (kc_is_pointer(clang_getArgType(type, (unsigned)i)))
            return "has a pointer as parameter, and what it reads there may change";
    return NULL;
}

kilter_status kc_add_pure(kc_unit *u, const char *name, unsigned line, kilter_error *error) {
    declared d = {name, clang_getNullCursor()};
    size_t used = strlen(u->pure);
    unsigned changed = 0;
    clang_visitChildren(clang_getTranslationUnitCursor(u->tu), look_for_function, &d);
    const char *why = not_pure(name, d.function);
    if (why)
        return kl_fail(error, KILTER_ERR_INPUT, "%s:%u: %s %s", u->path, line, name, why);
    CXCursor definition = clang_getCursorDefinition(d.function);
    if (!kc_is_null(definition))
        clang_visitChildren(definition, look_for_change, &changed);
    if (changed)
        return kl_fail(error, KILTER_ERR_INPUT, "%s:%u: %s is not pure: it changes a variable in line %u",
                       u->path, line, name, changed);
    if (used + strlen(name) + 2 > sizeof u->pure)
        return kl_fail(error, KILTER_ERR_INPUT, "%s:%u: too many pure functions", u->path, line);
    snprintf(u->pure + used, sizeof u->pure - used, "%s ", name);
    return KILTER_OK;
}

/* --- statements for rank 0 --- */

const kc_root *kc_root_of(const kc_unit *u, CXCursor statement) {
    for (int i = 0; i < u->roots; i++)
        if (!kc_is_null(u->root[i].statement) && kc_same(u->root[i].statement, statement))
            return &u->root[i];
    return NULL;
}

typedef struct visit {
    kc_unit *unit;
    CXCursor function;
} visit;

static enum CXChildVisitResult find_statements(CXCursor node, CXCursor parent, CXClientData data) {
    visit *v = data;
    unsigned from, to;
    bool here = kc_kind(parent) == CXCursor_CompoundStmt && kc_extent(node, &from, &to);
    for (int i = 0; here && i < v->unit->roots; i++)
        if (v->unit->root[i].next == from) {
            v->unit->root[i].statement = node;
            v->unit->root[i].function = v->function;
        }
    return CXChildVisit_Recurse;
}

static enum CXChildVisitResult find_functions(CXCursor node, CXCursor parent, CXClientData data) {
    visit v = {data, node};
    (void)parent;
    if (kc_kind(node) == CXCursor_FunctionDecl && clang_isCursorDefinition(node) && kc_in_main_file(node))
        clang_visitChildren(node, find_statements, &v);
    return CXChildVisit_Continue;
}

/* Can a root pragma, with which only rank 0 runs a statement, stand before this kind of statement? */
static bool is_whole(CXCursor node) {
    enum CXCursorKind kind = kc_kind(node);
    return clang_isExpression(kind) || kind == CXCursor_CompoundStmt || kind == CXCursor_IfStmt ||
           kind == CXCursor_ForStmt || kind == CXCursor_WhileStmt || kind == CXCursor_DoStmt ||
           kind == CXCursor_SwitchStmt;
}

kilter_status kc_find_roots(kc_unit *u, kilter_error *error) {
    if (u->roots > 0)
        clang_visitChildren(clang_getTranslationUnitCursor(u->tu), find_functions, u);
    for (int i = 0; i < u->roots; i++)
        if (kc_is_null(u->root[i].statement) || !is_whole(u->root[i].statement))
            return kl_fail(
                error, KILTER_ERR_INPUT,
                "%s:%u: the pragma must stand before a block or a statement within braces, and not "
                "before a declaration, a label or a jump",
                u->path, u->root[i].line);
    return KILTER_OK;
}
