/* Command lines with replacement strings. The result is a line for a shell, in which values are quoted, or a
 * list of words that run without a shell. A list of words is enough if a shell would only cut the line at
 * blanks. */
#include <stdlib.h>
#include <string.h>

#include "map/map.h"

typedef enum form { WHOLE, NO_END, NAME, FOLDER, NAME_NO_END } form; /* {} {.} {/} {//} {/.} */
typedef enum kind { TEXT, QUOTED_TEXT, BLANKS, VALUE, NUMBER, TOTAL, SLOT } kind;

typedef struct piece {
    kind kind;
    form form;
    int column; /* number of the column; 0: all columns; below 0: counted from the last column */
    size_t at, size;
} piece;

struct kl_map_template {
    kl_buffer text; /* the words of the command, joined by blanks */
    piece *pieces;
    uint64_t count, room;
    bool raw;   /* true: each value is a whole command line */
    bool plain; /* true: the command line needs no shell */
};

/* --- reading --- */

static bool add(kl_map_template *t, piece one) {
    piece *last = t->count > 0 ? &t->pieces[t->count - 1] : NULL;
    if (last && one.kind <= QUOTED_TEXT && last->kind == one.kind && last->at + last->size == one.at) {
        last->size += one.size;
        return true;
    }
    piece *pieces = kl_array_grow(t->pieces, &t->room, t->count + 1, sizeof *pieces);
    if (!pieces)
        return false;
    t->pieces = pieces;
    pieces[t->count++] = one;
    return true;
}

/* Read the column number of a replacement string, such as 2 in {2}. Return its length; 0: there is no number.
 */
static size_t read_column(const char *text, int *column) {
    size_t at = text[0] == '-', digits = strspn(text + at, "0123456789");
    *column = 0;
    if (digits == 0 || digits > 6)
        return 0;
    *column = atoi(text);
    return *column == 0 ? 0 : at + digits;
}

/* Read the replacement string that begins at text[0]. Return its length; 0: there is none. */
static size_t read_replacement(const char *text, piece *found) {
    static const struct {
        const char *text;
        kind kind;
        form form;
    } KNOWN[] = {{"}", VALUE, WHOLE},    {".}", VALUE, NO_END},       {"/}", VALUE, NAME},
                 {"//}", VALUE, FOLDER}, {"/.}", VALUE, NAME_NO_END}, {"#}", NUMBER, WHOLE},
                 {"##}", TOTAL, WHOLE},  {"%}", SLOT, WHOLE}};
    if (text[0] != '{')
        return 0;
    int column;
    size_t at = 1 + read_column(text + 1, &column);
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++) {
        size_t size = strlen(KNOWN[i].text);
        if (strncmp(text + at, KNOWN[i].text, size) != 0 || (column != 0 && KNOWN[i].kind != VALUE))
            continue;
        *found = (piece){.kind = KNOWN[i].kind, .form = KNOWN[i].form, .column = column};
        return at + size;
    }
    return 0;
}

/* Cut the text that begins at offset `from` into pieces: replacement strings, and the text between them. */
static bool cut(kl_map_template *t, size_t from, bool quoted) {
    const char *text = (const char *)t->text.data;
    bool added = true;
    for (size_t at = from; at < t->text.size && added;) {
        piece one = {.kind = quoted ? QUOTED_TEXT : TEXT, .at = at, .size = 1};
        size_t size = read_replacement(text + at, &one);
        if (size == 0 && !quoted && text[at] == ' ') {
            one.kind = BLANKS;
            size = one.size = strspn(text + at, " ");
        }
        at += size > 0 ? size : 1;
        added = add(t, one);
    }
    return added;
}

static bool has_values(const kl_map_template *t) {
    for (size_t i = 0; i < t->count; i++)
        if (t->pieces[i].kind >= VALUE)
            return true;
    return false;
}

static bool put_word(kl_map_template *t, const char *word, bool quoted) {
    size_t from = t->text.size;
    if (from > 0)
        kl_put_u8(&t->text, ' ');
    size_t begin = t->text.size;
    kl_put_bytes(&t->text, word, strlen(word) + 1);
    if (t->text.failed)
        return false;
    t->text.size--; /* keep a NUL after the text, but do not count it */
    if (!quoted)
        return cut(t, from, false);
    bool added = from == 0 || add(t, (piece){.kind = BLANKS, .at = from, .size = 1});
    if (added && *word == '\0')
        return add(t, (piece){.kind = QUOTED_TEXT, .at = begin});
    return added && cut(t, begin, true);
}

/* --- lines that need no shell --- */

