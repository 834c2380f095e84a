/* Find the array and the subscripts of an element or an address. */
#include <isl/id.h>
#include <isl/space.h>
#include <isl/val.h>
#include <stdlib.h>
#include <string.h>

#include "walk.h"

void kc_place_free(kc_place *place) {
    for (int i = 0; i < place->count; i++)
        isl_pw_aff_free(place->at[i]);
    isl_pw_aff_free(place->rows);
    place->count = 0;
    place->rows = NULL;
}

static kc_place nowhere(int array) {
    return (kc_place){.array = array, .stride = -1};
}

static kc_place copy_of(const kc_place *p) {
    kc_place c = *p;
    for (int i = 0; i < p->count; i++)
        c.at[i] = isl_pw_aff_copy(p->at[i]);
    c.rows = isl_pw_aff_copy(p->rows);
    return c;
}

static void append(kc_place *p, isl_pw_aff *at) {
    if (p->count == KC_DIMS || p->array < 0) {
        isl_pw_aff_free(at);
        if (p->count == KC_DIMS) {
            kc_place_free(p);
            *p = nowhere(KC_UNKNOWN);
        }
        return;
    }
    p->at[p->count++] = at;
}

/* Move an address by `by` elements, backwards if `back` is set. */
static void advance(kc_walk *w, kc_place *p, kc_value by, bool back) {
    if (p->array < 0 || p->count == 0) {
        if (p->array >= 0)
            *p = nowhere(KC_UNKNOWN);
        kc_value_free(by);
        return;
    }
    isl_pw_aff **last = &p->at[p->count - 1];
    if (by.rows && (back || (p->rows && p->stride != by.stride))) {
        isl_pw_aff_free(by.aff); /* the rows have different lengths, or the address goes backwards */
        by.aff = NULL;
    }
    if (by.rows && by.aff) {
        p->stride = by.stride;
        p->rows = p->rows ? isl_pw_aff_add(p->rows, by.rows) : by.rows;
    } else {
        isl_pw_aff_free(by.rows);
    }
    if (!by.aff || !*last) {
        isl_pw_aff_free(by.aff);
        isl_pw_aff_free(*last);
        *last = NULL;
    } else {
        *last = back ? isl_pw_aff_sub(*last, by.aff) : isl_pw_aff_add(*last, by.aff);
    }
    (void)w;
}

/* --- arrays --- */

/* no array has more elements, because no memory is that large */
static const long long DIMENSION_MOST = 1LL << 56;

/* A dimension of a declared array may be a variable that never changes. Add the known condition that such a
 * dimension is from 1 to DIMENSION_MOST. */
static void know_dimensions(kc_walk *w, CXCursor variable) {
    kc_children parts = kc_children_of(variable);
    for (size_t i = 0; i < parts.count; i++) {
        CXCursor size = kc_declaration(parts.at[i]);
        bool plain = kc_kind(parts.at[i]) == CXCursor_DeclRefExpr && !kc_is_null(size) &&
                     kc_is_integer(clang_getCursorType(size)) && kc_is_stable(size);
        kc_value v = plain ? kc_eval(w, parts.at[i]) : (kc_value){.aff = NULL};
        if (v.aff && !v.rows && !kc_lookup(w, size)) {
            isl_set *least = isl_pw_aff_ge_set(isl_pw_aff_copy(v.aff), kc_number(w, 1));
            isl_set *most = isl_pw_aff_le_set(isl_pw_aff_copy(v.aff), kc_number(w, DIMENSION_MOST));
            w->nest->context = isl_set_intersect(w->nest->context, isl_set_intersect(least, most));
        }
        kc_value_free(v);
    }
    free(parts.at);
}

static bool is_volatile(CXType type) { /* is the type, or the type of its elements, volatile? */
    CXType of = clang_getPointeeType(type);
    if (of.kind == CXType_Invalid)
        of = clang_getArrayElementType(type);
    return clang_isVolatileQualifiedType(type) || (of.kind != CXType_Invalid && is_volatile(of));
}

