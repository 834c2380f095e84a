/* The tests that every implementation of a transport must pass. A case has a function for the master's side
 * and one for the worker's side. The test opens the endpoints before a case, and closes them after it. A
 * failed check ends the process, because the check may be in any thread or rank. */
#ifndef KL_TRANSPORT_SUITE_H
#define KL_TRANSPORT_SUITE_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/transport.h"
#include "transport/transport_private.h"

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: %s does not hold in %s\n", __FILE__, __LINE__, #condition, __func__);    \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

#define CHECK_OK(call)                                                                                       \
    do {                                                                                                     \
        kilter_error error_ = {0};                                                                           \
        kilter_error *error = &error_;                                                                       \
        if ((call) != KILTER_OK) {                                                                           \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, error_.text);                                 \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

enum { SUITE_PEERS_MAX = 256, SUITE_LONG_S = 60 };

/* seconds for which a test waits to see that no wrong event comes */
#define SUITE_SILENCE_S 0.02

typedef struct suite_case {
    const char *name;
    /* function for the master's side; `workers` is in order of the workers' indices */
    void (*master)(kl_transport *t, const kl_peer *workers, unsigned count);
    void (*worker)(kl_transport *t, kl_peer master, unsigned index);
} suite_case;

/* --- functions that several cases use --- */

/* Return the endpoint's next event. Fail if none comes for a long time. */
static inline kl_event suite_next(kl_transport *t) {
    kl_event event;
    CHECK_OK(kl_poll(t, SUITE_LONG_S, &event, error));
    CHECK(event.kind != KL_EVENT_NONE);
    return event;
}

static inline void suite_expect(kl_transport *t, kl_event_kind kind, kl_peer peer) {
    kl_event event = suite_next(t);
    CHECK(event.kind == kind);
    CHECK(event.peer == peer);
    kl_message_release(&event.message);
}

static inline void suite_expect_silence(kl_transport *t) {
    kl_event event;
    CHECK_OK(kl_poll(t, SUITE_SILENCE_S, &event, error));
    CHECK(event.kind == KL_EVENT_NONE);
}

static inline void suite_expect_gone(kl_transport *t, kl_peer peer) {
    kilter_error error = {0};
    CHECK(t->ops->send(t, peer, "x", 1, &error) == KILTER_ERR_PEER);
    CHECK(error.status == KILTER_ERR_PEER && error.text[0]);
}

/* Fill a test message. Every eight bytes differ, so that a part that was lost, doubled or moved is noticed.
 */
static inline void suite_fill(uint8_t *bytes, uint64_t seed, size_t size) {
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = (seed + 1) * 0x9e3779b97f4a7c15u + i;
        memcpy(bytes + i, &word, size - i < 8 ? size - i : 8);
    }
}

static inline void suite_send(kl_transport *t, kl_peer peer, uint64_t seed, size_t size) {
    uint8_t *bytes = malloc(size + 1);
    CHECK(bytes);
    suite_fill(bytes, seed, size);
    CHECK_OK(t->ops->send(t, peer, bytes, size, error));
    memset(bytes, 0xee, size); /* overwrite the bytes, because the transport must have copied them */
    free(bytes);
}

static inline void suite_check_message(const kl_message *message, uint64_t seed, size_t size) {
    uint8_t *expected = malloc(size + 1);
    CHECK(expected && message->size == size);
    suite_fill(expected, seed, size);
    CHECK(size == 0 || memcmp(message->data, expected, size) == 0);
    free(expected);
}

static inline void suite_expect_message(kl_transport *t, kl_peer peer, uint64_t seed, size_t size) {
    kl_event event = suite_next(t);
    CHECK(event.kind == KL_EVENT_MESSAGE);
    CHECK(event.peer == peer);
    suite_check_message(&event.message, seed, size);
    kl_message_release(&event.message);
    CHECK(!event.message.data && !event.message.release);
}

static inline unsigned suite_place(const kl_peer *peers, unsigned count, kl_peer peer) {
    for (unsigned i = 0; i < count; i++)
        if (peers[i] == peer)
            return i;
    return count;
}

