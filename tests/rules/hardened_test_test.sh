#!/usr/bin/env bash
# Check that the test of hardened programs finds missing protections.
# usage: hardened_test_test.sh HARDENED_TEST     (CC from the environment)
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/a.c" <<'END'
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv) {
    char text[16];
    strcpy(text, argv[argc - 1]);
    return printf("%s\n", text) < 0;
}
END
good=(-O2 -fPIE -pie -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -Wl,-z,relro,-z,now,-z,noexecstack)
# misses WORDS FLAG...: build with the flags, and expect that the test prints WORDS
misses() {
    local words=$1
    shift
    "${CC:-cc}" -w "${good[@]}" "$@" -o "$work/a" "$work/a.c"
    ! "$test" "$work/a" >"$work/said" || { echo "built with $*: the test finds no missing protection"; exit 1; }
    grep -qF -- "$words" "$work/said" || { echo "built with $*: $(cat "$work/said")"; exit 1; }
}
test=$1
"${CC:-cc}" -w "${good[@]}" -o "$work/a" "$work/a.c"
"$test" "$work/a"
misses GNU_RELRO -Wl,-z,norelro
misses NOW -Wl,-z,lazy
misses GNU_STACK -Wl,-z,execstack
misses __stack_chk_fail -fno-stack-protector
misses _chk -U_FORTIFY_SOURCE
"${CC:-cc}" -w "${good[@]}" -U_FORTIFY_SOURCE -o "$work/a" "$work/a.c"
"$test" --debug "$work/a"
