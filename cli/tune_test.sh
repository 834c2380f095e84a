#!/bin/sh
# Test kilter tune with real farms. usage: tune_test.sh KILTER FARM
set -eu
. "$(dirname "$0")/farm_test.sh"

# --- refused options
expect 2 "unknown option '--frob'" "$kilter" tune --frob
expect 2 "one file at a time" "$kilter" tune a b
expect 2 "--set wants a value" "$kilter" tune --set
expect 2 "--set workers=2: workers is set twice" "$kilter" tune --set workers=1 --set workers=2
expect 2 "--set frob=1: give policy=NAME" "$kilter" tune --set frob=1
expect 2 "--set policy: give policy=NAME" "$kilter" tune --set policy
expect 2 "--set policy: there is no policy 'frob'" "$kilter" tune --set policy=frob
for factor in 0 -0.5 1.01 nan x '' 0.5x; do
    expect 2 "--set factor: '$factor' is not a number above 0 and at most 1" "$kilter" tune --set "factor=$factor"
done
for workers in 0 -1 x '' 1.5 99999999999 ' 3'; do
    expect 2 "--set workers: '$workers' is not a whole number from 1 to 4294967295" "$kilter" tune --set "workers=$workers"
done
expect 2 "--interval-s: '0' is not a number of seconds from 0.05 to 86400" "$kilter" tune --interval-s 0

# --- missing and invalid records
expect 2 "no file *.kilter" "$kilter" tune
expect 2 "'missing.kilter': No such file" "$kilter" tune missing.kilter
echo "not a record" >text.kilter
expect 2 "not a run record" "$kilter" tune text.kilter

# --- a farm that is working
start local --workers 3
until_so shows "^policy  *auto"
until_so shows "^workers  *3 at work, 0 resting"
until_so shows "T_t(3)"
"$kilter" tune --once "$record" >look
for words in "farm  *tune_test_farm over zmq" "^run  *[0-9]" "m_o" "T_c" "P_i" "imbalance"; do
    grep -q -- "$words" look || fail "the output of kilter tune does not have the words $words: $(cat look)"
done
awk 'length > 120 { exit 1 }' look || fail "the output of kilter tune has lines of more than 110 characters" # awk may count bytes, and 110 characters of kilter tune have at most 120 bytes
"$kilter" tune --once --json "$record" >look
[ "$(wc -l <look)" = 1 ] || fail "kilter tune --json does not print one line"
if command -v jq >/dev/null; then
    [ "$(jq -r '.program, .present, .policy, (.workers | length), (.time_s > 0)' look | tr '\n' ' ')" = \
        "tune_test_farm 3 auto 3 true " ] || fail "kilter tune --once --json prints wrong JSON: $(cat look)"
else
    grep -q '"present":3,.*"policy":"auto"' look || fail "kilter tune --once --json prints wrong JSON: $(cat look)"
fi

# --- set the policy, the factor and the number of workers
"$kilter" tune --set policy=FSC "$record" >out || fail "policy"
grep -q "in force from the next run on" out || fail "the answer does not say when the setting takes effect: $(cat out)"
until_so shows "^policy  *fsc"
"$kilter" tune --set factor=0.3 "$record" | grep -q "in force from the next batch on" || fail "factor"
until_so shows "factor 0.3"
"$kilter" tune --set workers=2 --json "$record" | grep -q '^{"answer":"taken' || fail "workers"
until_so shows "2 at work, 1 resting; 2 set by hand"
"$kilter" tune --set policy=daf --set workers=auto "$record" >out
until_so shows "^policy  *daf"
expect 2 "workers=4: there are only 3" "$kilter" tune --set workers=4 "$record"
expect 2 "policy daf has no factor" "$kilter" tune --set factor=0.5 "$record"
expect 2 "workers=9: there are only 3" "$kilter" tune --set policy=ss --set workers=9 "$record"
shows "^policy  *daf" || fail "a refused request changed a setting"

# --- kilter tune is killed, loses its reader, and runs twenty times at once: the farm is not disturbed
"$kilter" tune --interval-s 0.05 "$record" >killed.out &
watcher=$!
children="$children $watcher"
until_so test -s killed.out
kill -9 $watcher
wait $watcher 2>/dev/null || :
"$kilter" tune --interval-s 0.05 --json "$record" | head -n 3 >watched
[ "$(wc -l <watched)" = 3 ] || fail "kilter tune did not print three states: $(cat watched)"
many=
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    "$kilter" tune --once "$record" >many.$i &
    many="$many $!"
