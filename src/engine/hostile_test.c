/* Let a worker violate the protocol at each of its steps. Check that the master sends it away, and that the
 * other workers do every task once. The master is real, under a simulated clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/harvest.h"
#include "engine/stepped.h"

enum { TASKS = 60 };

static int work(const kilter_task *task, kilter_result *result, void *state) {
    stepped_spend(state, 1e-3);
    return kilter_result_put(result, &task->index, sizeof task->index) != KILTER_OK;
}

/* --- the hostile peer: an endpoint that the test uses instead of worker 0 --- */

typedef struct scene {
    stepped_farm farm;
    kl_peer master;
    kl_chunk_head chunks[2]; /* the chunks that the master dealt to the hostile peer */
    uint32_t chunk_count;
} scene;

static stepped_actor *peer_of(scene *s) {
    return &s->farm.workers[0];
}

static void say(scene *s, const kl_buffer *message) {
    stepped_actor *peer = peer_of(s);
    peer->now_s = fmax(peer->now_s, s->farm.master_actor.now_s);
    /* ignore an error of sending, because the master may have dropped the peer */
    kl_send(peer->transport, s->master, message, NULL);
}

static void say_and_forget(scene *s, kl_buffer *message) {
    say(s, message);
    kl_buffer_free(message);
}

/* Run the farm until a message for the hostile peer comes, and return the message's type. */
static kl_message_type hear(scene *s, kl_message *message) {
    stepped_actor *peer = peer_of(s);
    for (;;) {
        double next_s = kl_inproc_next_s(s->farm.hub, peer->endpoint);
        if (next_s == HUGE_VAL) {
            assert_int_equal(stepped_turn(&s->farm, NULL), KILTER_OK);
            continue;
        }
        peer->now_s = fmax(peer->now_s, next_s);
        kl_event event;
        assert_int_equal(kl_poll(peer->transport, 0, &event, NULL), KILTER_OK);
        if (event.kind == KL_EVENT_JOINED)
            s->master = event.peer;
        if (event.kind == KL_EVENT_JOINED || event.kind == KL_EVENT_LEFT)
            return (kl_message_type)0;
        if (event.kind == KL_EVENT_MESSAGE) {
            *message = event.message;
            return kl_wire_type(message->data, message->size);
        }
    }
}

static void hear_some(scene *s, kl_message_type expected) {
    kl_message message = {0};
    assert_int_equal(hear(s, &message), expected);
    kl_message_release(&message);
}

static void say_hello(scene *s) {
    kl_buffer out = {0};
    kl_wire_put_hello(&out, &(kl_hello){.version = KL_WIRE_VERSION, .host = "there", .program = "test"});
    say_and_forget(s, &out);
}

static void say_plain(scene *s, kl_message_type type) {
    kl_buffer out = {0};
    kl_wire_put_plain(&out, type);
    say_and_forget(s, &out);
}

static void hear_chunk(scene *s) {
    kl_message message = {0};
    kl_reader weights, inputs;
    assert_int_equal(hear(s, &message), KL_CHUNK);
    assert_true(
        kl_wire_get_chunk(message.data, message.size, &s->chunks[s->chunk_count++], &weights, &inputs));
    kl_message_release(&message);
}

static void ask_for_chunk(scene *s) {
    kl_buffer out = {0};
    kl_wire_begin_results(&out);
    kl_wire_end_results(&out, &(kl_results_head){.more = true});
    say_and_forget(s, &out);
    hear_chunk(s);
}

static void answer_probes(scene *s) {
    while (kl_master_ready(s->farm.master) < s->farm.count) {
        kl_message message = {0};
        if (kl_inproc_next_s(s->farm.hub, peer_of(s)->endpoint) == HUGE_VAL) {
            assert_int_equal(stepped_turn(&s->farm, NULL), KILTER_OK);
            continue;
        }
        assert_int_equal(hear(s, &message), KL_PROBE);
        kl_buffer out = {0};
        kl_wire_put_bytes(&out, KL_ECHO, message.data + 1, message.size - 1);
        say_and_forget(s, &out);
        kl_message_release(&message);
    }
}

typedef enum step { GREETING, STARTING, PROBING, WORKING, STEPS } step;

