#!/bin/sh
# Check that the mean times of the two engines of kilter simulate agree. A single chunk can change a run's time, so the full test takes the means of
# more runs than the quick one. The times differ most for the policy ss over a slow link. In SimGrid two messages of a worker share the link, but TCP
# and the engine "events" send one message after the other. usage: engines_test.sh KILTER
set -eu
kilter=$1
runs=3 most=0.03 # most: greatest difference, as a fraction of the elapsed time
[ "${KILTER_TESTS:-}" != full ] || { runs=30; most=0.02; }
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
export KILTER_RECORD=none

# Print a line for each policy with its mean elapsed time.
elapsed() { # ENGINE PLATFORM
    "$kilter" simulate --engine "$1" --platform "$2" --tasks '4000@lognormal(1ms,0.5)' --iterations "$runs" \
        --policy static,ss,gss,daf,awf-c,auto --json |
        grep -o '"policy":"[a-z-]*","elapsed_s":[0-9.e-]*' | sed 's/"policy":"\([a-z-]*\)","elapsed_s":/\1 /'
}

for platform in 16x1 8x1,8x0.25 1x0.1,15x1 '4x1@osc(100ms,50ms),4x0.5;master=1' '2x1;link=1ms,1MB/s'; do
    elapsed smpi "$platform" >"$place/smpi"
    elapsed events "$platform" >"$place/events"
    [ "$(wc -l <"$place/smpi")" = 6 ] || { echo "$platform: smpi did not simulate six policies" >&2; exit 1; }
    paste -d ' ' "$place/smpi" "$place/events" | awk -v platform="$platform" -v most=$most '
        $1 != $3 || NF != 4 { print platform ": the engines simulated different policies: " $0; bad = 1; next }
        { off = $4 / $2 - 1; printf "%-36s %-7s %9.6f s %+.2f %%\n", platform, $1, $2, 100 * off }
        off > most || off < -most { bad = 1 }
        END { exit bad }' || { echo "FAILED: the means differ by more than $most" >&2; exit 1; }
done
