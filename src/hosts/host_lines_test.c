/* Test the lines between agents and the process that measures. Lines must be read as they were written, and
 * any other text must be ignored. */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "hosts/lines.h"

static void assert_same_number(double is, double wanted) {
    if (!(is == wanted || (isnan(is) && isnan(wanted))))
        fail_msg("%.17g, not %.17g", is, wanted);
}

static double part(uint64_t *draw) {
    return (double)(kl_mix64((*draw)++) >> 11) * 0x1p-53;
}

/* Make a random reading in which about every second number is not known. */
static kl_reading any_reading(uint64_t *draw) {
    kl_reading r = kl_reading_none();
    double *numbers[] = {&r.probe, &r.memory_left, &r.memory_total, &r.swap_free, &r.swap_total,
                         &r.load,  &r.waits_cpu,   &r.waits_memory, &r.waits_io,  &r.steps_per_s};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (kl_mix64((*draw)++) % 2)
            *numbers[i] = part(draw);
    r.quota = kl_mix64((*draw)++) % 2 ? INFINITY : 9 * part(draw);
    r.cores = 1 + (uint32_t)(kl_mix64((*draw)++) % 1000);
    return r;
}

static char *without_newline(char *line) {
    char *end = strchr(line, '\n');
    assert_non_null(end);
    assert_string_equal(end, "\n");
    *end = '\0';
    return line;
}

static void readings_are_read_as_they_were_written(void **state) {
    (void)state;
    uint64_t draw = 3;
    for (int i = 0; i < 300; i++) {
        kl_reading r = any_reading(&draw);
        uint64_t token = kl_mix64(draw++);
        kl_agent_address address = {(uint32_t)(token % 65536), token, "10.0.0.1,fe80::2"};
        char line[KL_LINE_BYTES];
        kl_answer answer;
        kl_answer_reading(line, &r, &address);
        kl_answer_read(without_newline(line), &answer);
        assert_int_equal(answer.kind, KL_LINE_READING);
        assert_int_equal(answer.reading.cores, r.cores);
        assert_same_number(answer.reading.probe, r.probe);
        assert_same_number(answer.reading.steps_per_s, r.steps_per_s);
        assert_same_number(answer.reading.quota, r.quota);
        assert_same_number(answer.reading.memory_left, r.memory_left);
        assert_same_number(answer.reading.memory_total, r.memory_total);
        assert_same_number(answer.reading.swap_free, r.swap_free);
        assert_same_number(answer.reading.swap_total, r.swap_total);
        assert_same_number(answer.reading.load, r.load);
        assert_same_number(answer.reading.waits_cpu, r.waits_cpu);
        assert_same_number(answer.reading.waits_memory, r.waits_memory);
        assert_same_number(answer.reading.waits_io, r.waits_io);
        assert_int_equal(answer.address.port, address.port);
        assert_true(answer.address.token == address.token);
        assert_string_equal(answer.address.addresses, address.addresses);
    }
}

static void links_and_requests_are_read_as_they_were_written(void **state) {
    (void)state;
    char line[KL_LINE_BYTES];
    kl_answer answer;
    kl_request request;
    const kl_agent_address partner = {40000, UINT64_MAX, "192.168.1.1"};
    kl_answer_link(line, 7, &(kl_link){1, 2, 0.25, 1e6});
    kl_answer_read(without_newline(line), &answer);
    assert_int_equal(answer.kind, KL_LINE_LINK);
    assert_int_equal(answer.round, 7);
    assert_same_number(answer.trip_s, 0.25);
    assert_same_number(answer.bytes_per_s, 1e6);
    kl_request_look(line, 0.25);
    kl_request_read(without_newline(line), &request);
    assert_int_equal(request.kind, KL_REQUEST_LOOK);
    assert_same_number(request.probe_s, 0.25);
    kl_request_link(line, 9, &partner);
    kl_request_read(without_newline(line), &request);
    assert_int_equal(request.kind, KL_REQUEST_LINK);
    assert_int_equal(request.round, 9);
    assert_int_equal(request.partner.port, 40000);
    assert_true(request.partner.token == UINT64_MAX);
    assert_string_equal(request.partner.addresses, "192.168.1.1");
}

