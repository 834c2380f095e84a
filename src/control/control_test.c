/* Test the server with a fake farm, and with correct and faulty clients. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/talk.h"
#include "sys/sys.h"

/* greatest length of a wait in seconds; only a failing test waits this long */
static const double PATIENCE_S = 60;

typedef struct fake_farm {
    pthread_mutex_t lock;
    unsigned looks, sets;
    kl_control_setting last;
    unsigned drains;
    kl_control_drain last_drain;
    kl_decision last_note;
    kl_control *control;
} fake_farm;

static void look(void *self, kl_control_state *state) {
    fake_farm *f = self;
    pthread_mutex_lock(&f->lock);
    f->looks++;
    *state = (kl_control_state){.program = "fake", .policy = "AUTO", .present = 4, .worker_count = 1};
    state->done = f->looks;
    pthread_mutex_unlock(&f->lock);
}

static kilter_status set(void *self, const kl_control_setting *setting, char answer[KL_CONTROL_ANSWER_BYTES],
                         kilter_error *error) {
    fake_farm *f = self;
    if (setting->workers > 4)
        return kl_fail(error, KILTER_ERR_RANGE, "%u workers: there are 4", setting->workers);
    pthread_mutex_lock(&f->lock);
    f->sets++;
    f->last = *setting;
    pthread_mutex_unlock(&f->lock);
    snprintf(answer, KL_CONTROL_ANSWER_BYTES, "from iteration 7 on");
    return KILTER_OK;
}

static kilter_status drain(void *self, const kl_control_drain *drain, char answer[KL_CONTROL_ANSWER_BYTES],
                           kilter_error *error) {
    fake_farm *f = self;
    if (drain->worker_count == 4 && !drain->all)
        return kl_fail(error, KILTER_ERR_RANGE, "no worker would stay");
    pthread_mutex_lock(&f->lock);
    f->drains++;
    f->last_drain = *drain;
    pthread_mutex_unlock(&f->lock);
    snprintf(answer, KL_CONTROL_ANSWER_BYTES, "they leave");
    return KILTER_OK;
}

static kilter_status note(void *self, const kl_decision *decision, kilter_error *error) {
    fake_farm *f = self;
    if (decision->kind == KL_DECIDES_EXCLUDE)
        return kl_fail(error, KILTER_ERR_RANGE, "there is no such host");
    pthread_mutex_lock(&f->lock);
    f->last_note = *decision;
    pthread_mutex_unlock(&f->lock);
    return KILTER_OK;
}

static int open_farm(void **state) {
    fake_farm *f = calloc(1, sizeof *f);
    pthread_mutex_init(&f->lock, NULL);
    kl_control_farm farm = {look, set, drain, note, f, NULL};
    *state = f;
    return kl_control_open(&farm, &f->control, NULL);
}

static int close_farm(void **state) {
    fake_farm *f = *state;
    kl_control_close(f->control);
    pthread_mutex_destroy(&f->lock);
    free(f);
    return 0;
}

static kl_tuner *attach(const fake_farm *f) {
    kl_tuner *tuner;
    assert_int_equal(kl_tuner_attach(kl_control_name(f->control), PATIENCE_S, &tuner, NULL), KILTER_OK);
    return tuner;
}

/* Connect to the farm without using the code of the tool. */
static int connect_raw(const fake_farm *f) {
    struct sockaddr_un address;
    socklen_t size;
    assert_true(kl_control_address(kl_control_name(f->control), &address, &size));
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, size), 0);
    return fd;
}

static void check_alive(const fake_farm *f) {
    kl_control_state state;
    kl_tuner *tuner = attach(f);
    assert_int_equal(kl_tuner_look(tuner, &state, NULL), KILTER_OK);
    assert_string_equal(state.program, "fake");
    kl_tuner_detach(tuner);
}

static void looks_and_settings_reach_the_farm(void **state) {
    fake_farm *f = *state;
    kl_tuner *tuner = attach(f);
    kl_control_state seen;
    for (unsigned i = 1; i <= 3; i++) {
        assert_int_equal(kl_tuner_look(tuner, &seen, NULL), KILTER_OK);
        assert_int_equal(seen.done, i);
    }
    char answer[KL_CONTROL_ANSWER_BYTES];
    kl_control_setting setting = {.workers_given = true, .workers = 3};
    assert_int_equal(kl_tuner_set(tuner, &setting, answer, NULL), KILTER_OK);
    assert_string_equal(answer, "from iteration 7 on");
    assert_int_equal(f->last.workers, 3);
    assert_true(f->last.workers_given && !f->last.policy_given);
    kl_tuner_detach(tuner);
}