done
for one in $many; do wait "$one" || fail "one of twenty commands kilter tune failed"; done

# --- another user may not attach to the farm
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    chmod 0755 "$place"
    chmod 0644 "$record"*
    expect 2 "belongs to another user, and only its owner may attach" \
        setpriv --reuid=65534 --regid=65534 --clear-groups "$kilter" tune --once "$record"
else
    echo "not tested whether other users are refused: this needs root and setpriv"
fi

# --- the master is stopped: kilter tune does not wait for it
kill -STOP $pid
expect 1 "does not answer within 2 s" "$kilter" tune --once "$record"
kill -CONT $pid
until_so "$kilter" tune --once "$record"

# --- kilter tune watches a farm until its end
"$kilter" tune --interval-s 0.05 "$record" >end.out 2>end.err &
watcher=$!
children="$children $watcher"
until_so test -s end.out
: >"$stop"
wait $pid || fail "the farm failed: $(cat farm.err)"
wait $watcher || fail "kilter tune failed when the farm ended: $(cat end.err)"
grep -q "the farm has ended" end.err || fail "kilter tune printed an unexpected message when the farm ended: $(cat end.err)"
expect 2 "the farm has ended" "$kilter" tune --once "$record"
[ -z "$(ls "$TMPDIR")" ] || fail "left behind: $(ls "$TMPDIR")"
if command -v sqlite3 >/dev/null; then
    for kind in policy factor workers; do
        [ "$(sqlite3 "$record" "SELECT count(*) > 0 FROM decision WHERE kind = '$kind' AND reason LIKE '%by hand%'")" = 1 ] ||
            fail "the record has no decision of kind $kind by hand"
    done
    [ "$(sqlite3 "$record" "SELECT count(DISTINCT policy) FROM iteration WHERE policy IN ('fsc', 'daf')")" = 2 ] ||
        fail "the runs do not have the policies that were set"
    [ "$(sqlite3 "$record" "SELECT min(workers) FROM iteration WHERE policy = 'fsc'")" = 2 ] ||
        fail "no run under the policy fsc had two workers"
else
    echo "sqlite3 is not installed: the decisions in the record were not checked"
fi

# --- the master is killed while kilter tune watches
start killed --workers 2
"$kilter" tune --interval-s 0.05 "$record" >crash.out 2>crash.err &
watcher=$!
children="$children $watcher"
until_so test -s crash.out
kill -9 $pid
wait $pid 2>/dev/null || :
got=0
wait $watcher || got=$?
[ $got = 1 ] || fail "after a crash, tune ends with exit code $got"
grep -q "no longer running: it was killed" crash.err || fail "unexpected message after a crash: $(cat crash.err)"
expect 1 "no longer running: it was killed" "$kilter" tune --once "$record"
until_so left_nothing

# --- a master whose workers are threads is killed: it leaves no files
start killed_threads --workers 2 --transport inproc
kill -9 $pid
wait $pid 2>/dev/null || :
left_nothing || fail "left behind: $(ls "$TMPDIR")"

# --- workers that are threads; kilter tune chooses the newest record
mkdir -p home/.local/state/kilter
start inproc --workers 2 --transport inproc
until_so shows "over inproc"
"$kilter" tune --set workers=1 "$record" >out
until_so shows "1 at work, 1 resting; 1 set by hand"
cp "$record" home/.local/state/kilter/
"$kilter" tune --once 2>err | grep -q "over inproc" || fail "kilter tune did not take the newest record"
grep -q "inproc.kilter: the newest record of this folder's programs" err || fail "tune does not print which record it took: $(cat err)"
"$kilter" tune --once --program "$(basename "$farm")" 2>err | grep -q "over inproc" || fail "tune --program did not take the newest record of the program"
expect 2 "there is none in" "$kilter" tune --once --program nobody
expect 2 "cannot be combined" "$kilter" tune --program nobody "$record"
: >"$stop"
wait $pid || fail "the farm with threads failed: $(cat farm.err)"
