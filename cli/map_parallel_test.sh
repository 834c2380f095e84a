#!/usr/bin/env bash
# Check that kilter map and GNU parallel give the same output and exit code. The commands are documented examples of GNU parallel that kilter map can
# run.
# usage: map_parallel_test.sh KILTER     exit code 77: GNU parallel is not installed
set -eu
. "$(dirname "$0")/farm_test.sh"
command -v parallel >/dev/null || exit 77
export SHELL=/bin/bash
mkdir -p "$HOME/.parallel"
: >"$HOME/.parallel/will-cite"
printf 'A\nB\nC\n' >abc-file
printf 'D\nE\nF\n' >def-file
printf 'A_B\tC\n' >tsv-file
printf 'A\0B\0C' >abc0-file
my_func() { echo in my_func "$1"; }
my_func2() { echo in my_func2 "$1" "$2"; }
export -f my_func my_func2
count=0
while IFS= read -r line; do
    [ -n "$line" ] || continue
    for tool in parallel map; do
        rm -rf outdir
        call=parallel
        [ $tool = parallel ] || call="'$kilter' map"
        code=0
        bash -c "${line//PAR /$call }" >$tool.out 2>$tool.err </dev/null || code=$?
        echo "exit code $code" >>$tool.out
    done
    same parallel.out map.out "$line: $(cat map.err)"
    count=$((count + 1))
done <"$here/map_parallel_examples.txt"
[ $count -ge 60 ] || fail "only $count examples"
