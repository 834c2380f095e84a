/* Read a source file and find its loops. */
#include "unit.h"

#include <errno.h>
#include <isl/ctx.h>
#include <isl/options.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

enum { FLAGS_MOST = 64 };
static const unsigned long OPERATIONS_MOST = 3000000; /* greatest number of isl operations for one loop */
static const long FILE_MOST = 16 << 20;

/* --- the file --- */

static kilter_status read_text(kc_unit *u, kilter_error *error) {
    FILE *in = fopen(u->path, "rb");
    if (!in)
        return kl_fail(error, KILTER_ERR_INPUT, "%s: %s", u->path, strerror(errno));
    long size = fseek(in, 0, SEEK_END) == 0 ? ftell(in) : -1;
    bool good = size >= 0 && size <= FILE_MOST && fseek(in, 0, SEEK_SET) == 0;
    u->text = good ? malloc((size_t)size + 1) : NULL;
    good = u->text && fread(u->text, 1, (size_t)size, in) == (size_t)size;
    fclose(in);
    if (!good)
        return kl_fail(error, KILTER_ERR_INPUT, "%s: not a file of at most 16 MB that can be read", u->path);
    u->text[size] = '\0';
    u->bytes = (size_t)size;
    return KILTER_OK;
}

static const char *skip_word(const char *at, const char *word) {
    at += strspn(at, " \t");
    return strncmp(at, word, strlen(word)) == 0 ? at + strlen(word) : NULL;
}