/* As the master, receive from each of `count` workers its index, and then let all of them continue. */
static inline void suite_meet_workers(kl_transport *t, kl_peer *workers, unsigned count) {
    kl_peer joined[SUITE_PEERS_MAX];
    unsigned joins = 0;
    CHECK(count <= SUITE_PEERS_MAX);
    for (unsigned indices = 0; indices < count;) {
        kl_event event = suite_next(t);
        CHECK(event.peer != KL_NO_PEER);
        bool known = suite_place(joined, joins, event.peer) < joins;
        if (event.kind == KL_EVENT_JOINED) {
            CHECK(!known && joins < count);
            joined[joins++] = event.peer;
            continue;
        }
        CHECK(event.kind == KL_EVENT_MESSAGE && known);
        uint32_t index;
        CHECK(event.message.size == sizeof index);
        memcpy(&index, event.message.data, sizeof index);
        CHECK(index < count);
        workers[index] = event.peer;
        indices++;
        kl_message_release(&event.message);
    }
    for (unsigned i = 0; i < count; i++)
        CHECK_OK(t->ops->send(t, workers[i], "go", 2, error));
}

static inline kl_peer suite_meet_master(kl_transport *t, unsigned index) {
    kl_event event = suite_next(t);
    CHECK(event.kind == KL_EVENT_JOINED && event.peer != KL_NO_PEER);
    kl_peer master = event.peer;
    uint32_t number = index;
    CHECK_OK(t->ops->send(t, master, &number, sizeof number, error));
    event = suite_next(t);
    CHECK(event.kind == KL_EVENT_MESSAGE && event.peer == master);
    CHECK(event.message.size == 2 && memcmp(event.message.data, "go", 2) == 0);
    kl_message_release(&event.message);
    return master;
}

static inline void suite_leave_to_others(kl_transport *t, kl_peer master, unsigned index) {
    (void)index;
    suite_expect(t, KL_EVENT_LEFT, master);
}

/* --- the test cases --- */

static const size_t suite_sizes[] = {0,      1,       7,    8,    9,       4086, 4087, 4088,
                                     4089,   4095,    4096, 4097, 8191,    8192, 8193, 65536,
                                     100003, 1 << 20, 0,    3,    8 << 20, 5};
enum { SUITE_SIZES = sizeof suite_sizes / sizeof *suite_sizes };

static inline void suite_echo_master(kl_transport *t, const kl_peer *workers, unsigned count) {
    unsigned left = 0;
    while (left < count) {
        kl_event event = suite_next(t);
        CHECK(suite_place(workers, count, event.peer) < count);
        if (event.kind == KL_EVENT_LEFT) {
            left++;
            continue;
        }
        CHECK(event.kind == KL_EVENT_MESSAGE);
        CHECK_OK(t->ops->send(t, event.peer, event.message.data, event.message.size, error));
        kl_message_release(&event.message);
    }
}

static inline void suite_echo_worker(kl_transport *t, kl_peer master, unsigned index) {
    for (unsigned i = 0; i < SUITE_SIZES; i++)
        suite_send(t, master, index + i, suite_sizes[i]);
    for (unsigned i = 0; i < SUITE_SIZES; i++)
        suite_expect_message(t, master, index + i, suite_sizes[i]);
}

enum { SUITE_FLOOD = 5000 };

static inline void suite_flood_master(kl_transport *t, const kl_peer *workers, unsigned count) {
    unsigned received[SUITE_PEERS_MAX] = {0}, left = 0;
    for (unsigned i = 0; i < SUITE_FLOOD; i++)
        for (unsigned w = 0; w < count; w++)
            suite_send(t, workers[w], i, i % 100);
    while (left < count) {
        kl_event event = suite_next(t);
        unsigned w = suite_place(workers, count, event.peer);
        CHECK(w < count);
        if (event.kind == KL_EVENT_LEFT) {
            CHECK(received[w] == SUITE_FLOOD);
            left++;
            continue;
        }
        CHECK(event.kind == KL_EVENT_MESSAGE);
        suite_check_message(&event.message, received[w] + w, (received[w] + w) % 300);
        received[w]++;
        kl_message_release(&event.message);
    }
}

static inline void suite_flood_worker(kl_transport *t, kl_peer master, unsigned index) {
    for (unsigned i = 0; i < SUITE_FLOOD; i++)
        suite_send(t, master, i + index, (i + index) % 300);
    for (unsigned i = 0; i < SUITE_FLOOD; i++)
        suite_expect_message(t, master, i, i % 100);
}