/* Follow the protocol up to step `until`. On the way, a run of TASKS tasks begins. */
static void play(scene *s, step until, const kilter_run *run) {
    *s = (scene){0};
    stepped_open(&s->farm, "ss", 2, 50e-6, work);
    kl_worker_free(peer_of(s)->worker);
    peer_of(s)->worker = NULL;
    hear_some(s, (kl_message_type)0);
    if (until > GREETING) {
        say_hello(s);
        hear_some(s, KL_WELCOME);
    }
    if (until > STARTING) {
        say_plain(s, KL_READY);
        if (until == PROBING)
            hear_some(s, KL_PROBE);
    }
    if (until > PROBING)
        answer_probes(s);
    while (kl_master_ready(s->farm.master) < (until > PROBING ? 2u : 1u))
        assert_int_equal(stepped_turn(&s->farm, NULL), KILTER_OK);
    assert_int_equal(kl_master_begin(s->farm.master, run, NULL), KILTER_OK);
    if (until < WORKING)
        return;
    hear_chunk(s);
    ask_for_chunk(s);
}

/* --- the workers that follow the protocol --- */

static void count(const kilter_outcome *outcome, void *user) {
    assert_int_equal(outcome->status, KILTER_OK);
    ((uint8_t *)user)[outcome->index]++;
}

/* Check that the hostile peer is gone and that every task was done once. */
static void check(scene *s, kl_deliverer *deliverer, const uint8_t *seen) {
    while (kl_master_running(s->farm.master)) {
        assert_int_equal(stepped_turn(&s->farm, NULL), KILTER_OK);
        assert_int_equal(kl_deliver(deliverer, kl_master_take(s->farm.master), NULL), KILTER_OK);
    }
    assert_int_equal(kl_master_refused(s->farm.master), 1);
    assert_int_equal(kl_master_ready(s->farm.master), 1);
    for (int i = 0; i < TASKS; i++)
        assert_int_equal(seen[i], 1);
    const char *loss = kl_master_last_loss(s->farm.master);
    for (; *loss; loss++)
        assert_true((unsigned char)*loss >= ' ');
    kl_transport_close(peer_of(s)->transport);
    stepped_close(&s->farm);
}

static void misbehave(step until, void (*how)(scene *s, uint32_t variant), uint32_t variant) {
    scene s;
    uint8_t seen[TASKS] = {0};
    kl_deliverer *deliverer;
    const kilter_run run = {.tasks = TASKS, .done = count, .user = seen};
    assert_int_equal(kl_deliverer_new(&run, (kl_reducer){0}, &deliverer, NULL), KILTER_OK);
    play(&s, until, &run);
    how(&s, variant);
    check(&s, deliverer, seen);
    kl_deliverer_free(deliverer);
}

/* --- violations --- */

enum { TYPES = KL_DISBAND + 2 };

/* Send a message of one byte, which is its type. At every step, the test tries all types that are wrong at
 * this step, and also 0 and a type that is too large. */
static void say_one_byte(scene *s, uint32_t type) {
    kl_buffer out = {0};
    kl_put_u8(&out, (uint8_t)type);
    say_and_forget(s, &out);
}

static void say_nothing(scene *s, uint32_t variant) {
    (void)variant;
    say(s, &(kl_buffer){0});
}

/* Send a message whose first byte is a type, and whose other bytes are random. */
static void say_noise(scene *s, uint32_t variant) {
    kl_buffer out = {0};
    kl_put_u8(&out, (uint8_t)(variant % TYPES));
    for (uint32_t i = 0; i < 1 + variant; i++)
        kl_put_u8(&out, (uint8_t)kl_mix64(variant * 1000 + i));
    say_and_forget(s, &out);
}

static void malformed_messages_at_every_step(void **state) {
    (void)state;
    for (uint32_t at = GREETING; at < STEPS; at++) {
        misbehave((step)at, say_nothing, 0);
        for (uint32_t type = 0; type < TYPES; type++)
            if (!(at == STARTING && type == KL_READY))
                misbehave((step)at, say_one_byte, type);
        for (uint32_t variant = 0; variant < 8 * TYPES; variant++)
            misbehave((step)at, say_noise, variant);
    }
}

static void put_segment(kl_buffer *out, const kl_chunk_head *chunk, uint64_t lo, uint64_t tasks, bool last) {
    kl_segment segment = {.chunk = chunk->chunk, .lo = lo, .count = tasks, .last = last};
    size_t at = out->size;
    kl_wire_begin_segment(out, &segment);
    for (uint64_t i = 0; i < tasks; i++)
        kl_wire_end_result(out, kl_wire_begin_result(out), false);
    kl_wire_end_segment(out, at, &segment);
}

