#!/bin/sh
# Test kilter-dsmc relax on farms. The answer must have the same bits for any number of workers, even if workers die. The temperatures must
# reach equilibrium, and error messages must be clear.
# usage: relax_test.sh KILTER-DSMC
set -eu
program=$1
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
export KILTER_RECORD=none
relax() { "$program" relax --particles 500 --realisations 20 --json "$@"; }
fail() {
    echo "FAILED: $*" >&2
    exit 1
}

relax --workers 1 >"$place/one"
relax --workers 3 --policy ss >"$place/three"
cmp "$place/one" "$place/three" || fail "3 workers and 1 worker give different bits"
relax --workers 2 --seed 2 >"$place/other"
cmp -s "$place/one" "$place/other" && fail "another seed gives the same answer"

relax --workers 2 --steps 30 --collisions 2 |
    jq -e '.realisations == 20 and (.samples | length) == 21 and .samples[0].time_s == 0
        and (.samples[-1] | (.rotation_k - 640 | fabs) < 5 * .error_k + 5 and (.translation_k - 640 | fabs) < 15)' >/dev/null ||
    fail "the last temperatures are not an equilibrium at 640 K"

# refuses TEXT WORD…: the program must exit with code 2 and print TEXT in one line on stderr
refuses() {
    text=$1 code=0
    shift
    "$program" "$@" --workers 1 >"$place/out" 2>"$place/err" || code=$?
    [ $code -eq 2 ] || fail "$*: exit code $code"
    [ ! -s "$place/out" ] || fail "$*: output"
    [ "$(wc -l <"$place/err")" -eq 1 ] || fail "$*: $(cat "$place/err")"
    grep -qF -- "$text" "$place/err" || fail "$*: $(cat "$place/err")"
}
refuses 'the command is missing'
refuses 'flow is a program of its own, because it needs MPI: kilter-dsmc-flow-openmpi' flow
refuses "there is no command 'fly'" fly
refuses "there is no option '--particle'" relax --particle 10
refuses "--particles: '1' is not a whole number from 2 to 1e+09" relax --particles 1
refuses "--steps: '1.5' is not a whole number" relax --steps 1.5
refuses "--collisions: 'nan' is not a number from 1.92" relax --collisions nan
refuses '--seed has no value' relax --seed
refuses 'a molecule would collide 1.23e+10 times in a step of 1 s' relax --step-s 1
"$program" --help | grep -q -- '--realisations' || fail "--help"
