#!/usr/bin/env bash
# kilter-sp solve must give the same bits as without faults, although masters and workers die, join and leave. The cost must be the same, up to the
# gap, for every number of clusters and in fast mode. usage: faults_test.sh KILTER-SP PROBLEMS
set -u
# shellcheck source=apps/sp/test_support.sh
. "$(dirname "$0")/test_support.sh"
children=
clean() {
    for child in $children; do
        kill -9 "$child" 2>/dev/null
    done
    rm -rf "$work"
}
trap clean EXIT

scenarios=20000
start() {
    : >"$work/err" # empty the messages of an earlier master, which could be read before the new master writes its own
    "$sp" solve "$lands/lands.cor" "$lands/lands.tim" "$lands/lands.sto" --scenarios $scenarios --check 100 \
        --json "$@" >"$work/out" 2>"$work/err" &
    master=$!
    children="$children $master"
}

# solve WORDS…: run a solve; it needs 7 candidates with 400 clusters each for the last sample, and some candidates for smaller samples
solve() {
    start "$@"
    wait $master
}

solve --workers 2 --record none || complain "a solve without faults failed: $(cat "$work/err")"
expect cost_bits estimate_bits candidates decision

# ---- kill the master repeatedly, each time a little later
killed=0
for bytes in 1 60000 150000 300000 450000 600000; do
    start --workers 2 --resume "$work/resume"
    until_stored "$work/resume" $bytes $master
    kill -9 $master 2>/dev/null
    wait $master 2>/dev/null
    [ $? -ne 137 ] || killed=$((killed + 1))
done
[ $killed -ge 3 ] || complain "the master was killed only $killed times; the test needs at least 3"
solve --workers 3 --resume "$work/resume"
check "after $killed dead masters"
solve --workers 1 --resume "$work/resume"
check "a solve with all results from the file"

# ---- kill a worker
start --workers 2 --record none
kill_a_worker $master
wait $master || complain "the solve failed after a worker was killed: $(cat "$work/err")"
check "with a killed worker"

# ---- over tcp: one worker joins late, and the first worker leaves
until_listening() {
    until endpoint=$(sed -n 's/.*--join \(tcp:[^ ]*\).*/\1/p' "$work/err") && [ -n "$endpoint" ] || ! runs $master; do
        :
    done
}

join() {
    "$sp" --join "$endpoint" --key "$work/key" --record none 2>>"$work/join.err" &
    worker=$!
    children="$children $worker"
}

# come_and_go BYTES: let a second worker join when this number of bytes is stored, and let the first worker leave at twice this number. Return false if the
# master ended before that.
come_and_go() {
    rm -f "$work/tcp"*
    start --listen 'tcp://127.0.0.1:*' --key "$work/key" --resume "$work/tcp"
    until_listening
    join
    first=$worker
    until_stored "$work/tcp" "$1" $master
    join
    until_stored "$work/tcp" $((2 * $1)) $master
    kill -TERM "$first" 2>/dev/null
    wait "$first" || complain "the worker that left ends with exit code $?: $(cat "$work/join.err")"
    in_time=false
    if runs $master; then
        in_time=true
    else
        kill -9 "$worker" 2>/dev/null # the worker may have joined too late, and wait for another master
    fi
    wait $master || complain "the solve over tcp failed: $(cat "$work/err")"
    check "over tcp"
    wait "$worker" || ! $in_time || complain "the worker that stayed failed: $(cat "$work/join.err")"
    $in_time
}

bytes=150000
until come_and_go $bytes; do
    bytes=$((bytes / 2))
    [ $bytes -gt 0 ] || { complain "over tcp the master always ended before the first worker left" && break; }
done

# ---- a forecast for the next sample counts only the workers of the last run

# recorded SQL: send a query to the run record, as far as it is written, and print the answer
recorded() {
    sqlite3 -readonly "$work/left" "$1"
}
expectations="FROM decision d JOIN iteration i ON i.run = d.run - 1 WHERE d.kind = 'program'"

# Start two workers, and let the first leave when both have worked. Return false if the master ended before it made a forecast for the second worker alone.
one_leaves() {
    rm -f "$work/left"*
    start --listen 'tcp://127.0.0.1:*' --key "$work/key" --record "$work/left" --workers 2 --team all
    until_listening
    join
    first=$worker
    join
    until [ "$(recorded "SELECT max(workers) FROM iteration" 2>/dev/null)" = 2 ] || ! runs $master; do
        :
    done
    kill -TERM "$first" 2>/dev/null
    wait "$first" || complain "the first worker ends with exit code $?: $(cat "$work/join.err")"
    if ! wait $master; then
        complain "the solve failed after a worker left: $(cat "$work/err")"
        kill -9 "$worker" 2>/dev/null # the second worker waits for another master
    fi
    check "with a worker that left"
    wait "$worker" || complain "the second worker ends with exit code $?: $(cat "$work/join.err")"
    wrong=$(recorded "SELECT d.reason $expectations AND d.reason NOT LIKE '% on ' || i.workers || ' worker%'") ||
        complain "the record of a worker that left cannot be read"
    [ -z "$wrong" ] || complain "a forecast is for other workers than those of the run before: $wrong"
    [ "$(recorded "SELECT (SELECT max(workers) FROM iteration) = 2 AND
        EXISTS (SELECT * $expectations AND d.reason LIKE '% on 1 worker %')")" = 1 ]
}

until one_leaves; do
    scenarios=$((2 * scenarios))
    [ $scenarios -le 320000 ] || { complain "there is no forecast for the worker that stayed" && break; }
    solve --workers 2 --record none || complain "$scenarios scenarios: $(cat "$work/err")"
    expect cost_bits estimate_bits candidates decision
done
scenarios=20000

# ---- the cost is the same, up to the gap, for all numbers of clusters and in both modes
for more in "--clusters 400" "--clusters 10" "--clusters 50" "--clusters 200" "--mode fast" "--mode fast --clusters 50"; do
    # shellcheck disable=SC2086 # a list
    solve $more --workers 3 --record none || complain "$more: $(cat "$work/err")"
    echo "$(cost) $more"
done >"$work/costs"
awk 'NR == 1 { c = $1 } ($1-c)^2 > (2e-6*(1+c))^2 { bad = 1 } END { exit NR != 6 || bad }' "$work/costs" ||
    complain "costs differ: $(cat "$work/costs")"
exit $failed
