#!/usr/bin/env bash
# Test kilter run --keep with a real MPI program, whose ranks are killed, stopped and moved. Two names of this machine stand for two hosts. usage:
# keep_mpi_test.sh KILTER PROGRAM MPIRUN
set -eu
. "$(dirname "$0")/farm_test.sh"
program=$2
mpirun=$3
unset KILTER_KEEP KILTER_CHECKPOINT KILTER_KEEP_ATTEMPT
export KILTER_CHECKPOINT_S=0.2
fail() {
    echo "FAILED: $*" >&2
    cat kept.err kept.out >&2 2>/dev/null || :
    exit 1
}
clean() { # the test must end the program, which outlives a killed keeper
    for child in $children; do kill -9 $child 2>/dev/null || :; done
    [ ! -s keep/running ] || kill -TERM "$(cat keep/running)" 2>/dev/null || :
    tries=0
    while [ -s keep/running ] && kill -0 "$(cat keep/running)" 2>/dev/null && [ $((tries += 1)) -lt 100 ]; do sleep 0.1; done
    rm -rf "$place"
}
trap clean EXIT
ln -s "$here/keep_test_agent" ssh
export place
printf 'localhost slots=2\n127.0.0.1 slots=2\n' >hosts

run() {
    env --default-signal=INT "$kilter" run --keep --hosts hosts --ssh "$place/ssh" --mpirun "$mpirun" --folder keep \
        -n 3 --hang 2 --stay -- "$program" >>kept.out 2>>kept.err & # shells start background commands with SIGINT ignored
    pid=$!
    children="$children $pid"
}
says() { grep -q -- "$1" kept.err; }
field() { sed -n "s/.*\"$1\":\([0-9]*\)[,}].*/\1/p" keep/progress; }
saved() { [ "$(field attempt)" = "$1" ] && [ "$(field saved_sweeps)" -gt "$2" ]; }
kills() { # kills ATTEMPT SIGNAL: wait until this attempt has saved a new checkpoint, then send the signal to its rank 0
    until_so saved "$1" "$last"
    last=$(field saved_sweeps)
    kill -$2 "$(field pid)"
}
last=0
run
kills 1 KILL
until_so says "attempt 2: .*, after sweep"
kills 2 STOP
until_so says "no sweep has ended in"
until_so says "attempt 3: .*, after sweep"
until_so saved 3 "$last"
last=$(field saved_sweeps)
"$kilter" move keep --to 127.0.0.1 >answer # the host has two slots, so the next attempt has two ranks
until_so says "attempt 4: 2 ranks on 127.0.0.1 (2), after sweep"
until_so saved 4 "$last"
[ "$(field ranks)" = 2 ] || fail "the run has $(field ranks) ranks"
last=$(field saved_sweeps)
kill -9 $pid # kill only the keeper: the program continues
wait $pid || :
until_so saved 4 "$last"
last=$(field saved_sweeps)
run
until_so says "which is still running"
"$kilter" move keep --to localhost,127.0.0.1 >answer
until_so says "attempt 5: 3 ranks on .*, after sweep"
until_so saved 5 "$last"
kill -INT $pid
code=0
wait $pid || code=$?
[ $code = 130 ] || fail "an interrupted run ends with exit code $code: $(cat kept.err)"
: >enough
run
wait $pid || fail "the run failed: $(cat kept.err)"
[ "$(grep -c "^begins" kept.out)" = 6 ] || fail "the run did not have six attempts: $(cat kept.out)"
grep -q "^right after sweep" kept.out || fail "the result is wrong: $(cat kept.out)"
left_nothing || fail "left behind: $(ls -A "$TMPDIR")"
