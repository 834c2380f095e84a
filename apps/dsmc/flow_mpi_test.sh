#!/bin/sh
# Test kilter-dsmc-flow. The answer must have the same bits for every number of ranks while rows move. The picture and the error
# messages are tested, too.
# usage: flow_mpi_test.sh KILTER-DSMC-FLOW LAUNCHER… -n
set -eu
program=$1
shift
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
export KILTER_RECORD=none
fail() {
    echo "FAILED: $*" >&2
    exit 1
}
flow() { # flow RANKS OPTION…
    ranks=$1
    shift
    "$launcher" $launch "$ranks" "$program" --columns 40 --rows 30 --steps 60 "$@" </dev/null
}
launcher=$1
shift
launch=$*

# bits FILE: print the parts of an answer that must not depend on the number of ranks
bits() { sed -n 's/.*"particles":\([^,]*\),.*"collisions":\([^,]*\),\(.*\)}/\1 \2 \3/p' "$1"; }
for gas in argon nitrogen; do
    flow 1 --gas "$gas" --body plate >"$place/one"
    for ranks in 2 3 4; do
        flow "$ranks" --gas "$gas" --body plate >"$place/more"
        [ -n "$(bits "$place/one")" ] || fail "no answer: $(cat "$place/one")"
        [ "$(bits "$place/one")" = "$(bits "$place/more")" ] || fail "$gas: 1 and $ranks ranks give different bits"
    done
done
flow 1 --seed 2 >"$place/other"
[ "$(bits "$place/one")" != "$(bits "$place/other")" ] || fail "another seed gives the same answer"

# If cells are larger than a third of a mean free path, there is one warning on stderr.
flow 2 --size 8 --knudsen 0.3 2>"$place/err" >"$place/out"
[ "$(grep -c 'warning: a mean free path is 2.4 cells' "$place/err")" -eq 1 ] || fail "no warning: $(cat "$place/err")"
flow 2 --size 10 --knudsen 0.4 2>"$place/err" >"$place/out"
! grep -q 'warning:' "$place/err" || fail "$(cat "$place/err")"

# With three ranks, the middle rank has the dense gas in front of the body, so rows move. The answer's bits must stay the same. A longer run gives a
# busy host more chances to move rows.
for steps in 300 1200 5000; do
    flow 1 --rows 60 --steps $steps >"$place/one"
    flow 3 --rows 60 --steps $steps --say --picture "$place/picture.svg" >"$place/more"
    [ "$(bits "$place/one")" = "$(bits "$place/more")" ] || fail "moved rows give different bits"
    ! grep -q '"moves":[1-9].*"decision":' "$place/more" || break
done
grep -q '"moves":[1-9].*"decision":' "$place/more" || fail "no rows moved between ranks: $(cat "$place/more")"
[ "$(tail -n 1 "$place/picture.svg")" = "</svg>" ] || fail "the picture ends early"
grep -q '<circle' "$place/picture.svg" || fail "the picture has no body"

# refuses TEXT WORD…: the program must exit with code 2 and print TEXT once on stderr
refuses() {
    text=$1 code=0
    shift
    "$launcher" $launch 2 "$program" "$@" >"$place/out" 2>"$place/err" </dev/null || code=$?
    [ $code -eq 2 ] || fail "$*: exit code $code"
    [ "$(grep -cF -- "$text" "$place/err")" -eq 1 ] || fail "$*: $(cat "$place/err")"
}
refuses "there is no option '--march'" --march 3
refuses "--mach: 'fast' is not a number from 0.1 to 50" --mach fast
refuses "--gas: 'helium' is not argon or nitrogen" --gas helium
refuses '--size must be smaller than --rows' --size 50 --rows 20
refuses '--size of a cylinder must be smaller than 0.7 times --columns' --size 28 --columns 40 --rows 60
refuses '--knudsen must be 0 or at least 0.001' --knudsen 0.0005
refuses '--settle must be smaller than --steps' --settle 50 --steps 20
refuses '--picture has no value' --picture
"$program" --help | grep -q -- '--knudsen' || fail '--help'