/* Send large messages in both directions at the same time. Neither side may wait until the other receives. */
static inline void suite_cross_master(kl_transport *t, const kl_peer *workers, unsigned count) {
    for (unsigned i = 0; i < 3; i++)
        for (unsigned w = 0; w < count; w++)
            suite_send(t, workers[w], w + i, 1500000);
    unsigned received[SUITE_PEERS_MAX] = {0};
    for (unsigned n = 0; n < 4 * count; n++) {
        kl_event event = suite_next(t);
        unsigned w = suite_place(workers, count, event.peer);
        CHECK(w < count);
        CHECK(event.kind == (received[w] < 3 ? KL_EVENT_MESSAGE : KL_EVENT_LEFT));
        if (event.kind == KL_EVENT_MESSAGE)
            suite_check_message(&event.message, 2 * w + received[w], 1000001);
        received[w]++;
        kl_message_release(&event.message);
    }
}

static inline void suite_cross_worker(kl_transport *t, kl_peer master, unsigned index) {
    for (unsigned i = 0; i < 3; i++)
        suite_send(t, master, 2 * index + i, 1000001);
    for (unsigned i = 0; i < 3; i++)
        suite_expect_message(t, master, index + i, 1500000);
}

/* Send messages of sizes at which a transport may change its method. Keep them while other messages arrive,
 * and release them in any order. Their contents must not change. */
static const size_t suite_large_sizes[] = {16383, 16384,  16385,  32767,  32768,  32769, 65535,  65536,
                                           65537, 262143, 262144, 262145, 524300, 10,    1000003};
enum { SUITE_LARGE_SIZES = sizeof suite_large_sizes / sizeof *suite_large_sizes };
enum { SUITE_LARGE = 4 * SUITE_LARGE_SIZES, SUITE_HELD = 10 };

typedef struct suite_held {
    kl_message messages[SUITE_HELD];
    uint64_t seeds[SUITE_HELD];
    uint64_t draws;
} suite_held;

static inline size_t suite_large_size(uint64_t seed) {
    return suite_large_sizes[seed % SUITE_LARGE_SIZES];
}

static inline void suite_release_held(suite_held *held, unsigned i) {
    if (held->messages[i].release)
        suite_check_message(&held->messages[i], held->seeds[i], suite_large_size(held->seeds[i]));
    kl_message_release(&held->messages[i]);
}

static inline void suite_hold(suite_held *held, kl_message message, uint64_t seed) {
    unsigned i = (unsigned)(kl_mix64(held->draws++) % SUITE_HELD);
    suite_release_held(held, i);
    held->messages[i] = message;
    held->seeds[i] = seed;
}

static inline void suite_held_master(kl_transport *t, const kl_peer *workers, unsigned count) {
    suite_held held = {0};
    unsigned received[SUITE_PEERS_MAX] = {0};
    for (unsigned i = 0; i < SUITE_LARGE; i++)
        for (unsigned w = 0; w < count; w++)
            suite_send(t, workers[w], w + i, suite_large_size(w + i));
    for (unsigned left = 0; left < count;) {
        kl_event event = suite_next(t);
        unsigned w = suite_place(workers, count, event.peer);
        CHECK(w < count && event.kind == (received[w] < SUITE_LARGE ? KL_EVENT_MESSAGE : KL_EVENT_LEFT));
        left += event.kind == KL_EVENT_LEFT;
        if (event.kind == KL_EVENT_MESSAGE)
            suite_hold(&held, event.message, 2 * w + received[w]++);
    }
    for (unsigned i = 0; i < SUITE_HELD; i++)
        suite_release_held(&held, i);
}

static inline void suite_held_worker(kl_transport *t, kl_peer master, unsigned index) {
    suite_held held = {0};
    for (unsigned i = 0; i < SUITE_LARGE; i++) {
        suite_send(t, master, 2 * index + i, suite_large_size(2 * index + i));
        kl_event event = suite_next(t);
        CHECK(event.kind == KL_EVENT_MESSAGE && event.peer == master);
        suite_hold(&held, event.message, index + i);
    }
    for (unsigned i = 0; i < SUITE_HELD; i++)
        suite_release_held(&held, i);
}

