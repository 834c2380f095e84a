/* Code outside of marked loops: what it touches, and which calls only rank 0 makes. */
#ifndef KC_OUTSIDE_H
#define KC_OUTSIDE_H

#include "edit.h"
#include "unit.h"

/* Note all edits of the program outside of its marked loops. KILTER_ERR_INPUT: something is not understood.
 */
kilter_status kc_outside(const kc_unit *unit, kc_edits *edits, kilter_error *error);
/* Note the edits of the statements that rank 0 alone does. KILTER_ERR_INPUT: what one changes is not known */
kilter_status kc_emit_roots(const kc_unit *unit, kc_edits *edits, kilter_error *error); /* in root.c */
/* Return the offset after a statement and its semicolon; 0: a macro hides it. */
unsigned kc_end_of(const kc_unit *unit, CXCursor node);
/* Return the function with this name that the file defines; the null cursor if there is none. */
CXCursor kc_function_named(const kc_unit *unit, const char *name);
/* Is a variable used outside of the loop in a way that needs the value that the loop left in it? *line:
 * where. */
bool kc_lives_on(const kc_unit *unit, const kc_loop *loop, CXCursor variable, unsigned *line);

#endif
