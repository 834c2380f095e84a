#!/bin/bash
# A rank dies in or before every call of a loop, and at random instants while rows move: each survivor says so, and ends.
# usage: death_test.sh MPIEXEC MISUSE_MPI_TEST KIND [RANDOM_RUNS [SEED]]    KIND: as in misuse_mpi_test.c
set -u
mpiexec=$1 program=$2 kind=$3 runs=${4:-4} seed=${5:-1} ranks=3
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 KILTER_MPI_START_S=5
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
if "$mpiexec" --version 2>&1 | grep -q 'Open MPI\|OpenRTE'; then
    launcher=("$mpiexec" --enable-recovery --oversubscribe --bind-to none)
else
    export KILTER_MPI_SHIELD=1
    launcher=("$mpiexec" -disable-auto-cleanup)
fi

failed=0
lose() { # death|leave WHEN WHO
    SECONDS=0
    timeout -k 5 50 "${launcher[@]}" -n $ranks "$program" "$1" "$kind" "$2" "$3" >"$out" 2>&1 </dev/null
    local code=$?
    local right
    right=$(grep -c '^rank . is right' "$out")
    echo "$kind: $1 of rank $3 at $2, $SECONDS s: $right survivors say so"
    if [ "$right" -ne $((ranks - 1)) ]; then
        echo "FAILED: exit code $code"
        sed 's/^/    /' "$out"
        failed=1
    fi
}

calls=11 # of those in misuse_mpi_test.c
for ((when = 0; when < calls; when++)); do lose death $when $(((seed + when) % ranks)); done
lose leave 2 $((seed % ranks))
lose leave 6 $(((seed + 1) % ranks))
for ((i = 0; i < runs; i++)); do lose death $((-1 - (seed + i) * 7919 % 40000)) $(((seed + i) % ranks)); done
exit $failed
