#!/usr/bin/env bash
# Test a farm whose workers join over TCP and share the tasks as peers. The result must be right, and the record must say that peers organised the
# run.
# usage: joined_peers_test.sh 01_SQUARES KILTER
set -euo pipefail
example=$1 kilter=$2
fail() { echo "joined_peers_test: $*" >&2; exit 1; }
work=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || :; rm -rf "$work"' EXIT
"$example" --organise peers --workers 3 --listen 'tcp://127.0.0.1:*' --key "$work/farm key" --record "$work/run.kilter" \
    >"$work/out" 2>"$work/said" &
pids=($!)
until grep -q 'tcp://' "$work/said"; do
    kill -0 "${pids[0]}" 2>/dev/null || fail "the master ended before workers could join: $(cat "$work/said")"
done
endpoint=$(grep -o 'tcp://[0-9.]*:[0-9]*' "$work/said" | head -1)
for i in 1 2 3; do
    "$example" --join "$endpoint" --key "$work/farm key" &
    pids+=($!)
done
wait "${pids[0]}" || fail "the master failed: $(cat "$work/said")"
[ "$(cat "$work/out")" = 333332833333500000 ] || fail "the sum of the squares is wrong: $(cat "$work/out")"
"$kilter" report --json "$work/run.kilter" >"$work/run.json"
jq -e '[.decided[] | select(.kind == "organise")] | length > 0' "$work/run.json" >/dev/null || fail "the record has no decision of kind organise"
"$kilter" report "$work/run.kilter" | grep -q '^organised *by the workers' || fail "the report does not say that the workers organised the run"
[ "$("$kilter" report "$work/run.kilter" | grep -cE '^ +[0-9]+ +[^ ]+ +[0-9]+ ')" -eq 3 ] || fail "the report does not have three workers"