/* Words that a shell executes itself, without a program of this name. */
static const char *const OF_SHELL[] = {
    "!",       ".",       ":",       "[",      "[[",      "alias",   "bg",      "bind",      "break",
    "builtin", "case",    "caller",  "cd",     "command", "compgen", "coproc",  "continue",  "declare",
    "dirs",    "disown",  "do",      "done",   "elif",    "else",    "enable",  "esac",      "eval",
    "exec",    "exit",    "export",  "fc",     "fg",      "fi",      "for",     "function",  "getopts",
    "hash",    "help",    "history", "if",     "in",      "jobs",    "kill",    "let",       "local",
    "logout",  "mapfile", "popd",    "printf", "pushd",   "pwd",     "read",    "readarray", "readonly",
    "return",  "select",  "set",     "shift",  "shopt",   "source",  "suspend", "test",      "then",
    "time",    "times",   "trap",    "type",   "typeset", "ulimit",  "umask",   "unalias",   "unset",
    "until",   "wait",    "while"};

static bool is_of_shell(const char *word, size_t size) {
    for (size_t i = 0; i < sizeof OF_SHELL / sizeof *OF_SHELL; i++)
        if (strlen(OF_SHELL[i]) == size && memcmp(OF_SHELL[i], word, size) == 0)
            return true;
    return memchr(word, '=', size) != NULL;
}

/* Return whether a shell leaves each of these characters as it is. */
static bool is_plain(const char *text, size_t size) {
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && (c == '\0' || !strchr("_@%+=,./:-", c)))
            return false;
    }
    return true;
}

/* Return whether the line can run without a shell. It must begin with the name of a program, which contains
 * no replacement string. The other words must have no special meaning for a shell. */
static bool needs_no_shell(const kl_map_template *t) {
    const char *text = (const char *)t->text.data;
    for (size_t i = 0; i < t->count; i++)
        if (t->pieces[i].kind == TEXT && !is_plain(text + t->pieces[i].at, t->pieces[i].size))
            return false;
    size_t first = t->count > 0 && t->pieces[0].kind == BLANKS;
    if (first >= t->count || t->pieces[first].kind > QUOTED_TEXT)
        return false;
    size_t next = first, size = 0, at = t->pieces[first].at;
    for (; next < t->count && t->pieces[next].kind <= QUOTED_TEXT; next++)
        size += t->pieces[next].size;
    return (next == t->count || t->pieces[next].kind == BLANKS) && size > 0 && !is_of_shell(text + at, size);
}

kilter_status kl_map_template_new(size_t count, const char *const *words, bool quoted,
                                  kl_map_template **filled, kilter_error *error) {
    kl_map_template *t = calloc(1, sizeof *t);
    bool good = t;
    for (size_t i = 0; good && i < count; i++)
        good = put_word(t, words[i], quoted);
    if (good && !has_values(t)) {
        t->raw = count == 0;
        good = put_word(t, "{}", quoted);
    }
    if (!good) {
        kl_map_template_free(t);
        return kl_fail(error, KILTER_ERR_MEMORY, "reading the command: memory ran out");
    }
    t->plain = !t->raw && needs_no_shell(t);
    *filled = t;
    return KILTER_OK;
}

void kl_map_template_free(kl_map_template *t) {
    if (!t)
        return;
    kl_buffer_free(&t->text);
    free(t->pieces);
    free(t);
}

/* --- filling in values --- */

size_t kl_map_count_texts(const char *texts, size_t size) {
    size_t count = 0;
    for (size_t i = 0; i < size; i++)
        count += texts[i] == '\0';
    return count;
}

/* Return the length of a name without its ending. The ending begins at the last dot, if no slash follows the
 * dot. */
static size_t without_end(const char *text, size_t size) {
    for (size_t i = size; i-- > 0 && text[i] != '/';)
        if (text[i] == '.')
            return i;
    return size;
}

static kilter_bytes folder_of(const char *value, size_t size) {
    while (size > 1 && value[size - 1] == '/')
        size--;
    while (size > 0 && value[size - 1] != '/')
        size--;
    if (size == 0)
        return (kilter_bytes){".", 1};
    while (size > 1 && value[size - 1] == '/')
        size--;
    return (kilter_bytes){value, size};
}

/* Return the part of a value that a replacement string of this form stands for. */
static kilter_bytes part_of(const char *value, form form) {
    size_t size = strlen(value);
    const char *slash = strrchr(value, '/'), *name = slash ? slash + 1 : value;
    switch (form) {
    case NO_END:
        return (kilter_bytes){value, without_end(value, size)};
    case NAME:
        return (kilter_bytes){name, strlen(name)};
    case FOLDER:
        return folder_of(value, size);
    case NAME_NO_END:
        return (kilter_bytes){name, without_end(name, strlen(name))};
    default:
        return (kilter_bytes){value, size};
    }
}