static int array_of(kc_walk *w, CXCursor variable) {
    kc_nest *n = w->nest;
    for (int i = 0; i < n->arrays; i++)
        if (clang_equalCursors(n->array[i].variable, variable))
            return i;
    if (n->arrays == KC_ARRAYS) {
        kc_wrong(n, variable, "the loop touches more than %d arrays and variables", KC_ARRAYS);
        return KC_UNKNOWN;
    }
    CXType type = clang_getCanonicalType(clang_getCursorType(variable));
    kc_array *a = &n->array[n->arrays];
    *a = (kc_array){.variable = variable, .name = kc_name(variable), .scalar = !kc_is_pointer(type)};
    a->pointer = type.kind == CXType_Pointer || kc_is_array_parameter(variable);
    a->fresh = !a->pointer || clang_isRestrictQualifiedType(clang_getCursorType(variable));
    a->stride = -1;
    if (is_volatile(type))
        kc_wrong(n, variable, "%s is volatile", a->name);
    know_dimensions(w, variable);
    return n->arrays++;
}

static kc_place of_variable(kc_walk *w, CXCursor node) {
    CXCursor variable = clang_getCursorReferenced(node);
    const kc_bound *b = kc_lookup(w, variable);
    if (b)
        return b->is_place ? copy_of(&b->place) : nowhere(KC_OWN);
    CXType type = clang_getCanonicalType(clang_getCursorType(variable));
    bool is_pointer = type.kind == CXType_Pointer || kc_is_array_parameter(variable);
    if (kc_kind(variable) != CXCursor_VarDecl && kc_kind(variable) != CXCursor_ParmDecl)
        return nowhere(KC_UNKNOWN);
    if (kc_is_own(w, variable))
        return nowhere(is_pointer ? KC_UNKNOWN : KC_OWN);
    if (is_pointer && kc_has(w->changed, w->changes, variable))
        return nowhere(KC_UNKNOWN);
    kc_place p = nowhere(array_of(w, variable));
    p.by_own_name = w->calls > 0;
    if (is_pointer)
        append(&p, kc_number(w, 0));
    return p;
}

static bool decays(CXCursor node, CXCursor inner) {
    enum CXTypeKind from = clang_getCanonicalType(clang_getCursorType(inner)).kind;
    CXCursor variable = kc_declaration(inner);
    if (!kc_is_null(variable) && kc_is_array_parameter(variable))
        return false; /* C makes an array parameter a pointer already */
    return clang_getCanonicalType(clang_getCursorType(node)).kind == CXType_Pointer &&
           (from == CXType_ConstantArray || from == CXType_VariableArray || from == CXType_IncompleteArray);
}

/* Does the pointer conversion keep the size of the elements that the pointer points to? */
static bool keeps_elements(CXCursor node, CXCursor inner) {
    CXType to = clang_getPointeeType(clang_getCanonicalType(clang_getCursorType(node)));
    CXType from = clang_getPointeeType(clang_getCanonicalType(clang_getCursorType(inner)));
    if (to.kind == CXType_Invalid || from.kind == CXType_Invalid)
        return true; /* no pointers */
    long long a = clang_Type_getSizeOf(to), b = clang_Type_getSizeOf(from);
    if (to.kind == from.kind && (a < 0 || b < 0)) /* arrays whose length is not constant */
        return kc_kind(node) != CXCursor_CStyleCastExpr;
    return a == b && kc_is_pointer(to) == kc_is_pointer(from);
}

/* Is the pointer itself stored in an array or behind a pointer? Then it is unknown what the pointer points
 * to. */
static bool is_loaded_pointer(CXCursor node) {
    CXCursor plain = kc_plain(node);
    bool element = kc_kind(plain) == CXCursor_ArraySubscriptExpr ||
                   (kc_kind(plain) == CXCursor_UnaryOperator &&
                    clang_getCursorUnaryOperatorKind(plain) == CXUnaryOperator_Deref);
    return element && clang_getCanonicalType(clang_getCursorType(plain)).kind == CXType_Pointer;
}

static kc_place of_wrapper(kc_walk *w, CXCursor node, CXCursor inner) {
    if (is_loaded_pointer(inner))
        return nowhere(KC_UNKNOWN);
    kc_place p = kc_place_of(w, inner);
    if (decays(node, inner)) {
        append(&p, kc_number(w, 0));
    } else if (p.array >= 0 && !keeps_elements(node, inner)) {
        kc_place_free(&p);
        p = nowhere(KC_UNKNOWN);
    }
    return p;
}

