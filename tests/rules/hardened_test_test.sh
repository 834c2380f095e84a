#!/usr/bin/env bash
# Check that hardened_test.sh finds missing protections of programs.
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
# misses WORDS FLAG...: build with these flags, and fail unless hardened_test.sh prints WORDS
misses() {
    local words=$1
    shift
    "${CC:-cc}" -w "${good[@]}" "$@" -o "$work/a" "$work/a.c"
    ! "$test" "$work/a" >"$work/said" || { echo "hardened_test.sh accepts a program that was built with $*"; exit 1; }
    grep -qF -- "$words" "$work/said" || { echo "hardened_test.sh prints other words for a program that was built with $*: $(cat "$work/said")"; exit 1; }
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