/* Return the value in a column. Columns count from 1, or from −1 backwards. NULL: there is no such column. */
static const char *column_of(const kl_map_fill *fill, int column) {
    long long wanted = column > 0 ? column - 1 : (long long)fill->columns + column;
    const char *value = fill->values;
    if (wanted < 0 || wanted >= (long long)fill->columns)
        return NULL;
    while (wanted-- > 0)
        value += strlen(value) + 1;
    return value;
}

void kl_map_put_quoted(kl_buffer *line, const char *text, size_t size) {
    if (size > 0 && is_plain(text, size)) {
        kl_put_bytes(line, text, size);
        return;
    }
    kl_put_u8(line, '\'');
    for (size_t i = 0; i < size; i++)
        if (text[i] == '\'')
            kl_put_bytes(line, "'\"'\"'", 5);
        else
            kl_put_bytes(line, text + i, 1);
    kl_put_u8(line, '\'');
}

typedef struct output {
    kl_buffer *to;
    bool words, raw; /* words: write words that run without a shell; raw: do not quote values */
} output;

static void put(const output *o, kilter_bytes bytes) {
    if (o->words || o->raw)
        kl_put_bytes(o->to, bytes.data, bytes.size);
    else
        kl_map_put_quoted(o->to, bytes.data, bytes.size);
}

static void put_number(const output *o, uint64_t number) {
    char digits[24];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    kl_put_bytes(o->to, digits + at, sizeof digits - at);
}

static void put_value(const output *o, const piece *p, const kl_map_fill *fill) {
    const char *value = p->column != 0 ? column_of(fill, p->column) : fill->values;
    size_t count = p->column != 0 ? value != NULL : fill->columns;
    for (size_t i = 0; i < count; i++, value += strlen(value) + 1) {
        if (i > 0)
            kl_put_u8(o->to, o->words ? '\0' : ' ');
        put(o, part_of(value, p->form));
    }
}

static void put_piece(const output *o, const kl_map_template *t, const piece *p, const kl_map_fill *fill) {
    kilter_bytes text = {t->text.data + p->at, p->size};
    switch (p->kind) {
    case TEXT:
    case BLANKS:
        kl_put_bytes(o->to, text.data, text.size);
        break;
    case QUOTED_TEXT:
        put(o, text);
        break;
    case VALUE:
        put_value(o, p, fill);
        break;
    case NUMBER:
        put_number(o, fill->number);
        break;
    case TOTAL:
        put_number(o, fill->total);
        break;
    case SLOT:
        put_number(o, fill->slot);
        break;
    }
}

void kl_map_put_line(const kl_map_template *t, const kl_map_fill *fill, kl_buffer *line) {
    const output o = {.to = line, .raw = t->raw};
    for (size_t i = 0; i < t->count; i++)
        put_piece(&o, t, &t->pieces[i], fill);
}

/* Cut a value that is a whole command line into words. Return their number; 0: the line needs a shell. */
static size_t put_raw_words(const char *line, kl_buffer *words) {
    size_t count = 0, first = strcspn(line + strspn(line, " "), " ");
    for (const char *at = line; *at; at++)
        if (*at != ' ' && !is_plain(at, 1))
            return 0;
    line += strspn(line, " ");
    if (*line == '\0' || is_of_shell(line, first))
        return 0;
    for (; *line; line += strspn(line, " "), count++) {
        size_t size = strcspn(line, " ");
        kl_put_bytes(words, line, size);
        kl_put_u8(words, 0);
        line += size;
    }
    return count;
}

static bool lacks_column(const kl_map_template *t, const kl_map_fill *fill) {
    for (size_t i = 0; i < t->count; i++)
        if (t->pieces[i].kind == VALUE && t->pieces[i].column != 0 && !column_of(fill, t->pieces[i].column))
            return true;
    return false;
}

size_t kl_map_put_words(const kl_map_template *t, const kl_map_fill *fill, kl_buffer *words) {
    const output o = {.to = words, .words = true};
    const size_t begin = words->size;
    if (t->raw && fill->columns == 1)
        return put_raw_words(fill->values, words);
    if (!t->plain || lacks_column(t, fill)) /* a shell drops an empty word, so leave this line to a shell */
        return 0;
    for (size_t i = t->pieces[0].kind == BLANKS; i < t->count; i++) {
        bool is_last = i + 1 == t->count;
        if (t->pieces[i].kind != BLANKS)
            put_piece(&o, t, &t->pieces[i], fill);
        else if (!is_last)
            kl_put_u8(words, 0);
    }
    kl_put_u8(words, 0);
    return words->failed ? 0 : kl_map_count_texts((const char *)words->data + begin, words->size - begin);
}
