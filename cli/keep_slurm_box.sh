#!/usr/bin/env bash
# Test a kept run under a real Slurm with four nodes on this machine, with Open MPI.
# usage: keep_slurm_box.sh KILTER PROGRAM     REPORT=FILE: write the report of the last keeper there; exit 77: root, namespaces, slurm-wlm or munge are missing
set -eu
. "$(dirname "$0")/farm_test.sh"
. "$here/slurm_box.sh"
program=$2
unset KILTER_KEEP KILTER_CHECKPOINT KILTER_KEEP_ATTEMPT
export KILTER_CHECKPOINT_S=0.3 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# --- the phases of a kept run
run() {
    "$kilter" run --keep --slurm "$1" --folder keep --hang 5 --look 1 -- "$program" >>kept.out 2>>kept.err &
    pid=$!
    children="$children $pid"
}
says() { grep -q -- "$1" kept.err; }
field() { sed -n "s/.*\"$1\":\([0-9]*\)[,}].*/\1/p" keep/progress; }
saved() { [ "$(field attempt)" = "$1" ] && [ "$(field saved_sweeps)" -gt "$2" ]; }
nodes_of() { sed -n 's/.*"hosts":\[\([^]]*\)\].*/\1/p' keep/progress; }
run "-N 2 --ntasks-per-node=1 -t 10"
until_so saved 1 0
last=$(field saved_sweeps)

# a rank is killed: srun ends the other ranks, and the job reports a failure
kill -KILL "$(field pid)"
until_so says "attempt 2: .*, after sweep"
until_so saved 2 "$last"
last=$(field saved_sweeps)

# kilter drain drains a node: the run continues on other nodes
node=$(nodes_of | sed 's/"\([^"]*\)".*/\1/')
scontrol update nodename="$node" state=drain reason=test
until_so says "$node is taken away: the run is saved"
until_so saved 3 "$last"
! nodes_of | grep -q "\"$node\"" || fail "the run is on the node that kilter drain drained"
last=$(field saved_sweeps)
scontrol update nodename="$node" state=resume

# the keeper is killed: the next keeper finds the job
kill -9 $pid
wait $pid 2>/dev/null || :
run "-N 2 --ntasks-per-node=1 -t 10"
until_so says "which is still running"
until_so saved 3 "$last"
last=$(field saved_sweeps)

# the administrator drains a node
node=$(nodes_of | sed 's/"\([^"]*\)".*/\1/')
"$kilter" drain keep --host "$node" >answer || fail "drain: $(cat answer)"
until_so saved 4 "$last"
! nodes_of | grep -q "\"$node\"" || fail "the run is on the node that the administrator drained"

# the run ends with the right result
: >enough
wait $pid || fail "the kept run failed"
grep -q "^right after sweep" kept.out || fail "the result of the kept run is wrong"
until_so idle 4
[ -z "${REPORT-}" ] || "$kilter" report keep/keep.kilter >"$REPORT"
