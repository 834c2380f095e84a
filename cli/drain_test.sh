#!/bin/sh
# Test kilter drain with real farms. usage: drain_test.sh KILTER FARM
set -eu
. "$(dirname "$0")/farm_test.sh"

# --- drain refuses wrong command lines
expect 2 "no file given" "$kilter" drain
expect 2 "no file given" "$kilter" drain --all
expect 2 "no worker given" "$kilter" drain a.kilter
expect 2 "unknown option '--frob'" "$kilter" drain --frob a.kilter
expect 2 "--host wants a value" "$kilter" drain a.kilter --host
expect 2 "'' is not the name of a host" "$kilter" drain a.kilter --host ''
expect 2 "is not the name of a host" "$kilter" drain a.kilter --host "$(printf '%0128d' 0)"
expect 2 "--host is given twice" "$kilter" drain a.kilter --host a --host b
expect 2 "workers or --host, not both" "$kilter" drain a.kilter 1 --host b
for worker in x 1x '' ' 1' -- +1 1.5 4294967296 99999999999999999999; do
    expect 2 "'$worker' is not a worker" "$kilter" drain a.kilter -- "$worker"
done
expect 2 "at most 64 workers at a time" "$kilter" drain a.kilter $(seq 0 64)

# --- missing and invalid records
expect 2 "draining the run of 'missing.kilter': No such file" "$kilter" drain missing.kilter 0
echo "not a record" >text.kilter
expect 2 "not a run record" "$kilter" drain text.kilter 0

# --- a refused request changes nothing; the file local.stop.hold keeps the workers busy meanwhile
: >"$place/local.stop.hold"
start local --workers 3
until_so shows "^workers  *3 at work, 0 resting; all"
for worker in 0 1 2; do
    until_so shows "^ *$worker  *busy"
done
expect 2 "there is no worker 3" "$kilter" drain "$record" 0 3
expect 2 "no worker on host 'nowhere'" "$kilter" drain "$record" --host nowhere
expect 2 "no worker would stay" "$kilter" drain "$record" 2 1 0
expect 2 "no worker would stay" "$kilter" drain --host "$(hostname)" "$record"
shows "^workers  *3 at work, 0 resting; all" || fail "a worker left after a refused request: $(cat out)"

# --- drain one of three workers: kilter tune shows this worker as leaving until its task ends, and then shows two workers
"$kilter" drain "$record" 1 >out || fail "kilter drain could not release worker 1"
grep -qx "worker 1 leaves when its task is done; 2 stay" out || fail "kilter drain prints an unexpected answer: $(cat out)"
shows "^workers  *2 at work, 0 resting, 1 leaving; all" || fail "kilter tune does not count the released worker as leaving: $("$kilter" tune --once "$record")"
shows "^ *1  *leaving" || fail "the table does not show the worker as leaving: $("$kilter" tune --once "$record")"
"$kilter" tune --once --json "$record" | grep -q '"leaving":1,.*"worker":1,"activity":"leaving"' || fail "JSON"
[ "$("$kilter" drain --json "$record" 1)" = '{"answer":"worker 1 already leaves when its task is done; 2 stay"}' ] ||
    fail "kilter drain --json prints an unexpected answer"
rm "$stop.hold"
until_so shows "^workers  *2 at work, 0 resting; all"

# --- no new worker replaces a released one; drain releases the last worker only with --all
iteration() { "$kilter" tune --once --json "$record" | sed 's/.*"run":\([0-9]*\).*/\1/'; }
later() { [ "$(iteration)" -gt $((began + 20)) ]; }
began=$(iteration)
until_so later
shows "^workers  *2 at work, 0 resting; all" || fail "the released worker was replaced"
expect 2 "there is no worker 1" "$kilter" drain "$record" 1
expect 2 "no worker would stay" "$kilter" drain "$record" 0 2
"$kilter" drain "$record" 2 | grep -q "; 1 stays$" || fail "kilter drain could not release the second worker"
until_so shows "^workers  *1 at work, 0 resting; all"
expect 2 "no worker would stay: name fewer workers, or give --all" "$kilter" drain "$record" 0
: >"$stop"
wait $pid || fail "the farm failed: $(cat farm.err)"
expect 2 "the farm has ended" "$kilter" drain "$record" 0
if command -v sqlite3 >/dev/null; then
    [ "$(sqlite3 "$record" "SELECT count(*) FROM worker")" = 3 ] || fail "the record has more than three workers"
    [ "$(sqlite3 "$record" "SELECT sum(hi - lo) = (SELECT sum(tasks) FROM iteration) FROM chunk")" = 1 ] ||
        fail "the farm lost tasks, or counted tasks twice"
    [ "$(sqlite3 "$record" "SELECT count(*) FROM chunk WHERE lost")" = 0 ] || fail "a task that had begun was lost"
    [ "$(sqlite3 "$record" "SELECT group_concat(worker) FROM worker WHERE why = 'was released on request'")" = \
        "1,2" ] || fail "the record does not name the released workers"
else
    echo "sqlite3 is not installed: the record was not checked"
fi

# --- all workers leave, and no other worker can join the farm: the run fails with a message
start everybody --workers 2
until_so shows "^workers  *2 at work"
"$kilter" drain --all "$record" | grep -q "^2 workers leave when .*; nobody stays: .* cannot be finished$" || fail "--all"
got=0
wait $pid || got=$?
[ $got = 1 ] || fail "a farm without workers ends with exit code $got"
grep -q "no worker is left" farm.err || fail "a farm without workers prints: $(cat farm.err)"

# --- all workers leave, but others can join the farm: the run waits for new workers
port() { sed -n 's/.*--join \(tcp:[^ ]*\).*/\1/p' farm.err; }
join() {
    "$farm" "$stop" --join "$(port)" 2>join.err &
    worker=$!
    children="$children $worker"
}
record=$place/listen.kilter
stop=$place/listen.stop
"$farm" "$stop" --team all --record "$record" --listen 'tcp://127.0.0.1:*' 2>farm.err &
pid=$!
children="$children $pid"
until_so grep -q -- "--join" farm.err
join
until_so shows "^workers  *1 at work"
expect 2 "no worker would stay: let other workers join first" "$kilter" drain "$record" 0
"$kilter" drain "$record" 0 --all | grep -q "; nobody stays: the farm waits for others to join$" || fail "kilter drain could not release the last worker"
wait $worker || fail "a released worker ends with exit code $?: $(cat join.err)"
until_so shows "^workers  *0 at work"
join
until_so shows "^workers  *1 at work"
: >"$stop"
wait $pid || fail "the farm that waited for a new worker failed: $(cat farm.err)"
wait $worker || fail "the second worker failed: $(cat join.err)"

# --- drain workers that are threads
start inproc --workers 3 --transport inproc
until_so shows "^workers  *3 at work"
"$kilter" drain "$record" 0 2 | grep -q "^2 workers leave when .*; 1 stays$" || fail "threads"
until_so shows "^workers  *1 at work, 0 resting; all"
: >"$stop"
wait $pid || fail "the farm with threads failed: $(cat farm.err)"

# --- another user may not drain the farm
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    start foreign --workers 2
    chmod 0755 "$place"
    chmod 0644 "$record"*
    expect 2 "belongs to another user, and only its owner may attach" \
        setpriv --reuid=65534 --regid=65534 --clear-groups "$kilter" drain "$record" 0
    : >"$stop"
    wait $pid || fail "the farm failed that another user tried to drain: $(cat farm.err)"
else
    echo "not tested whether other users are refused: this needs root and setpriv"
fi
