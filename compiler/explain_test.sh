#!/usr/bin/env bash
# Check the verdicts of kilter cc --explain: each loop of explained/loops.c has its expected verdict in a comment.
# Check error messages, too.
# usage: explain_test.sh KILTER KILTER-CC SOURCE-DIR
set -euo pipefail
kilter=$1 source=$3
KILTER_LIBEXEC=$(dirname "$2")
export KILTER_LIBEXEC
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "$1"; exit 1; }
"$kilter" cc --explain --json "$source/explained/loops.c" >"$work/json"
python3 - "$source/explained/loops.c" "$work/json" <<'PY' || exit 1
import json, re, sys
lines = open(sys.argv[1]).read().split('\n')
loops = {l['line']: l for l in json.load(open(sys.argv[2]))['loops']}
bad = 0
for number, line in enumerate(lines, 1):
    said = re.match(r' +/\* (\w+)(?:: (.*))? \*/', line)
    if not said:
        continue
    loop = loops.get(number + 1)
    if not loop or loop['verdict'] != said[1] or (said[2] and not re.search(said[2], f"{loop['reason']}. {loop['advice']}")):
        print(f'line {number + 1}: {loop and (loop["verdict"], loop["reason"], loop["advice"])}, not {said[0].strip()}')
        bad = 1
