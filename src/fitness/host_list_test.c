/* Test lists of hosts by a table of texts, and by properties of every list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fitness/fitness.h"

/* Write the list as name:slots, separated by spaces. Numbers of slots that are not known are left out. */
static void write_list(const kl_host_list *list, char *text, size_t size) {
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < list->count && used < size; i++) {
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? " " : "", list->at[i].name);
        if (list->at[i].slots && used < size)
            used += (size_t)snprintf(text + used, size - used, ":%u", list->at[i].slots);
    }
}

static void check(kilter_status status, kl_host_list *list, const kilter_error *error, const char *wanted,
                  const char *from) {
    char text[1024];
    if (status == KILTER_OK)
        write_list(list, text, sizeof text);
    else
        snprintf(text, sizeof text, "! %s", error->text);
    if (*wanted == '!' ? !strstr(text, wanted + 2) || *text != '!' : strcmp(text, wanted) != 0)
        fail_msg("'%s' gives '%s', not '%s'", from, text, wanted);
    if (status != KILTER_OK)
        assert_int_equal(status, KILTER_ERR_INPUT);
    else
        kl_host_list_free(list);
}

static void hostfiles_names_and_ssh_configurations_are_read(void **state) {
    (void)state;
    static const struct {
        const char *text,
            *wanted; /* the expected list; "! WORDS" stands for an error whose text contains WORDS */
    } rows[] = {
        {"node1\nnode2\n", "node1 node2"},
        {"node1", "node1"},
        {"# all\n\n  a.example.org  # the first\r\n\tb\r\n", "a.example.org b"},
        {"a slots=4\nb slots=2 max_slots=8\nc max-slots=3\n", "a:4 b:2 c"},
        {"a:4\nb:1 binding=user:0 ifname=eth0\n", "a:4 b:1"},
        {"a user=eve slots=2\nb username=bob\n", "eve@a:2 bob@b"},
        {"eve@a:3\n", "eve@a:3"},
        {"10.0.0.1\n10.0.0.2:2\nfe80::1%eth0\n[::1]\n", "10.0.0.1 10.0.0.2:2 fe80::1%eth0 [::1]"},
        {"a\nb\na\n", "a:2 b"}, /* each line that repeats a name adds one slot, as in MPI's hostfiles */
        {"a slots=2\na slots=3\na\n", "a:6"},
        {"host slots=2\n", "host:2"},
        {"host\n", "host"},
        /* ssh */
        {"Host alpha beta *.gamma !delta\n  HostName 10.0.0.1\n  User eve\nhost alpha\n", "alpha beta"},
        {"Include other\n\nHost *\n  Compression yes\nHost one\n", "one"},
        {"Match user eve\nHost x\n", "x"},
        /* texts that are refused, with the line that the error names */
        {"", "! file: it names no host"},
        {"# nothing\n\n", "! file: it names no host"},
        {"Host *\n", "! file: it names no host"},
        {"a\nb slots\n", "! file, line 2: 'slots' after the name of a host is not slots=N"},
        {"a\n\nb slots=0\n", "! file, line 3: 'slots=0': the number of slots is from 1 to"},
        {"a slots=1x\n", "! line 1: 'slots=1x'"},
        {"a slots=99999999999999999999\n", "! line 1: 'slots=99999999999999999999'"},
        {"a:0\n", "! file, line 1: after 'a:', write the number of slots"},
        {"a:\n", "! line 1: after 'a:'"},
        {"a\n-oProxyCommand=x\n", "! file, line 2: '-oProxyCommand=x' is not the name of a host"},
        {"a b\n", "! line 1: 'b' after the name of a host"},
        {"a;b\n", "! line 1: 'a;b' is not the name of a host"},
        {"a user=-x slots=1\n", "! line 1: '-x@a' is not the name of a host"},
        {"Host a\nHost $(x)\n", "! file, line 2: '$(x)' is not the name of a host"},
        {"@a\n", "! line 1: '@a'"},
        {"a@\n", "! line 1: 'a@'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kl_host_list list = {0};
        kilter_error error;
        check(kl_host_list_parse("file", rows[i].text, strlen(rows[i].text), &list, &error), &list, &error,
              rows[i].wanted, rows[i].text);
    }
}

static void a_byte_of_zero_is_no_end(void **state) {
    (void)state;
    kl_host_list list = {0};
    kilter_error error;
    check(kl_host_list_parse("file", "a\nb\0c\n", 6, &list, &error), &list, &error, "! line 2: 'b?c'",
          "b\\0c");
}

static void lists_of_slurm_are_read(void **state) {
    (void)state;
    static const struct {
        const char *nodes, *numbers, *wanted;
    } rows[] = {
        {"node1", NULL, "node1"},
        {"a,b", "", "a b"},
        {"node[1-3]", "4(x2),2", "node1:4 node2:4 node3:2"},
        {"node[01-03,7,09-10],login", NULL, "node01 node02 node03 node7 node09 node10 login"},
        {"r[0-1]n[2-3]x,z", "1(x4),9", "r0n2x:1 r0n3x:1 r1n2x:1 r1n3x:1 z:9"},
        {"n[8-11]", NULL, "n8 n9 n10 n11"},
        {"n[5]", "16", "n5:16"},
        {"", NULL, "! '' is not the name of a host"},
        {"a,", NULL, "! '' is not the name of a host"},
        {"n[1-", NULL, "! numbers such as [1-3,7] are expected in brackets"},
        {"n[]", NULL, "! numbers such as [1-3,7] are expected"},
        {"n[3-1]", NULL, "! numbers such as [1-3,7] are expected"},
        {"n[1;2]", NULL, "! numbers such as [1-3,7] are expected"},
        {"n[1-70000]", NULL, "! a list has at most 65536 hosts"},
        {"n[1-99999999999]", NULL, "! at most 65536"},
        {"n[1-300]m[1-300]", NULL, "! at most 65536"},
        {"a,b", "4", "! Slurm's numbers '4': the list has numbers for 1 of 2 nodes"},
        {"a,b", "4(x3)", "! the numbers for 2 nodes are expected"},
        {"a,b", "4,", "! the numbers for 2 nodes are expected"},
        {"a,b", "4(x2", "! the numbers for 2 nodes are expected"},
        {"a", "x", "! Slurm's numbers 'x'"},
        {"a", "0", "! the numbers for 1 nodes are expected"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kl_host_list list = {0};
        kilter_error error;
        check(kl_host_list_slurm(rows[i].nodes, rows[i].numbers, &list, &error), &list, &error,
              rows[i].wanted, rows[i].nodes);
    }
}

static void names_that_are_too_long_are_refused(void **state) {
    (void)state;
    char name[2 * KL_LISTED_BYTES];
    for (size_t length = KL_LISTED_BYTES - 2; length < KL_LISTED_BYTES + 2; length++) {
        kl_host_list list = {0};
        memset(name, 'a', length);
        name[length] = '\0';
        kilter_status expected = length < KL_LISTED_BYTES ? KILTER_OK : KILTER_ERR_INPUT;
        assert_int_equal(kl_host_list_parse("file", name, length, &list, NULL), expected);
        kl_host_list_free(&list);
        assert_int_equal(kl_host_list_slurm(name, NULL, &list, NULL), expected);
        kl_host_list_free(&list);
        memcpy(name + length - 3, "[1]",
               4); /* "[1]" stands for "1", so the name is two bytes shorter than the text */
        assert_int_equal(kl_host_list_slurm(name, NULL, &list, NULL), KILTER_OK);
        kl_host_list_free(&list);
    }
}

/* Add many names in any order, some of them several times. Each name must be found where it was first added.
 * Its slots must be the sum over all times that it was added. */
static void a_list_finds_each_name_where_it_was_added(void **state) {
    (void)state;
    enum { NAMES = 500, ADDS = 3000 };
    kl_host_list list = {0};
    uint32_t slots[NAMES] = {0};
    for (uint64_t i = 0; i < ADDS; i++) {
        char name[32];
        uint32_t n = (uint32_t)(kl_mix64(i) % NAMES);
        snprintf(name, sizeof name, "host%u", n);
        size_t before = kl_host_list_find(&list, name), count = list.count;
        assert_int_equal(kl_host_list_add(&list, name, 2, NULL), KILTER_OK);
        assert_int_equal(kl_host_list_find(&list, name), before == SIZE_MAX ? count : before);
        slots[n] += 2;
        assert_int_equal(list.at[kl_host_list_find(&list, name)].slots, slots[n]);
    }
    assert_int_equal(kl_host_list_find(&list, "other"), SIZE_MAX);
    kl_host_list_free(&list);
    assert_int_equal(kl_host_list_find(&list, "host1"), SIZE_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostfiles_names_and_ssh_configurations_are_read),
        cmocka_unit_test(a_byte_of_zero_is_no_end),
        cmocka_unit_test(lists_of_slurm_are_read),
        cmocka_unit_test(names_that_are_too_long_are_refused),
        cmocka_unit_test(a_list_finds_each_name_where_it_was_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
