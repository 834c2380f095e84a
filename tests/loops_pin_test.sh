#!/usr/bin/env bash
# Run a program with a loop on two ranks that may use two cores, while another process computes on one of them. A rank must be pinned to
# its core, and the record must say so. The program must give the same result as a sequential one.
# usage: loops_pin_test.sh KILTER PROGRAM LAUNCHER…     LAUNCHER is the command line up to the number of ranks, which are not bound
set -euo pipefail
kilter=$1 program=$2
shift 2
unset KILTER_RECORD
mapfile -t cores < <(taskset -pc $$ | sed 's/.*: //' | awk -v RS='[,\n]' -F- 'NF { for (c = $1; c <= (NF > 1 ? $2 : $1); c++) print c }' | head -2)
[ ${#cores[@]} = 2 ] || { echo "skipped: this needs two cores" >&2; exit 77; }
work=$(mktemp -d)
taskset -c "${cores[1]}" timeout 110 sh -c 'while :; do :; done' &
other=$!
trap 'kill $other || :; rm -rf "$work"' EXIT
fail() {
    echo "FAILED: $*" >&2
    exit 1
}

pinned() { # succeed if the record has a decision that pins at least one rank
    "$kilter" report --json "$work/a.kilter" >"$work/report" || fail "kilter report cannot read the record"
    grep -q 'ranks that stay on their cores: [1-9]' "$work/report"
}

for sweeps in 500 2000 8000 32000; do # beside other tests, more rounds may pass before a rank is pinned
    rm -f "$work/a.kilter"
    taskset -c "${cores[0]},${cores[1]}" "$@" 2 "$program" 400 "$sweeps" --check --record "$work/a.kilter" >"$work/out" || fail "$(cat "$work/out")"
    if pinned; then exit 0; fi
done
fail "no rank was pinned: $(cat "$work/report")"
