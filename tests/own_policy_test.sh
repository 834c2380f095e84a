#!/usr/bin/env bash
# Check that a farm uses a policy that the program defines. The record must have the policy's name and reasons. The user must still be able
# to choose other policies.
# usage: own_policy_test.sh EXAMPLE KILTER
set -euo pipefail
example=$1 kilter=$2
fail() { echo "own_policy_test: $*" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$example" --workers 2 --record "$work/own.kilter" >"$work/own.out"
"$kilter" report --json "$work/own.kilter" >"$work/own.json"
grep -q '"policy": *"half-by-speed"' "$work/own.json" || fail "the record does not name the policy of the program"
grep -q 'half of its part of' "$work/own.json" || fail "the record has no reason that the policy gave"
"$kilter" report "$work/own.kilter" | grep -q half-by-speed || fail "kilter report does not name the policy of the program"
"$example" --workers 2 --policy gss --record "$work/gss.kilter" | cmp - "$work/own.out" || fail "the result under the policy gss differs"
"$kilter" report --json "$work/gss.kilter" | grep -q '"policy": *"gss"' || fail "the record does not name the policy gss"
code=0
"$example" --policy none-such 2>"$work/said" || code=$?
[ "$code" -eq 2 ] && grep -q "no policy 'none-such'" "$work/said" || fail "an unknown policy gives exit code $code and the message: $(cat "$work/said")"
