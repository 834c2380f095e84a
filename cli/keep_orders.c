/* Orders: requests of kilter move and kilter drain to the keeper of a run. An order is the file `order` in
 * the keep folder, which only one process can create at a time. The answer is in a separate file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach.h"
#include "cmd.h"
#include "keep.h"

static const double ANSWER_PATIENCE_S = 10, LOOK_S = 0.02;

static const struct {
    kl_keeper_event_kind kind;
    const char *name;
} KINDS[] = {{KL_KEEPER_MOVE, "move"}, {KL_KEEPER_DRAIN, "drain"}, {KL_KEEPER_STOP, "stop"}};

/* --- what the keeper does: read a request and answer it --- */

static void take_field(const kl_field *f, kl_keep_order *order) {
    if (kl_field_is(f, "token") && strspn(f->value, "0123456789abcdef") == strlen(f->value))
        snprintf(order->token, sizeof order->token, "%.16s", f->value);
    if (kl_field_is(f, "hosts"))
        snprintf(order->names, sizeof order->names, "%s", f->value);
    for (size_t i = 0; kl_field_is(f, "what") && i < sizeof KINDS / sizeof *KINDS; i++)
        if (strcmp(f->value, KINDS[i].name) == 0)
            order->kind = KINDS[i].kind;
}

bool kl_keep_order_take(const char *folder, kl_keep_order *order) {
    kl_buffer text = {0};
    kl_field f;
    bool bad = false, there = kl_keep_read(folder, "order", &text);
    *order = (kl_keep_order){.kind = KL_KEEPER_TIME};
    if (there) {
        kl_fields fields = kl_fields_of((const char *)text.data, text.size);
        while (kl_fields_next(&fields, &f, &bad))
            take_field(&f, order);
        char *path = kl_keep_file(folder, "order");
        if (path)
            unlink(path);
        free(path);
    }
    kl_buffer_free(&text);
    return there && !bad && *order->token && order->kind != KL_KEEPER_TIME;
}

static void answer_name(char name[48], const char *token) {
    snprintf(name, 48, "answer.%s", token);
}

void kl_keep_order_answer(const char *folder, const kl_keep_order *order, const kl_keeper *keeper) {
    char name[48];
    kl_buffer text = {0};
    answer_name(name, order->token);
    kl_put_field(&text, "refused", keeper->refused ? "1" : "0");
    kl_put_field(&text, "answer", keeper->answer);
    kl_keep_write(folder, name, &text, NULL);
    kl_buffer_free(&text);
}

/* --- what kilter move and kilter drain do: write a request and wait for the answer --- */

static bool keeper_lives(const char *folder) {
    char *lock = kl_keep_file(folder, "lock");
    bool lives = lock && kl_lock_is_held(lock);
    free(lock);
    return lives;
}

/* Write the order into the folder. Wait while another order is there. */
static kilter_status put_order(const char *folder, const char *token, const kl_buffer *text,
                               kilter_error *error) {
    char part_name[48];
    snprintf(part_name, sizeof part_name, "order.%s", token);
    kilter_status status = kl_keep_write(folder, part_name, text, error);
    char *part = kl_keep_file(folder, part_name), *whole = kl_keep_file(folder, "order");
    double until_s = kl_monotonic_s() + ANSWER_PATIENCE_S;
    int code = -1;
    while (status == KILTER_OK && part && whole && (code = link(part, whole)) != 0 && errno == EEXIST &&
           kl_monotonic_s() < until_s)
        kl_nap_s(LOOK_S);
    if (status == KILTER_OK && code != 0)
        status = kl_fail(error, KILTER_ERR_SYSTEM, "asking the keeper of '%s': %s", folder,
                         part && whole ? strerror(errno) : "memory ran out");
    if (part)
        unlink(part);
    free(part);
    free(whole);
    return status;
}

static bool read_answer(const char *folder, const char *token, char *answer, bool *refused) {
    char name[48];
    kl_buffer text = {0};
    kl_field f;
    bool bad = false;
    answer_name(name, token);
    bool there = kl_keep_read(folder, name, &text);
    kl_fields fields = kl_fields_of((const char *)text.data, text.size);
    while (there && kl_fields_next(&fields, &f, &bad)) {
        if (kl_field_is(&f, "answer"))
            snprintf(answer, KL_KEEPER_TEXT_BYTES, "%s", f.value);
        if (kl_field_is(&f, "refused"))
            *refused = *f.value == '1';
    }
    char *path = there ? kl_keep_file(folder, name) : NULL;
    if (path)
        unlink(path);
    free(path);
    kl_buffer_free(&text);
    return there;
}

/* Remove an order that the keeper has not read. Otherwise a later keeper would carry it out. */
static void take_back(const char *folder, const char *token) {
    kl_buffer text = {0};
    char *path = kl_keep_file(folder, "order");
    if (path && kl_keep_read(folder, "order", &text) && memmem(text.data, text.size, token, strlen(token)))
        unlink(path);
    kl_buffer_free(&text);
    free(path);
}

static kilter_status ask(const char *folder, kl_keeper_event_kind kind, const char *names, char *answer,
                         kilter_error *error) {
    char token[24];
    bool refused = false;
    kl_buffer text = {0};
    snprintf(token, sizeof token, "%016llx", (unsigned long long)kl_token());
    kl_put_field(&text, "token", token);
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (KINDS[i].kind == kind)
            kl_put_field(&text, "what", KINDS[i].name);
    kl_put_field(&text, "hosts", names ? names : "");
    kilter_status status = put_order(folder, token, &text, error);
    kl_buffer_free(&text);
    double until_s = kl_monotonic_s() + ANSWER_PATIENCE_S;
    while (status == KILTER_OK && !read_answer(folder, token, answer, &refused)) {
        if (kl_monotonic_s() > until_s) {
            take_back(folder, token);
            return kl_fail(error, KILTER_ERR_PEER, "the keeper of '%s' does not answer", folder);
        }
        kl_nap_s(LOOK_S);
    }
    return status == KILTER_OK && refused ? kl_fail(error, KILTER_ERR_RANGE, "%s", answer) : status;
}

int kl_keep_order_give(const char *command, const char *folder, kl_keeper_event_kind kind, const char *names,
                       bool json) {
    char answer[KL_KEEPER_TEXT_BYTES] = "";
    kilter_error error = {.status = KILTER_OK};
    if (!kl_keep_is_folder(folder))
        kl_fail(&error, KILTER_ERR_INPUT, "'%s' is not the folder of a kept run", folder);
    else if (!keeper_lives(folder))
        kl_fail(&error, KILTER_ERR_INPUT, "no keeper works on '%s': start its kilter run --keep again",
                folder);
    else
        ask(folder, kind, names, answer, &error);
    return error.status == KILTER_OK ? kl_cmd_print_answer(answer, json) : kilter_exit(command, &error);
}
