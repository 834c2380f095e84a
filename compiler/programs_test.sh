#!/usr/bin/env bash
# Compile each program with kilter cc, and compare its output, bit by bit, with the sequential program's output. If there is
# a file PROGRAM.expected, compare with that file instead. Rows move at every opportunity, to random places. A program that
# begins with the comment "stops: TEXT" must end with an error that contains the text.
# usage: programs_test.sh KILTER-CC SOURCE-DIR BINARY-DIR MPI MPICC MPIEXEC "RANKS…" PROGRAM…
set -euo pipefail
compiler=$1 source=$2 binary=$3 mpi=$4 mpicc=$5 mpiexec=$6 ranks=$7
shift 7
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
launch=("$mpiexec")
[ "$mpi" != openmpi ] || launch+=(--oversubscribe --bind-to none)
flags=(-O2 -I"$source/include" -I"$binary/src/include" -I"$source/compiler/runtime" -I"$source/src")
libraries=(-L"$binary/src" "-lkilter-$mpi" -lkilter -lkilter_pure -Wl,-rpath,"$binary/src" -lm)
failed=0
fail() { echo "$1"; failed=1; }
for program in "$@"; do
    name=$(basename "$program" .c)
    "$compiler" keep="$work/$name.kilter.c" "$program" || { fail "$name: refused"; continue; }
    gcc -O2 -Wno-unknown-pragmas "$program" -o "$work/$name.sequential" -lm
    "$mpicc" "${flags[@]}" -I"$(dirname "$program")" -include "$source/src/loop/forced_test_helper.h" -D_GNU_SOURCE \
        "$work/$name.kilter.c" -o "$work/$name" "${libraries[@]}" || { fail "$name: its program does not compile"; continue; }
    expected=${program%.c}.expected # for exact sums, whose last bits differ from the sums of the sequential program
    if [ -f "$expected" ]; then cp "$expected" "$work/expected"; else "$work/$name.sequential" >"$work/expected"; fi
    stops=$(sed -n '1s,^/\* stops: \(.*\) \*/$,\1,p' "$program")
    for n in $ranks; do
        if [ -n "$stops" ]; then
            timeout 100 "${launch[@]}" -n "$n" "$work/$name" >"$work/got" 2>"$work/errors" && fail "$name on $n ranks: it does not stop"
            grep -qF -- "$stops" "$work/errors" || fail "$name on $n ranks: another error: $(head -c 600 "$work/errors")"
            continue
        fi
        FORCED_SEED=$n timeout 100 "${launch[@]}" -n "$n" "$work/$name" >"$work/got" 2>"$work/errors" ||
            { fail "$name on $n ranks: it fails: $(head -c 600 "$work/errors")"; continue; }
        cmp -s "$work/expected" "$work/got" || fail "$name on $n ranks: other output: $(head -c 200 "$work/got")"
    done
done
exit "$failed"
