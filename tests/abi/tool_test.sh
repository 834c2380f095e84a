#!/usr/bin/env bash
# Check that tools/abi detects changes of an interface. It may replace a stored description only if existing programs still run.
# usage: tool_test.sh TOOL COMPILER
set -euo pipefail
tool=$1 compiler=$2
fail() { echo "tool_test: $*" >&2; cat "$work/said" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/include"

library() { # library MEMBERS DECLARATIONS [DEFINITIONS [ENUMERATORS]]: build a library with these struct members, declarations, definitions and enumerators
    printf 'enum kind { %s };\nstruct summary { enum kind *kind; %s };\n%s\n' "${4-A, B}" "$1" "$2" >"$work/include/api.h"
    printf '#include "api.h"\n%s { return (int)s->a; }\n%s\n' "$(grep -o '[a-z]* all([^;]*' <<<"$2")" "${3-}" >"$work/api.c"
    "$compiler" -g -O0 -fPIC -shared "-I$work/include" "$work/api.c" -o "$work/libapi.so"
}
abi() { # abi CODE ARGUMENT…: run tools/abi, and fail unless it ends with the exit code CODE
    local wanted=$1 code=0
    "$tool" "${@:2}" "$work/libapi.so" "$work/api.abi" "$work/include" >"$work/said" 2>&1 || code=$?
    [ "$code" -eq 77 ] && { cat "$work/said"; exit 77; }
    [ "$code" -eq "$wanted" ] || fail "tools/abi ${*:2} exits with $code, not $wanted"
}
# Change enumerators, struct members and functions. After some of these changes existing programs still run; other changes break them.
plain='int all(struct summary *s);' more='int more(void);' made='int more(void) { return 1; }'
library 'int a; long b;' "$plain"
abi 1 check # no description yet
abi 0 renew
abi 0 check
cp "$work/api.abi" "$work/first.abi"

comes() { # comes WHAT, then arguments of library: check that tools/abi accepts this addition
    cp "$work/first.abi" "$work/api.abi"
    library "${@:2}"
    abi 1 check
    cmp -s "$work/api.abi" "$work/first.abi" || fail "$1: tools/abi check changes the stored description"
    abi 0 renew
    abi 0 check
}
comes 'a member at the end' 'int a; long b; int c;' "$plain"
comes 'a function' 'int a; long b;' "$plain $more" "$made"
comes 'an enumerator at the end' 'int a; long b;' "$plain" '' 'A, B, C'

breaks() {
    cp "$work/first.abi" "$work/api.abi"
    library "${@:2}"
    abi 1 check
    abi 1 renew
    grep -q 'would break' "$work/said" || fail "$1: the change is not reported to break programs"
    cmp -s "$work/api.abi" "$work/first.abi" || fail "$1: the description was renewed although the change breaks programs"
}
breaks 'another type' 'float a; long b;' "$plain"
breaks 'another order' 'long b; int a;' "$plain"
breaks 'a member less' 'int a;' "$plain"
breaks 'a member in padding' 'int a, c; long b;' "$plain"
breaks 'an enumerator between' 'int a; long b;' "$plain" '' 'A, C, B'
breaks 'a parameter more' 'int a; long b;' 'int all(struct summary *s, int more);'
breaks 'another result' 'int a; long b;' 'long all(struct summary *s);'

library 'int a; long b;' "$plain $more" "$made"
abi 0 renew
cp "$work/api.abi" "$work/first.abi"
breaks 'a function less' 'int a; long b;' "$plain"
abi 0 renew --break
abi 0 check
echo "tools/abi detects all changes of an interface"