sys.exit(bad)
PY
printf 'int main(void) {\n#pragma kilter loop\n    int i;\n}\n' >"$work/stray.c"
"$kilter" cc --explain "$work/stray.c" 2>"$work/error" && fail "a pragma that stands before no loop was accepted"
grep -q "stray.c:2: the pragma does not stand before a for loop" "$work/error" || fail "$(cat "$work/error")"
printf 'int main(void) {\n    return x;\n}\n' >"$work/broken.c"
"$kilter" cc --explain "$work/broken.c" 2>"$work/error" && fail "a program that does not compile was accepted"
grep -q "broken.c:2: does not compile" "$work/error" || fail "$(cat "$work/error")"
"$kilter" cc --explain "$work/none.c" 2>"$work/error" && fail "a missing file was accepted"
grep -q "none.c: No such file" "$work/error" || fail "$(cat "$work/error")"
KILTER_LIBEXEC=$work "$kilter" cc --explain "$work/stray.c" 2>"$work/error" && fail "kilter cc worked without the program kilter-cc"
grep -q "libclang-19-dev" "$work/error" || fail "$(cat "$work/error")"
sed 's/reduction(max.*)/reduction(/' "$source/programs/heat3d.c" >"$work/heat3d.c"
"$kilter" cc --keep "$work/kept.c" "$work/heat3d.c" -- "-I$source/programs" 2>"$work/error" && fail "a wrong clause was accepted"
grep -q "heat3d.c:.*write #pragma kilter loop" "$work/error" || fail "$(cat "$work/error")"
refuse() { # refuse STATEMENT REASON: kilter cc must refuse a main() that consists of the statement
    cat >"$work/outside.c" <<C
#include <stdio.h>
struct { double x; } u[9], *p = u;
int n, j;
int next(void) { return ++n; }
int marked(void) {
#pragma kilter loop
    for (int i = 0; i < 9; i++)
        for (j = 0; j < 1; j++)
            u[i].x += 1;
    return 1;
}
int main(void) {
    $1
}
C
    "$kilter" cc --keep "$work/kept.c" "$work/outside.c" 2>"$work/error" && fail "accepted: $1"
    grep -q "outside.c:13: .*$2" "$work/error" || fail "$1: $(cat "$work/error")"
}
refuse 'printf("%d", next());' 'must not change anything'
refuse 'printf("%d", marked());' 'must not change anything'
refuse 'double s = p->x + marked();' 'use two statements'
refuse 'marked(); for (j = j + 1; j < 9; j++) n++;' 'with the value that this loop left\|used afterwards'
cat >"$work/names.c" <<C
int m = 5, u[9], *w;
static int get(int i) { return w[i % 2 + m]; }
int main(void) {
    int m = 1, x[9];
    w = x;
#pragma kilter loop
    for (int i = 0; i < 9; i++)
        u[i] = get(i) + m;
}
C
"$kilter" cc --keep "$work/kept.c" "$work/names.c" 2>"$work/error" && fail "two variables m were mixed up"
grep -q "names.c:7: .*variable m that this function cannot name" "$work/error" || fail "$(cat "$work/error")"
wrong() { # wrong LINE REASON: kilter cc must refuse the program on standard input, and name the line
    cat >"$work/wrong.c"
    "$kilter" cc --keep "$work/kept.c" "$work/wrong.c" 2>"$work/error" && fail "accepted: $2"
    grep -q "wrong.c:$1: .*$2" "$work/error" || fail "$2: $(cat "$work/error")"
}
pragma() { # pragma TEXT REASON: kilter cc must refuse a program with #pragma kilter TEXT before main()
    printf 'double f(double);\nint g(double *x);\nint k;\nstatic int h(int x) { return k = x; }\n#pragma kilter %s\nint main(void) {}\n' "$1" |
        wrong 5 "$2"
}
pragma 'pure(f' 'write #pragma kilter pure(f, g)'
pragma 'pure' 'write #pragma kilter pure(f, g)'
pragma 'pure(f,)' 'write #pragma kilter pure(f, g)'
pragma 'pure(k)' 'k is not declared before it is named here, or is no function'
pragma 'pure(f, missing)' 'missing is not declared'
pragma 'pure(g)' 'g has a pointer as parameter'
pragma 'pure(h)' 'h is not pure: it changes a variable in line 4'
pragma 'root' 'the pragma must stand before a block'
pragma 'root(f)' 'write #pragma kilter root before a statement'
pragma 'root name' 'write #pragma kilter root before a statement'
pragma 'rot' 'write #pragma kilter loop'
rooted() { # rooted STATEMENT REASON [LINE]: kilter cc must refuse the statement after a root pragma, and name the line
    wrong "${3:-19}" "in a root statement: .*$2" <<C
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
double u[9], *p = u, **rows;
struct { char *name; int n; } s;
int unknown(int);
static int *last(void) { static int n; n++; return &n; }
static void own(const double *x) { ((double *)x)[1] = 2; }
static void run(void) {
#pragma kilter loop
    for (int i = 0; i < 9; i++)
        u[i] += 1;
}
int main(void) {
    void *any = u;
    double *q = u;
    run();
#pragma kilter root
    $1
    return 0;
}
C
}
rooted 'p = u;' 'p: a pointer changes'
rooted 's.name = "x";' 's: a pointer changes'
rooted 'rows[0][1] = 3;' 'cannot tell which memory this changes'
rooted 'memset(any, 0, 8);' 'any: cannot tell which memory changes'
rooted '{ double *o = u; o[1] = 2; }' 'o: cannot tell which memory changes'
rooted '*rows = u;' 'rows: a pointer changes'
rooted 'own(u);' 'x: cannot tell which memory changes' 8
rooted 'last();' 'n: a static variable changes' 7
rooted '{ static int n; n++; }' 'n: a static variable changes'
rooted 's.n = unknown(1);' 'unknown: what it changes is not known'
rooted 'run();' 'a marked loop' 11
rooted 'exit(1);' 'exit() must be called on all ranks'
rooted 'u[0] = rand();' 'rand() must be called on all ranks'
rooted '{ if (q[0] > 1) return 1; }' 'a jump'
rooted '{ goto out; out:; }' 'a jump'
for statement in 'int x = 1;' 'out:;' 'return 1;' ';'; do
    printf 'int main(void) {\n#pragma kilter root\n    %s\n    return 0;\n}\n' "$statement" | wrong 2 'the pragma must stand before a block'
