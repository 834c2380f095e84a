#!/usr/bin/env bash
# Check a loop on simulated hosts. Wherever rows move, the loop's result must have the same bits as the sequential program's result, and a second run
# must print the same output. Rows must leave a slow host, which saves time.
# usage: loop_test.sh SMPIRUN KILTER PLAIN-MODULE MODULE N SWEEPS
set -euo pipefail
start=$(dirname "$(realpath "$0")")/start_module
smpirun=$1 kilter=$2 plain=$3 loop=$4 words=("$5" "$6" --cost 0.02)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
    echo "$*" >&2
    exit 1
}

hosts() { # hosts NAME SPEC: write a platform of four hosts into NAME.xml
    "$kilter" simulate --platform "$2;link=100us,12.5MB/s" --write-platform "$1.xml" >/dev/null
}

run() { # run PLATFORM RANKS MODULE OPTION…: run MODULE, and check the bits of its result; the output is in ./out
    printf 'n%d\n' $(seq 0 $(($2 - 1))) >list
    "$start" "$smpirun" "$1.xml" list "$3" "${words[@]}" "${@:4}" >out
    jq -es '.[0].checksum' out >checksum || fail "${*:3} on $1: $(cat out)"
    [ -f expected ] || cp checksum expected
    cmp -s checksum expected || fail "${*:3} on $2 ranks of $1 computes other bits than the sequential program"
}

hosts equal 4x1
hosts slow '2x1,1x1@steps(0s:0.5),1x1'
hosts swings '1x1@osc(4s,2s),3x1'
run equal 1 "$plain"
run equal 4 "$plain"
run equal 4 "$loop" --say
for platform in slow:0.9 swings:1.05; do
    most=${platform#*:} platform=${platform%:*}
    run $platform 4 "$loop" --fixed
    fixed_s=$(jq -s '.[0].elapsed_s' out)
    run $platform 4 "$loop" --say
    mv out first
    run $platform 4 "$loop" --say
    cmp first out || fail "two equal runs on the platform $platform give different outputs"
    jq -es --argjson most "$(jq -n "$most * $fixed_s")" '.[0].elapsed_s < $most and .[1].moves > 0' out >/dev/null ||
        fail "on $platform, fixed $fixed_s s: $(cat out)"
done
