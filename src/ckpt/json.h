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
    uint64_t count; /* the number as an integer, if it is a whole number that fits; otherwise 0 */
    bool is_count, truth;
    char text[KL_JSON_TEXT_BYTES]; /* the text in UTF-8, cut to this size */
} kl_json_value;

/* A function that takes the value of a member. `index` is the value's position in a list, or 0 if the member
 * is not a list. It returns false to refuse the value. */
typedef bool (*kl_json_take)(void *user, const char *name, uint64_t index, const kl_json_value *value);

/* Read an object, and pass each value to `take`. Lists of up to `most` values are accepted. Only white space
 * may follow the object. false: the text is not such an object, or a value was refused. */
bool kl_json_read(const char *text, size_t size, uint64_t most, kl_json_take take, void *user);
/* Append a text with quotation marks. Control characters become escapes. */
void kl_json_put_text(kl_buffer *out, const char *text);

#endif