/* Close a worker right after sending. All its messages must arrive, then LEFT must come once. */
enum { SUITE_LAST_WORDS = 40 };

static inline size_t suite_last_word_size(unsigned i) {
    return i % 5 == 0 ? 200000 : i;
}

static inline void suite_last_words_master(kl_transport *t, const kl_peer *workers, unsigned count) {
    unsigned received[SUITE_PEERS_MAX] = {0};
    for (unsigned left = 0; left < count;) {
        kl_event event = suite_next(t);
        unsigned w = suite_place(workers, count, event.peer);
        CHECK(w < count);
        if (event.kind == KL_EVENT_LEFT) {
            /* count this event, too, so that the check fails if LEFT comes a second time */
            CHECK(received[w]++ == SUITE_LAST_WORDS);
            left++;
            suite_expect_gone(t, event.peer);
            continue;
        }
        CHECK(event.kind == KL_EVENT_MESSAGE && received[w] < SUITE_LAST_WORDS);
        suite_check_message(&event.message, received[w], suite_last_word_size(received[w]));
        received[w]++;
        kl_message_release(&event.message);
    }
    suite_expect_silence(t);
    for (unsigned w = 0; w < count; w++)
        suite_expect_gone(t, workers[w]);
}

static inline void suite_last_words_worker(kl_transport *t, kl_peer master, unsigned index) {
    (void)index;
    for (unsigned i = 0; i < SUITE_LAST_WORDS; i++)
        suite_send(t, master, i, suite_last_word_size(i));
}

/* Close the master right after sending. Its messages must arrive, although the worker keeps sending. */
static inline void suite_closing_master(kl_transport *t, const kl_peer *workers, unsigned count) {
    for (unsigned i = 0; i < SUITE_LAST_WORDS; i++)
        for (unsigned w = 0; w < count; w++)
            suite_send(t, workers[w], i, suite_last_word_size(i));
}

static inline void suite_closing_worker(kl_transport *t, kl_peer master, unsigned index) {
    (void)index;
    unsigned received = 0;
    for (unsigned sent = 0;;) {
        kl_event event;
        if (sent < 2000 && t->ops->send(t, master, &sent, sizeof sent, NULL) == KILTER_OK)
            sent++;
        CHECK_OK(kl_poll(t, sent < 2000 ? 0 : SUITE_LONG_S, &event, error));
        if (event.kind == KL_EVENT_LEFT)
            break;
        if (event.kind == KL_EVENT_NONE)
            continue;
        CHECK(event.kind == KL_EVENT_MESSAGE && received < SUITE_LAST_WORDS);
        suite_check_message(&event.message, received, suite_last_word_size(received));
        received++;
        kl_message_release(&event.message);
    }
    CHECK(received == SUITE_LAST_WORDS);
    suite_expect_gone(t, master);
    suite_expect_silence(t);
}

/* Drop a peer. No further event of this peer may come on this side; on the other side LEFT must come. */
static inline void suite_drop_master(kl_transport *t, const kl_peer *workers, unsigned count) {
    if (count > 0) { /* send several messages, so that some still wait in this endpoint's queue */
        kl_event event = suite_next(t);
        CHECK(event.kind == KL_EVENT_MESSAGE);
        kl_message_release(&event.message);
    }
    for (unsigned w = 0; w < count; w++) {
        kl_drop(t, workers[w]);
        suite_expect_gone(t, workers[w]);
        kl_drop(t, workers[w]); /* a second drop does nothing */
    }
    kl_drop(t, 1000000);
    suite_expect_silence(t);
}

static inline void suite_drop_worker(kl_transport *t, kl_peer master, unsigned index) {
    /* some of these messages are on their way when the master drops this worker; later ones are refused */
    for (unsigned i = 0; i < 50; i++)
        (void)t->ops->send(t, master, &index, sizeof index, NULL);
    suite_expect(t, KL_EVENT_LEFT, master);
    suite_expect_gone(t, master);
    suite_expect_silence(t);
}

static inline void suite_dropped_master(kl_transport *t, const kl_peer *workers, unsigned count) {
    bool gone[SUITE_PEERS_MAX] = {false};
    for (unsigned n = 0; n < count; n++) {
        kl_event event = suite_next(t);
        unsigned w = suite_place(workers, count, event.peer);
        CHECK(w < count && event.kind == KL_EVENT_LEFT && !gone[w]);
        gone[w] = true;
    }
    suite_expect_silence(t);
}

