#!/usr/bin/env bash
# Test kilter run --keep under a real Slurm of four nodes on this machine, with Open MPI.
# usage: keep_slurm_box.sh KILTER PROGRAM     exit 77: root, namespaces, slurm-wlm or munge are missing.
# With REPORT=FILE, write a table row for each fault into FILE: the seconds until the next attempt has saved
set -eu
. "$(dirname "$0")/farm_test.sh"
. "$here/slurm_box.sh"
program=$2
unset KILTER_KEEP KILTER_CHECKPOINT KILTER_KEEP_ATTEMPT
export KILTER_CHECKPOINT_S=0.3 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# --- a run with faults
run() {
    "$kilter" run --keep --slurm "$1" --folder keep --hang 5 --look 1 -- "$program" >>kept.out 2>>kept.err &
    pid=$!
    children="$children $pid"
}
says() { grep -q -- "$1" kept.err; }
field() { sed -n "s/.*\"$1\":\([0-9]*\)[,}].*/\1/p" keep/progress; }
saved() { [ "$(field attempt)" = "$1" ] && [ "$(field saved_sweeps)" -gt "$2" ]; }
nodes_of() { sed -n 's/.*"hosts":\[\([^]]*\)\].*/\1/p' keep/progress; }
# Write the seconds since `fault_at` into the report, if there is one.
fault_at=
tell() { # WHAT
    [ -z "${REPORT-}" ] ||
        awk -v what="$1" -v from="$fault_at" -v to="$(date +%s.%N)" 'BEGIN { printf "| srun | %s: until the next attempt has saved | %.2f | %.2f | 1 | 10 s |\n", what, to - from, to - from }' >>"$REPORT"
}
run "-N 2 --ntasks-per-node=1 -t 10"
until_so saved 1 0
last=$(field saved_sweeps)

# a rank dies: srun ends the other ranks, and the job reports how it ended
[ -z "${REPORT-}" ] || : >"$REPORT"
fault_at=$(date +%s.%N)
kill -KILL "$(field pid)"
until_so says "attempt 2: .*, after sweep"
until_so saved 2 "$last"
tell "a rank is killed"
last=$(field saved_sweeps)

# drain a node: the run continues on other nodes
node=$(nodes_of | sed 's/"\([^"]*\)".*/\1/')
fault_at=$(date +%s.%N)
scontrol update nodename="$node" state=drain reason=test
until_so says "$node is taken away: the run is saved"
until_so saved 3 "$last"
tell "Slurm drains a node"
! nodes_of | grep -q "\"$node\"" || fail "the run is on the drained node"
last=$(field saved_sweeps)
scontrol update nodename="$node" state=resume

# kill the keeper: the next keeper finds the job
kill -9 $pid
wait $pid 2>/dev/null || :
run "-N 2 --ntasks-per-node=1 -t 10"
until_so says "which is still running"
until_so saved 3 "$last"
last=$(field saved_sweeps)

# a node is drained by hand
node=$(nodes_of | sed 's/"\([^"]*\)".*/\1/')
fault_at=$(date +%s.%N)
"$kilter" drain keep --host "$node" >answer || fail "drain: $(cat answer)"
until_so saved 4 "$last"
tell "\`kilter drain\` takes a node away"
! nodes_of | grep -q "\"$node\"" || fail "the run is on the drained node"

# the program ends
: >enough
wait $pid || fail "the run failed"
grep -q "^right after sweep" kept.out || fail "the result is wrong"
until_so idle 4
[ -n "${REPORT-}" ] || exit 0

# a job comes near its time limit; only for the report, because Slurm's shortest time limit is a minute
rm -rf keep enough kept.err
run "-N 2 --ntasks-per-node=1 -t 1"
until_so saved 1 0
last=0
until saved 2 0; do # the keeper or the job's own signal makes the program save its state
    kill -0 $pid || fail "the run ended at its time limit: $(cat kept.err)"
    [ "$(field sweeps)" = "$last" ] || { last=$(field sweeps) fault_at=$(date +%s.%N); }
    sleep 0.05
done
tell "the time limit of a job comes near (from the last sweep)"
: >enough
wait $pid || fail "the run failed"
grep -q "^right after sweep" kept.out || fail "the result is wrong"
