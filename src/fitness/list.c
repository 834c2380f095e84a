/* Read lists of hosts: hostfiles of Open MPI and MPICH, lists with one name per line, and ssh configurations.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fitness/fitness.h"

enum { SLOTS_MOST = 1000000 };

/* --- adding and finding names --- */

/* Return the position of a name in the hash table. If the table does not have the name, return the free
 * position where to put it. */
static size_t place_of(const kl_host_list *list, const char *name) {
    size_t place = (size_t)kl_hash(name, strlen(name), 0) & (list->index_room - 1);
    while (list->index[place] && strcmp(list->at[list->index[place] - 1].name, name) != 0)
        place = (place + 1) & (list->index_room - 1);
    return place;
}

/* Make the hash table larger if it would be more than half full. */
static bool grow_index(kl_host_list *list) {
    if (2 * (list->count + 1) <= list->index_room)
        return true;
    size_t room = list->index_room ? 2 * list->index_room : 16;
    uint32_t *index = calloc(room, sizeof *index);
    if (!index)
        return false;
    free(list->index);
    list->index = index;
    list->index_room = room;
    for (size_t i = 0; i < list->count; i++)
        index[place_of(list, list->at[i].name)] = (uint32_t)i + 1;
    return true;
}

static bool is_name(const char *name) {
    size_t length = strlen(name);
    bool good = length > 0 && length < KL_LISTED_BYTES && *name != '-' && *name != '@';
    for (; good && *name; name++)
        good = isalnum((unsigned char)*name) || strchr("._-@:[]%", *name);
    return good && name[-1] != '@';
}

static bool append(kl_host_list *list, size_t place, const char *name, uint32_t slots) {
    kl_listed_host *at = kl_array_grow(list->at, &list->room, list->count + 1, sizeof *at);
    char *copy = at ? malloc(strlen(name) + 1) : NULL;
    if (at)
        list->at = at;
    if (!copy)
        return false;
    memcpy(copy, name, strlen(name) + 1);
    at[list->count++] = (kl_listed_host){copy, slots};
    list->index[place] = (uint32_t)list->count;
    return true;
}

kilter_status kl_host_list_add(kl_host_list *list, const char *name, uint32_t slots, kilter_error *error) {
    if (!is_name(name))
        return kl_fail(error, KILTER_ERR_INPUT, "'%.80s' is not the name of a host", name);
    if (!grow_index(list))
        return kl_fail(error, KILTER_ERR_MEMORY, "memory ran out");
    size_t place = place_of(list, name);
    if (list->index[place]) { /* a host that is listed again without a number of slots gets one more slot */
        kl_listed_host *host = &list->at[list->index[place] - 1];
        uint64_t sum = (uint64_t)(host->slots ? host->slots : 1) + (slots ? slots : 1);
        host->slots = sum < SLOTS_MOST ? (uint32_t)sum : SLOTS_MOST;
        return KILTER_OK;
    }
    if (list->count == KL_LISTED_MOST)
        return kl_fail(error, KILTER_ERR_INPUT, "a list has at most %d hosts", KL_LISTED_MOST);
    return append(list, place, name, slots) ? KILTER_OK : kl_fail(error, KILTER_ERR_MEMORY, "memory ran out");
}

size_t kl_host_list_find(const kl_host_list *list, const char *name) {
    uint32_t found = list->count > 0 ? list->index[place_of(list, name)] : 0;
    return found ? found - 1 : SIZE_MAX;
}

void kl_host_list_free(kl_host_list *list) {
    for (size_t i = 0; i < list->count; i++)
        free(list->at[i].name);
    free(list->at);
    free(list->index);
    *list = (kl_host_list){0};
}

/* --- lines and words --- */

enum { WORD_BYTES = 512 };

/* A line of the text without its comment. */
typedef struct line {
    const char *at, *end;
    size_t number;
} line;

/* Take the next line from the text. false: the text has ended. */
static bool next_line(const char **at, const char *end, line *l) {
    if (*at == end)
        return false;
    const char *newline = memchr(*at, '\n', (size_t)(end - *at));
    l->at = *at;
    l->end = newline ? newline : end;
    l->number++;
    *at = newline ? newline + 1 : end;
    const char *comment = memchr(l->at, '#', (size_t)(l->end - l->at));
    l->end = comment ? comment : l->end;
    return true;
}

/* Take the next word from the line, and cut it if it is too long. "": the line has ended. */
static void next_word(line *l, char word[WORD_BYTES]) {
    static const char BLANKS[] = {' ', '\t', '\r'};
    size_t length = 0;
    while (l->at < l->end && memchr(BLANKS, *l->at, sizeof BLANKS))
        l->at++;
    for (; l->at < l->end && !memchr(BLANKS, *l->at, sizeof BLANKS); l->at++)
        if (length < WORD_BYTES - 1)
            word[length++] = *l->at ? *l->at : '?';
    word[length] = '\0';
}

/* Compare a word with a keyword of ssh. The word may be in lower or upper case. */
static bool is_keyword(const char *word, const char *keyword) {
    while (*word && tolower((unsigned char)*word) == *keyword) {
        word++;
        keyword++;
    }
    return !*word && !*keyword;
}