static inline void suite_dropped_worker(kl_transport *t, kl_peer master, unsigned index) {
    (void)index;
    kl_drop(t, master);
    suite_expect_gone(t, master);
    suite_expect_silence(t);
}

/* Wake the endpoint from another thread. A wake must end one poll: the poll that waits or, if none waits,
 * the next one. */
static inline void *suite_wake(void *transport) {
    kl_transport_wake(transport);
    return NULL;
}

static inline void suite_wakes(kl_transport *t) {
    kl_event event;
    for (int i = 0; i < 50; i++) {
        pthread_t waker;
        CHECK(pthread_create(&waker, NULL, suite_wake, t) == 0);
        CHECK_OK(kl_poll(t, -1, &event, error));
        CHECK(event.kind == KL_EVENT_NONE);
        pthread_join(waker, NULL);
    }
    kl_transport_wake(t);
    kl_transport_wake(t);
    CHECK_OK(kl_poll(t, -1, &event, error));
    CHECK(event.kind == KL_EVENT_NONE);
}

static inline void suite_wake_master(kl_transport *t, const kl_peer *workers, unsigned count) {
    suite_wakes(t);
    for (unsigned w = 0; w < count; w++)
        suite_send(t, workers[w], 1, 10);
    for (unsigned w = 0; w < count; w++) {
        kl_event event = suite_next(t);
        CHECK(event.kind == KL_EVENT_LEFT);
    }
}

static inline void suite_wake_worker(kl_transport *t, kl_peer master, unsigned index) {
    (void)index;
    suite_expect_message(t, master, 1, 10);
    suite_wakes(t);
}

/* Wake an endpoint that has a message waiting. The wake must come first, and the message must stay. */
static inline void suite_wake_first_master(kl_transport *t, const kl_peer *workers, unsigned count) {
    for (unsigned w = 0; w < count; w++)
        suite_send(t, workers[w], 2, 20);
    for (unsigned w = 0; w < count; w++)
        CHECK(suite_next(t).kind == KL_EVENT_LEFT);
}

static inline void suite_wake_first_worker(kl_transport *t, kl_peer master, unsigned index) {
    (void)index;
    kl_event event;
    kl_transport_wake(t);
    CHECK_OK(kl_poll(t, SUITE_LONG_S, &event, error));
    CHECK(event.kind == KL_EVENT_NONE);
    suite_expect_message(t, master, 2, 20);
}

static inline void suite_timeout_master(kl_transport *t, const kl_peer *workers, unsigned count) {
    kl_event event;
    CHECK_OK(kl_poll(t, 0, &event, error));
    CHECK(event.kind == KL_EVENT_NONE && event.peer == KL_NO_PEER && !event.message.data);
    double timeouts_s[] = {1e-9, 0.0003, 0.03};
    for (int i = 0; i < 3; i++) {
        double start_s = kl_monotonic_s();
        CHECK_OK(kl_poll(t, timeouts_s[i], &event, error));
        CHECK(event.kind == KL_EVENT_NONE);
        CHECK(kl_monotonic_s() - start_s >= 0.999 * timeouts_s[i]);
    }
    for (unsigned w = 0; w < count; w++)
        suite_send(t, workers[w], 3, 30);
}

static inline void suite_timeout_worker(kl_transport *t, kl_peer master, unsigned index) {
    (void)index;
    kl_event event;
    CHECK_OK(kl_poll(t, -1, &event, error));
    CHECK(event.kind == KL_EVENT_MESSAGE && event.peer == master);
    suite_check_message(&event.message, 3, 30);
    kl_message_release(&event.message);
    double longest_s[] = {1e18, 1e300};
    CHECK_OK(kl_poll(t, longest_s[index % 2], &event, error));
    CHECK(event.kind == KL_EVENT_LEFT);
}

/* Send to unknown peers. Each send must fail. */
static inline void suite_nobody_master(kl_transport *t, const kl_peer *workers, unsigned count) {
    suite_expect_gone(t, KL_NO_PEER);
    suite_expect_gone(t, UINT64_MAX);
    kl_peer other = 1000;
    while (suite_place(workers, count, other) < count)
        other++;
    suite_expect_gone(t, other);
}

