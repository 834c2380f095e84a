#!/bin/bash
# Kill ranks of a farm at random moments. Every task must be counted once, and no rank may hang.
# usage: mpi_death_test.sh MPIEXEC PROGRAM WHEN [RUNS [SEED]]
# PROGRAM is the path of farm_death_mpi_test. WHEN says at which moment it kills ranks. The variables RANKS_LEAST and
# RANKS_MOST limit the number of ranks (default: 3 to 5). With more than 5 ranks, up to 4 of them are killed. Every fifth run
# kills all workers. A series of runs may take LIMIT_S seconds.
set -u
mpiexec=$1 program=$2 when=$3 runs=${4:-3} seed=${5:-1}
least=${RANKS_LEAST:-3} most=${RANKS_MOST:-5} limit=60
[ "$when" != series ] || limit=${LIMIT_S:-300} # a series has ten runs, and a busy machine needs more time for them
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
[ "$when" != opening ] || export KILTER_MPI_START_S=5 # in other tests all ranks open the farm, so a slow start is no error
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
if "$mpiexec" --version 2>&1 | grep -q 'Open MPI\|OpenRTE'; then
    launcher=("$mpiexec" --enable-recovery --oversubscribe --bind-to none)
else
    export KILTER_MPI_SHIELD=1
    launcher=("$mpiexec" -disable-auto-cleanup)
    if [ "$when" = opening ]; then # the timers that kill ranks would also kill shields (processes between launcher and rank)
        echo "skipped: before MPI_Init, no shield protects the other ranks"
        exit 77
    fi
fi

failed=0
complain() {
    echo "FAILED: $*"
    head -c 20000 "$out" | sed 's/^/    /'
    failed=1
}

# Return whether the job may continue: its time is not over, and MPI does not print errors without end after a death.
goes_on() { [ $SECONDS -lt "$limit" ] && [ "$(stat -c %s "$out")" -lt 100000000 ]; }

# Return whether MPI itself failed because a rank was killed while the ranks were connecting. In this case, mpirun hangs, or
# MPI_Init reports the dead rank as unreachable and aborts the job. Neither Kilter nor the test can prevent this.
fails_itself() {
    [ "$when" = opening ] && [ "$alive" -eq 0 ] || return 1
    grep -q 'PMIX ERROR: UNREACHABLE\|MPI_INIT has failed because at least one MPI process is unreachable' "$out"
}

count_ranks() { pgrep -fc "^$program $ranks $((seed + i)) $kills $when"; }

# run WORDS…: start the ranks with these words, and wait until the launcher ends. Set `code` to the launcher's exit code, and
# `alive` to the number of ranks that have not ended. Ranks close their output before they end, so the launcher may end a
# little earlier than the ranks.
run() {
    SECONDS=0
    "${launcher[@]}" "$@" >"$out" 2>&1 </dev/null &
    local launched=$!
    while kill -0 $launched 2>/dev/null && goes_on; do sleep 0.1; done
    alive=$(count_ranks)
    local until=$((SECONDS + 20))
    while [ "$alive" -gt 0 ] && goes_on && [ $SECONDS -lt $until ]; do
        sleep 0.1
        alive=$(count_ranks)
    done
    kill -9 $launched 2>/dev/null
    wait $launched 2>/dev/null
    code=$?
    if fails_itself; then
        echo "MPI itself failed, because not all ranks are there" >>"$out"
        code=0
    fi
}

# Check the exit code and the output. The moment of the kills ($when) decides what is right. A rank that dies before all ranks
# are connected ends the whole job. If mpirun lets the other ranks live, its exit code does not show the death.
check() {
    case $when in
    master) # the launcher's exit code may have any value
        grep -q 'the master is gone' "$out" || complain "$what: the workers do not say why they end"
        ;;
    opening)
        [ "$code" -eq 0 ] || complain "$what: exit code $code"
        grep -q '^right\|not all ranks are there' "$out" || complain "$what: no result"
        ;;
    series)
        [ "$code" -eq 0 ] || complain "$what: exit code $code"
        [ "$(grep -c '^right' "$out")" -eq 10 ] || complain "$what: not ten results"
        ;;
    *)
        [ "$code" -eq 0 ] || complain "$what: exit code $code"
        grep -q '^right' "$out" || complain "$what: no result"
        ;;
    esac
}

for ((i = 0; i < runs; i++)); do
    ranks=$((least + (seed + i) * 7 % (most - least + 1))) kills=$((1 + (seed + i) % 2))
    [ "$most" -le 5 ] || kills=$((1 + (seed + i) % 4))
    [ $((i % 5)) -eq 4 ] && kills=$((ranks - 1))
    what="$ranks ranks, seed $((seed + i)), $kills killed while $when"
    run -n $ranks "$program" $ranks $((seed + i)) $kills "$when"
    check
    [ $SECONDS -lt "$limit" ] || [ $code -eq 0 ] || complain "$what: hangs"
    echo "$what: $(grep -o '^right.*\|^FAILED.*\|.*not all ranks are there[^:]*\|.*master is gone.*' "$out" | head -1)"
    [ "$alive" -eq 0 ] || complain "$what: $alive processes are left"
done
exit $failed
