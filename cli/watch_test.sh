#!/usr/bin/env bash
# Test kilter watch with one MPI implementation: it names the places where ranks wait, and handles programs that end without MPI_Finalize.
# usage: watch_test.sh few|all KILTER PROGRAM OTHER_MPI LAUNCHER…     LAUNCHER: with all options except -n. KILTER_FC: the MPI's Fortran compiler; without it,
# Fortran is not tested.
set -euo pipefail
kilter=$2 program=$3 other=$4 few=$1
shift 4
launcher=("$@")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export KILTER_RECORD=none KILTER_RECORD_DIR=$work/records TMPDIR=$work

fail() { echo "FAILED: $*" >&2; cat "$work/page" >&2; exit 1; }
watched() { # CODE RANKS MODE…: watch the test program in a mode, and fail unless it ends with the exit code CODE
    local code=0 want=$1 ranks=$2
    shift 2
    "$kilter" watch "${options[@]}" "${launcher[@]}" -n "$ranks" "$program" "$@" >"$work/out" 2>"$work/page" || code=$?
    [ "$want" = any ] || [ "$code" = "$want" ] || fail "in mode $*, kilter watch ended with exit code $code instead of $want"
    ! ls -d "$work"/kilter-?????? 2>/dev/null || fail "in mode $*, kilter watch left the folder of the ranks behind"
}
says() { tr -s ' \n' ' ' <"$work/page" | grep -qE -- "$1" || fail "the page of kilter watch does not have the words: $1"; }
options=()

# the page names the place where ranks wait, and the record has the same page
options=(--record "$work/a.kilter")
watched 0 3 usual 60
says 'iteration 60 iterations of 4 calls'
says 'parallel efficiency .* % = load balance .* % × communication efficiency'
says 'most in MPI .* in 180 calls of MPI_'
"$kilter" report "$work/a.kilter" | diff - <(sed -n '/ranks computed/,$p' "$work/page") || fail 'kilter report prints another page than kilter watch'
"$kilter" report --json "$work/a.kilter" >"$work/json"
grep -q '"iterations":60,"iteration_calls":4' "$work/json" || fail 'the JSON of kilter report does not have the iteration'
"$kilter" list "$work" 2>/dev/null | grep -q 'watched *60 iterations' || fail 'kilter list does not list the record of kilter watch'
options=(--record "$work/missing/a.kilter")
watched 0 2 usual 20
says 'missing/a.kilter.*the page is not kept'
says 'record none'
options=()

# programs that do not end with MPI_Finalize
watched any 3 killed 30
says 'ranks did not come to MPI_Finalize'
says 'rank 2 [(].*[)] at .*: the rank was killed, or ended without MPI_Finalize'
says 'iteration [0-9]+ iterations of 4 calls'
# refused command lines
refuses() { # CODE TEXT OPTION…
    local code=0 want=$1 text=$2
    shift 2
    "$kilter" watch "$@" >"$work/out" 2>"$work/page" || code=$?
    [ "$code" = "$want" ] || fail "in mode $*, kilter watch ended with exit code $code instead of $want"
    says "$text"
}
refuses 2 'no program given'
refuses 2 "the MPI of 'true' is not known; name the MPI with --mpi" true
refuses 2 "there is no program './nowhere'" ./nowhere
refuses 2 "no folder can be made in '/nowhere'" --folder /nowhere "$program"
refuses 127 "starting '/nowhere/program'" --mpi openmpi /nowhere/program
KILTER_LIBEXEC=$work refuses 2 'is not found; install Kilter' "$program"

[ "$few" = all ] || exit 0

watched 0 3 poll 60
says 'iteration 60 iterations of 3 calls'
watched 0 3 deal 60
says 'fits farm: rank 0 receives from any rank'

watched 5 2 fails 20
says 'exited with code 5'
watched 3 2 no-init
says 'no process of .* called MPI_Init'
watched any 3 no-finalize 30
says '3 of 3 ranks did not come to MPI_Finalize'
watched any 2 abort 20
says 'rank 0 [(].*[)] at .*: the rank called MPI_Abort'

# programs with threads, with more communicators, and with spawned processes
watched 0 2 threads 30
says 'threads 20 calls of further threads are not counted'
says 'iteration 30 iterations of 4 calls'
if "${launcher[@]}" -n 1 "$program" spawn 1 >"$work/page" 2>&1; then # some launchers start no further processes
    watched 0 1 spawn 30
    says 'spawned 1 process that MPI_Comm_spawn started'
fi

# a program without a launcher, and a program of the other MPI
code=0
"$kilter" watch "$program" usual 30 2>"$work/page" || code=$?
[ $code = 0 ] || fail "kilter watch of a program without a launcher ended with exit code $code"
says '1 rank computed'
code=0
"$kilter" watch --mpi "$other" "$program" usual 30 2>"$work/page" || code=$?
says "this program uses .*; use --mpi"
[ $code = 2 ] || fail "kilter watch with the wrong --mpi ended with exit code $code"

# the disk is full: nothing is recorded, but the program runs
if [ -w /dev/full ] && mkdir "$work/full" && mount -t tmpfs -o size=16k none "$work/full" 2>/dev/null; then
    code=0
    "$kilter" watch --folder "$work/full" "$program" usual 30 2>"$work/page" || code=$?
    umount "$work/full"
    [ $code = 0 ] || fail "kilter watch with a full disk ended with exit code $code"
    says 'cannot write .*; the rank is not watched'
fi

if [ -n "${KILTER_FC-}" ]; then
    for module in mpi mpi_f08; do
        sed "s/use mpi$/use $module/" "${0%/*}/watch_test_fortran.f90" >"$work/f.f90"
        "$KILTER_FC" -J"$work" -o "$work/fortran" "$work/f.f90" 2>"$work/page" || fail "kilter watch failed for a Fortran program with $module"
        program=$work/fortran watched 0 2
        says 'iteration 50 iterations of 3 calls'
    done
fi