static inline void suite_nobody_worker(kl_transport *t, kl_peer master, unsigned index) {
    suite_expect_gone(t, KL_NO_PEER);
    suite_expect_gone(t, master + 1);
    suite_expect_gone(t, master + 2 + index);
    suite_expect_gone(t, UINT64_MAX);
    suite_leave_to_others(t, master, index);
}

/* Let workers reach each other by addresses that the master passes on. Each worker sends messages to every
 * other worker. All messages must arrive once and in order, including the master's messages. */
enum { SUITE_REACH = 12 };

static inline void suite_reach_master(kl_transport *t, const kl_peer *workers, unsigned count) {
    char *list = calloc(count, KL_ADDRESS_BYTES);
    CHECK(list);
    for (unsigned phase = 0; phase < 2; phase++) {
        for (unsigned n = 0; n < count; n++) {
            kl_event event = suite_next(t);
            unsigned w = suite_place(workers, count, event.peer);
            CHECK(event.kind == KL_EVENT_MESSAGE && w < count);
            CHECK(event.message.size == (phase == 0 ? KL_ADDRESS_BYTES : 1));
            if (phase == 0)
                memcpy(list + (size_t)w * KL_ADDRESS_BYTES, event.message.data, KL_ADDRESS_BYTES);
            kl_message_release(&event.message);
        }
        for (unsigned w = 0; w < count; w++)
            CHECK_OK(t->ops->send(t, workers[w], list, (size_t)count * KL_ADDRESS_BYTES, error));
    }
    free(list);
    for (unsigned w = 0; w < count; w++) {
        kl_event event = suite_next(t);
        CHECK(event.kind == KL_EVENT_LEFT);
    }
}

/* a worker that exchanges messages with other workers */
typedef struct suite_mate {
    kl_transport *t;
    kl_peer master;
    unsigned index, got;                /* got: number of messages received from other workers */
    unsigned received[SUITE_PEERS_MAX]; /* the same number, for each sender */
} suite_mate;

/* The first four bytes of a message are its sender's index, the next four bytes are its number. */
static inline void suite_take_reached(suite_mate *m, kl_message *message) {
    uint32_t head[2];
    CHECK(message->size >= sizeof head);
    memcpy(head, message->data, sizeof head);
    CHECK(head[0] < SUITE_PEERS_MAX && head[0] != m->index && head[1] == m->received[head[0]]++);
    CHECK(message->size == 8 + suite_large_sizes[head[1]]);
    kl_message_release(message);
    m->got++;
}

/* Take the messages of other workers that have arrived. A worker must poll while it sends, because the
 * connections of other workers to it are only made while it polls. */
static inline void suite_take_arrived(suite_mate *m) {
    for (;;) {
        kl_event event;
        CHECK_OK(kl_poll(m->t, 0, &event, error));
        if (event.kind == KL_EVENT_NONE)
            return;
        CHECK(event.peer != m->master && event.kind != KL_EVENT_LEFT);
        if (event.kind == KL_EVENT_MESSAGE)
            suite_take_reached(m, &event.message);
    }
}

/* Return the master's next message, and take the messages of other workers. Return a message of zeros when
 * m->got reaches `until`. */
static inline kl_message suite_hear_master(suite_mate *m, unsigned until) {
    while (m->got < until) {
        kl_event event = suite_next(m->t);
        if (event.kind != KL_EVENT_MESSAGE)
            CHECK(event.peer != m->master);
        else if (event.peer == m->master)
            return event.message;
        else
            suite_take_reached(m, &event.message);
    }
    return (kl_message){0};
}

/* Reach all other workers and send messages to them. */
static inline void suite_reach_all(suite_mate *m, const char *list, unsigned count) {
    kl_peer others[SUITE_PEERS_MAX];
    for (unsigned w = 0; w < count; w++)
        if (w != m->index)
            CHECK_OK(kl_reach(m->t, list + (size_t)w * KL_ADDRESS_BYTES, &others[w], error));
    for (unsigned i = 0; i < SUITE_REACH; i++)
        for (unsigned w = 0; w < count; w++) {
            size_t size = 8 + suite_large_sizes[i];
            uint32_t *bytes = calloc(1, size);
            CHECK(bytes);
            bytes[0] = m->index;
            bytes[1] = i;
            if (w != m->index)
                CHECK_OK(m->t->ops->send(m->t, others[w], bytes, size, error));
            free(bytes);
            suite_take_arrived(m);
        }
}

