#!/usr/bin/env bash
# Compile programs for an older and for a newer Kilter, and run them with this library. The programs' structs are shorter or longer than the
# library's structs. The library must neither read nor write bytes past the end of a program's struct.
# usage: sizes_test.sh PROGRAM.c COMPILER HEADER… -- LINK_ARGUMENT… -- [LAUNCHER…]
# The environment variable CFLAGS gives compiler flags.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source=$1 compiler=$2
shift 2
fail() { echo "sizes_test: $*" >&2; exit 1; }
headers=() link=()
while [ "$1" != -- ]; do headers+=("$1"); shift; done; shift
while [ "$1" != -- ]; do link+=("$1"); shift; done; shift

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export KILTER_RECORD_DIR=$work
for way in older same newer; do
    mkdir -p "$work/$way/kilter"
    "$here/change_structs" $way "${headers[@]}" "$work/$way/kilter"
    "$compiler" -std=c11 -Wall -Wextra -Werror ${CFLAGS-} "-D${way^^}" "-I$work/$way" "-I$here" "$source" \
        -o "$work/$way/program" "${link[@]}"
    said=$("$@" "$work/$way/program") || fail "a program that was compiled with the $way structs fails: $said"
    grep -q kept <<<"$said" || fail "a program that was compiled with the $way structs prints: $said"
done
echo "programs with older, equal and newer structs run"