/* --- ssh configurations --- */

/* The text is an ssh configuration if a line begins with Host, Match or Include and a word follows. */
static bool is_ssh(const char *at, const char *end) {
    line l = {.number = 0};
    while (next_line(&at, end, &l)) {
        char first[WORD_BYTES], second[WORD_BYTES];
        next_word(&l, first);
        next_word(&l, second);
        bool begins = is_keyword(first, "host") || is_keyword(first, "match") || is_keyword(first, "include");
        if (begins && *second && !strchr(second, '='))
            return true;
    }
    return false;
}

/* Add the names that follow the keyword Host and are not patterns. A name in several blocks counts only once.
 */
static kilter_status read_ssh_line(line *l, kl_host_list *list, kilter_error *error) {
    char word[WORD_BYTES];
    kilter_status status = KILTER_OK;
    next_word(l, word);
    if (!is_keyword(word, "host"))
        return KILTER_OK;
    for (next_word(l, word); *word && status == KILTER_OK; next_word(l, word))
        if (!strpbrk(word, "*?!") && kl_host_list_find(list, word) == SIZE_MAX)
            status = kl_host_list_add(list, word, 0, error);
    return status;
}

/* --- hostfiles and names --- */

static bool read_number(const char *text, uint32_t *number) {
    size_t digits = strspn(text, "0123456789");
    unsigned long value = digits > 0 && digits < 9 && !text[digits] ? strtoul(text, NULL, 10) : 0;
    if (value < 1 || value > SLOTS_MOST)
        return false;
    *number = (uint32_t)value;
    return true;
}

/* Cut the number of slots off a name, as MPICH writes them: name:4. A name with several colons is an IPv6
 * address. */
static kilter_status cut_slots(char *name, uint32_t *slots, kilter_error *error) {
    char *colon = strchr(name, ':');
    if (!colon || strchr(colon + 1, ':'))
        return KILTER_OK;
    *colon = '\0';
    if (!read_number(colon + 1, slots))
        return kl_fail(error, KILTER_ERR_INPUT, "after '%.80s:', write the number of slots, 1 to %d", name,
                       SLOTS_MOST);
    return KILTER_OK;
}

/* Return the text after "key="; NULL: the word does not begin with this key. */
static const char *value_of(const char *word, const char *key) {
    size_t length = strlen(key);
    return strncmp(word, key, length) == 0 && word[length] == '=' ? word + length + 1 : NULL;
}

/* Read one of the words that follow the name of a host. */
static kilter_status read_term(const char *word, uint32_t *slots, char user[WORD_BYTES],
                               kilter_error *error) {
    static const char *const unused[] = {"max_slots", "max-slots", "binding", "ifname"};
    const char *value = value_of(word, "slots");
    if (value && read_number(value, slots))
        return KILTER_OK;
    if (value)
        return kl_fail(error, KILTER_ERR_INPUT, "'%.80s': the number of slots is from 1 to %d", word,
                       SLOTS_MOST);
    if ((value = value_of(word, "user")) || (value = value_of(word, "username"))) {
        snprintf(user, WORD_BYTES, "%s@", value);
        return KILTER_OK;
    }
    for (size_t i = 0; i < sizeof unused / sizeof *unused; i++)
        if (value_of(word, unused[i]))
            return KILTER_OK;
    return kl_fail(error, KILTER_ERR_INPUT, "'%.80s' after the name of a host is not slots=N", word);
}

static kilter_status read_line(line *l, kl_host_list *list, kilter_error *error) {
    char name[WORD_BYTES], word[WORD_BYTES], user[WORD_BYTES] = "", whole[2 * WORD_BYTES];
    uint32_t slots = 0;
    next_word(l, name);
    if (!*name)
        return KILTER_OK;
    kilter_status status = cut_slots(name, &slots, error);
    for (next_word(l, word); *word && status == KILTER_OK; next_word(l, word))
        status = read_term(word, &slots, user, error);
    snprintf(whole, sizeof whole, "%s%s", user, name);
    return status == KILTER_OK ? kl_host_list_add(list, whole, slots, error) : status;
}

/* --- the text of a file --- */

static kilter_status read_lines(const char *text, size_t size, kl_host_list *list, line *l,
                                kilter_error *error) {
    const char *at = size > 0 ? text : "", *end = at + size;
    bool ssh = is_ssh(at, end);
    kilter_status status = KILTER_OK;
    while (status == KILTER_OK && next_line(&at, end, l))
        status = (ssh ? read_ssh_line : read_line)(l, list, error);
    return status;
}

kilter_status kl_host_list_parse(const char *file, const char *text, size_t size, kl_host_list *list,
                                 kilter_error *error) {
    kl_host_list read = {0};
    line l = {.number = 0};
    kilter_error why;
    kilter_status status = read_lines(text, size, &read, &l, &why);
    if (status != KILTER_OK)
        kl_fail(error, status, "%s, line %zu: %s", file, l.number, why.text);
    else if (read.count == 0)
        status = kl_fail(error, KILTER_ERR_INPUT, "%s: it names no host", file);
    if (status == KILTER_OK)
        *list = read;
    else
        kl_host_list_free(&read);
    return status;
}
