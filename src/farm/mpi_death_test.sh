#!/bin/bash
# Ranks of a farm are killed at random instants: every task is counted once, and nobody hangs.
# usage: mpi_death_test.sh MPIEXEC FARM_DEATH_MPI_TEST WHEN [RUNS [SEED]]    WHEN: as in farm_death_mpi_test.c
set -u
mpiexec=$1 program=$2 when=$3 runs=${4:-3} seed=${5:-1}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
[ "$when" != opening ] || export KILTER_MPI_START_S=5 # elsewhere all ranks come, however late
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

# MPI itself failed because a rank was killed while the ranks were connecting, which no rank can help: mpirun hangs in
# itself, or MPI_Init reports the dead rank as unreachable and aborts the job.
fails_itself() {
    [ "$when" = opening ] && [ "$alive" -eq 0 ] || return 1
    grep -q 'PMIX ERROR: UNREACHABLE\|MPI_INIT has failed because at least one MPI process is unreachable' "$out"
}

# run WORDS…: starts the ranks and waits for the launcher. Sets `code`, and `alive`: ranks that had not ended.
run() {
    SECONDS=0
    "${launcher[@]}" "$@" >"$out" 2>&1 </dev/null &
    local launched=$!
    while kill -0 $launched 2>/dev/null && [ $SECONDS -lt 60 ]; do sleep 0.1; done
    alive=$(pgrep -fc "^$program $ranks $((seed + i)) $kills $when")
    kill -9 $launched 2>/dev/null
    wait $launched 2>/dev/null
    code=$?
    if fails_itself; then
        echo "MPI fails: not all ranks are there" >>"$out"
        code=0
    fi
}

# What is right depends on the moment: a rank that dies before all are together takes the job with it. That a rank
# failed does not show in the exit code of a mpirun that lets the others live.
check() {
    case $when in
    master) # any code will do
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
    run -n $ranks "$program" $ranks $((seed + i)) $kills "$when"
    check
    [ $SECONDS -lt 60 ] || [ $code -eq 0 ] || complain "$what: hangs"
    echo "$what: $(grep -o '^right.*\|^FAILED.*\|.*not all ranks are there[^:]*\|.*master is gone.*' "$out" | head -1)"
    [ "$alive" -eq 0 ] || complain "$what: $alive processes are left"
done
exit $failed
