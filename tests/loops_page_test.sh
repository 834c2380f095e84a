#!/usr/bin/env bash
# Check that the table of line counts in docs/how-to/mpi-loop.md fits the programs in examples/.
# usage: loops_page_test.sh SOURCE [--table]     --table: print the table that belongs on the page
set -euo pipefail
cd "$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
page=docs/how-to/mpi-loop.md
programs="10_matmul 11_redblack 12_pipeline 13_filter 14_wave 15_cg"

lines() { grep -vE '^ *(/?\*.*)?$' "$1"; } # print a program without its comments and empty lines

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