kilter_status kc_has_pragma(const char *path, bool *has, kilter_error *error) {
    kc_unit u = {.path = path};
    kilter_status status = read_text(&u, error);
    *has = false;
    for (const char *line = u.text; status == KILTER_OK && line && !*has;) {
        const char *at = skip_word(line, "#");
        at = at ? skip_word(at, "pragma") : NULL;
        *has = at && skip_word(at, "kilter");
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    free(u.text);
    return status;
}

static kilter_status first_error(const kc_unit *u, kilter_error *error) {
    unsigned count = clang_getNumDiagnostics(u->tu);
    for (unsigned i = 0; i < count; i++) {
        CXDiagnostic d = clang_getDiagnostic(u->tu, i);
        if (clang_getDiagnosticSeverity(d) >= CXDiagnostic_Error) {
            unsigned line = 0;
            clang_getExpansionLocation(clang_getDiagnosticLocation(d), NULL, &line, NULL, NULL);
            CXString text = clang_getDiagnosticSpelling(d);
            kl_fail(error, KILTER_ERR_INPUT, "%s:%u: does not compile: %s", u->path, line,
                    clang_getCString(text));
            clang_disposeString(text);
            clang_disposeDiagnostic(d);
            return KILTER_ERR_INPUT;
        }
        clang_disposeDiagnostic(d);
    }
    return KILTER_OK;
}

static kilter_status parse(kc_unit *u, const char *const *flags, int count, kilter_error *error) {
    const char *all[FLAGS_MOST] = {"-Wno-everything", "-fno-color-diagnostics"};
    int n = 2;
    for (int i = 0; i < count && n < FLAGS_MOST; i++)
        all[n++] = flags[i];
    u->index = clang_createIndex(0, 0);
    enum CXErrorCode code =
        clang_parseTranslationUnit2(u->index, u->path, all, n, NULL, 0, CXTranslationUnit_None, &u->tu);
    if (code != CXError_Success || !u->tu)
        return kl_fail(error, KILTER_ERR_INPUT, "%s: clang cannot read it", u->path);
    return first_error(u, error);
}

/* --- pragmas --- */

typedef struct tokens {
    CXTranslationUnit tu;
    CXToken *at;
    unsigned count;
} tokens;

static bool is_token(const tokens *t, unsigned i, const char *text) {
    if (i >= t->count)
        return false;
    CXString spelling = clang_getTokenSpelling(t->tu, t->at[i]);
    const char *own = clang_getCString(spelling);
    bool same = own && strcmp(own, text) == 0;
    clang_disposeString(spelling);
    return same;
}

static void place_of(const tokens *t, unsigned i, unsigned *line, unsigned *offset) {
    clang_getSpellingLocation(clang_getTokenLocation(t->tu, t->at[i]), NULL, line, NULL, offset);
}

static void copy_token(const tokens *t, unsigned i, char *to, size_t room) {
    CXString spelling = clang_getTokenSpelling(t->tu, t->at[i]);
    const char *own = clang_getCString(spelling);
    snprintf(to, room, "%s", own ? own : "");
    clang_disposeString(spelling);
}

static bool is_reserved(const tokens *t, unsigned i) {
    char name[8];
    copy_token(t, i, name, sizeof name);
    return strncmp(name, "kcc_", 4) == 0 || strncmp(name, "KCC_", 4) == 0;
}

static void add_name(char *list, size_t room, const char *name) {
    size_t used = strlen(list);
    snprintf(list + used, room - used, "%s%s ", used ? "" : " ", name);
}

/* Read reduction(op: x, y) or reduction(exact +: x, y), and store the names. */
static bool read_reduction(const tokens *t, unsigned *i, unsigned end, kc_clauses *c) {
    if (!is_token(t, ++*i, "("))
        return false;
    bool exact = is_token(t, *i + 1, "exact");
    if (exact && !is_token(t, *i += 2, "+"))
        return false;
    char name[64];
    for (++*i; *i < end && !is_token(t, *i, ")"); ++*i) {
        copy_token(t, *i, name, sizeof name);
        if (strchr("+*:,", *name) || strcmp(name, "min") == 0 || strcmp(name, "max") == 0)
            continue;
        add_name(c->reductions, sizeof c->reductions, name);
        if (exact)
            add_name(c->exact, sizeof c->exact, name);
    }
    return *i < end;
}

static bool read_name(const tokens *t, unsigned *i, unsigned end, kc_clauses *c) {
    bool good = *i + 3 < end + 1 && is_token(t, *i + 1, "(") && is_token(t, *i + 3, ")");
    char name[64] = "";
    if (good)
        copy_token(t, *i + 2, name, sizeof name);
    size_t length = strlen(name);
    good = good && length > 2 && *name == '"' && name[length - 1] == '"' && !strchr(name, '\\');
    if (good)
        snprintf(c->name, sizeof c->name, "%.*s", (int)length - 2, name + 1);
    *i += 3;
    return good;
}

static kilter_status read_pragma(kc_unit *u, const tokens *t, unsigned i, unsigned end, kilter_error *error) {
    kc_pragma *p = &u->pragma[u->pragmas];
    unsigned next_line;
    *p = (kc_pragma){.line = 0};
    place_of(t, i, &p->line, &p->from);
    bool good = is_token(t, i + 3, "loop") && i + 3 < end;
    for (unsigned k = i + 4; good && k < end; k++) {
        if (is_token(t, k, "independent"))
            p->clauses.independent = true;
        else if (is_token(t, k, "reduction"))
            good = read_reduction(t, &k, end, &p->clauses);
        else if (is_token(t, k, "name"))
            good = read_name(t, &k, end, &p->clauses);
        else
            good = false;
    }
    if (!good)
        return kl_fail(
            error, KILTER_ERR_INPUT,
            "%s:%u: write #pragma kilter loop [reduction([exact] +:x)] [independent] [name(\"…\")]", u->path,
            p->line);
    if (!is_token(t, end, "for"))
        return kl_fail(error, KILTER_ERR_INPUT, "%s:%u: the pragma does not stand before a for loop", u->path,
                       p->line);
    place_of(t, end, &next_line, &p->next);
    u->pragmas++;
    return KILTER_OK;
}

/* Read pure(f, g), and store the names of the functions. */
static kilter_status read_pure(kc_unit *u, const tokens *t, unsigned i, unsigned end, kilter_error *error) {
    unsigned line, offset, at = i + 5;
    kilter_status status = KILTER_OK;
    bool good = is_token(t, i + 4, "(");
    place_of(t, i, &line, &offset);
    for (; good && at + 1 < end && status == KILTER_OK; at += 2) {
        char name[100];
        copy_token(t, at, name, sizeof name);
        good = is_token(t, at + 1, ",") || (is_token(t, at + 1, ")") && at + 2 == end);
        if (good)
            status = kc_add_pure(u, name, line, error);
    }
    if (status == KILTER_OK && (!good || at != end || end < i + 7))
        return kl_fail(error, KILTER_ERR_INPUT, "%s:%u: write #pragma kilter pure(f, g)", u->path, line);
    return status;
}

static kilter_status read_root(kc_unit *u, const tokens *t, unsigned i, unsigned end, kilter_error *error) {
    unsigned next_line;
    kc_root r = {.statement = clang_getNullCursor()};
    place_of(t, i, &r.line, &r.from);
    if (end != i + 4 || end >= t->count)
        return kl_fail(error, KILTER_ERR_INPUT, "%s:%u: write #pragma kilter root before a statement",
                       u->path, r.line);
    if (u->roots == KC_PRAGMAS)
        return kl_fail(error, KILTER_ERR_INPUT, "%s:%u: more than %d pragmas", u->path, r.line, KC_PRAGMAS);
    place_of(t, end, &next_line, &r.next);
    u->root[u->roots++] = r;
    return KILTER_OK;
}

static kilter_status read_any(kc_unit *u, const tokens *t, unsigned i, unsigned end, kilter_error *error) {
    if (is_token(t, i + 3, "pure") && i + 3 < end)
        return read_pure(u, t, i, end, error);
    if (is_token(t, i + 3, "root") && i + 3 < end)
        return read_root(u, t, i, end, error);
    return read_pragma(u, t, i, end, error);
}

static kilter_status read_pragmas(kc_unit *u, kilter_error *error) {
    tokens t = {.tu = u->tu};
    unsigned reserved;
    kilter_status status = KILTER_OK;
    clang_tokenize(u->tu, clang_getCursorExtent(clang_getTranslationUnitCursor(u->tu)), &t.at, &t.count);
    for (unsigned i = 0; i + 2 < t.count && status == KILTER_OK; i++) {
        if (!u->reserved_line && is_reserved(&t, i))
            place_of(&t, i, &u->reserved_line, &reserved);
        if (!is_token(&t, i, "#") || !is_token(&t, i + 1, "pragma") || !is_token(&t, i + 2, "kilter"))
            continue;
        unsigned line, other, offset, end = i + 3;
        place_of(&t, i, &line, &offset);
        for (; end < t.count; end++) {
            place_of(&t, end, &other, &offset);
            if (other != line)
                break;
        }
        status = u->pragmas == KC_PRAGMAS ? kl_fail(error, KILTER_ERR_INPUT, "%s:%u: more than %d pragmas",
                                                    u->path, line, KC_PRAGMAS)
                                          : read_any(u, &t, i, end, error);
    }
    clang_disposeTokens(u->tu, t.at, t.count);
    return status;
}

/* --- loops --- */

typedef struct visit {
    kc_unit *unit;
    CXCursor function;
} visit;

static kc_pragma *pragma_of(kc_unit *u, CXCursor loop) {
    unsigned from, to;
    if (!kc_extent(loop, &from, &to))
        return NULL;
    for (int i = 0; i < u->pragmas; i++)
        if (u->pragma[i].next == from)
            return &u->pragma[i];
    return NULL;
}

/* Does this loop contain a marked loop? */
static bool holds_marked(kc_unit *u, CXCursor loop) {
    unsigned from, to;
    if (!kc_extent(loop, &from, &to))
        return false;
    for (int i = 0; i < u->pragmas; i++)
        if (u->pragma[i].next > from && u->pragma[i].next < to)
            return true;
    return false;
}

static bool judge(kc_unit *u, CXCursor function, CXCursor loop, kc_pragma *pragma) {
    if (u->loops == KC_LOOPS)
        return true;
    kc_loop *l = &u->loop[u->loops++];
    unsigned to;
    *l = (kc_loop){.loop = loop, .function = function, .marked = pragma != NULL};
    if (pragma) {
        l->clauses = pragma->clauses;
        l->pragma_from = pragma->from;
        pragma->used = true;
    } else {
        kc_extent(loop, &l->pragma_from, &to);
    }
    isl_ctx_reset_operations(u->isl);
    l->nest = kc_nest_read(u->isl, function, loop, u->pure);
    l->decision = kc_decide(l->nest, &l->clauses);
    return l->decision.kind != KC_REFUSED;
}

static enum CXChildVisitResult find_loops(CXCursor node, CXCursor parent, CXClientData data) {
    visit *v = data;
    (void)parent;
    if (kc_kind(node) != CXCursor_ForStmt)
        return CXChildVisit_Recurse;
    kc_pragma *pragma = pragma_of(v->unit, node);
    if (!pragma && holds_marked(v->unit, node))
        return CXChildVisit_Recurse;
    bool done = judge(v->unit, v->function, node, pragma) || pragma;
    return done ? CXChildVisit_Continue : CXChildVisit_Recurse;
}

static enum CXChildVisitResult find_functions(CXCursor node, CXCursor parent, CXClientData data) {
    kc_unit *u = data;
    (void)parent;
    if (kc_kind(node) == CXCursor_FunctionDecl && clang_isCursorDefinition(node) && kc_in_main_file(node)) {
        visit v = {u, node};
        clang_visitChildren(node, find_loops, &v);
    }
    return CXChildVisit_Continue;
}

kilter_status kc_unit_open(kc_unit *u, const char *path, const char *const *flags, int count,
                           kilter_error *error) {
    *u = (kc_unit){.path = path, .pure = " "};
    kilter_status status = read_text(u, error);
    if (status == KILTER_OK)
        status = parse(u, flags, count, error);
    if (status == KILTER_OK)
        status = read_pragmas(u, error);
    if (status == KILTER_OK)
        status = kc_find_roots(u, error);
    if (status != KILTER_OK)
        return status;
    u->isl = isl_ctx_alloc();
    isl_options_set_on_error(u->isl, ISL_ON_ERROR_CONTINUE);
    isl_ctx_set_max_operations(u->isl, OPERATIONS_MOST);
    clang_visitChildren(clang_getTranslationUnitCursor(u->tu), find_functions, u);
    for (int i = 0; i < u->pragmas; i++)
        if (!u->pragma[i].used)
            return kl_fail(error, KILTER_ERR_INPUT,
                           "%s:%u: no loop of a function of this file belongs to the pragma", path,
                           u->pragma[i].line);
    return KILTER_OK;
}

void kc_unit_close(kc_unit *u) {
    for (int i = 0; i < u->loops; i++)
        kc_nest_free(u->loop[i].nest);
    if (u->isl)
        isl_ctx_free(u->isl);
    if (u->tu)
        clang_disposeTranslationUnit(u->tu);
    if (u->index)
        clang_disposeIndex(u->index);
    free(u->text);
    *u = (kc_unit){.path = NULL};
}
