#!/usr/bin/env bash
# Run a program with a loop on three ranks, one of which is slow. The program must write a record, and kilter report must print the moves
# of rows.
# usage: loops_record_test.sh KILTER PROGRAM LAUNCHER…     LAUNCHER is the command line up to the number of ranks
set -euo pipefail
kilter=$1 program=$2
shift 2
unset KILTER_RECORD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
record=$work/a.kilter
fail() {
    echo "FAILED: $*" >&2
    exit 1
}
says() { sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p" "$work/out"; } # says NUMBER: print the value of this member in the second line of the output
for sweeps in 20 80 320; do # on a busy machine, rows may move only in a longer run
    rm -f "$record"*
    "$@" 3 "$program" 60 "$sweeps" --cost 1e-3 --slow 4 --say --check --record "$record" >"$work/out"
    moves=$(says moves) executions=$(says executions)
    [ "$moves" -eq 0 ] || break
done
[ "$moves" -gt 0 ] || fail "no rows were moved: $(cat "$work/out")"

"$kilter" report "$record" >"$work/report"
grep -q '^loop .*: 60 iterations, .* on 3 ranks' "$work/report" || fail "the report has no line about the loop: $(cat "$work/report")"
grep -q "^sweeps      *$executions in " "$work/report" || fail "the report does not have $executions sweeps: $(cat "$work/report")"
grep -q "^moves  *$moves carried out" "$work/report" || fail "the report does not have $moves moves: $(cat "$work/report")"
grep -q "^gained .*forecast .*; measured " "$work/report" || fail "the report does not say what the moves gained: $(cat "$work/report")"
"$kilter" report --json "$record" | grep -q "\"move_count\":$moves," || fail "the JSON report does not have $moves moves"
"$kilter" report --gantt "$work/a.svg" "$record"
[ "$(grep -c 'class="c[0-2]" d=' "$work/a.svg")" = 3 ] || fail "the picture does not have three ranks"

before=$(cksum <"$record")
"$@" 3 "$program" 60 1 --record "$record" >"$work/out" 2>&1
[ "$before" = "$(cksum <"$record")" ] || fail "the old record was overwritten"
grep -q "a.kilter' exists, so the run record of loop .* is '.*a-2.kilter'" "$work/out" || fail "the program does not print the name of the second record: $(cat "$work/out")"
"$kilter" report "$work/a-2.kilter" | grep -q "^loop " || fail "kilter report cannot read the second record"
