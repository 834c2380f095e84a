#!/usr/bin/env bash
# Check that the installed examples compile in their folder, and that the examples without MPI print the expected
# output.
# usage: examples_test.sh BUILD     (CMAKE and CC come from the environment)
set -euo pipefail
build=$1
fail() { echo "examples_test: $*" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$CMAKE" --install "$build" --prefix "$work/prefix" >/dev/null
examples=$work/prefix/share/doc/kilter/examples
"$CMAKE" -S "$examples" -B "$work/build" -G Ninja "-DCMAKE_PREFIX_PATH=$work/prefix" "-DCMAKE_C_COMPILER=$CC" \
    "-DCMAKE_C_FLAGS=-Wall -Wextra -Werror" -DCMAKE_BUILD_TYPE=Debug >"$work/log" 2>&1 || fail "cmake could not configure the build: $(cat "$work/log")"
"$CMAKE" --build "$work/build" >"$work/log" 2>&1 || fail "the build failed: $(cat "$work/log")"
ran=0
for wanted in "$examples"/*.out; do
    name=$(basename "$wanted" .out)
    KILTER_RECORD=none "$examples/run_example" "$work/build/$name" "$wanted" || fail "$name prints other output than expected"
    ran=$((ran + 1))
done
[ "$ran" -ge 4 ] || fail "too few examples have an expected output: $ran"
