#!/usr/bin/env bash
# Build kilter-sp from its own folder against an installed Kilter. It must print the same as the kilter-sp that was built with Kilter.
# usage: sp_test.sh SOURCE BUILD     (CMAKE, CC and CXX come from the environment)
set -euo pipefail
source=$1 build=$2
fail() { echo "sp_test: $*" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$CMAKE" --install "$build" --prefix "$work/prefix" >/dev/null
mkdir "$work/alone"
cp -r "$source/apps/sp" "$work/alone/sp" # copy only this folder, without the other files of Kilter's tree
"$CMAKE" -S "$work/alone/sp" -B "$work/build" -G Ninja "-DCMAKE_PREFIX_PATH=$work/prefix" "-DCMAKE_C_COMPILER=$CC" \
    "-DCMAKE_CXX_COMPILER=$CXX" -DCMAKE_BUILD_TYPE=Debug >"$work/log" 2>&1 || fail "cmake could not configure the build: $(cat "$work/log")"
"$CMAKE" --build "$work/build" >"$work/log" 2>&1 || fail "the build failed: $(cat "$work/log")"
! grep -q 'warning:' "$work/log" || fail "warnings: $(grep 'warning:' "$work/log")"

solve() { # solve PROGRAM: solve a problem with this kilter-sp, and print the decision that it wrote
    local problem=$source/apps/sp/problems/lands/lands
    "$1" solve "$problem.cor" "$problem.tim" "$problem.sto" --scenarios 200 --workers 2 --record none \
        --decision "$work/decision" >"$work/out" 2>"$work/err" || fail "$1: $(cat "$work/err")"
    cat "$work/decision"
}
solve "$work/build/kilter-sp" >"$work/alone.at"
solve "$work/prefix/bin/kilter-sp" >"$work/whole.at"
[ -s "$work/alone.at" ] || fail "kilter-sp wrote no decision"
cmp "$work/alone.at" "$work/whole.at" || fail "the two builds of kilter-sp find different decisions"
"$CMAKE" --install "$work/build" --prefix "$work/other" >/dev/null
"$work/other/bin/kilter-sp" --version >/dev/null || fail "the installed kilter-sp does not run"
