#!/bin/sh
# Stop a benchmark with checkpoints in the middle, and continue it on another number of ranks. The result must have the published values, and the same
# bits as the result of an undisturbed run.
# usage: nas_restart_test.sh PROGRAM CLASS LAUNCHER…     the number of ranks follows LAUNCHER
set -eu
program=$1 class=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export KILTER_RECORD=none
fail() { echo "$1"; cat "$work/out"; exit 1; }
checksum() { sed -n 's/.*"checksum":"\([0-9a-f]*\)".*/\1/p' "$work/out"; }
sweeps() { sed -n 's/.*"executions":\([0-9]*\),.*/\1/p' "$work/out"; }
run() { "$@" --say >"$work/out" 2>&1 && grep -q '"verified":true' "$work/out" || fail "the program did not verify its result: $*"; }

run "$@" 1 "$program" "$class"
whole=$(checksum) all=$(sweeps)
export KILTER_CHECKPOINT="$work/c" KILTER_CHECKPOINT_S=1e-6
saved() { [ -n "$(find "$work" -name 'c.*.h5')" ]; }
stop_when_saved() {
    "$@" >"$work/out" 2>&1 &
    launcher=$!
    until saved || ! kill -0 $launcher 2>/dev/null; do sleep 0.01; done
    kill $launcher 2>/dev/null || true
    wait $launcher || true
}
for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do # a quick run may end before its first checkpoint is complete
    saved || stop_when_saved "$@" 3 "$program" "$class"
done
saved || fail "no checkpoint was written in $try runs"
for ranks in 2 1; do
    run "$@" $ranks "$program" "$class"
    [ "$(checksum)" = "$whole" ] || fail "the result has other bits after a restart on $ranks ranks"
done
[ "$(sweeps)" -lt "$all" ] || fail "the last run did not continue from a checkpoint"
