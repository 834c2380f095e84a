#!/usr/bin/env bash
# Check that every test of a build has exactly one purpose, and that each line of tests/purposes.txt matches a test. So `make soak` runs every
# test.
# usage: purposes_test.sh TREE BUILD [--all]     --all: the build has every test, so every line must match a test
set -euo pipefail
tree=$1 build=$2 all=${3:-}
table=$tree/tests/purposes.txt
failed=0
tests=$(cd "$build" && ctest --show-only=json-v1 | jq -r '.tests[] |
    [.name, ([.properties[]? | select(.name == "LABELS") | .value[] | select(. == "quick" or . == "check" or . == "soak")] | join(","))] | @tsv')
[ -n "$tests" ] || { echo "the build has no tests: $build"; exit 1; }

wrong=$(awk -F'\t' '$2 !~ /^(quick|check|soak)$/ { print $1 ": its purpose is \"" $2 "\"" }' <<<"$tests")
[ -z "$wrong" ] || { echo "$wrong"; echo "expected: one of quick, check, soak"; failed=1; }
for purpose in quick check soak; do
    grep -q "	$purpose\$" <<<"$tests" || [ -z "$all" ] || { echo "no test is for $purpose"; failed=1; }
done

names=$(cut -f 1 <<<"$tests" | sed 's/-mpich$//')
while read -r purpose pattern rest; do # tests that match an earlier line are already removed from `names`
    [ -z "$rest" ] || { echo "purposes.txt: $purpose $pattern: \"$rest\" is one word too many"; failed=1; }
    left=$(grep -vE "^($pattern)\$" <<<"$names" || true)
    [ -z "$all" ] || [ "$left" != "$names" ] || { echo "purposes.txt: $purpose $pattern matches no test"; failed=1; }
    names=$left
done < <(grep -vE '^(#|$)' "$table")
exit "$failed"