/* Send valid results that do not belong to the hostile peer's two chunks. */
static void report_wrongly(scene *s, uint32_t variant) {
    const kl_chunk_head *a = &s->chunks[0], *b = &s->chunks[1], strange = {.chunk = 1000, .lo = a->lo};
    kl_buffer out = {0};
    uint32_t segments = 1;
    assert_true(a->count == 1 && b->count == 1);
    kl_wire_begin_results(&out);
    switch (variant) {
    case 0: /* send the results of the first chunk, of the second chunk, and of the first chunk again */
        put_segment(&out, a, a->lo, 1, true);
        put_segment(&out, b, b->lo, 1, true);
        put_segment(&out, a, a->lo, 1, true);
        segments = 3;
        break;
    case 1: /* send the results of the first chunk two times in a row */
        put_segment(&out, a, a->lo, 1, true);
        put_segment(&out, a, a->lo, 1, true);
        segments = 2;
        break;
    case 2: /* send results of a chunk that the peer never had */
        put_segment(&out, &strange, strange.lo, 1, true);
        break;
    case 3: /* send results of another worker's tasks */
        put_segment(&out, a, b->lo + 1, 1, true);
        break;
    case 4: /* send results of too many tasks */
        put_segment(&out, a, a->lo, 2, true);
        break;
    case 5: /* send results up to the chunk's end, without setting `last` */
        put_segment(&out, a, a->lo, 1, false);
        break;
    case 6: /* send results of tasks in the wrong order */
        put_segment(&out, b, b->lo, 1, true);
        break;
    default: /* send results of tasks up to the largest number */
        put_segment(&out, a, UINT64_MAX - 1, 1, true);
        break;
    }
    kl_wire_end_results(&out, &(kl_results_head){.segments = segments});
    say_and_forget(s, &out);
}

static void results_that_do_not_fit_the_chunks(void **state) {
    (void)state;
    for (uint32_t variant = 0; variant < 8; variant++)
        misbehave(WORKING, report_wrongly, variant);
}

static void say_part(scene *s, uint64_t chunk, uint64_t lo, uint64_t hi) {
    kl_buffer out = {0};
    kl_wire_put_part(&out, KL_RETURN, &(kl_part){chunk, lo, hi});
    say_and_forget(s, &out);
}

static void say_heartbeat(scene *s, const kl_heartbeat *heartbeat) {
    kl_buffer out = {0};
    kl_wire_put_heartbeat(&out, heartbeat);
    say_and_forget(s, &out);
}

static void say_leave(scene *s) {
    kl_buffer out = {0};
    kl_wire_put_bytes(&out, KL_LEAVE, "a\nb\x1b[2J", 7);
    say_and_forget(s, &out);
}

static void report_one(scene *s, const kl_chunk_head *chunk) {
    kl_buffer out = {0};
    kl_wire_begin_results(&out);
    put_segment(&out, chunk, chunk->lo, 1, true);
    kl_wire_end_results(&out, &(kl_results_head){.segments = 1});
    say_and_forget(s, &out);
}

/* Return tasks that the hostile peer may not return. The peer has two chunks of one task each. */
static void return_wrongly(scene *s, uint32_t variant) {
    const kl_chunk_head *a = &s->chunks[0], *b = &s->chunks[1];
    assert_true(a->count == 1 && b->count == 1);
    switch (variant) {
    case 0: /* return tasks of a chunk that does not exist */
        say_part(s, 1000, a->lo, a->lo + 1);
        break;
    case 1: /* return tasks of the other worker's chunk */
        assert_true(b->chunk == a->chunk + 2);
        say_part(s, a->chunk + 1, a->lo + 1, a->lo + 2);
        break;
    case 2: /* return tasks after the chunk's end */
        say_part(s, a->chunk, a->lo, a->lo + 2);
        break;
    case 3: /* return no task, from an index after the chunk's end */
        say_part(s, a->chunk, UINT64_MAX, UINT64_MAX);
        break;
    case 4: /* return tasks that do not reach to the chunk's end */
        say_part(s, a->chunk, a->lo, a->lo);
        break;
    case 5: /* return tasks from before the chunk's first one */
        say_part(s, b->chunk, 0, b->lo + 1);
        break;
    case 6: /* return tasks with lo and hi exchanged */
        say_part(s, a->chunk, a->lo + 1, a->lo);
        break;
    case 7: /* return a task twice */
        say_part(s, a->chunk, a->lo, a->lo + 1);
        say_part(s, a->chunk, a->lo, a->lo + 1);
        break;
    case 8: /* return a task, and send its result as well */
        say_part(s, a->chunk, a->lo, a->lo + 1);
        report_one(s, a);
        break;
    default: /* return a task that is done already */
        report_one(s, a);
        say_part(s, a->chunk, a->lo, a->lo + 1);
        break;
    }
}

static void tasks_that_are_not_its_to_give_back(void **state) {
    (void)state;
    for (uint32_t variant = 0; variant < 10; variant++)
        misbehave(WORKING, return_wrongly, variant);
}

