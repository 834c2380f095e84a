/* Private to the folder ckpt: read one JSON object whose members are numbers, texts, booleans, or lists of
 * numbers or texts. The input is untrusted. */
#ifndef KL_CKPT_JSON_H
#define KL_CKPT_JSON_H

#include "base/base.h"

enum { KL_JSON_TEXT_BYTES = KILTER_ERROR_TEXT_BYTES };

typedef enum kl_json_type { KL_JSON_NULL, KL_JSON_NUMBER, KL_JSON_TEXT, KL_JSON_TRUTH } kl_json_type;

typedef struct kl_json_value {
    kl_json_type type;
    double number;
    uint64_t count; /* the number, if it is an integer that fits; otherwise 0 */
    bool is_count, truth;
    char text[KL_JSON_TEXT_BYTES]; /* in UTF-8; longer texts are cut */
} kl_json_value;

/* Take the value of a member. index: position of the value in a list; 0 outside of a list. false: the
 * value is refused. */
typedef bool (*kl_json_take)(void *user, const char *name, uint64_t index, const kl_json_value *value);

/* Read an object, and pass each value to `take`. Lists of up to `most` values are accepted. Only blanks
 * may follow the object. false: the text is no such object, or a value was refused. */
bool kl_json_read(const char *text, size_t size, uint64_t most, kl_json_take take, void *user);
/* Append a text with quotation marks. Control characters become escapes. */
void kl_json_put_text(kl_buffer *out, const char *text);

#endif
