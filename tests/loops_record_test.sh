#!/usr/bin/env bash
# A program with a loop writes a record in which a rank is slow, and kilter report prints it.
# usage: loops_record_test.sh KILTER PROGRAM LAUNCHER…     LAUNCHER up to the number of ranks
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
says() { sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p" "$work/out"; } # NUMBER in the program's second line
for sweeps in 20 80 320; do # on a busy machine it takes longer until rows move
    rm -f "$record"*
    "$@" 3 "$program" 60 "$sweeps" --cost 1e-3 --slow 4 --say --check --record "$record" >"$work/out"
    moves=$(says moves) executions=$(says executions)
    [ "$moves" -eq 0 ] || break
done
[ "$moves" -gt 0 ] || fail "nothing moved: $(cat "$work/out")"

"$kilter" report "$record" >"$work/report"
grep -q '^loop .*: 60 iterations, .* on 3 ranks' "$work/report" || fail "no loop: $(cat "$work/report")"
grep -q "^sweeps      *$executions in " "$work/report" || fail "not $executions executions: $(cat "$work/report")"
grep -q "^moves  *$moves carried out" "$work/report" || fail "not $moves moves: $(cat "$work/report")"
grep -q '^gained .* was forecast, .* came of it' "$work/report" || fail "no outcome: $(cat "$work/report")"
"$kilter" report --json "$record" | grep -q "\"move_count\":$moves," || fail "not $moves moves as JSON"
"$kilter" report --gantt "$work/a.svg" "$record"
[ "$(grep -c 'class="c[0-2]" d=' "$work/a.svg")" = 3 ] || fail "not three bands"

before=$(cksum <"$record")
"$@" 3 "$program" 60 1 --record "$record" >"$work/out" 2>&1
[ "$before" = "$(cksum <"$record")" ] || fail "a record was written over"
grep -q "a.kilter' exists: the run record of loop .* is '.*a-2.kilter'" "$work/out" || fail "not said: $(cat "$work/out")"
"$kilter" report "$work/a-2.kilter" | grep -q "^loop " || fail "no second record"
