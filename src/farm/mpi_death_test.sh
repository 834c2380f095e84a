#!/bin/bash
# Ranks of a farm are killed at random instants: every task is counted once, and nobody hangs.
# usage: mpi_death_test.sh MPIEXEC FARM_DEATH_MPI_TEST WHEN [RUNS [SEED]]    WHEN: as in farm_death_mpi_test.c
set -u
mpiexec=$1 program=$2 when=$3 runs=${4:-3} seed=${5:-1}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 KILTER_MPI_START_S=5
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
if "$mpiexec" --version 2>&1 | grep -q 'Open MPI\|OpenRTE'; then
    launcher=("$mpiexec" --enable-recovery --oversubscribe --bind-to none)
else
    export KILTER_MPI_SHIELD=1
    launcher=("$mpiexec" -disable-auto-cleanup)
    if [ "$when" = opening ]; then # the timers of those to be killed would hit the shields
        echo "skipped: before MPI_Init there is no shield"
        exit 77
    fi
fi

failed=0
complain() {
    echo "FAILED: $*"
    sed 's/^/    /' "$out"
    failed=1
}


# What is right depends on the moment: a rank that dies before all are together takes the job with it. That a rank
# failed does not show in the exit code of a mpirun that lets the others live.
check() {
    local code=$1
    case $when in
    master)
        [ "$SECONDS" -lt 60 ] || complain "$what: hangs" # else any code will do: the master was killed
        grep -q 'the master is gone' "$out" || complain "$what: the workers do not say why they end"
        ;;
    opening)
        [ "$code" -eq 0 ] || complain "$what: exit code $code"
        grep -q '^right\|not all ranks are there' "$out" || complain "$what: no result"
        ;;
    *)
        [ "$code" -eq 0 ] || complain "$what: exit code $code"
        grep -q '^right' "$out" || complain "$what: no result"
        ;;
    esac
}

for ((i = 0; i < runs; i++)); do
    ranks=$((3 + (seed + i) % 3)) kills=$((1 + (seed + i) % 2))
    [ $((i % 5)) -eq 4 ] && kills=$((ranks - 1))
    what="$ranks ranks, seed $((seed + i)), $kills killed while $when"
    SECONDS=0
    timeout -k 2 60 "${launcher[@]}" -n $ranks "$program" $ranks $((seed + i)) $kills "$when" >"$out" 2>&1 </dev/null
    check $?
    echo "$what: $(grep -o '^right.*\|^FAILED.*\|.*not all ranks are there[^:]*\|.*master is gone.*' "$out" | head -1)"
    alive=$(pgrep -fc "$program $ranks $((seed + i)) $kills $when")
    [ "$alive" -eq 0 ] || complain "$what: $alive processes are left"
done
exit $failed