static void heartbeat_wrongly(scene *s, uint32_t variant) {
    const double wrong[] = {NAN, -1, -INFINITY, INFINITY};
    kl_heartbeat heartbeat = {.chunk = s->chunks[0].chunk, .task = s->chunks[0].lo};
    *(variant % 3 == 0   ? &heartbeat.elapsed_s
      : variant % 3 == 1 ? &heartbeat.cpu_s
                         : &heartbeat.usual_share) = wrong[variant / 3];
    say_heartbeat(s, &heartbeat);
}

static void heartbeat_too_early(scene *s, uint32_t variant) {
    (void)variant;
    say_heartbeat(s, &(kl_heartbeat){0});
}

static void heartbeats_that_cannot_be(void **state) {
    (void)state;
    for (uint32_t variant = 0; variant < 12; variant++)
        misbehave(WORKING, heartbeat_wrongly, variant);
    for (uint32_t at = GREETING; at < WORKING; at++)
        misbehave((step)at, heartbeat_too_early, 0);
}

/* Send messages that come too late, and then leave. A correct worker may send such messages, too. Check that
 * the master ignores them. */
static void be_odd_and_leave(scene *s, uint32_t variant) {
    const kl_chunk_head *a = &s->chunks[0];
    switch (variant) {
    case 0:
        say_heartbeat(s, &(kl_heartbeat){.chunk = 1000, .task = UINT64_MAX, .elapsed_s = 1e300});
        break;
    case 1:
        say_heartbeat(s, &(kl_heartbeat){.chunk = a->chunk, .task = a->lo + 1, .usual_share = 1e300});
        break;
    case 2: /* tell the master two times that all tasks of the chunk are begun */
        say_part(s, a->chunk, a->lo + 1, a->lo + 1);
        say_part(s, a->chunk, a->lo + 1, a->lo + 1);
        break;
    case 3: /* return all tasks, in reverse order */
        say_part(s, s->chunks[1].chunk, s->chunks[1].lo, s->chunks[1].lo + 1);
        say_part(s, a->chunk, a->lo, a->lo + 1);
        break;
    case 4: /* leave the farm, and send the other messages after that */
        say_leave(s);
        report_one(s, a);
        break;
    default:
        report_one(s, a);
        break;
    }
    say_leave(s);
}

static void oddities_that_do_no_harm(void **state) {
    (void)state;
    for (uint32_t variant = 0; variant < 6; variant++)
        misbehave(WORKING, be_odd_and_leave, variant);
}

static void greet_as_another(scene *s, uint32_t variant) {
    kl_hello hello = {.version = KL_WIRE_VERSION, .pid = 17, .host = "there", .program = "test"};
    char version[80];
    snprintf(version, sizeof version,
             "process 17 on there speaks protocol version 2, but the master speaks version %d",
             KL_WIRE_VERSION);
    const char *why[] = {"process 17 on there runs program version '2.1', but the master runs ''",
                         "process 17 on there runs program tset, but the master runs test", version};
    if (variant == 0)
        snprintf(hello.program_version, sizeof hello.program_version, "2.1");
    else if (variant == 1)
        snprintf(hello.program, sizeof hello.program, "tset");
    else
        hello.version = 2;
    kl_buffer out = {0};
    kl_wire_put_hello(&out, &hello);
    say_and_forget(s, &out);
    while (kl_master_refused(s->farm.master) == 0)
        assert_int_equal(stepped_turn(&s->farm, NULL), KILTER_OK);
    assert_non_null(strstr(kl_master_last_loss(s->farm.master), why[variant]));
}

static void workers_of_another_version_are_refused_by_name(void **state) {
    (void)state;
    for (uint32_t variant = 0; variant < 3; variant++)
        misbehave(GREETING, greet_as_another, variant);
}

/* --- a hostile worker that is a peer of other workers --- */

/* the kinds of notes between peers, with the same numbers as in the folder peer */
enum { HURRY = 12, LATE = 13, LOSS = 14, CALL = 16, REPORT = 17, PLAN = 18, GIFT = 4 };

typedef struct rough_note { /* the parts of a note (message between peers) that the test chooses */
    uint8_t kind;
    uint32_t round, peers, gone, standing;
    uint64_t tasks;         /* number of tasks in the note's list of tasks */
    size_t value_size;      /* bytes of garbage that are sent as the note's value */
    const kl_buffer *value; /* a value that is sent instead of garbage; NULL: garbage is sent */
} rough_note;