static inline void suite_reach_worker(kl_transport *t, kl_peer master, unsigned index) {
    char address[KL_ADDRESS_BYTES] = "", again[KL_ADDRESS_BYTES];
    suite_mate m = {.t = t, .master = master, .index = index};
    kl_peer nobody;
    kilter_error refused = {KILTER_OK, ""};
    CHECK_OK(kl_open_to_workers(t, address, error));
    CHECK_OK(kl_open_to_workers(t, again, error));
    CHECK(strcmp(address, again) == 0);
    CHECK(kl_reach(t, "nowhere", &nobody, &refused) == KILTER_ERR_USAGE && refused.text[0]);
    CHECK_OK(t->ops->send(t, master, address, sizeof address, error));
    kl_message list = suite_hear_master(&m, UINT32_MAX);
    unsigned count = (unsigned)(list.size / KL_ADDRESS_BYTES), all = SUITE_REACH * (count - 1);
    suite_reach_all(&m, (const char *)list.data, count);
    kl_message_release(&list);
    CHECK(m.got == all || !suite_hear_master(&m, all).data);
    CHECK_OK(t->ops->send(t, master, "d", 1, error));
    /* with this message, the master says that all workers have their messages */
    kl_message end = suite_hear_master(&m, UINT32_MAX);
    CHECK(m.got == all && end.size == (size_t)count * KL_ADDRESS_BYTES);
    kl_message_release(&end);
}

static const suite_case suite_cases[] = {
    {"echoes of messages of all sizes arrive complete and in order", suite_echo_master, suite_echo_worker},
    {"thousands of messages are sent in both directions", suite_flood_master, suite_flood_worker},
    {"large messages are sent in both directions at the same time", suite_cross_master, suite_cross_worker},
    {"large messages are held, and released in any order", suite_held_master, suite_held_worker},
    {"a worker's last messages arrive, then LEFT comes once", suite_last_words_master,
     suite_last_words_worker},
    {"the master's last messages arrive, then LEFT comes once", suite_closing_master, suite_closing_worker},
    {"the master drops its workers", suite_drop_master, suite_drop_worker},
    {"a worker drops", suite_dropped_master, suite_dropped_worker},
    {"kl_transport_wake() ends a wait", suite_wake_master, suite_wake_worker},
    {"a wake comes before a message that waits", suite_wake_first_master, suite_wake_first_worker},
    {"timeouts", suite_timeout_master, suite_timeout_worker},
    {"unknown names", suite_nobody_master, suite_nobody_worker},
    {"workers reach each other", suite_reach_master, suite_reach_worker},
};
enum { SUITE_CASES = sizeof suite_cases / sizeof *suite_cases };

/* --- running the cases with threads as workers --- */

typedef struct suite_thread {
    pthread_t thread;
    kl_transport *endpoint;
    const suite_case *its_case;
    unsigned index;
} suite_thread;

static inline void *suite_run_worker(void *argument) {
    suite_thread *self = argument;
    kl_peer master = suite_meet_master(self->endpoint, self->index);
    self->its_case->worker(self->endpoint, master, self->index);
    kl_transport_close(self->endpoint);
    return NULL;
}

/* Run a case with threads as workers, and close the endpoints. */
static inline void suite_run_threads(const suite_case *its_case, kl_transport *master, kl_transport **workers,
                                     unsigned count) {
    suite_thread threads[SUITE_PEERS_MAX];
    kl_peer peers[SUITE_PEERS_MAX];
    CHECK(master->ops->threads && count <= SUITE_PEERS_MAX);
    for (unsigned i = 0; i < count; i++) {
        threads[i] = (suite_thread){.endpoint = workers[i], .its_case = its_case, .index = i};
        CHECK(pthread_create(&threads[i].thread, NULL, suite_run_worker, &threads[i]) == 0);
    }
    suite_meet_workers(master, peers, count);
    its_case->master(master, peers, count);
    kl_transport_close(master);
    for (unsigned i = 0; i < count; i++)
        pthread_join(threads[i].thread, NULL);
}

#endif