static void a_refusal_says_why_and_ends_nothing(void **state) {
    fake_farm *f = *state;
    kl_tuner *tuner = attach(f);
    kl_control_setting setting = {.workers_given = true, .workers = 9};
    char answer[KL_CONTROL_ANSWER_BYTES] = "untouched";
    kilter_error error;
    assert_int_equal(kl_tuner_set(tuner, &setting, answer, &error), KILTER_ERR_RANGE);
    assert_string_equal(error.text, "9 workers: there are 4");
    assert_string_equal(answer, "untouched");
    setting.workers = 4;
    assert_int_equal(kl_tuner_set(tuner, &setting, answer, NULL), KILTER_OK);
    assert_int_equal(f->sets, 1);
    kl_tuner_detach(tuner);
}

static void drains_reach_the_farm_or_are_refused(void **state) {
    fake_farm *f = *state;
    kl_tuner *tuner = attach(f);
    char answer[KL_CONTROL_ANSWER_BYTES] = "untouched";
    kilter_error error;
    kl_control_drain wanted = {.worker_count = 4, .workers = {3, 1, 0, 2}};
    assert_int_equal(kl_tuner_drain(tuner, &wanted, answer, &error), KILTER_ERR_RANGE);
    assert_string_equal(error.text, "no worker would stay");
    assert_string_equal(answer, "untouched");
    wanted.all = true;
    assert_int_equal(kl_tuner_drain(tuner, &wanted, answer, NULL), KILTER_OK);
    assert_string_equal(answer, "they leave");
    assert_int_equal(f->drains, 1);
    assert_true(f->last_drain.all && f->last_drain.worker_count == 4);
    assert_memory_equal(f->last_drain.workers, wanted.workers, sizeof wanted.workers);
    kl_tuner_detach(tuner);
}

static void the_socket_is_in_no_folder(void **state) {
    const char *name = kl_control_name(((fake_farm *)*state)->control);
    assert_int_equal(name[0], '@');
    assert_null(strchr(name, '/'));
}

/* Send three decisions to be recorded. The farm accepts one and refuses one, and a tool may not record the
 * third. */
static void notes_reach_the_farm_or_are_refused(void **state) {
    fake_farm *f = *state;
    kl_tuner *tuner = attach(f);
    kl_decision sent = {.kind = KL_DECIDES_GROW, .count = 3, .gain_s = 7, .reason = "90 tasks are left"};
    kilter_error error;
    assert_int_equal(kl_tuner_note(tuner, &sent, &error), KILTER_OK);
    assert_int_equal(f->last_note.kind, KL_DECIDES_GROW);
    assert_int_equal(f->last_note.count, 3);
    assert_string_equal(f->last_note.reason, "90 tasks are left");
    sent.kind = KL_DECIDES_EXCLUDE;
    assert_int_equal(kl_tuner_note(tuner, &sent, &error), KILTER_ERR_RANGE);
    /* a tool may not record this kind of decision, because only the farm itself makes it */
    sent.kind = KL_DECIDES_DEAL;
    assert_int_equal(kl_tuner_note(tuner, &sent, &error), KILTER_ERR_INPUT);
    kl_tuner_detach(tuner);
}

static void a_wanted_name_is_taken_if_it_is_free(void **state) {
    const fake_farm *f = *state;
    char *name = kl_control_new_name();
    kl_control_farm farm = {look, set, drain, note, *state, name};
    kl_control *first, *second;
    assert_int_equal(kl_control_open(&farm, &first, NULL), KILTER_OK);
    assert_int_equal(kl_control_open(&farm, &second, NULL), KILTER_OK);
    assert_string_equal(kl_control_name(first), name);
    assert_string_not_equal(kl_control_name(second), name);
    assert_string_not_equal(kl_control_name(f->control), name);
    kl_control_close(first);
    kl_control_close(second);
    free(name);
}

