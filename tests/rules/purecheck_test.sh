#!/usr/bin/env bash
# Check that tools/purecheck accepts an archive of pure code. In an archive with one impure symbol, it must name the member and the symbol.
# usage: purecheck_test.sh PURECHECK     (CC names the compiler)
set -euo pipefail
purecheck=$1
cc=${CC:-cc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
failed=0

archive() { # archive SOURCE: make room.a from this C source and a pure member
    printf '%s\n' "$1" >room.c
    printf '%s\n' 'int neighbour(int x);' 'int neighbour(int x) { return x + 1; }' >other.c
    rm -f room.a
    "$cc" -O1 -fPIC -D_GNU_SOURCE -c room.c other.c
    ar rc room.a room.o other.o
}

accepts() { # WHAT SOURCE
    archive "$2"
    "$purecheck" room.a || { echo "purecheck refuses pure code: $1"; failed=1; }
}

refuses() { # EXPECTED SOURCE
    local said status=0
    archive "$2"
    said=$("$purecheck" room.a) || status=$?
    if [ "$status" -ne 1 ] || ! grep -qF "room.o: $1" <<<"$said"; then
        printf 'purecheck, exit %s, expected "room.o: %s", said:\n%s\n' "$status" "$1" "$said"
        failed=1
    fi
}

accepts 'memory, text and libm' '
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
char *f(double x) { char *t = malloc(64); if (t) snprintf(t, 64, "%g", sqrt(fabs(pow(x, lround(x))))); return t; }
void g(char *t, const char *s) { memcpy(t, s, strlen(s)); free(t); }'
accepts 'tables that never change' '
static int one(void) { return 1; }
static int two(void) { return 2; }
static const struct { const char *name; int (*call)(void); } table[] = {{"one", one}, {"two", two}};
const char *const names[] = {"a", "b"};
int f(int i) { return table[i].call() + table[i].name[0]; }'
accepts 'a call within the library' 'int neighbour(int x); int f(int x) { return neighbour(x); }'
accepts 'text with checked buffers' '
int __vsnprintf_chk(char *, unsigned long, int, unsigned long, const char *, __builtin_va_list);
int f(char *b, __builtin_va_list a) { return __vsnprintf_chk(b, 9, 1, 9, "%s", a); }'

refuses 'needs clock_gettime' '#include <time.h>
void f(struct timespec *t) { clock_gettime(CLOCK_MONOTONIC, t); }'
refuses 'needs time'          '#include <time.h>
long f(void) { return time(0); }'
refuses 'needs getenv'        '#include <stdlib.h>
char *f(void) { return getenv("HOME"); }'
refuses 'needs fopen'         '#include <stdio.h>
FILE *f(void) { return fopen("x", "r"); }'
refuses 'needs rand'          '#include <stdlib.h>
int f(void) { return rand(); }'
refuses 'needs pthread_create' '#include <pthread.h>
int f(pthread_t *t, void *(*g)(void *)) { return pthread_create(t, 0, g, 0); }'
refuses 'needs fprintf'       '#include <stdio.h>
void f(FILE *out, int x) { fprintf(out, "%d", x); }'
refuses 'needs __printf_chk'  'int __printf_chk(int, const char *, ...); void f(int x) { __printf_chk(1, "%d", x); }'
refuses 'needs MPI_Wtime'     'double MPI_Wtime(void); double f(void) { return MPI_Wtime(); }'
refuses 'needs lgamma'        '#include <math.h>
double f(double x) { return lgamma(x); }'
refuses 'counter is data'     'int counter; int f(void) { return ++counter; }'
refuses 'counter is data'     'static int counter = 3; int f(void) { return ++counter; }'
refuses 'counter is data'     '_Thread_local int counter; int f(void) { return ++counter; }'
# gcc names this variable counter.0, and clang names it f.counter
archive 'int f(void) { static int counter; return ++counter; }'
said=$("$purecheck" room.a || true)
grep -qE '^room.o: [^ ]*counter[^ ]* is data' <<<"$said" || { echo 'purecheck accepts a static variable inside a function'; failed=1; }
refuses 'names is data'       'const char *names[] = {"a", "b"};'

# With --given LIST, the archive may use the impure names in the list, and it must use each of them.
archive 'void told(int x); void f(int x) { told(x); }'
printf '%s\n' '# what it is given' told >list
"$purecheck" --given list room.o other.o || { echo 'purecheck --given refuses a name that is in the list'; failed=1; }
printf '%s\n' told neighbour spare >list
said=$("$purecheck" --given list room.o other.o || true)
[ "$(grep -c 'the list names .*take it out' <<<"$said")" = 2 ] || { echo 'purecheck --given accepts a list with names that are not used'; failed=1; }

: >empty.c
"$cc" -c empty.c && ar rc empty.a empty.o
! "$purecheck" empty.a 2>/dev/null || { echo "purecheck accepts an archive without a symbol"; failed=1; }
exit "$failed"
