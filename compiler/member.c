/* Treat members of structures as symbols if they are numbers that the loop does not change.
 *
 * A variable, constant subscripts and names of members identify a member. This file finds statements of the
 * loop that change the structure through this variable. Other pointers may point to the member, too. So the
 * generated program checks that the loop's written arrays do not contain the member. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "walk.h"

enum { MEMBERS = 8 };

/* The path to a member: the outermost structure, and the names from this structure to the member. */
typedef struct member_path {
    kc_element base;
    CXCursor variable, field[MEMBERS]; /* field: names from the innermost to the outermost */
    int fields;
} member_path;

static bool is_volatile(CXCursor node) {
    return clang_isVolatileQualifiedType(clang_getCanonicalType(clang_getCursorType(node)));
}

/* Is the array reached through a pointer? */
static bool is_behind_pointer(const kc_walk *w, int array) {
    return w->nest->array[array].pointer;
}

/* Return the type of an array's elements. Set *exists to whether the array's declaration guarantees that this
 * element exists. */
static CXType type_at(const kc_walk *w, const kc_element *e, bool *exists) {
    CXType type = clang_getCanonicalType(clang_getCursorType(w->nest->array[e->array].variable));
    *exists = !is_behind_pointer(w, e->array);
    for (int i = 0; i < e->count; i++) {
        bool pointer = i == 0 && type.kind == CXType_Pointer;
        long long size = clang_getArraySize(type);
        *exists = *exists && e->at[i] >= 0 && e->at[i] < size;
        type = clang_getCanonicalType(pointer ? clang_getPointeeType(type) : clang_getArrayElementType(type));
    }
    return type;
}

/* Find the array element to which an expression refers. Return false if the element's position is not
 * constant. */
static bool element_of(kc_walk *w, CXCursor node, kc_element *e) {
    int before = w->settled;
    /* let kc_place_of() make only its own checks, not those of the enclosing expression */
    w->settled = w->checks;
    kc_place p = kc_place_of(w, node);
    w->settled = before;
    bool known = p.array >= 0 && !p.rows;
    *e = (kc_element){.array = p.array, .count = p.count};
    for (int i = 0; i < p.count && known; i++)
        known = kc_fixed(p.at[i], &e->at[i]);
    kc_place_free(&p);
    return known;
}

static bool is_same_structure(CXType a, CXType b) { /* a and b must be canonical */
    return a.kind == CXType_Record && b.kind == CXType_Record &&
           clang_equalTypes(clang_getUnqualifiedType(a), clang_getUnqualifiedType(b));
}

/* Read the path to a member, such as a.b.c or p->b.c. The element must have the type of the outermost
 * structure: a kc_place does not tell a structure from its members. */
static bool path_of(kc_walk *w, CXCursor node, member_path *path, bool *exists) {
    *path = (member_path){.fields = 0};
    for (node = kc_plain(node); kc_kind(node) == CXCursor_MemberRefExpr; node = kc_plain(kc_child(node, 0))) {
        CXCursor field = clang_getCursorReferenced(node);
        bool in_union = kc_kind(clang_getCursorSemanticParent(field)) != CXCursor_StructDecl;
        if (path->fields == MEMBERS || in_union || clang_Cursor_isBitField(field) || is_volatile(node))
            return false;
        path->field[path->fields++] = field;
        CXCursor base = kc_child(node, 0);
        if (clang_getCanonicalType(clang_getCursorType(base)).kind == CXType_Pointer) {
            node = base;
            break;
        }
    }
    CXType type = clang_getCanonicalType(clang_getCursorType(node));
    if (type.kind == CXType_Pointer)
        type = clang_getCanonicalType(clang_getPointeeType(type));
    if (path->fields == 0 || clang_isVolatileQualifiedType(type) || !element_of(w, node, &path->base))
        return false;
    path->variable = w->nest->array[path->base.array].variable;
    return is_same_structure(type, type_at(w, &path->base, exists));
}

static bool is_there(const kc_walk *w, const kc_element *e) {
    for (int i = 0; i < w->theres; i++)
        if (w->there[i].array == e->array && w->there[i].count == e->count &&
            memcmp(w->there[i].at, e->at, sizeof e->at) == 0)
            return true;
    return false;
}

/* Return the member's text in C, for example p->b.c. The caller frees the text. Return NULL if the member
 * cannot be written in C. */
static char *text_of(const kc_walk *w, const member_path *path) {
    const kc_element *e = &path->base;
    bool arrow = e->count == 1 && e->at[0] == 0 && is_behind_pointer(w, e->array), named = true;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        abort();
    fputs(w->nest->array[e->array].name, out);
    for (int i = 0; i < e->count && !arrow; i++)
        fprintf(out, "[%lld]", e->at[i]);
    for (int i = path->fields; i-- > 0;) {
        char *name = kc_name(path->field[i]);
        fprintf(out, "%s%s", arrow && i + 1 == path->fields ? "->" : ".", name);
        named = named && *name;
        free(name);
    }
    fclose(out);
    if (named)
        return text;
    free(text);
    return NULL;
}

int kc_member(kc_walk *w, CXCursor node) {
    CXType type = clang_getCursorType(node);
    member_path path;
    bool exists;
    if (w->alone || !(kc_is_integer(type) || kc_is_floating(type)) || !path_of(w, node, &path, &exists) ||
        kc_has(w->changed, w->changes, path.variable) || !(exists || is_there(w, &path.base)))
        return -1;
    char *text = text_of(w, &path);
    int symbol = text ? kc_symbol_of_member(w, path.variable, path.base.array, text, type) : -1;
    free(text);
    return symbol;
}

void kc_note_there(kc_walk *w, CXCursor node) {
    node = kc_plain(node);
    enum CXCursorKind kind = kc_kind(node);
    enum CXBinaryOperatorKind op =
        kind == CXCursor_BinaryOperator ? clang_getCursorBinaryOperatorKind(node) : CXBinaryOperator_Invalid;
    bool first_only =
        kind == CXCursor_ConditionalOperator || op == CXBinaryOperator_LAnd || op == CXBinaryOperator_LOr;
    member_path path;
    bool exists;
    if (kind == CXCursor_MemberRefExpr && w->theres < KC_THERE && path_of(w, node, &path, &exists) &&
        !is_there(w, &path.base))
        w->there[w->theres++] = path.base;
    if (kind != CXCursor_BinaryOperator && kind != CXCursor_ConditionalOperator)
        return;
    kc_note_there(w, kc_child(node, 0));
    if (!first_only)
        kc_note_there(w, kc_child(node, 1));
}

bool kc_is_read_by_members(const kc_nest *n, int array) {
    bool any = false;
    for (int i = 0; i < n->accesses; i++) {
        if (n->access[i].array == array && n->access[i].member < 0)
            return false;
        any = any || n->access[i].array == array;
    }
    return any;
}

void kc_check_members(kc_walk *w) {
    kc_nest *n = w->nest;
    for (int s = 0; s < n->symbols; s++)
        for (int i = 0; i < n->accesses && n->symbol[s].used; i++)
            if (n->access[i].array == n->symbol[s].array && n->access[i].write)
                kc_wrong(n, w->loop, "the loop uses %s as a number, and changes the memory of %s",
                         kc_text_of(n, s), n->array[n->symbol[s].array].name);
}