/* Connect as another user. Every user can connect to the socket, but only the farm's owner gets answers. */
static void another_user_is_sent_away(void **state) {
    fake_farm *f = *state;
    if (geteuid() != 0) {
        print_message("skipped: only root can act as another user\n");
        skip();
    }
    pid_t child = fork();
    if (child == 0) {
        kl_control_state seen;
        kl_tuner *tuner;
        kilter_status status = setuid(65534) == 0 ? KILTER_OK : KILTER_ERR_SYSTEM;
        if (status == KILTER_OK)
            status = kl_tuner_attach(kl_control_name(f->control), PATIENCE_S, &tuner, NULL);
        if (status == KILTER_OK)
            status = kl_tuner_look(tuner, &seen, NULL);
        _exit((int)status);
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), KILTER_ERR_USAGE);
    assert_int_equal(f->looks, 0);
    check_alive(f);
}

static void garbage_is_refused(void **state) {
    fake_farm *f = *state;
    int fd = connect_raw(f);
    uint8_t reply[1024];
    for (uint64_t i = 0; i < 50; i++) {
        uint8_t garbage[KL_REQUEST_BYTES_MOST];
        size_t size = 1 + kl_mix64(i) % sizeof garbage;
        for (size_t k = 0; k < size; k++)
            garbage[k] = (uint8_t)kl_mix64(i << 32 | k);
        assert_int_equal(send(fd, garbage, size, 0), (ssize_t)size);
        ssize_t got = recv(fd, reply, sizeof reply, 0);
        kilter_error why;
        assert_true(got > 0 && kl_talk_get_refused(reply, (size_t)got, &why));
        assert_int_equal(why.status, KILTER_ERR_INPUT);
    }
    close(fd);
    assert_int_equal(f->looks + f->sets + f->drains, 0);
    check_alive(f);
}

static void another_version_is_told_so(void **state) {
    fake_farm *f = *state;
    int fd = connect_raw(f);
    kl_buffer request = {0};
    kl_talk_put_look(&request);
    request.data[4] = KL_CONTROL_VERSION + 1;
    assert_int_equal(send(fd, request.data, request.size, 0), (ssize_t)request.size);
    uint8_t reply[1024];
    ssize_t got = recv(fd, reply, sizeof reply, 0);
    kilter_error why;
    assert_true(got > 0 && kl_talk_get_refused(reply, (size_t)got, &why));
    assert_int_equal(why.status, KILTER_ERR_USAGE);
    assert_non_null(strstr(why.text, "version"));
    kl_buffer_free(&request);
    close(fd);
}

static void who_talks_too_long_is_dropped(void **state) {
    fake_farm *f = *state;
    int fd = connect_raw(f);
    static uint8_t huge[100000];
    char reply;
    assert_int_equal(send(fd, huge, sizeof huge, 0), (ssize_t)sizeof huge);
    assert_true(recv(fd, &reply, 1, 0) <= 0);
    close(fd);
    check_alive(f);
}

/* Open and close many connections, some of them after sending a request. Afterwards, the server must still
 * answer. */
static void clients_that_die_leave_nothing(void **state) {
    fake_farm *f = *state;
    kl_buffer request = {0};
    kl_talk_put_look(&request);
    for (int i = 0; i < 100; i++) {
        int fd = connect_raw(f);
        if (i % 3 > 0)
            assert_int_equal(send(fd, request.data, request.size, 0), (ssize_t)request.size);
        if (i % 3 > 1)
            shutdown(fd, SHUT_RD);
        close(fd);
    }
    kl_buffer_free(&request);
    check_alive(f);
}

/* Open more connections than the server has room for, and send nothing. The server must still answer another
 * client. */
static void many_that_say_nothing_keep_nobody_out(void **state) {
    fake_farm *f = *state;
    int idle[64];
    for (int i = 0; i < 64; i++)
        idle[i] = connect_raw(f);
    check_alive(f);
    for (int i = 0; i < 64; i++)
        close(idle[i]);
    check_alive(f);
}

static void who_gave_its_place_to_others_is_answered(void **state) {
    fake_farm *f = *state;
    kl_tuner *tuner;
    kl_control_state seen;
    int idle[64];
    assert_int_equal(kl_tuner_attach(kl_control_name(f->control), PATIENCE_S, &tuner, NULL), KILTER_OK);
    assert_int_equal(kl_tuner_look(tuner, &seen, NULL), KILTER_OK);
    for (int i = 0; i < 64; i++)
        idle[i] = connect_raw(f);
    check_alive(f);
    assert_int_equal(kl_tuner_look(tuner, &seen, NULL), KILTER_OK);
    kl_tuner_detach(tuner);
    for (int i = 0; i < 64; i++)
        close(idle[i]);
}

/* Send requests and never read an answer. The farm must drop this client when the client's socket has no room
 * for more answers, and must serve others. */
