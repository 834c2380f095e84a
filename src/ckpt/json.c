#include "ckpt/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_BYTES = 64, NAME_BYTES = 64, HEX = 16, SURROGATE = 0xd800, SURROGATES_END = 0xe000 };

typedef struct cursor {
    const char *at, *end;
    uint64_t most; /* greatest number of values in a list */
} cursor;

static void skip_blanks(cursor *c) {
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\n' || *c->at == '\r'))
        c->at++;
}

static bool take_char(cursor *c, char wanted) {
    skip_blanks(c);
    if (c->at == c->end || *c->at != wanted)
        return false;
    c->at++;
    return true;
}

static bool take_word(cursor *c, const char *word) {
    size_t length = strlen(word);
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0)
        return false;
    c->at += length;
    return true;
}

/* --- texts --- */

typedef struct text { /* a text that is being written; the text is cut if the memory is too small */
    char *to;
    size_t size, room;
} text;

static void put(text *t, unsigned code) {
    if (t->size + 1 < t->room)
        t->to[t->size++] = (char)code;
}

/* Append a character below 2^16 as UTF-8, if all its bytes fit. */
static void put_character(text *t, unsigned code) {
    if (t->size + 3 >= t->room)
        return;
    if (code < 0x80) {
        put(t, code);
    } else if (code < 0x800) {
        put(t, 0xc0 | code >> 6);
        put(t, 0x80 | (code & 0x3f));
    } else {
        put(t, 0xe0 | code >> 12);
        put(t, 0x80 | (code >> 6 & 0x3f));
        put(t, 0x80 | (code & 0x3f));
    }
}

static bool take_code(cursor *c, unsigned *code) {
    *code = 0;
    for (int i = 0; i < 4; i++, c->at++) {
        static const char DIGITS[] = "0123456789abcdef0123456789ABCDEF";
        const char *digit = c->at < c->end && *c->at ? strchr(DIGITS, *c->at) : NULL;
        if (!digit)
            return false;
        *code = *code * HEX + (unsigned)(digit - DIGITS) % HEX;
    }
    return true;
}

static bool take_escape(cursor *c, text *t) {
    static const char NAMES[] = "\"\\/bfnrt", MEANT[] = "\"\\/\b\f\n\r\t";
    if (c->at == c->end || !*c->at)
        return false;
    const char *name = strchr(NAMES, *c->at);
    if (name) {
        put(t, (unsigned char)MEANT[name - NAMES]);
        c->at++;
        return true;
    }
    unsigned code;
    if (*c->at++ != 'u' || !take_code(c, &code) || code == 0 || (code >= SURROGATE && code < SURROGATES_END))
        return false;
    put_character(t, code);
    return true;
}

static bool take_text(cursor *c, char *to, size_t room) {
    text t = {to, 0, room};
    if (!take_char(c, '"'))
        return false;
    while (c->at < c->end && *c->at != '"') {
        unsigned char next = (unsigned char)*c->at++;
        if (next < ' ' || (next == '\\' && !take_escape(c, &t)))
            return false;
        if (next != '\\')
            put(&t, next);
    }
    to[t.size] = '\0';
    return take_char(c, '"');
}

/* --- values --- */

static bool take_number(cursor *c, kl_json_value *v) {
    char digits[NUMBER_BYTES], *end;
    size_t length = 0;
    while (c->at + length < c->end && length + 1 < sizeof digits && c->at[length] &&
           strchr("+-.0123456789eE", c->at[length]))
        length++;
    memcpy(digits, c->at, length);
    digits[length] = '\0';
    v->type = KL_JSON_NUMBER;
    v->number = strtod(digits, &end);
    if (length == 0 || *end || !(v->number - v->number == 0)) /* an infinite number is refused */
        return false;
    errno = 0;
    v->count = strspn(digits, "0123456789") == length ? strtoull(digits, NULL, 10) : 0;
    v->is_count = strspn(digits, "0123456789") == length && errno == 0;
    c->at += length;
    return true;
}

static bool take_value(cursor *c, kl_json_value *v) {
    *v = (kl_json_value){.type = KL_JSON_NULL};
    skip_blanks(c);
    if (c->at == c->end)
        return false;
    if (take_word(c, "null"))
        return true;
    bool yes = take_word(c, "true");
    if (yes || take_word(c, "false")) {
        v->type = KL_JSON_TRUTH;
        v->truth = yes;
        return true;
    }
    if (*c->at != '"')
        return take_number(c, v);
    v->type = KL_JSON_TEXT;
    return take_text(c, v->text, sizeof v->text);
}

static bool take_list(cursor *c, const char *name, kl_json_take take, void *user) {
    kl_json_value v;
    uint64_t index = 0;
    if (take_char(c, ']'))
        return true;
    do {
        if (index == c->most || !take_value(c, &v) || !take(user, name, index++, &v))
            return false;
    } while (take_char(c, ','));
    return take_char(c, ']');
}

static bool take_member(cursor *c, kl_json_take take, void *user) {
    char name[NAME_BYTES];
    kl_json_value v;
    skip_blanks(c);
    if (!take_text(c, name, sizeof name) || !take_char(c, ':'))
        return false;
    if (take_char(c, '['))
        return take_list(c, name, take, user);
    return take_value(c, &v) && take(user, name, 0, &v);
}

bool kl_json_read(const char *from, size_t size, uint64_t most, kl_json_take take, void *user) {
    cursor c = {from, from + size, most};
    if (!take_char(&c, '{'))
        return false;
    if (!take_char(&c, '}')) {
        do {
            if (!take_member(&c, take, user))
                return false;
        } while (take_char(&c, ','));
        if (!take_char(&c, '}'))
            return false;
    }
    skip_blanks(&c);
    return c.at == c.end;
}

/* --- writing --- */

void kl_json_put_text(kl_buffer *out, const char *from) {
    kl_put_u8(out, '"');
    for (const char *s = from; *s; s++) {
        unsigned char c = (unsigned char)*s;
        char escape[8];
        if (c == '"' || c == '\\')
            kl_put_u8(out, '\\');
        if (c >= ' ')
            kl_put_u8(out, c);
        else
            kl_put_bytes(out, escape, (size_t)snprintf(escape, sizeof escape, "\\u%04x", c));
    }
    kl_put_u8(out, '"');
}
