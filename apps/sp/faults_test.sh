#!/bin/sh
# kilter-sp solve while masters and workers die, come and go: the same bits as without; and the same cost, to the
# gap, for every number of clusters and in fast mode.   usage: faults_test.sh KILTER-SP PROBLEMS
set -u
sp=$1
lands=$2/lands
work=$(mktemp -d) || exit 1
children=
clean() {
    for child in $children; do
        kill -9 "$child" 2>/dev/null
    done
    rm -rf "$work"
}
trap clean EXIT
failed=0

complain() {
    echo "FAILED: $*"
    failed=1
}

solution() {
    sed -n 's/.*"cost_bits": "\([^"]*\)".*"estimate_bits": "\([^"]*\)".*"candidates": \([0-9]*\).*\(.decision.*\]\).*/\1 \2 \3 \4/p' "$work/out"
}

check_solution() {
    [ "$(solution)" = "$expected" ] || complain "$*: $(solution) $(cat "$work/err"), expected $expected"
}

# What --resume FILE has stored, in bytes; it only grows while a master lives.
stored() {
    cat "$1" "$1-wal" 2>/dev/null | wc -c
}

# until_stored FILE BYTES: the master got so far, or ended
until_stored() {
    until [ "$(stored "$1")" -gt "$2" ] || ! kill -0 $master 2>/dev/null; do
        :
    done
}

start() {
    "$sp" solve "$lands/lands.cor" "$lands/lands.tim" "$lands/lands.sto" --scenarios 20000 --check 100 --json "$@" \
        >"$work/out" 2>"$work/err" &
    master=$!
    children="$children $master"
}

# solve WORDS…: 7 candidates of 400 clusters, and those of smaller samples
solve() {
    start "$@"
    wait $master
}

solve --workers 2 --record none || complain "a plain solve: $(cat "$work/err")"
expected=$(solution)
[ -n "$expected" ] || complain "no bits in $(cat "$work/out")"

# ---- the master is killed, again and again, each time a little later
killed=0
for bytes in 1 60000 150000 300000 450000 600000; do
    start --workers 2 --resume "$work/resume"
    until_stored "$work/resume" $bytes
    kill -9 $master 2>/dev/null && killed=$((killed + 1))
    wait $master 2>/dev/null
done
[ $killed -ge 3 ] || complain "the master was killed $killed times only"
solve --workers 3 --resume "$work/resume"
check_solution "after $killed dead masters"
solve --workers 1 --resume "$work/resume"
check_solution "all of it from the file"

# ---- a worker is killed; workers are children of the master's only child
start --workers 2 --record none
gone=
while [ -z "$gone" ] && kill -0 $master 2>/dev/null; do
    for nursery in $(cat /proc/$master/task/$master/children 2>/dev/null); do
        for worker in $(cat "/proc/$nursery/task/$nursery/children" 2>/dev/null); do
            [ -n "$gone" ] || ! kill -9 "$worker" 2>/dev/null || gone=$worker
        done
    done
done
wait $master || complain "without worker ${gone:-(none)}: $(cat "$work/err")"
[ -n "$gone" ] || complain "no worker to kill"
check_solution "without a worker"

# ---- over tcp: one worker joins late, the first one leaves
join() {
    "$sp" --join "$endpoint" --key "$work/key" --record none 2>>"$work/join.err" &
    worker=$!
    children="$children $worker"
}
start --listen 'tcp://127.0.0.1:*' --key "$work/key" --resume "$work/tcp"
until endpoint=$(sed -n 's/.*--join \(tcp:[^ ]*\).*/\1/p' "$work/err") && [ -n "$endpoint" ] ||
    ! kill -0 $master 2>/dev/null; do
    :
done
join
first=$worker
until_stored "$work/tcp" 150000
kill -0 $master 2>/dev/null || complain "over tcp it ended before the second worker came"
join
until_stored "$work/tcp" 400000
kill -TERM "$first" 2>/dev/null || complain "the first worker had gone by itself"
wait "$first" || complain "the worker that left: exit code $?: $(cat "$work/join.err")"
kill -0 $master 2>/dev/null || complain "over tcp it ended before the first worker left"
wait $master || complain "over tcp: $(cat "$work/err")"
check_solution "over tcp"
wait "$worker" || complain "the worker that stayed: $(cat "$work/join.err")"

# ---- what is expected of the next sample is for the workers of the last run, not for all there ever were
# recorded SQL: what the record says so far
recorded() {
    sqlite3 -readonly "$work/left" "$1" 2>/dev/null
}
: >"$work/err"
start --listen 'tcp://127.0.0.1:*' --key "$work/key" --record "$work/left"
until endpoint=$(sed -n 's/.*--join \(tcp:[^ ]*\).*/\1/p' "$work/err") && [ -n "$endpoint" ] ||
    ! kill -0 $master 2>/dev/null; do
    :
done
join
first=$worker
join
until [ "$(recorded "SELECT max(workers) FROM iteration")" = 2 ] || ! kill -0 $master 2>/dev/null; do
    :
done
kill -TERM "$first" 2>/dev/null || complain "the first worker had gone before it was to leave"
wait "$first"
wait $master || complain "with a worker that left: $(cat "$work/err")"
wait "$worker"
check_solution "with a worker that left"
[ "$(recorded "SELECT max(workers) FROM iteration")" = 2 ] || complain "the two never worked together"
wrong=$(recorded "SELECT d.reason FROM decision d JOIN iteration i ON i.run = d.run - 1 WHERE d.kind = 'program'
    AND d.reason NOT LIKE '% on ' || i.workers || ' worker%'")
[ -z "$wrong" ] || complain "expected of other workers than those of the run before: $wrong"
[ "$(recorded "SELECT count(*) FROM decision d JOIN iteration i ON i.run = d.run - 1 WHERE d.kind = 'program'
    AND d.reason LIKE '% on 1 worker %'")" -ge 1 ] || complain "nothing was expected of the worker that stayed"

# ---- the cost, to the gap
cost() {
    sed -n 's/.*"cost": \([^,]*\),.*/\1/p' "$work/out"
}
for more in "--clusters 400" "--clusters 10" "--clusters 50" "--clusters 200" "--mode fast" "--mode fast --clusters 50"; do
    # shellcheck disable=SC2086 # a list
    solve $more --workers 3 --record none || complain "$more: $(cat "$work/err")"
    echo "$(cost) $more"
done >"$work/costs"
awk 'NR == 1 { c = $1 } ($1-c)^2 > (2e-6*(1+c))^2 { bad = 1 } END { exit NR != 6 || bad }' "$work/costs" ||
    complain "costs differ: $(cat "$work/costs")"
exit $failed