static kc_place of_subscript(kc_walk *w, CXCursor node) {
    CXCursor index = kc_child(node, 1);
    if (!kc_is_pointer(clang_getCursorType(kc_child(node, 0)))) /* i[x] */
        return nowhere(KC_UNKNOWN);
    kc_place p = kc_place_of(w, kc_child(node, 0));
    kc_value by = kc_eval(w, index);
    if (!kc_settle(w, isl_set_copy(w->domain))) {
        kc_value_free(by);
        by = (kc_value){.aff = NULL};
    }
    advance(w, &p, by, false);
    return p;
}

static kc_place of_sum(kc_walk *w, CXCursor node, bool back) {
    CXCursor left = kc_child(node, 0), right = kc_child(node, 1);
    bool swapped = !kc_is_pointer(clang_getCursorType(left));
    kc_place p = kc_place_of(w, swapped ? right : left);
    kc_value by = kc_eval(w, swapped ? left : right);
    if (!kc_settle(w, isl_set_copy(w->domain))) {
        kc_value_free(by);
        by = (kc_value){.aff = NULL};
    }
    advance(w, &p, by, back);
    return p;
}

kc_place kc_place_of(kc_walk *w, CXCursor node) {
    CXCursor inner;
    if (kc_is_wrapper(node, &inner))
        return of_wrapper(w, node, inner);
    enum CXBinaryOperatorKind op;
    switch ((int)kc_kind(node)) {
    case CXCursor_DeclRefExpr:
        return of_variable(w, node);
    case CXCursor_ArraySubscriptExpr:
        return of_subscript(w, node);
    case CXCursor_UnaryOperator: /* x, *x and &x have the same place */
        if (clang_getCursorUnaryOperatorKind(node) == CXUnaryOperator_Deref ||
            clang_getCursorUnaryOperatorKind(node) == CXUnaryOperator_AddrOf)
            return kc_place_of(w, kc_child(node, 0));
        return nowhere(KC_UNKNOWN);
    case CXCursor_BinaryOperator:
        op = clang_getCursorBinaryOperatorKind(node);
        if (op == CXBinaryOperator_Add || op == CXBinaryOperator_Sub)
            return of_sum(w, node, op == CXBinaryOperator_Sub);
        return nowhere(KC_UNKNOWN);
    case CXCursor_MemberRefExpr: {
        kc_place p = kc_place_of(w, kc_child(node, 0));
        bool in_union = kc_kind(clang_getCursorSemanticParent(clang_getCursorReferenced(node))) ==
                        CXCursor_UnionDecl; /* its members share memory */
        bool own = p.array == KC_OWN;
        if (clang_getCanonicalType(clang_getCursorType(node)).kind != CXType_Pointer && (own || !in_union))
            return p; /* an access to a member counts as an access to the whole structure */
        kc_place_free(&p);
        return nowhere(KC_UNKNOWN);
    }
    default:
        return nowhere(KC_UNKNOWN);
    }
}

/* --- accesses --- */

/* Turn the subscripts into a map without input dimensions. All symbols are parameters of the map. */
static isl_map *map_of(kc_walk *w, kc_place *p) {
    isl_map *map = isl_map_from_domain(isl_set_copy(w->domain));
    for (int i = 0; i < p->count; i++) {
        isl_map *next;
        if (p->at[i])
            next = isl_map_from_pw_aff(isl_pw_aff_copy(p->at[i]));
        else
            next = isl_map_universe(isl_space_alloc(w->nest->isl, 0, 0, 1));
        map = isl_map_flat_range_product(map, next);
    }
    return isl_map_intersect_domain(map, isl_set_copy(w->domain));
}

/* Turn loop indices from parameters of the map into input dimensions. These are the loop's index and, for an
 * access in the first inner loop, the inner loop's index. */
static isl_map *with_indices(kc_walk *w, isl_map *map) {
    for (int i = 0; i < w->nest->symbols; i++) {
        const kc_symbol *s = &w->nest->symbol[i];
        if (!s->is_index)
            continue;
        int at = isl_map_find_dim_by_id(map, isl_dim_param, s->id);
        if (s->loops == 1 || (s->loops == 2 && w->in_inner)) {
            unsigned place = s->loops == 1 ? 0 : (unsigned)isl_map_dim(map, isl_dim_in);
            if (at < 0)
                map = isl_map_insert_dims(map, isl_dim_in, place, 1);
            else
                map = isl_map_move_dims(map, isl_dim_in, place, isl_dim_param, (unsigned)at, 1);
        } else if (at >= 0) {
            map = isl_map_project_out(map, isl_dim_param, (unsigned)at, 1);
        }
    }
    return map;
}