static void put_rough(kl_buffer *out, const rough_note *n) {
    static const uint8_t noise[64] = {3, 1, 4, 1, 5};
    kl_put_u8(out, n->kind);
    kl_put_u32(out, 0);
    kl_put_u32(out, n->round);
    kl_put_u32(out, 0);
    kl_put_u32(out, n->peers);
    kl_put_u64(out, 0);
    for (int i = 0; i < 3; i++)
        kl_put_f64(out, 0);
    kl_put_u8(out, 0);
    kl_put_u8(out, 0);
    kl_put_u32(out, n->tasks > 0);
    if (n->tasks > 0) {
        kl_put_u64(out, 0);
        kl_put_u64(out, n->tasks);
    }
    kl_put_u32(out, 0); /* number of spans in `held` */
    kl_put_u32(out, n->standing > 0);
    if (n->standing > 0) {
        kl_put_u32(out, n->standing);
        kl_put_f64(out, 1);
        kl_put_f64(out, 1);
    }
    kl_put_u32(out, 0); /* number of orders */
    kl_put_u32(out, n->gone > 0);
    if (n->gone > 0)
        kl_put_u32(out, n->gone);
    kl_put_span(out, n->value ? n->value->data : noise, n->value ? n->value->size : n->value_size);
    kl_put_span(out, noise, 0);
}

static void say_address(scene *s) {
    char address[KL_ADDRESS_BYTES];
    kl_buffer out = {0};
    assert_int_equal(kl_open_to_workers(peer_of(s)->transport, address, NULL), KILTER_OK);
    kl_put_u8(&out, KL_ADDRESS);
    kl_put_u8(&out, 1);
    kl_put_bytes(&out, address, strlen(address));
    say_and_forget(s, &out);
}

/* Wait for the message that makes this worker a peer of the run. Return its number in the run. */
static uint32_t hear_peers(scene *s) {
    kl_message message = {0};
    kl_peers_head head = {0};
    kl_ranges tasks = {0};
    while (hear(s, &message) != KL_PEERS)
        kl_message_release(&message);
    assert_true(kl_wire_get_peers(message.data, message.size, &head, &tasks));
    kl_ranges_free(&tasks);
    kl_message_release(&message);
    return head.number;
}

static void say_no_address(scene *s, const char *why, int more) {
    kl_buffer out = {0};
    kl_put_u8(&out, KL_ADDRESS);
    kl_put_u8(&out, 0);
    kl_put_bytes(&out, why, strlen(why));
    for (int i = 0; i < more; i++)
        kl_put_u8(&out, '!');
    say_and_forget(s, &out);
}

static void keep_first(void *into, const void *value, size_t bytes, void *user) {
    (void)into, (void)value, (void)bytes, (void)user;
}

static void open_among_peers(scene *s) {
    *s = (scene){.farm = {.organise = KL_ORGANISE_PEERS,
                          .attempts = 5,
                          .whole_team = true,
                          .reducer = {.combine = keep_first}}};
    stepped_open(&s->farm, "ss", 2, 50e-6, work);
    kl_worker_free(peer_of(s)->worker);
    peer_of(s)->worker = NULL;
    hear_some(s, (kl_message_type)0);
}

static void greet(scene *s) {
    say_hello(s);
    hear_some(s, KL_WELCOME);
    say_plain(s, KL_READY);
    answer_probes(s);
}

/* Follow the protocol until a run of peers has begun. Return this peer's number in the run. */
static uint32_t play_peer(scene *s, const kilter_run *run) {
    open_among_peers(s);
    greet(s);
    assert_int_equal(kl_master_begin(s->farm.master, run, NULL), KILTER_OK);
    hear_some(s, KL_OPEN);
    say_address(s);
    return hear_peers(s);
}

static void say_note(scene *s, uint32_t number, const rough_note *note) {
    kl_buffer bytes = {0}, out = {0};
    put_rough(&bytes, note);
    kl_wire_put_note(&out, &(kl_note_head){.from = number}, bytes.data, bytes.size);
    kl_buffer_free(&bytes);
    say_and_forget(s, &out);
}

static void peers_that_send_bad_notes_are_sent_away(void **state) {
    (void)state;
    const rough_note notes[] = {
        {.kind = 99},
        {.kind = 0},
        {.kind = HURRY, .peers = 1 << 20},
        {.kind = HURRY, .peers = (1 << 20) + 1},
        {.kind = HURRY, .peers = 4},
        {.kind = LOSS, .gone = 3},
        {.kind = LOSS, .gone = (1 << 20) - 1},
        {.kind = LOSS, .gone = UINT32_MAX},
        {.kind = REPORT, .round = 1, .tasks = 3, .value_size = 5},
        {.kind = REPORT, .round = 1, .tasks = TASKS + 1},
        {.kind = REPORT, .round = 1, .standing = 7},
        {.kind = LATE, .round = 1, .tasks = 3, .value_size = 64},
        {.kind = GIFT, .tasks = 3},
        {.kind = CALL, .round = 9},
        {.kind = PLAN, .round = 1},
    };
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++) {
        scene s;
        uint8_t seen[TASKS] = {0};
        kl_deliverer *deliverer;
        const kilter_run run = {.tasks = TASKS, .done = count, .user = seen};
        assert_int_equal(kl_deliverer_new(&run, (kl_reducer){0}, &deliverer, NULL), KILTER_OK);
        uint32_t number = play_peer(&s, &run);
        say_note(&s, number, &notes[i]);
        check(&s, deliverer, seen);
        kl_deliverer_free(deliverer);
    }
}

