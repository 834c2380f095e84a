/* Files of names and values. Each line has a name, a space and a value. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keeper/keeper.h"

kl_fields kl_fields_of(const char *text, size_t size) {
    return size > 0 ? (kl_fields){.at = text, .end = text + size} : (kl_fields){.at = NULL, .end = NULL};
}

static bool is_control(char c) {
    return (unsigned char)c < ' ' || c == '\x7f';
}

/* Copy a name or a value from a line. false: it is empty, too long or has control characters. */
static bool copy(char *to, size_t room, const char *from, size_t bytes) {
    if (bytes == 0 || bytes >= room)
        return false;
    for (size_t i = 0; i < bytes; i++) {
        if (is_control(from[i]))
            return false;
        to[i] = from[i];
    }
    to[bytes] = '\0';
    return true;
}

bool kl_fields_next(kl_fields *f, kl_field *field, bool *bad) {
    *bad = false;
    if (f->at == f->end)
        return false;
    size_t left = (size_t)(f->end - f->at);
    const char *newline = memchr(f->at, '\n', left);
    size_t bytes = newline ? (size_t)(newline - f->at) : left;
    const char *blank = memchr(f->at, ' ', bytes);
    f->line++;
    *bad = !blank || !newline || !copy(field->name, sizeof field->name, f->at, (size_t)(blank - f->at)) ||
           !copy(field->value, sizeof field->value, blank + 1, bytes - (size_t)(blank - f->at) - 1);
    f->at += bytes + (newline != NULL);
    return !*bad;
}

bool kl_field_is(const kl_field *field, const char *name) {
    return strcmp(field->name, name) == 0;
}

uint64_t kl_field_count(const kl_field *field) {
    char *end;
    const char *v = field->value;
    unsigned long long value = strtoull(v, &end, 10);
    return *v >= '0' && *v <= '9' && !*end ? value : 0;
}

double kl_field_number(const kl_field *field) {
    char *end;
    double value = strtod(field->value, &end);
    return !*end && isfinite(value) ? value : 0;
}

/* Write a line with a name and a value. Cut a value that is too long for kl_fields_next(). Write nothing if
 * the value is empty. */
void kl_put_field(kl_buffer *text, const char *name, const char *value) {
    size_t bytes = strlen(value);
    if (bytes >= KL_KEEPER_TEXT_BYTES)
        bytes = KL_KEEPER_TEXT_BYTES - 1;
    if (bytes == 0)
        return;
    kl_put_bytes(text, name, strlen(name));
    kl_put_bytes(text, " ", 1);
    for (size_t i = 0; i < bytes; i++)
        kl_put_u8(text, is_control(value[i]) ? '?' : (uint8_t)value[i]);
    kl_put_bytes(text, "\n", 1);
}

void kl_put_field_count(kl_buffer *text, const char *name, uint64_t value) {
    char number[32];
    snprintf(number, sizeof number, "%llu", kl_ull(value));
    kl_put_field(text, name, number);
}

void kl_put_field_number(kl_buffer *text, const char *name, double value) {
    char number[32];
    snprintf(number, sizeof number, "%.9g", value);
    kl_put_field(text, name, number);
}

/* --- how an attempt ended --- */

static const char *const HOW[] = {[KL_KEEPER_EXITED] = "exited",
                                  [KL_KEEPER_SIGNALLED] = "signalled",
                                  [KL_KEEPER_MISSING] = "missing",
                                  [KL_KEEPER_LOST] = "lost",
                                  [KL_KEEPER_REFUSED] = "refused"};

void kl_put_end(kl_buffer *text, const kl_keeper_end *end) {
    kl_put_field_count(text, "attempt", end->attempt);
    kl_put_field(text, "how", HOW[end->how]);
    kl_put_field_count(text, "code", end->code);
}

bool kl_get_end(const char *text, size_t size, kl_keeper_end *end) {
    kl_fields fields = kl_fields_of(text, size);
    kl_keeper_end got = {.attempt = 0};
    kl_field f;
    bool bad = false, how = false;
    while (kl_fields_next(&fields, &f, &bad)) {
        if (kl_field_is(&f, "attempt"))
            got.attempt = kl_field_count(&f);
        else if (kl_field_is(&f, "code"))
            got.code = (uint32_t)kl_field_count(&f);
        for (int i = KL_KEEPER_EXITED; kl_field_is(&f, "how") && i <= KL_KEEPER_REFUSED; i++)
            if (strcmp(f.value, HOW[i]) == 0) {
                got.how = (kl_keeper_how)i;
                how = true;
            }
    }
    if (bad || !how || got.attempt == 0)
        return false;
    *end = got;
    return true;
}
