/* Small helpers over libclang. */
#include "ast.h"

#include <stdlib.h>
#include <string.h>

static enum CXChildVisitResult collect(CXCursor node, CXCursor parent, CXClientData data) {
    kc_children *all = data;
    (void)parent;
    if (all->count == all->room) {
        size_t room = all->room ? 2 * all->room : 8;
        CXCursor *at = realloc(all->at, room * sizeof *at);
        if (!at)
            return CXChildVisit_Break;
        all->at = at;
        all->room = room;
    }
    all->at[all->count++] = node;
    return CXChildVisit_Continue;
}

kc_children kc_children_of(CXCursor node) {
    kc_children all = {0};
    clang_visitChildren(node, collect, &all);
    return all;
}

CXCursor kc_child(CXCursor node, size_t nth) {
    kc_children all = kc_children_of(node);
    CXCursor child = nth < all.count ? all.at[nth] : clang_getNullCursor();
    free(all.at);
    return child;
}

size_t kc_child_count(CXCursor node) {
    kc_children all = kc_children_of(node);
    free(all.at);
    return all.count;
}

enum CXCursorKind kc_kind(CXCursor node) {
    return clang_getCursorKind(node);
}

bool kc_is_null(CXCursor node) {
    return clang_Cursor_isNull(node);
}

/* Compare only the statements. clang_equalCursors() also compares the enclosing declarations. libclang may
 * give two cursors of the same statement different enclosing declarations. */
bool kc_same(CXCursor a, CXCursor b) {
    return a.kind == b.kind && a.data[1] == b.data[1];
}

bool kc_is_wrapper(CXCursor node, CXCursor *inner) {
    enum CXCursorKind kind = kc_kind(node);
    if (kind != CXCursor_UnexposedExpr && kind != CXCursor_ParenExpr && kind != CXCursor_CStyleCastExpr)
        return false;
    kc_children all = kc_children_of(node);
    bool any = all.count > 0;
    if (any) /* the operand is the last child; a cast's type comes before it */
        *inner = all.at[all.count - 1];
    free(all.at);
    return any;
}

CXCursor kc_plain(CXCursor node) {
    CXCursor inner;
    while (kc_is_wrapper(node, &inner))
        node = inner;
    return node;
}

static char *copied(CXString text) {
    const char *c = clang_getCString(text);
    char *copy = strdup(c ? c : "");
    clang_disposeString(text);
    return copy;
}

char *kc_name(CXCursor node) {
    return copied(clang_getCursorSpelling(node));
}

bool kc_is_named(CXCursor node, const char *name) {
    char *own = kc_name(node);
    bool same = own && strcmp(own, name) == 0;
    free(own);
    return same;
}

unsigned kc_line(CXCursor node) {
    unsigned line = 0;
    clang_getExpansionLocation(clang_getCursorLocation(node), NULL, &line, NULL, NULL);
    return line;
}

bool kc_in_main_file(CXCursor node) {
    return clang_Location_isFromMainFile(clang_getCursorLocation(node));
}

static bool is_main_file(CXCursor node, CXFile file) {
    CXTranslationUnit tu = clang_Cursor_getTranslationUnit(node);
    CXString path = clang_getTranslationUnitSpelling(tu);
    bool is = file && clang_File_isEqual(file, clang_getFile(tu, clang_getCString(path)));
    clang_disposeString(path);
    return is;
}

bool kc_extent(CXCursor node, unsigned *from, unsigned *to) {
    CXSourceRange range = clang_getCursorExtent(node);
    CXFile begins, ends;
    clang_getExpansionLocation(clang_getRangeStart(range), &begins, NULL, NULL, from);
    clang_getExpansionLocation(clang_getRangeEnd(range), &ends, NULL, NULL,
                               to); /* if the text ends with a macro: the end of the macro */
    return is_main_file(node, begins) && clang_File_isEqual(begins, ends) && *to > *from;
}

/* Let libclang evaluate only literals, sizeof and binary operators. For any other expression within a
 * declaration, libclang returns the value of the declared variable. */
