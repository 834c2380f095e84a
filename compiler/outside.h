/* Code outside of marked loops: what it touches, and which calls only rank 0 makes. */
#ifndef KC_OUTSIDE_H
#define KC_OUTSIDE_H

#include "edit.h"
#include "unit.h"

/* Add all edits of code outside of the marked loops. Return KILTER_ERR_INPUT if some of this code is not
 * understood. */
kilter_status kc_outside(const kc_unit *unit, kc_edits *edits, kilter_error *error);
/* Add the edits of the statements that only rank 0 runs. Return KILTER_ERR_INPUT if kilter cc cannot tell
 * what such a statement changes. */
kilter_status kc_emit_roots(const kc_unit *unit, kc_edits *edits, kilter_error *error); /* in root.c */
/* Return the offset after a statement and its semicolon; 0: a macro hides the end of the statement. */
unsigned kc_end_of(const kc_unit *unit, CXCursor node);
/* Return the function with this name that the file defines; the null cursor if there is none. */
CXCursor kc_function_named(const kc_unit *unit, const char *name);
/* Does code outside of the loop use the value that the loop left in a variable? If so, set *line to the line
 * that uses it. */
bool kc_lives_on(const kc_unit *unit, const kc_loop *loop, CXCursor variable, unsigned *line);

#endif
