#!/usr/bin/env bash
# Give kilter-cc programs that are truncated, have changed characters, or use rare forms of C. kilter-cc must end by itself,
# with exit code 0 or 1.
# usage: hostile_test.sh KILTER-CC PROGRAMS-DIR VARIANTS [SEED]
set -euo pipefail
compiler=$1 programs=$2 variants=$3 seed=${4:-1}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$programs/common.h" "$work/"
python3 - "$programs" "$work" "$variants" "$seed" <<'PY'
import glob, os, random, sys
programs, work, variants, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
random.seed(seed)
sources = [open(f, encoding='latin-1').read() for f in sorted(glob.glob(programs + '/*.c'))]
words = [' ', '(', ')', '{', '}', ';', '*', '&', '[i]', '[0]', '++', '--', '->x', '0', '1', 'i', 'j', 'n', 'u', '%', '/', '-',
         'goto l; l:', 'break;', 'continue;', 'return 0;', 'sizeof ', '#pragma kilter loop\n', '({1;})', '\\\n', '/*', '"', "'",
         'static ', 'volatile ', 'unsigned ', 'const ', 'while (1)', 'do', 'switch (i)', 'case 1:', 'asm("");', '\0', '\xff']
for v in range(variants):
    text = random.choice(sources)
    if v % 4 == 0:
        text = text[:random.randrange(len(text))]
    for _ in range(random.randrange(1, 5)):
        at = random.randrange(len(text) + 1)
        text = text[:at] + random.choice(words) + text[at + random.choice([0, 0, 1, 3]):]
    open(f'{work}/v{v}.c', 'w', encoding='latin-1').write(text)
loop = '#pragma kilter loop\nfor (int i = 0; i < 10; i++)\n'
odd = {
    'deep': 'double a[10];int main(void){\n' + loop + 'a[i] = ' + '(' * 200 + '1' + ')' * 200 + ';}',
    'long_sum': 'double a[10];int main(void){\n' + loop + 'a[i] = 1' + ' + 1.0' * 9000 + ';}',
    'long_body': 'double a[10];int main(void){\n' + loop + '{' + 'a[i] += 1;\n' * 10000 + '}}',
    'else_chain': 'double a[10];int main(void){\n' + loop + 'if (a[i] > 0) a[i] = 1;' + ' else if (a[i] > 1) a[i] = 2;' * 2000 + '}',
    'kr': 'double a[10];\nint f(x) int x; { return x; }\nint main() {\n' + loop + 'a[i] = f(i);}',
    'macro': '#define L for (int i = 0; i < 10; i++)\ndouble a[10];int main(void){\n#pragma kilter loop\nL a[i] = 1;}',
    'macro_body': '#define T i < 10\ndouble a[10];int main(void){\n#pragma kilter loop\nfor (int i = 0; T; i++) a[i] = 1;}',
    'gnu': 'double a[10];int main(void){\nint g(int x){return x;}\n' + loop + 'a[i] = ({int q = g(i); q;}) ?: 2;}',
    'recursion': 'double a[10];int f(int n){return n ? f(n-1) : 0;}int main(void){\n' + loop + 'a[i] = f(i);}',
    'two_recursions': 'double a[10];int g(int);int f(int n){return g(n);}int g(int n){return f(n);}int main(void){\n' + loop + 'a[i] = f(i);}',
    'pointers': 'double a[10];int f(int x){return x;}int main(void){int (*p)(int) = f;\n' + loop + 'a[i] = p(i) + (*p)(i) + (&f)(i);}',
    'empty': '', 'only_pragma': '#pragma kilter loop', 'no_main': 'double a[10];void f(void){\n' + loop + 'a[i]=1;}',
    'includes_itself': '#include "includes_itself.c"\n', 'struct': 'struct {int x[3]; struct {double d;} e;} a[10];int main(void){\n' + loop + 'a[i].e.d = a[i].x[1];}',
    'complex': '_Complex double a[10];int main(void){\n' + loop + 'a[i] = a[i] * 1.0i;}',
    'bool': '_Bool a[10];int main(void){\n' + loop + 'a[i] = !a[i];}',
    'huge': 'double a[10];int main(void){\n#pragma kilter loop\nfor (long long i = -9223372036854775807LL; i < 9223372036854775807LL; i += 1) a[i & 7] = 1;}',
    'int128': '__int128 a[10];int main(void){\n#pragma kilter loop\nfor (__int128 i = 0; i < 10; i++) a[i] = 1;}',
    'vla': 'int main(void){int n = 5; double a[n][n + 1][2 * n];\n#pragma kilter loop\nfor (int i = 0; i < n; i++) a[i][1][n] = sizeof a;}',
}
for name, text in odd.items():
    open(f'{work}/{name}.c', 'w').write(text)
PY
count=0
for file in "$work"/*.c; do
    for mode in explain=1 "keep=$work/kept"; do
        status=0
        timeout 20 "$compiler" "$mode" "$file" >"$work/out" 2>&1 || status=$?
        if [ "$status" -gt 1 ]; then
            echo "$(basename "$file") $mode: exit code $status (seed $seed)"
            tail -n 3 "$work/out"
            cp "$file" /tmp/ || true
            exit 1
        fi
        count=$((count + 1))
    done
done
echo "$count runs"