static void who_reads_no_answers_is_dropped(void **state) {
    fake_farm *f = *state;
    int fd = connect_raw(f);
    kl_buffer request = {0};
    kl_talk_put_look(&request);
    while (send(fd, request.data, request.size, MSG_NOSIGNAL) > 0)
        ;
    kl_buffer_free(&request);
    close(fd);
    check_alive(f);
}

typedef struct asker {
    const fake_farm *farm;
    pthread_t thread;
    unsigned answered;
} asker;

static void *ask_often(void *arg) {
    asker *a = arg;
    kl_tuner *tuner;
    kl_control_state seen;
    if (kl_tuner_attach(kl_control_name(a->farm->control), PATIENCE_S, &tuner, NULL) != KILTER_OK)
        return NULL;
    for (int i = 0; i < 20; i++)
        a->answered += kl_tuner_look(tuner, &seen, NULL) == KILTER_OK;
    kl_tuner_detach(tuner);
    return NULL;
}

static void all_of_many_are_answered(void **state) {
    fake_farm *f = *state;
    asker askers[8];
    for (int i = 0; i < 8; i++) {
        askers[i] = (asker){.farm = f};
        assert_int_equal(pthread_create(&askers[i].thread, NULL, ask_often, &askers[i]), 0);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(askers[i].thread, NULL);
        assert_int_equal(askers[i].answered, 20);
    }
    assert_int_equal(f->looks, 160);
}

static void *close_in_thread(void *control) {
    kl_control_close(control);
    return NULL;
}

static void an_end_is_told(void **state) {
    (void)state;
    void *own;
    assert_int_equal(open_farm(&own), KILTER_OK);
    fake_farm *f = own;
    char name[200];
    snprintf(name, sizeof name, "%s", kl_control_name(f->control));
    kl_tuner *tuner = attach(f);
    kl_control_state seen;
    assert_int_equal(kl_tuner_look(tuner, &seen, NULL), KILTER_OK);
    close_farm(&own);
    kilter_error error;
    assert_int_equal(kl_tuner_look(tuner, &seen, &error), KILTER_ERR_PEER);
    assert_string_equal(error.text, "the farm has ended");
    assert_true(kl_tuner_ended(tuner));
    kl_tuner_detach(tuner);
    assert_int_equal(kl_tuner_attach(name, PATIENCE_S, &tuner, &error), KILTER_ERR_PEER);
}

/* Close the farm while a client sends requests. The client must be told that the farm has ended, whether the
 * farm has read the client's last request or not. */
static void an_end_is_told_to_who_has_just_asked(void **state) {
    (void)state;
    for (int round = 0; round < 50; round++) {
        void *own;
        assert_int_equal(open_farm(&own), KILTER_OK);
        fake_farm *f = own;
        kl_tuner *tuner = attach(f);
        kl_control_state seen;
        kilter_error error;
        assert_int_equal(kl_tuner_look(tuner, &seen, NULL), KILTER_OK);
        pthread_t closing;
        assert_int_equal(pthread_create(&closing, NULL, close_in_thread, f->control), 0);
        while (kl_tuner_look(tuner, &seen, &error) == KILTER_OK)
            ;
        assert_int_equal(error.status, KILTER_ERR_PEER);
        assert_string_equal(error.text, "the farm has ended");
        pthread_join(closing, NULL);
        kl_tuner_detach(tuner);
        pthread_mutex_destroy(&f->lock);
        free(f);
    }
}

/* Kill the farm. The client must notice that the farm crashed, because the farm has not announced its end. */
static void a_crash_is_told_from_an_end(void **state) {
    (void)state;
    int pipes[2];
    char path[200] = "";
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    if (child == 0) {
        void *own = NULL;
        open_farm(&own);
        const char *where = kl_control_name(((fake_farm *)own)->control);
        if (write(pipes[1], where, strlen(where) + 1) > 0)
            pause();
        _exit(1);
    }
    assert_true(read(pipes[0], path, sizeof path) > 1);
    kl_tuner *tuner;
    kl_control_state seen;
    assert_int_equal(kl_tuner_attach(path, PATIENCE_S, &tuner, NULL), KILTER_OK);
    assert_int_equal(kl_tuner_look(tuner, &seen, NULL), KILTER_OK);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    kilter_error error;
    assert_int_equal(kl_tuner_look(tuner, &seen, &error), KILTER_ERR_PEER);
    assert_non_null(strstr(error.text, "no longer running"));
    assert_false(kl_tuner_ended(tuner));
    kl_tuner_detach(tuner);
    assert_int_equal(kl_tuner_attach(path, PATIENCE_S, &tuner, &error), KILTER_ERR_PEER);
    assert_non_null(strstr(error.text, "no longer running"));
    close(pipes[0]);
    close(pipes[1]);
}