done
wrong 6 'break or continue leaves the statement' <<C
double u[9];
int main(void) {
    for (int t = 0; t < 9; t++) {
        u[t] = t;
#pragma kilter root
        if (u[t] > 3) break;
#pragma kilter loop
        for (int i = 0; i < 9; i++)
            u[i] += 1;
    }
}
C
wrong 7 'a marked loop contains it' <<C
double u[9];
int main(void) {
#pragma kilter loop
    for (int i = 0; i < 9; i++) {
        double x;
#pragma kilter root
        x = 1;
        u[i] += x;
    }
}
C
wrong 9 'errno is used after a marked loop' <<C
#include <errno.h>
#include <math.h>
double u[9];
int main(void) {
    errno = 0;
#pragma kilter loop
    for (int i = 0; i < 9; i++)
        u[i] = exp(u[i]);
    return errno;
}
C
wrong 2 'names that begin with kcc_' <<C
double u[9];
int kcc_lo;
int main(void) {
#pragma kilter loop
    for (int i = 0; i < 9; i++)
        u[i] = kcc_lo;
}
C

# --- several files ---
cat >"$work/first.c" <<C
#include <stdio.h>
double half(double);
static double u[9];
int main(void) {
#pragma kilter loop
    for (int i = 0; i < 9; i++)
        u[i] = i;
    printf("%g\n", u[4]);
}
C
echo "double half(double x) { return x / 2; }" >"$work/second.c"
"$kilter" cc --keep "$work/kept.c" "$work/second.c" "$work/first.c" || fail "the file with marked loops was not found"
grep -q "kcc_main" "$work/kept.c" || fail "the wrong file was changed"
"$kilter" cc --explain "$work/first.c" "$work/second.c" >"$work/said"
grep -q "second.c: no loops" "$work/said" && grep -q "first.c:6: .*DOALL" "$work/said" || fail "$(cat "$work/said")"
sed 's/= i;/= half(i);/' "$work/first.c" >"$work/third.c"
"$kilter" cc --keep "$work/kept.c" "$work/third.c" "$work/second.c" 2>"$work/error" && fail "a function of another file was accepted"
grep -q "third.c:7: half(): what it reads and changes is not known" "$work/error" || fail "$(cat "$work/error")"
sed '2a #pragma kilter pure(half)' "$work/third.c" | sed 's/u\[4\]/half(u[4])/' >"$work/vouched.c"
"$kilter" cc --keep "$work/kept.c" "$work/second.c" "$work/vouched.c" || fail "a pure function of another file was refused"
sed 's/u\[4\]/half(u[4])/' "$work/first.c" >"$work/third.c"
"$kilter" cc --keep "$work/kept.c" "$work/third.c" "$work/second.c" 2>"$work/error" && fail "a function of another file was accepted"
grep -q "third.c:8: .*half() *\|third.c:8: .*must not change" "$work/error" || fail "$(cat "$work/error")"
"$kilter" cc --keep "$work/kept.c" "$work/first.c" "$work/third.c" 2>"$work/error" && fail "marked loops in two files were accepted"
grep -q "first.c and .*third.c both" "$work/error" || fail "$(cat "$work/error")"
sed 's/main(void)/other(void)/' "$work/first.c" >"$work/third.c"
"$kilter" cc --keep "$work/kept.c" "$work/second.c" "$work/third.c" 2>"$work/error" && fail "a file without main() was accepted"
grep -q "third.c:1: .*main() and all marked loops" "$work/error" || fail "$(cat "$work/error")"
for clause in "exact *: s" "exact"; do
    sed "s/kilter loop/kilter loop reduction($clause)/" "$work/first.c" >"$work/third.c"
    "$kilter" cc --explain "$work/third.c" 2>"$work/error" && fail "reduction($clause) was accepted"
    grep -q "third.c:5: write #pragma kilter loop" "$work/error" || fail "$(cat "$work/error")"
done