/* As a peer, report tasks as done without their results. Check that the run ends with one error, and that
 * nothing hangs. */
static void peers_whose_results_do_not_fit_end_the_run(void **state) {
    (void)state;
    scene s;
    kilter_error error = {KILTER_OK, ""};
    kilter_status status = KILTER_OK;
    uint8_t seen[TASKS] = {0};
    const kilter_run run = {.tasks = TASKS, .done = count, .user = seen};
    uint32_t number = play_peer(&s, &run);
    for (uint32_t turn = 0; status == KILTER_OK && kl_master_running(s.farm.master); turn++) {
        say_note(&s, number, &(rough_note){.kind = REPORT, .round = 1 + turn % 4, .tasks = TASKS});
        status = stepped_turn(&s.farm, &error);
    }
    assert_int_equal(status, KILTER_ERR_PEER);
    assert_string_equal(error.text, "the results of peers do not fit their tasks");
    for (kl_delivery *d = kl_master_take(s.farm.master).first, *next; d; d = next) {
        next = d->next;
        kl_delivery_free(d);
    }
    kl_transport_close(peer_of(&s)->transport);
    stepped_close(&s.farm);
}

/* As a peer of a run that combines its results, report tasks without a sum, or a sum without tasks. */
static void sums_that_do_not_fit_their_tasks_end_the_run(void **state) {
    (void)state;
    static const uint64_t result = 7;
    kl_reaper reaper = {.reducer = {.combine = keep_first}, .sum_bytes = sizeof result};
    for (int i = 0; i < 2; i++) {
        scene s;
        uint64_t total = 0;
        kilter_error error = {KILTER_OK, ""};
        kilter_status status = KILTER_OK;
        kl_buffer value = {0}, made = {0};
        const kilter_run run = {
            .tasks = TASKS, .reduce = true, .results = &total, .result_bytes = sizeof total};
        uint32_t number = play_peer(&s, &run);
        s.farm.workers[1].dies_s = 0; /* let worker 1 die, so that all reports come from the hostile peer */
        size_t at = kl_wire_begin_result(&made);
        kl_put_u64(&made, result);
        kl_wire_end_result(&made, at, i == 0);
        kl_harvest_task(&value, &reaper, &(kl_harvest_segment){.count = 1, .results = {made.data, made.size}},
                        1);
        for (uint32_t turn = 0; status == KILTER_OK && kl_master_running(s.farm.master); turn++) {
            /* report the failure of one task, without the sum of the other tasks */
            uint64_t tasks = i == 0 ? TASKS : 0;
            say_note(&s, number,
                     &(rough_note){.kind = REPORT, .round = 1 + turn % 4, .tasks = tasks, .value = &value});
            status = stepped_turn(&s.farm, &error);
        }
        assert_int_equal(status, KILTER_ERR_PEER);
        assert_string_equal(error.text, "the results of peers do not fit their tasks");
        kl_buffer_free(&value);
        kl_buffer_free(&made);
        for (kl_delivery *d = kl_master_take(s.farm.master).first, *next; d; d = next) {
            next = d->next;
            kl_delivery_free(d);
        }
        kl_transport_close(peer_of(&s)->transport);
        stepped_close(&s.farm);
    }
}

/* Send the master a very long reason why other workers cannot reach this one. Check that the run ends with
 * an error, and that the worker stays in the farm. */
static void a_long_reason_for_no_address_does_no_harm(void **state) {
    (void)state;
    scene s;
    kilter_error error = {KILTER_OK, ""};
    kilter_status status = KILTER_OK;
    const kilter_run run = {.tasks = TASKS};
    open_among_peers(&s);
    greet(&s);
    assert_int_equal(kl_master_begin(s.farm.master, &run, NULL), KILTER_OK);
    hear_some(&s, KL_OPEN);
    say_no_address(&s, "its port is closed", 600);
    while (status == KILTER_OK && kl_master_running(s.farm.master))
        status = stepped_turn(&s.farm, &error);
    assert_int_equal(status, KILTER_ERR_USAGE);
    assert_non_null(strstr(error.text, "its port is closed"));
    assert_int_equal(kl_master_refused(s.farm.master), 0);
    kl_transport_close(peer_of(&s)->transport);
    stepped_close(&s.farm);
}