bool kc_constant(CXCursor node, long long *value) {
    enum CXCursorKind kind = kc_kind(node);
    if (kind == CXCursor_DeclRefExpr &&
        kc_kind(clang_getCursorReferenced(node)) == CXCursor_EnumConstantDecl) {
        *value = clang_getEnumConstantDeclValue(clang_getCursorReferenced(node));
        return true;
    }
    if (kind != CXCursor_IntegerLiteral && kind != CXCursor_CharacterLiteral && kind != CXCursor_UnaryExpr &&
        kind != CXCursor_BinaryOperator)
        return false;
    CXEvalResult result = clang_Cursor_Evaluate(node);
    if (!result)
        return false;
    bool known = clang_EvalResult_getKind(result) == CXEval_Int;
    if (known && clang_EvalResult_isUnsignedInt(result)) {
        unsigned long long u = clang_EvalResult_getAsUnsigned(result);
        known = u <= 0x7fffffffffffffffULL;
        *value = (long long)u;
    } else if (known) {
        *value = clang_EvalResult_getAsLongLong(result);
    }
    clang_EvalResult_dispose(result);
    return known;
}

bool kc_is_integer(CXType type) {
    type = clang_getCanonicalType(type);
    return (type.kind >= CXType_Bool && type.kind <= CXType_Int128) || type.kind == CXType_Enum;
}

bool kc_is_unsigned(CXType type) {
    type = clang_getCanonicalType(type);
    if (type.kind == CXType_Enum) /* an enumeration is signed if one of its constants is negative */
        type = clang_getCanonicalType(clang_getEnumDeclIntegerType(clang_getTypeDeclaration(type)));
    return type.kind >= CXType_Bool && type.kind <= CXType_UInt128 && type.kind != CXType_Char_S;
}

bool kc_is_floating(CXType type) {
    type = clang_getCanonicalType(type);
    return type.kind == CXType_Float || type.kind == CXType_Double;
}

bool kc_is_pointer(CXType type) {
    type = clang_getCanonicalType(type);
    return type.kind == CXType_Pointer || type.kind == CXType_ConstantArray ||
           type.kind == CXType_VariableArray || type.kind == CXType_IncompleteArray;
}

bool kc_is_array_parameter(CXCursor variable) {
    CXType type = clang_getCanonicalType(clang_getCursorType(variable));
    return kc_kind(variable) == CXCursor_ParmDecl && kc_is_pointer(type) && type.kind != CXType_Pointer;
}

bool kc_is_assignment(CXCursor node) {
    enum CXCursorKind kind = kc_kind(node);
    if (kind == CXCursor_CompoundAssignOperator)
        return true;
    if (kind == CXCursor_BinaryOperator)
        return clang_getCursorBinaryOperatorKind(node) == CXBinaryOperator_Assign;
    if (kind != CXCursor_UnaryOperator)
        return false;
    enum CXUnaryOperatorKind op = clang_getCursorUnaryOperatorKind(node);
    return op == CXUnaryOperator_PostInc || op == CXUnaryOperator_PostDec || op == CXUnaryOperator_PreInc ||
           op == CXUnaryOperator_PreDec;
}

CXCursor kc_declaration(CXCursor node) {
    node = kc_plain(node);
    return kc_kind(node) == CXCursor_DeclRefExpr ? clang_getCursorReferenced(node) : clang_getNullCursor();
}

CXCursor kc_callee(CXCursor call) {
    CXCursor function = clang_getCursorDefinition(clang_getCursorReferenced(call));
    return kc_kind(function) == CXCursor_FunctionDecl ? function : clang_getNullCursor();
}

bool kc_is_within(CXCursor node, CXCursor outer) {
    unsigned from, to, at;
    CXSourceRange range = clang_getCursorExtent(outer);
    CXFile file, own;
    clang_getExpansionLocation(clang_getRangeStart(range), &file, NULL, NULL, &from);
    clang_getExpansionLocation(clang_getRangeEnd(range), NULL, NULL, NULL, &to);
    clang_getExpansionLocation(clang_getCursorLocation(node), &own, NULL, NULL, &at);
    return clang_File_isEqual(file, own) && at >= from && at < to;
}
