/* Signals between peers: texts of small files in a shared folder. They contain only whole numbers, because
 * some locales use another character for the decimal point. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "move/wire.h"

/* the text of a signal gives a speed as the number of tasks in this number of seconds */
static const double RATE_UNIT = 1e9;
static const char CALL[] = "kilter call 1\n", OFFER[] = "kilter offer 1\n";

static uint64_t whole(double value) {
    return value > 0 ? (uint64_t)llround(fmin(value, 1e18)) : 0;
}

void kl_signal_name(const kl_signal *s, char name[KL_SIGNAL_BYTES]) {
    if (s->offers)
        snprintf(name, KL_SIGNAL_BYTES, "AID.%llu.%u.%u", (unsigned long long)s->run, s->to, s->peer);
    else
        snprintf(name, KL_SIGNAL_BYTES, "SOS.%llu.%u", (unsigned long long)s->run, s->peer);
}

void kl_signal_prefix(const kl_signal *s, char prefix[KL_SIGNAL_BYTES]) {
    if (s->offers)
        snprintf(prefix, KL_SIGNAL_BYTES, "AID.%llu.%u.", (unsigned long long)s->run, s->to);
    else
        snprintf(prefix, KL_SIGNAL_BYTES, "SOS.%llu.", (unsigned long long)s->run);
}

size_t kl_signal_put(const kl_signal *s, char text[KL_SIGNAL_BYTES]) {
    int size = snprintf(text, KL_SIGNAL_BYTES, "%srun %llu\npeer %u\nto %u\nleft %llu\nrate %llu\n",
                        s->offers ? OFFER : CALL, (unsigned long long)s->run, s->peer, s->to,
                        (unsigned long long)s->left, (unsigned long long)whole(s->rate * RATE_UNIT));
    return (size_t)size;
}

/* Read an expected word from the text. Return false if the text does not continue with this word. */
static bool take_word(kilter_bytes *text, const char *word) {
    size_t size = strlen(word);
    if (text->size < size || memcmp(text->data, word, size) != 0)
        return false;
    *text = (kilter_bytes){(const char *)text->data + size, text->size - size};
    return true;
}

/* Read a line that consists of a label and a whole number of at most `most`. */
static bool take_line(kilter_bytes *text, const char *label, uint64_t most, uint64_t *number) {
    if (!take_word(text, label))
        return false;
    const char *at = text->data;
    size_t digits = 0;
    *number = 0;
    for (; digits < text->size && at[digits] >= '0' && at[digits] <= '9'; digits++) {
        uint64_t digit = (uint64_t)(at[digits] - '0');
        if (*number > (most - digit) / 10)
            return false;
        *number = 10 * *number + digit;
    }
    *text = (kilter_bytes){at + digits, text->size - digits};
    return digits > 0 && take_word(text, "\n");
}

bool kl_signal_get(const void *data, size_t size, kl_signal *s) {
    kilter_bytes text = {data, size};
    uint64_t peer, to, rate;
    s->offers = take_word(&text, OFFER);
    bool good = (s->offers || take_word(&text, CALL)) && take_line(&text, "run ", UINT64_MAX, &s->run) &&
                take_line(&text, "peer ", UINT32_MAX, &peer) && take_line(&text, "to ", UINT32_MAX, &to) &&
                take_line(&text, "left ", UINT64_MAX, &s->left) &&
                take_line(&text, "rate ", UINT64_MAX, &rate) && text.size == 0;
    if (!good)
        return false;
    s->peer = (uint32_t)peer;
    s->to = (uint32_t)to;
    s->rate = (double)rate / RATE_UNIT;
    return true;
}
