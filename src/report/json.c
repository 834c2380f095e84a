#include <inttypes.h>
#include <math.h>

#include "report/print.h"
#include "report/text.h"

static void put_text(kl_json *j, const char *text) {
    fputc('"', j->out);
    for (const char *s = text; *s;) {
        size_t bytes = kl_utf8_bytes(s);
        unsigned char c = (unsigned char)*s;
        if (bytes == 0)
            fputs("\\ufffd", j->out);
        else if (c == '"' || c == '\\')
            fprintf(j->out, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            fprintf(j->out, "\\u%04x", c);
        else
            fwrite(s, 1, bytes, j->out);
        s += bytes ? bytes : 1;
    }
    fputc('"', j->out);
}

static void key(kl_json *j, const char *name) {
    if (!j->first)
        fputc(',', j->out);
    j->first = false;
    if (name) {
        put_text(j, name);
        fputc(':', j->out);
    }
}

void kl_json_open(kl_json *j, const char *name, char bracket) {
    key(j, name);
    fputc(bracket, j->out);
    j->first = true;
}

void kl_json_close(kl_json *j, char bracket) {
    fputc(bracket, j->out);
    j->first = false;
}

void kl_json_text(kl_json *j, const char *name, const char *value) {
    key(j, name);
    if (value)
        put_text(j, value);
    else
        fputs("null", j->out);
}

void kl_json_number(kl_json *j, const char *name, double value) {
    key(j, name);
    if (isfinite(value))
        fprintf(j->out, "%.*g", j->digits > 0 ? j->digits : 17, value);
    else
        fputs("null", j->out);
}

void kl_json_count(kl_json *j, const char *name, uint64_t value) {
    key(j, name);
    fprintf(j->out, "%" PRIu64, value);
}

void kl_json_truth(kl_json *j, const char *name, bool value) {
    key(j, name);
    fputs(value ? "true" : "false", j->out);
}

void kl_json_signed(kl_json *j, const char *name, int64_t value) {
    key(j, name);
    fprintf(j->out, "%" PRId64, value);
}
