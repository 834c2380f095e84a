#!/bin/sh
# Test kilter replay on the command line. usage: replay_test.sh KILTER RECORD_WRITER
set -eu
kilter=$1
writer=$2
here=$(cd "$(dirname "$0")" && pwd)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
export HOME="$place/home"
unset KILTER_RECORD_DIR XDG_STATE_HOME
cd "$place"

. "$here/outside_test.sh"

has() { # has FILE WORDS
    grep -qF -- "$2" "$1" || fail "'$2' is not in: $(cat "$1")"
}

for kind in finished empty loop; do
    "$writer" $kind $kind.kilter
done

# The second worker takes twice as long as the first, so it still computes when the first one asks for its second chunk.
"$kilter" replay finished.kilter >list
has list "id 4  at_s 1.257812  run 0  chunk 2  kind deal  subject 0  count 10"
"$kilter" replay --decision 4 finished.kilter >shown
has shown "worker 0  host ada  finished 10  in_hand 0  unit_s 0.025000"
has shown "worker 1  host ada  finished 0  in_hand 10"
has shown "at_s 1.257812  event finished  worker 0  chunk 0  tasks 10"
has shown "ended_s 1.515625  late_s 0.007812"
# No worker has tasks before the decision on the first chunk, although this chunk begins at the time of the decision.
"$kilter" replay --decision 1 finished.kilter >first
has first "worker 1  host ada  finished 0  in_hand 0"
# --at with the printed time of a decision shows this decision; so does any time before the next decision.
for at in 1.257812 1.3; do
    "$kilter" replay --at $at finished.kilter >at
    same shown at "--at $at"
done

# --decision shows each decision of the list, as text and as valid JSON.
for id in $(sed -n 's/^  id \([0-9]*\) .*/\1/p' list); do
    "$kilter" replay --decision "$id" finished.kilter >one
    has one "  id $id "
done
"$kilter" replay --json --decision 4 finished.kilter | python3 -c '
import json, sys
shown = json.load(sys.stdin)
assert shown["decision"][0]["id"] == 4, shown
assert [w["in_hand"] for w in shown["workers"][:2]] == [0, 10], shown
assert shown["shares"] == [], shown' || fail "JSON"

"$kilter" replay --at 1e6 loop.kilter >loop
has loop "rank 1  lo 15  count 45"

# The record of a simulated run has all data behind its decisions, so replay can make each decision again.
"$kilter" simulate --engine events --platform '4x1,2x0.2@osc(60ms,30ms)' --tasks '500@lognormal(1ms,0.5)' \
    --policy gss,auto,ect --iterations 3 --record sim.kilter >/dev/null
for policy in gss auto ect; do
    "$kilter" replay sim-$policy.kilter >again
    grep -q '^made again: [1-9][0-9]* of [0-9]* decisions' again || fail "no decision was made again: $(tail -3 again)"
    ! grep -q 'again differs' again || fail "$policy: $(grep -m1 'again differs' again)"
    ! grep -q 'of kind' again || fail "$policy: $(grep -m1 'of kind' again)"
done
"$kilter" replay --json sim-gss.kilter | python3 -c '
import json, sys
shown = json.load(sys.stdin)
decided = [d["again"] for d in shown["decisions"]]
assert decided and shown["made_again"] == shown["same"] == len(decided), shown
assert all(a["made"] and a["same"] and a["count"] == a["count_then"] for a in decided), shown' || fail "JSON, again"
"$kilter" replay --what-if policy=ss --json --decision 2 sim-gss.kilter | python3 -c '
import json, sys
shown = json.load(sys.stdin)
assert shown["instead"]["count"] == 1 and not shown["instead"]["same"], shown["instead"]' || fail "JSON, instead"
"$kilter" replay --what-if policy=ss sim-gss.kilter >instead
has instead "made again by policy ss: "
# If a record does not have the data behind its decisions, replay prints a message.
has list "of kind deal not made again: the record lacks the inputs of the decision"
expect 2 "--what-if: 'gss' is not policy=NAME" "$kilter" replay --what-if gss sim-gss.kilter
expect 2 "policy 'none'" "$kilter" replay --what-if policy=none sim-gss.kilter
[ "$("$kilter" complete kilter replay --what-if '' | cut -f1)" = policy= ] || fail "the completion of --what-if offers no policies"

[ "$("$kilter" replay empty.kilter)" = "no decisions" ] || fail "decisions were printed from an empty record"
expect 2 "no decision was made by this time" "$kilter" replay --at 0.5 finished.kilter
expect 2 "no decision was made by this time" "$kilter" replay --at 9 empty.kilter
expect 2 "there is no decision 9999" "$kilter" replay --decision 9999 finished.kilter
expect 2 "--at and --decision cannot be combined" "$kilter" replay --at 1 --decision 1 finished.kilter
expect 2 "--at: 'x' is" "$kilter" replay --at x finished.kilter
echo "some text" >text.kilter
expect 2 "it is not a run record" "$kilter" replay text.kilter
expect 2 "nowhere.kilter" "$kilter" replay nowhere.kilter
head -c 5000 finished.kilter >cut.kilter
expect 2 "cut.kilter" "$kilter" replay cut.kilter
echo "kilter replay: all good"
