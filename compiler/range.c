/* Print the rows that a loop touches as expressions in C. */
#include <isl/ast.h>
#include <isl/ast_build.h>
#include <isl/id.h>
#include <isl/ilp.h>
#include <isl/space.h>
#include <isl/val.h>
#include <stdlib.h>

#include "emit.h"

static void print(isl_ast_expr *e, FILE *out);

static void print_call(isl_ast_expr *e, const char *name, const char *between, FILE *out) {
    int count = (int)isl_ast_expr_get_op_n_arg(e);
    for (int i = 0; i + 1 < count && *name; i++) /* print max(a, b, c) as max(a, max(b, c)) */
        fprintf(out, "%s(", name);
    fputs(*name ? "" : "(", out);
    for (int i = 0; i < count; i++) {
        isl_ast_expr *part = isl_ast_expr_get_op_arg(e, i);
        fputs(i ? between : "", out);
        print(part, out);
        fputs(i && *name ? ")" : "", out);
        isl_ast_expr_free(part);
    }
    fputs(*name ? "" : ")", out);
}

static void print_choice(isl_ast_expr *e, FILE *out) {
    const char *const between[] = {"(", " ? ", " : "};
    for (int i = 0; i < 3; i++) {
        isl_ast_expr *part = isl_ast_expr_get_op_arg(e, i);
        fputs(between[i], out);
        print(part, out);
        isl_ast_expr_free(part);
    }
    fputs(")", out);
}

static void print_op(isl_ast_expr *e, FILE *out) {
    static const struct {
        enum isl_ast_expr_op_type type;
        const char *name, *between;
    } ops[] = {
        {isl_ast_expr_op_and, "", " && "},
        {isl_ast_expr_op_and_then, "", " && "},
        {isl_ast_expr_op_or, "", " || "},
        {isl_ast_expr_op_or_else, "", " || "},
        {isl_ast_expr_op_max, "kcc_more", ", "},
        {isl_ast_expr_op_min, "kcc_less", ", "},
        {isl_ast_expr_op_add, "", " + "},
        {isl_ast_expr_op_sub, "", " - "},
        {isl_ast_expr_op_mul, "", " * "},
        {isl_ast_expr_op_div, "", " / "},
        {isl_ast_expr_op_fdiv_q, "kcc_floor", ", "},
        {isl_ast_expr_op_pdiv_q, "", " / "},
        {isl_ast_expr_op_pdiv_r, "", " % "},
        {isl_ast_expr_op_zdiv_r, "", " % "},
        {isl_ast_expr_op_eq, "", " == "},
        {isl_ast_expr_op_le, "", " <= "},
        {isl_ast_expr_op_lt, "", " < "},
        {isl_ast_expr_op_ge, "", " >= "},
        {isl_ast_expr_op_gt, "", " > "},
    };
    enum isl_ast_expr_op_type type = isl_ast_expr_get_op_type(e);
    if (type == isl_ast_expr_op_cond || type == isl_ast_expr_op_select) {
        print_choice(e, out);
        return;
    }
    if (type == isl_ast_expr_op_minus) {
        isl_ast_expr *part = isl_ast_expr_get_op_arg(e, 0);
        fputs("-(", out);
        print(part, out);
        fputs(")", out);
        isl_ast_expr_free(part);
        return;
    }
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (ops[i].type == type) {
            print_call(e, ops[i].name, ops[i].between, out);
            return;
        }
    fputs("kcc_unknown", out); /* an undeclared name, so that the program does not compile */
}

static void print(isl_ast_expr *e, FILE *out) {
    enum isl_ast_expr_type type = isl_ast_expr_get_type(e);
    if (type == isl_ast_expr_int) {
        isl_val *v = isl_ast_expr_get_val(e);
        char *text = isl_val_to_str(v);
        fprintf(out, "%s%s", text ? text : "kcc_unknown",
                text && isl_val_cmp_si(v, 1000000000) > 0 ? "LL" : "");
        free(text);
        isl_val_free(v);
    } else if (type == isl_ast_expr_id) {
        isl_id *id = isl_ast_expr_get_id(e);
        fprintf(out, "(long long)%s", isl_id_get_name(id));
        isl_id_free(id);
    } else if (type == isl_ast_expr_op) {
        print_op(e, out);
    } else {
        fputs("kcc_unknown", out);
    }
}

static char *text_of(isl_ctx *isl, isl_pw_aff *value) { /* frees `value` */
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    isl_ast_build *build = isl_ast_build_alloc(isl);
    isl_ast_expr *e = isl_ast_build_expr_from_pw_aff(build, value);
    if (out && e)
        print(e, out);
    if (out)
        fclose(out);
    isl_ast_expr_free(e);
    isl_ast_build_free(build);
    if (e && size > 0)
        return text;
    free(text);
    return NULL;
}

/* Return the constant `value` as an expression over the same domain as `like`. */
static isl_pw_aff *number(isl_pw_aff *like, long value) {
    isl_val *v = isl_val_int_from_si(isl_pw_aff_get_ctx(like), value);
    isl_aff *aff = isl_aff_val_on_domain_space(isl_pw_aff_get_domain_space(like), v);
    return isl_pw_aff_from_aff(aff);
}

static isl_set *rows_of(const kc_nest *n, int array, bool unsure) {
    isl_set *all = NULL;
    for (int i = 0; i < n->accesses; i++) {
        if (n->access[i].array != array || isl_map_dim(n->access[i].where, isl_dim_out) < 1 ||
            (n->access[i].unsure && !unsure))
            continue;
        isl_set *one = isl_map_range(isl_map_copy(n->access[i].where));
        one = isl_set_project_out(one, isl_dim_set, 1, (unsigned)isl_set_dim(one, isl_dim_set) - 1);
        all = all ? isl_set_union(all, one) : one;
    }
    return all ? isl_set_coalesce(isl_set_gist_params(all, isl_set_params(isl_set_copy(n->context)))) : NULL;
}

bool kc_row_range(const kc_nest *n, int array, char **from, char **to) {
    isl_set *rows = rows_of(n, array, true);
    *from = *to = NULL;
    if (!rows)
        return false;
    if (isl_set_dim_has_lower_bound(rows, isl_dim_set, 0) == isl_bool_true &&
        isl_set_dim_has_upper_bound(rows, isl_dim_set, 0) == isl_bool_true) {
        isl_pw_aff *first = isl_set_dim_min(isl_set_copy(rows), 0),
                   *last = isl_set_dim_max(isl_set_copy(rows), 0);
        /* if there are no rows, first is greater than last */
        first = isl_pw_aff_union_min(first, number(first, 1L << 40));
        last = isl_pw_aff_union_max(last, number(last, -1));
        *from = text_of(n->isl, isl_pw_aff_coalesce(first));
        *to = text_of(n->isl, isl_pw_aff_coalesce(isl_pw_aff_add(last, number(last, 1))));
    }
    isl_set_free(rows);
    if (*from && *to)
        return true;
    free(*from);
    free(*to);
    *from = *to = NULL;
    return false;
}

bool kc_touches_all(const kc_nest *n, int array) {
    const kc_array *a = &n->array[array];
    if (a->stride >= 0 || a->width > 0) /* flat memory may end in the middle of a row */
        return false;
    isl_set *all = rows_of(n, array, true), *sure = rows_of(n, array, false);
    bool is = all && sure && isl_set_is_subset(all, sure) == isl_bool_true;
    isl_set_free(all);
    isl_set_free(sure);
    return is;
}