static void what_is_not_understood_is_left_out(void **state) {
    (void)state;
    static const struct {
        const char *line;
        kl_line_kind kind;
        double probe;
        uint32_t cores;
        const char *noise;
    } rows[] = {
        {"kilter-host 1 reading cores 4 probe 0.5", KL_LINE_READING, 0.5, 4, ""},
        {"kilter-host 1 reading later 7 probe 0.5 cores 2\r", KL_LINE_READING, 0.5, 2, ""},
        {"kilter-host 1 reading probe 1.5 cores 0", KL_LINE_READING, NAN, 1, ""},
        {"kilter-host 1 reading probe -1 cores 99999999999", KL_LINE_READING, NAN, 1, ""},
        {"kilter-host 1 reading probe nan cores 4x", KL_LINE_READING, NAN, 1, ""},
        {"kilter-host 1 reading probe", KL_LINE_READING, NAN, 1, ""},
        {"kilter-host 1 reading", KL_LINE_READING, NAN, 1, ""},
        {"kilter-host 2 reading probe 0.5", KL_LINE_NOISE, NAN, 1, "kilter-host 2 reading probe 0.5"},
        {"kilter-host 1 other probe 0.5", KL_LINE_NOISE, NAN, 1, "kilter-host 1 other probe 0.5"},
        {"kilter-host 1 ", KL_LINE_NOISE, NAN, 1, "kilter-host 1 "},
        {"Welcome\033[2J to node1", KL_LINE_NOISE, NAN, 1, "Welcome?[2J to node1"},
        {"", KL_LINE_NOISE, NAN, 1, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kl_answer answer;
        kl_answer_read(rows[i].line, &answer);
        assert_int_equal(answer.kind, rows[i].kind);
        assert_same_number(answer.reading.probe, rows[i].probe);
        assert_int_equal(answer.reading.cores, rows[i].cores);
        assert_string_equal(answer.noise, rows[i].noise);
    }
    kl_request request;
    kl_request_read("stop now 1", &request);
    assert_int_equal(request.kind, KL_REQUEST_UNKNOWN);
    kl_request_read("look probe_s 1e9", &request);
    assert_same_number(request.probe_s, 0);
    kl_request_read("link addresses 1.2.3.4;reboot port 99999", &request);
    assert_string_equal(request.partner.addresses, "");
    assert_int_equal(request.partner.port, 0);
}

/* A stream must be cut into its lines, although it arrives in pieces of any size and contains a line that is
 * too long. */
static void a_stream_is_cut_into_lines(void **state) {
    (void)state;
    enum { LONG = 3 * KL_LINE_BYTES };
    char text[LONG + 32], line[KL_LINE_BYTES];
    memset(text, 'x', LONG);
    const char ending[] = "\none\n\ntwo\nrest";
    memcpy(text + LONG, ending, sizeof ending);
    for (size_t piece = 1; piece < sizeof text; piece += 37) {
        kl_liner liner = {.size = 0};
        int ends[2];
        size_t lines = 0, long_bytes = 0;
        char seen[64] = "";
        assert_int_equal(pipe(ends), 0);
        for (size_t at = 0; at < LONG + 14; at += piece) {
            size_t size = at + piece < LONG + 14 ? piece : LONG + 14 - at;
            assert_int_equal(write(ends[1], text + at, size), size);
            for (size_t read = 0; read < size;) {
                ssize_t got = kl_liner_fill(&liner, ends[0]);
                assert_true(got > 0);
                read += (size_t)got;
                while (kl_liner_next(&liner, line)) {
                    lines++;
                    if (*line == 'x')
                        long_bytes += strlen(line);
                    else
                        snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "[%.20s]", line);
                }
            }
        }
        assert_int_equal(long_bytes, LONG);
        assert_true(strstr(seen, "[one][][two]"));
        assert_int_equal(liner.size, 4);
        close(ends[0]);
        close(ends[1]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readings_are_read_as_they_were_written),
        cmocka_unit_test(links_and_requests_are_read_as_they_were_written),
        cmocka_unit_test(what_is_not_understood_is_left_out),
        cmocka_unit_test(a_stream_is_cut_into_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
