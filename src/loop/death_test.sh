#!/bin/bash
# Let a rank die in or before every call of a loop, while rows move, while a loop opens, or while rank 0 computes. Each
# surviving rank must report the death and end.
# usage: death_test.sh MPIEXEC MISUSE_MPI_TEST KIND [RANDOM_RUNS [SEED]]
#   KIND: birth (death while a loop opens), deaf (rank 0 computes), or the name of a kind in misuse_mpi_test.c
set -u
mpiexec=$1 program=$2 kind=$3 runs=${4:-4} seed=${5:-1} ranks=3
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
folder=$(mktemp -d) || exit 1
out=$folder/out
trap 'rm -rf "$folder"' EXIT
if "$mpiexec" --version 2>&1 | grep -q 'Open MPI\|OpenRTE'; then
    launcher=("$mpiexec" --enable-recovery --oversubscribe --bind-to none)
else
    export KILTER_MPI_SHIELD=1
    launcher=("$mpiexec" -disable-auto-cleanup)
fi

failed=0
lose() { # ARGUMENT…: run misuse_mpi_test, in which a rank dies; each survivor must print "is right"
    SECONDS=0
    timeout -k 5 50 "${launcher[@]}" -n $ranks "$program" "$@" >"$out" 2>&1 </dev/null
    local code=$?
    local right
    right=$(grep -c '^rank . is right' "$out")
    echo "$*, $SECONDS s: $right survivors reported the death"
    if [ "$right" -ne $((ranks - 1)) ] || grep -q 'Sanitizer: \|runtime error: ' "$out"; then
        echo "FAILED: exit code $code"
        sed 's/^/    /' "$out"
        failed=1
    fi
}

birth() {
    local begun=9 # number of collective operations of each rank in kilter_loop_open() with a record
    export KILTER_RECORD=$folder/record
    for ((when = 0; when < 2 * begun; when++)); do
        lose birth $when $(((seed + when / 2) % ranks))
        rm -f "$KILTER_RECORD"*
    done
}

deaf() {
    for who in 1 2; do
        lose deaf "$folder/heard" $who
        rm -f "$folder/heard"
    done
}

calls() {
    local calls=11 # number of calls in a list of misuse_mpi_test.c
    for ((when = 0; when < calls; when++)); do lose death "$kind" $when $(((seed + when) % ranks)); done
    lose leave "$kind" 2 $((seed % ranks))
    lose leave "$kind" 6 $(((seed + 1) % ranks))
    for ((i = 0; i < runs; i++)); do
        lose death "$kind" $((-1 - (seed + i) * 7919 % 40000)) $(((seed + i) % ranks))
    done
}

case $kind in
birth | deaf) $kind ;;
*) calls ;;
esac
exit $failed