static void a_late_worker_without_address_has_no_part(void **state) {
    (void)state;
    scene s;
    uint8_t seen[TASKS] = {0};
    kl_deliverer *deliverer;
    const kilter_run run = {.tasks = TASKS, .done = count, .user = seen};
    assert_int_equal(kl_deliverer_new(&run, (kl_reducer){0}, &deliverer, NULL), KILTER_OK);
    open_among_peers(&s);
    while (kl_master_ready(s.farm.master) < 1)
        assert_int_equal(stepped_turn(&s.farm, NULL), KILTER_OK);
    assert_int_equal(kl_master_begin(s.farm.master, &run, NULL), KILTER_OK);
    for (int turns = 0; turns < 8; turns++) /* let the other worker begin the run */
        assert_int_equal(stepped_turn(&s.farm, NULL), KILTER_OK);
    greet(&s);
    hear_some(&s, KL_OPEN);
    say_no_address(&s, "its port is closed", 0);
    while (kl_master_running(s.farm.master)) {
        assert_int_equal(stepped_turn(&s.farm, NULL), KILTER_OK);
        assert_int_equal(kl_deliver(deliverer, kl_master_take(s.farm.master), NULL), KILTER_OK);
    }
    kl_deliverer_free(deliverer);
    for (int i = 0; i < TASKS; i++)
        assert_int_equal(seen[i], 1);
    assert_int_equal(kl_master_refused(s.farm.master), 0);
    kl_transport_close(peer_of(&s)->transport);
    stepped_close(&s.farm);
}

/* --- a master that violates the protocol --- */

typedef struct calls {
    uint32_t started, shared, worked, stopped;
    int start_code;
} calls;

static int start_counted(const kilter_worker *worker, void **state) {
    *state = worker->user;
    ((calls *)worker->user)->started++;
    return ((calls *)worker->user)->start_code;
}

static int shared_counted(kilter_bytes shared, void *state) {
    (void)shared;
    ((calls *)state)->shared++;
    return 0;
}

static int work_counted(const kilter_task *task, kilter_result *result, void *state) {
    (void)task, (void)result;
    ((calls *)state)->worked++;
    return 0;
}

static void stop_counted(void *state) {
    ((calls *)state)->stopped++;
}

static double no_time_s(void *self) {
    (void)self;
    return 1;
}

static double no_endpoint_time_s(void *clock, kl_peer endpoint) {
    (void)clock, (void)endpoint;
    return 1;
}

/* Send `message` to the worker, before or after WELCOME. Return the status of the worker's turn. */
static kilter_status worker_hears(bool welcomed, const kl_buffer *message, calls *seen, kilter_error *error) {
    kl_inproc *hub;
    kl_transport *master, *end;
    kl_worker *worker;
    kl_event event;
    const kl_inproc_stepped timing = {.now_s = no_endpoint_time_s};
    assert_int_equal(kl_inproc_new(&timing, &hub, NULL), KILTER_OK);
    assert_int_equal(kl_inproc_listen(hub, &master, NULL), KILTER_OK);
    assert_int_equal(kl_inproc_join(hub, NULL, &end, NULL), KILTER_OK);
    const kl_worker_options options = {.work = work_counted,
                                       .start = start_counted,
                                       .shared = shared_counted,
                                       .stop = stop_counted,
                                       .user = seen,
                                       .program = "test",
                                       .binding = "",
                                       .clock = {.now_s = no_time_s},
                                       .patience_s = -1};
    assert_int_equal(kl_worker_new(&options, NULL, end, &worker, NULL), KILTER_OK);
    /* in this turn the worker sends its greeting */
    assert_int_equal(kl_worker_turn(worker, 0, error), KILTER_OK);
    assert_int_equal(kl_poll(master, 0, &event, NULL), KILTER_OK);
    assert_int_equal(event.kind, KL_EVENT_JOINED);
    kilter_status status = KILTER_OK;
    if (welcomed) {
        kl_buffer out = {0};
        kl_wire_put_welcome(&out, &(kl_welcome){.worker = 3});
        assert_int_equal(kl_send(master, event.peer, &out, NULL), KILTER_OK);
        kl_buffer_free(&out);
        status = kl_worker_turn(worker, 0, error);
    }
    if (status == KILTER_OK)
        assert_int_equal(kl_send(master, event.peer, message, NULL), KILTER_OK);
    for (int turn = 0; status == KILTER_OK && turn < 3; turn++)
        status = kl_worker_turn(worker, 0, error);
    kl_worker_free(worker);
    kl_transport_close(end);
    kl_transport_close(master);
    kl_inproc_free(hub);
    return status;
}

