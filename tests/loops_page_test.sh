#!/usr/bin/env bash
# Check docs/how-to/mpi-loop.md against examples/: its counts of lines and its lines of C.
# usage: loops_page_test.sh SOURCE [--table]     --table: print the table that belongs on the page
set -euo pipefail
cd "$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
page=docs/how-to/mpi-loop.md
programs="10_matmul 11_redblack 12_pipeline 13_filter 14_wave 15_cg"

lines() { grep -vE '^ *(/?\*.*)?$' "$1"; } # without comments and empty lines

table() {
    echo "| program | lines of plain MPI | with Kilter | gone | new |"
    echo "|---|---|---|---|---|"
    for program in $programs; do
        lines "examples/plain/${program#*_}.c" >"$work/plain"
        lines "examples/$program.c" >"$work/kilter"
        diff -w "$work/plain" "$work/kilter" >"$work/changes" || [ $? -eq 1 ]
        echo "| \`${program#*_}\` | $(wc -l <"$work/plain") | $(wc -l <"$work/kilter") | $(grep -c '^<' "$work/changes") | $(grep -c '^>' "$work/changes") |"
    done
}

table >"$work/table"
[ "${2-}" != --table ] || { cat "$work/table"; exit; }

while IFS= read -r line; do
    grep -qxF -- "$line" "$page" || { echo "$page lacks: $line"; exit 1; }
done <"$work/table"

# Each block of C follows the name of its file; the file has these lines in the same order.
awk -v work="$work" '/^`examples\/.*`:$/ { file = substr($0, 2, length($0) - 3) }
    /^```c$/ { if (file == "") next; block = work "/block." ++n; print file >(work "/file." n); inside = 1; next }
    /^```$/ { inside = 0; file = "" }
    inside { print >block }
    END { print n + 0 >(work "/count") }' "$page"
[ "$(cat "$work/count")" -ge 2 ] || { echo "$page: its two loops are not there"; exit 1; }
for ((n = 1; n <= $(cat "$work/count"); n++)); do
    file=$(cat "$work/file.$n")
    first=$(grep -nxF -- "$(head -1 "$work/block.$n")" "$file" | head -1 | cut -d: -f1)
    [ -n "$first" ] || { echo "$page: not a line of $file: $(head -1 "$work/block.$n")"; exit 1; }
    tail -n "+$first" "$file" | head -n "$(wc -l <"$work/block.$n")" | diff -u - "$work/block.$n" ||
        { echo "$page: that is not what $file has"; exit 1; }
done