/* Attach to a socket that accepts connections but does not answer. */
static void nobody_waits_for_a_master_that_does_not_answer(void **state) {
    (void)state;
    char path[60];
    snprintf(path, sizeof path, "@kilter-test-%ld", (long)getpid());
    struct sockaddr_un address;
    socklen_t size;
    assert_true(kl_control_address(path, &address, &size));
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(fd, 1), 0);
    kl_tuner *tuner;
    kl_control_state seen;
    kilter_error error;
    assert_int_equal(kl_tuner_attach(path, 0.01, &tuner, NULL), KILTER_OK);
    assert_int_equal(kl_tuner_look(tuner, &seen, &error), KILTER_ERR_PEER);
    assert_non_null(strstr(error.text, "does not answer within 0.01 s"));
    kl_tuner_detach(tuner);
    close(fd);
}

/* As another user, listen under a farm's name, which is possible after the farm has ended. The tool must
 * refuse to attach to this socket. */
static void another_users_socket_is_not_attached_to(void **state) {
    (void)state;
    if (geteuid() != 0) {
        print_message("skipped: only root can act as another user\n");
        skip();
    }
    char name[60];
    snprintf(name, sizeof name, "@kilter-test-%ld", (long)getpid());
    struct sockaddr_un address;
    socklen_t size;
    assert_true(kl_control_address(name, &address, &size));
    pid_t child = fork();
    if (child == 0) {
        int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0), ok = setresuid(65533, 65533, 0) == 0;
        ok = ok && bind(fd, (struct sockaddr *)&address, size) == 0 && listen(fd, 1) == 0;
        kl_tuner *tuner;
        kilter_error error;
        ok = ok && seteuid(0) == 0 && setresuid(0, 65534, 0) == 0;
        kilter_status status = kl_tuner_attach(name, 1, &tuner, &error);
        _exit(ok ? (int)status : 0);
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), KILTER_ERR_USAGE);
}

static void what_is_no_socket_is_refused(void **state) {
    (void)state;
    kl_tuner *tuner;
    kilter_error error;
    char longest[300];
    memset(longest, 'a', sizeof longest - 1);
    longest[0] = '@';
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(kl_tuner_attach("", 1, &tuner, &error), KILTER_ERR_INPUT);
    assert_int_equal(kl_tuner_attach(longest, 1, &tuner, &error), KILTER_ERR_INPUT);
    assert_int_equal(kl_tuner_attach("/nowhere/control", 1, &tuner, &error), KILTER_ERR_INPUT);
    assert_int_equal(kl_tuner_attach("@kilter-nobody", 1, &tuner, &error), KILTER_ERR_PEER);
}

int main(void) {
#define WITH_FARM(test) cmocka_unit_test_setup_teardown(test, open_farm, close_farm)
    const struct CMUnitTest tests[] = {
        WITH_FARM(looks_and_settings_reach_the_farm),
        WITH_FARM(a_refusal_says_why_and_ends_nothing),
        WITH_FARM(drains_reach_the_farm_or_are_refused),
        WITH_FARM(notes_reach_the_farm_or_are_refused),
        WITH_FARM(a_wanted_name_is_taken_if_it_is_free),
        WITH_FARM(the_socket_is_in_no_folder),
        WITH_FARM(another_user_is_sent_away),
        WITH_FARM(garbage_is_refused),
        WITH_FARM(another_version_is_told_so),
        WITH_FARM(who_talks_too_long_is_dropped),
        WITH_FARM(clients_that_die_leave_nothing),
        WITH_FARM(many_that_say_nothing_keep_nobody_out),
        WITH_FARM(who_gave_its_place_to_others_is_answered),
        WITH_FARM(who_reads_no_answers_is_dropped),
        WITH_FARM(all_of_many_are_answered),
        cmocka_unit_test(an_end_is_told),
        cmocka_unit_test(an_end_is_told_to_who_has_just_asked),
        cmocka_unit_test(a_crash_is_told_from_an_end),
        cmocka_unit_test(nobody_waits_for_a_master_that_does_not_answer),
        cmocka_unit_test(another_users_socket_is_not_attached_to),
        cmocka_unit_test(what_is_no_socket_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
