#!/usr/bin/env bash
# Check that tools/headercheck accepts headers that compile alone, and refuses headers that need other headers or are not valid C++.
# usage: headercheck_test.sh HEADERCHECK     (CC and CXX name the compilers)
set -euo pipefail
headercheck=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

header() { # header LINES: write these lines to the only public header
    rm -rf "$work/include"
    mkdir -p "$work/include/kilter"
    printf '%s\n' "$1" >"$work/include/kilter/x.h"
}

refuses() { # EXPECTED LINES
    header "$2"
    local said status=0
    said=$("$headercheck" "$work/include" 2>/dev/null) || status=$?
    if [ "$status" -ne 1 ] || ! grep -qxF "kilter/x.h $1" <<<"$said"; then
        printf 'headercheck, exit %s, expected "%s", said: %s\n' "$status" "$1" "$said"
        failed=1
    fi
}

header $'#ifndef X\n#define X\n#include <stddef.h>\ntypedef struct x { size_t n; } x;\n#endif'
"$headercheck" "$work/include" || { echo "headercheck refuses a header that compiles alone"; failed=1; }
refuses 'does not compile alone as C11'   'size_t f(void);'
refuses 'does not compile alone as C11'   'typedef struct x { int n; } x;'
refuses 'does not compile alone as C++17' 'int f(int class);'
refuses 'does not compile alone as C11'   'enum { A, B, };; '
rm -rf "$work/include"; mkdir "$work/include"
! "$headercheck" "$work/include" 2>/dev/null || { echo "headercheck accepts a folder without headers"; failed=1; }
exit "$failed"
