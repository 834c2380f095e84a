/* Small helpers over libclang: find a node's children, text, place in the file and constant value. */
#ifndef KC_AST_H
#define KC_AST_H

#include <clang-c/Index.h>
#include <stdbool.h>
#include <stddef.h>

/* Children of a node, in the order of the source. The caller frees `at`. */
typedef struct kc_children {
    CXCursor *at;
    size_t count, room;
} kc_children;

kc_children kc_children_of(CXCursor node);
/* Return child number `nth`, or the null cursor if there are fewer. */
CXCursor kc_child(CXCursor node, size_t nth);
size_t kc_child_count(CXCursor node);

/* Skip all parentheses, casts and conversions around an expression. */
CXCursor kc_plain(CXCursor node);
/* Is the node a pair of parentheses, a cast or a conversion? If so, set *inner to the expression inside
 * it. */
bool kc_is_wrapper(CXCursor node, CXCursor *inner);

char *kc_name(CXCursor node); /* return the name, or "" if there is none; the caller frees it */
bool kc_is_named(CXCursor node, const char *name);
unsigned kc_line(CXCursor node);
/* Find the offsets of the node's text in the main file. If a macro produces the text, find the offsets of the
 * macro's name and arguments. Return false if the text is not in the main file. */
bool kc_extent(CXCursor node, unsigned *from, unsigned *to);
bool kc_in_main_file(CXCursor node);

bool kc_constant(CXCursor node, long long *value); /* is the node an integer constant? If so, set *value */
bool kc_is_integer(CXType type);
bool kc_is_unsigned(CXType type);
bool kc_is_floating(CXType type);
bool kc_is_pointer(CXType type);               /* a pointer or an array */
bool kc_is_array_parameter(CXCursor variable); /* a parameter declared as an array, which C makes a pointer */

enum CXCursorKind kc_kind(CXCursor node);
/* Is the node an assignment by =, by an operator such as +=, or by ++ or --? An assignment changes its first
 * child. */
bool kc_is_assignment(CXCursor node);
/* Return the declaration that a plain name refers to, or the null cursor. */
CXCursor kc_declaration(CXCursor node);
/* Return the function that the call calls, or the null cursor if the file does not define this function. */
CXCursor kc_callee(CXCursor call);
bool kc_is_null(CXCursor node);
bool kc_same(CXCursor a, CXCursor b); /* are a and b the same statement or expression? */
/* Is the location of `node` in the file within the text of `outer`? */
bool kc_is_within(CXCursor node, CXCursor outer);

#endif
