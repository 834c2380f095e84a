#!/usr/bin/env bash
# Run loops whose iterations cost more the higher their index is, on four simulated hosts of equal and of unequal speed. At the end, each rank must
# have work in proportion to its speed, and the run must be close to its bound. Scattered loops do not learn costs. They must still do much better
# than equal shares, whose efficiency is 0.57 on equal and 0.71 on unequal hosts. usage: uneven_test.sh SMPIRUN KILTER MODULE
set -euo pipefail
start=$(dirname "$(realpath "$0")")/start_module
smpirun=$1 kilter=$2 module=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export KILTER_QUANTUM_S=0.01
cd "$work"
printf 'n%d\n' 0 1 2 3 >list
"$kilter" simulate --platform "4x1;link=50us,125MB/s" --write-platform equal.xml >/dev/null
"$kilter" simulate --platform "1x0.5,2x1,1x2;link=50us,125MB/s" --write-platform unequal.xml >/dev/null
for platform in equal:1,1,1,1 unequal:0.5,1,1,2; do
    speeds=[${platform#*:}] platform=${platform%:*}
    for kind in doall:40:0.9:1.1 pipeline:40:0.85:1.1 scattered:10:0.7:99; do
        IFS=: read -r kind executions efficiency spread <<<"$kind"
        "$start" "$smpirun" $platform.xml list "$module" $kind 1000 "$executions" 0.01 >out
        jq -e --argjson speeds "$speeds" --argjson efficiency "$efficiency" --argjson spread "$spread" '
            .right and .work_s / ($speeds | add) / .elapsed_s > $efficiency and
            ([.work, $speeds] | transpose | map(.[0] / .[1]) | max / min < $spread)' out >/dev/null ||
            { echo "wrong result, time or shares of a $kind loop on $platform hosts: $(cat out)" >&2; exit 1; }
    done
done