/* Split an access to flat memory into row and position. All accesses must use the same length of rows, and
 * must stay within a row. */
static bool split_flat(kc_walk *w, CXCursor node, kc_place *p, kc_array *a) {
    if (!p->rows)
        return true;
    isl_pw_aff *last = p->at[p->count - 1];
    if (p->count != 1 || !last) {
        kc_wrong(w->nest, node, "%s: the position within the row is not known", a->name);
        return false;
    }
    isl_set *low = isl_pw_aff_lt_set(isl_pw_aff_copy(last), kc_number(w, 0));
    isl_set *high = isl_pw_aff_ge_set(isl_pw_aff_copy(last), kc_of_symbol(w, p->stride));
    isl_set *where = isl_set_intersect(isl_set_copy(w->domain), isl_set_copy(w->nest->context));
    isl_set *outside = isl_set_intersect(isl_set_union(low, high), where);
    bool inside = isl_set_is_empty(outside) == isl_bool_true;
    isl_set_free(outside);
    if (!inside) {
        kc_wrong(w->nest, node, "%s: cannot prove that the position stays within a row", a->name);
        return false;
    }
    if (a->stride >= 0 && a->stride != p->stride) {
        kc_wrong(w->nest, node, "%s is used with rows of two lengths", a->name);
        return false;
    }
    a->stride = p->stride;
    p->at[0] = p->rows;
    p->at[p->count++] = last;
    p->rows = NULL;
    return true;
}

/* Find the length of rows in flat memory: a subscript such as 100 * i + j means rows of 100 elements. */
static void note_width(const kc_walk *w, const kc_place *p, kc_array *a) {
    if (p->count != 1 || !p->at[0] || a->scalar || isl_pw_aff_n_piece(p->at[0]) != 1)
        return;
    int outer = 0;
    while (outer < w->nest->symbols && w->nest->symbol[outer].loops != 1)
        outer++;
    isl_aff *aff = outer < w->nest->symbols ? isl_pw_aff_as_aff(isl_pw_aff_copy(p->at[0])) : NULL;
    for (int i = 0; aff && i < isl_aff_dim(aff, isl_dim_param); i++) {
        isl_id *id = isl_pw_aff_get_dim_id(p->at[0], isl_dim_param, (unsigned)i);
        isl_val *factor = isl_aff_get_coefficient_val(aff, isl_dim_param, i);
        if (id == w->nest->symbol[outer].id && isl_val_is_int(factor) == isl_bool_true &&
            isl_val_cmp_si(factor, 1) > 0 && isl_val_cmp_si(factor, 1L << 40) < 0)
            a->width = isl_val_get_num_si(factor);
        isl_val_free(factor);
        isl_id_free(id);
    }
    isl_aff_free(aff);
}

void kc_touch(kc_walk *w, CXCursor node, kc_place place, bool write, kc_update update) {
    kc_nest *n = w->nest;
    if (place.array == KC_UNKNOWN)
        kc_wrong(n, node, "cannot tell which memory this %s", write ? "changes" : "reads");
    bool noted = place.array >= 0 && !*n->wrong;
    if (noted && n->accesses == KC_ACCESSES) {
        kc_wrong(n, node, "the loop has more than %d accesses", KC_ACCESSES);
        noted = false;
    }
    kc_array *a = noted ? &n->array[place.array] : NULL;
    if (noted && split_flat(w, node, &place, a)) {
        kc_access *access = &n->access[n->accesses++];
        *access = (kc_access){.array = place.array,
                              .write = write,
                              .update = update,
                              .in_inner = w->in_inner,
                              .by_own_name = place.by_own_name,
                              .unsure = w->unsure > 0,
                              .member = -1,
                              .depth = w->depth,
                              .line = kc_line(node)};
        memcpy(access->region, w->region, sizeof access->region);
        note_width(w, &place, a);
        access->where = with_indices(w, map_of(w, &place));
        if (place.count > a->dims)
            a->dims = place.count;
    }
    kc_place_free(&place);
}
