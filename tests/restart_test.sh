#!/bin/sh
# Check that the example restart continues from a checkpoint on another number of ranks, and computes the same heat as a run without
# checkpoints.
# usage: restart_test.sh RESTART LAUNCHER…     the number of ranks follows LAUNCHER
set -eu
program=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export KILTER_RECORD=none
heat() { "$@" >"$work/out" && sed 's/.*heat //' "$work/out"; }
whole=$(heat "$@" 1 "$program" 40 300)
export KILTER_CHECKPOINT="$work/c" KILTER_CHECKPOINT_S=1e-6
[ -z "$(find "$work" -name 'c.*')" ] || { echo "the program without checkpoints left files"; exit 1; }
[ "$(heat "$@" 3 "$program" 40 300)" = "$whole" ] || { echo "checkpoints change the heat"; exit 1; }
[ "$(heat "$@" 2 "$program" 40 300)" = "$whole" ] || { echo "the heat differs after a restart"; exit 1; }
! grep -q '^0 sweeps before' "$work/out" || { echo "the program did not continue from a checkpoint"; exit 1; }
# On a slow disk, the first run may end before it has saved twice.
[ "$(find "$work" -name 'c.*.h5' | wc -l)" -eq 2 ] || { echo "there are not two checkpoints: $(ls "$work")"; exit 1; }
