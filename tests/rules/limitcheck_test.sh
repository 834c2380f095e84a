#!/usr/bin/env bash
# Check that tools/limitcheck prints structs and functions that exceed a limit and are not in its list. It must also print entries of the list that
# no longer exceed a limit.
# usage: limitcheck_test.sh LIMITCHECK
set -euo pipefail
limitcheck=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/tree
failed=0

functions() { # functions NUMBER LINES: print NUMBER functions, each of LINES lines
    local i
    for ((i = 0; i < $1; i++)); do
        printf 'int f%d_%d(void) {\n' "$2" "$i"
        printf '\n%.0s' $(seq 3 "$2")
        printf '}\n'
    done
}

struct() { # NAME FIELDS
    local i
    printf 'struct %s {\n' "$1"
    for ((i = 1; i < $2; i += 2)); do printf 'int m%d, *n%d;\n' "$i" "$i"; done
    [ $(($2 % 2)) -eq 0 ] || printf 'int last;\n'
    printf '};\n'
}

clean() {
    rm -rf "$tree"
    mkdir -p "$tree/src/farm" "$tree/tests/rules"
    functions 40 10 >"$tree/src/farm/a.c"
    listed
}

listed() { printf '%s\n' '# a comment stays' "$@" >"$tree/tests/rules/limits.txt"; }

accepts() { # WHAT
    local said
    said=$("$limitcheck" "$tree") || { printf 'limitcheck refuses %s:\n%s\n' "$1" "$said"; failed=1; }
}

refuses() { # WHAT EXPECTED
    local said status=0
    said=$("$limitcheck" "$tree") || status=$?
    if [ "$status" -ne 1 ] || ! grep -qF -- "$2" <<<"$said"; then
        printf 'limitcheck on %s: exit %s, expected "%s", said:\n%s\n' "$1" "$status" "$2" "$said"
        failed=1
    fi
}

clean; accepts 'sources within the limits'
struct big 30 >"$tree/src/farm/a.h"; accepts 'a struct of 30 fields'
struct big 31 >"$tree/src/farm/a.h"; refuses 'a struct of 31' 'src/farm/a.h:2: big has 31 fields, at most 30 are allowed'
listed 'fields 31 src/farm/a.h big'; accepts 'one that is listed'
listed 'fields 30 src/farm/a.h big'; refuses 'one that grew' 'big has 31 fields, at most 30'
listed 'fields 33 src/farm/a.h big'; refuses 'one that shrank' 'big in src/farm/a.h has 31 fields, not 33'
"$limitcheck" --update "$tree" >/dev/null; accepts 'a list brought down'
[ "$(cat "$tree/tests/rules/limits.txt")" = $'# a comment stays\nfields 31 src/farm/a.h big' ] || { echo "limitcheck --update did not write the expected list"; failed=1; }
listed 'fields 31 src/farm/a.h big' 'parameters 8 src/farm/a.c gone'; refuses 'one that is gone' 'gone in src/farm/a.c has no more than 6 parameters now'
"$limitcheck" --update "$tree" >/dev/null; accepts 'a list without it'
listed; ! "$limitcheck" --update "$tree" >/dev/null || { echo "limitcheck --update succeeds although a new entry is needed"; failed=1; }
! grep -q big "$tree/tests/rules/limits.txt" || { echo "limitcheck --update adds a new entry to the list"; failed=1; }
clean; printf 'struct outer {\nstruct {\n%s\n} in;\n};\n' "$(struct x 32 | sed '1d;$d')" >"$tree/src/farm/a.h"
refuses 'fields of a nameless struct inside' 'outer has 33 fields'

clean; printf 'int g(int a, int (*b)(int, int), int c[], int d, int e, int f) {\nreturn 0;\n}\n' >>"$tree/src/farm/a.c"; accepts 'six parameters'
printf 'static int\nh(int a, int b, int c,\n  int d, int e, int f, int g) {\nreturn 0;\n}\n' >>"$tree/src/farm/a.c"
refuses 'seven parameters' 'h has 7 parameters, at most 6 are allowed'
clean; struct big 40 >"$tree/src/farm/a_test.h"; accepts 'a large struct of a test'

clean; functions 100 8 >>"$tree/src/farm/a.c"; refuses 'functions that are too short' "median length is 8 lines, not 9 to 14"
clean; functions 100 15 >>"$tree/src/farm/a.c"; refuses 'functions that are too long' "median length is 15 lines, not 9 to 14"
clean; functions 2 40 >>"$tree/src/farm/a.c"; accepts '2 long functions of 42'
clean; functions 3 40 >>"$tree/src/farm/a.c"; refuses '3 long functions of 43' '3 of 43 functions have 40 lines or more'

exit "$failed"