static void a_worker_ends_at_what_it_cannot_read(void **state) {
    (void)state;
    for (int welcomed = 0; welcomed < 2; welcomed++)
        for (uint32_t type = 0; type < TYPES; type++)
            for (uint32_t size = 1; size < 60; size++) {
                kl_buffer out = {0};
                kl_put_u8(&out, (uint8_t)type);
                for (uint32_t i = 1; i < size; i++)
                    kl_put_u8(&out, (uint8_t)kl_mix64(type * 1000 + i));
                calls seen = {0};
                kilter_status status = worker_hears(welcomed, &out, &seen, NULL);
                kl_part part;
                bool recall = type == KL_RECALL && welcomed && kl_wire_get_part(out.data, out.size, &part);
                kl_note_head head;
                kilter_bytes note;
                uint64_t number;
                bool peers = (type == KL_OPEN && size == 1) ||
                             (type == KL_NOTE && kl_wire_get_note(out.data, out.size, &head, &note) &&
                              head.from < KL_PEERS_MOST && head.worker < KL_PEERS_MOST) ||
                             ((type == KL_GONE || type == KL_DISBAND) &&
                              kl_wire_get_number(out.data, out.size, &number));
                bool meant = type == KL_PROBE || (welcomed && peers) ||
                             (type == KL_WELCOME && size == 21 && !welcomed) || recall;
                bool ends = type == KL_RENEW || (size == 1 && (type == KL_END || type == KL_RELEASE));
                /* true: the message has a wrong hash of the shared data */
                bool torn = type == KL_SHARED && welcomed && size > 15;
                kilter_status expected = meant  ? KILTER_OK
                                         : ends ? KILTER_ENDED
                                         : torn ? KILTER_ERR_TASK
                                                : KILTER_ERR_PEER;
                assert_int_equal(status, expected);
                assert_true(seen.worked == 0 && seen.stopped == seen.started);
                assert_int_equal(seen.shared, 0);
                kl_buffer_free(&out);
            }
}

static void a_worker_that_is_sent_away_says_why(void **state) {
    (void)state;
    kl_buffer out = {0};
    kl_wire_put_bytes(&out, KL_END, "sings\n", 6);
    calls seen = {0};
    kilter_error error;
    assert_int_equal(worker_hears(true, &out, &seen, &error), KILTER_ERR_PEER);
    assert_string_equal(error.text, "worker 3 was sent away by the master, because it sings?");
    kl_buffer_free(&out);
}

/* Send a chunk for other shared data than the worker has. The worker must refuse the chunk, because its
 * results would be wrong. */
static void tasks_for_other_shared_data_are_refused(void **state) {
    (void)state;
    kl_buffer out = {0};
    calls seen = {0};
    kilter_error error;
    kl_wire_put_chunk(&out, &(kl_chunk_head){.chunk = 1, .count = 5, .shared = 0xabc});
    assert_int_equal(worker_hears(true, &out, &seen, &error), KILTER_ERR_TASK);
    assert_string_equal(error.text,
                        "worker 3 leaves the farm: the worker has shared data 0000000000000000, but its "
                        "tasks are for shared data 0000000000000abc");
    assert_int_equal(seen.worked, 0);
    kl_buffer_free(&out);
}

static void stop_is_not_called_where_start_failed(void **state) {
    (void)state;
    calls seen = {.start_code = 7};
    assert_int_equal(worker_hears(true, &(kl_buffer){0}, &seen, NULL), KILTER_ERR_TASK);
    assert_true(seen.started == 1 && seen.stopped == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_ends_at_what_it_cannot_read),
        cmocka_unit_test(a_worker_that_is_sent_away_says_why),
        cmocka_unit_test(stop_is_not_called_where_start_failed),
        cmocka_unit_test(malformed_messages_at_every_step),
        cmocka_unit_test(results_that_do_not_fit_the_chunks),
        cmocka_unit_test(tasks_that_are_not_its_to_give_back),
        cmocka_unit_test(heartbeats_that_cannot_be),
        cmocka_unit_test(oddities_that_do_no_harm),
        cmocka_unit_test(workers_of_another_version_are_refused_by_name),
        cmocka_unit_test(tasks_for_other_shared_data_are_refused),
        cmocka_unit_test(peers_that_send_bad_notes_are_sent_away),
        cmocka_unit_test(peers_whose_results_do_not_fit_end_the_run),
        cmocka_unit_test(sums_that_do_not_fit_their_tasks_end_the_run),
        cmocka_unit_test(a_long_reason_for_no_address_does_no_harm),
        cmocka_unit_test(a_late_worker_without_address_has_no_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
