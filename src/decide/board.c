/* A board (kl_board) has functions that say which tasks a worker holds and which workers wait. Their answers
 * decide whether tasks are recalled or copied. Record the answers, and give the same answers when the
 * decision is made again. */
#include "decide/grounds.h"

typedef enum question { HELD = 1, WAITS, WAITING } question;

#define REAL(member)                                                                                         \
    { KL_MEMBER_REAL, offsetof(kl_held, member) }
#define COUNT(member)                                                                                        \
    { KL_MEMBER_U64, offsetof(kl_held, member) }
static const kl_member of_held[] = {
    COUNT(tasks),  COUNT(kept),        REAL(units),          REAL(first_units),
    REAL(asked_s), REAL(hand.heard_s), REAL(hand.elapsed_s), REAL(hand.share),
};
static const kl_members members_of_held = {of_held, sizeof of_held / sizeof *of_held};

/* --- record what the board answers --- */

typedef struct listener {
    const kl_board *board;
    kl_buffer *out;
} listener;

static void hear_held(const void *self, uint32_t worker, kl_held *held) {
    const listener *l = self;
    const kl_held none = {0};
    l->board->held(l->board->self, worker, held);
    kl_put_u8(l->out, HELD);
    kl_grounds_put_count(l->out, worker);
    kl_grounds_put_changes(l->out, &members_of_held, &none, held);
}

static bool hear_waits(const void *self, uint32_t worker) {
    const listener *l = self;
    bool waits = l->board->waits(l->board->self, worker);
    kl_put_u8(l->out, WAITS);
    kl_grounds_put_count(l->out, worker);
    kl_grounds_put_count(l->out, waits);
    return waits;
}

static uint32_t hear_waiting(const void *self) {
    const listener *l = self;
    uint32_t waiting = l->board->waiting(l->board->self);
    kl_put_u8(l->out, WAITING);
    kl_grounds_put_count(l->out, 0);
    kl_grounds_put_count(l->out, waiting);
    return waiting;
}

void kl_grounds_rescue(kl_grounds *grounds, const kl_snapshot *s, const kl_board *board, kl_rescue *rescue) {
    listener l = {board, kl_grounds_answers_of_board(grounds)};
    const kl_board heard = {&l, hear_held, hear_waits, hear_waiting, board->coming_units};
    kl_rescue_choose(s, l.out ? &heard : board, rescue);
    if (rescue->decision.kind != KL_DECIDES_NOTHING)
        kl_grounds_rescues(grounds, s, board->coming_units);
}

/* --- give the recorded answers when a decision is made again --- */

typedef struct memory {
    kl_reader answers;
    bool lacks; /* true: the board was asked a question that has no recorded answer */
} memory;

/* Find the recorded answer to a question about a worker. Return false if there is no recorded answer. */
static bool find(memory *m, question asked, uint32_t of, kl_held *held, uint64_t *number) {
    kl_reader r = m->answers;
    while (r.at < r.size && !r.bad) {
        question question = kl_get_u8(&r);
        uint64_t worker = kl_grounds_get_count(&r);
        *held = (kl_held){0};
        if (question == HELD)
            kl_grounds_get_changes(&r, &members_of_held, held);
        else
            *number = kl_grounds_get_count(&r);
        if (question == asked && worker == of && !r.bad)
            return true;
    }
    m->lacks = true;
    return false;
}

static void recall_held(const void *self, uint32_t worker, kl_held *held) {
    uint64_t number;
    if (!find((memory *)self, HELD, worker, held, &number))
        *held = (kl_held){.kept = 1};
}

static uint64_t number_of(const void *self, question question, uint32_t worker) {
    kl_held held;
    uint64_t number = 0;
    return find((memory *)self, question, worker, &held, &number) ? number : 0;
}

static bool recall_waits(const void *self, uint32_t worker) {
    return number_of(self, WAITS, worker) > 0;
}

static uint32_t recall_waiting(const void *self) {
    uint64_t waiting = number_of(self, WAITING, 0);
    return waiting == 0 || waiting > UINT32_MAX ? 1 : (uint32_t)waiting;
}

bool kl_rescue_again(const kl_snapshot *s, kl_reader answers, double coming_units, kl_rescue *rescue) {
    memory m = {answers, false};
    const kl_board board = {&m, recall_held, recall_waits, recall_waiting, coming_units};
    kl_rescue_choose(s, &board, rescue);
    return !m.lacks;
}
