#!/usr/bin/env bash
# Test kilter-simfarm-smpi with valid and invalid platforms. usage: simfarm_test.sh PROGRAM
set -euo pipefail
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
unset "${!KILTER_@}"

fail() {
    echo "$*" >&2
    exit 1
}

# platform FILE: write a platform file. Each line of stdin describes a host n0, n1, …: SPEED [attributes of the host]
platform() {
    {
        echo '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">'
        echo '<platform version="4.1"><zone id="z" routing="Cluster">'
        i=0
        while read -r speed attributes; do
            echo "<host id=\"n$i\" speed=\"${speed}Gf\" $attributes/>"
            echo "<link id=\"l$i\" bandwidth=\"125MBps\" latency=\"50us\" sharing_policy=\"SPLITDUPLEX\"/>"
            echo "<host_link id=\"n$i\" up=\"l${i}_UP\" down=\"l${i}_DOWN\"/>"
            i=$((i + 1))
        done
        echo '</zone></platform>'
    } >"$1"
}

printf '0 1\n0.05 0.5\nPERIODICITY 0.1\n' | tee osc-1.prof >osc-2.prof # two equal files, because SimGrid accepts each file only once
printf '0 1\n0.2 1e-9\n0.6 1\n' >freeze.prof
printf '0.1 0\n' >off.prof
platform equal.xml <<<$'1\n1\n1\n1'
platform unequal.xml <<<$'1\n1\n0.25\n0.25'
platform osc.xml <<<$'1\n1 speed_file="osc-1.prof"\n1\n0.5 speed_file="osc-2.prof"'
platform freeze.xml <<<$'1\n1\n1\n1 speed_file="freeze.prof"'
platform off.xml <<<$'1\n1\n1 state_file="off.prof"\n1'

farm() { # PLATFORM RECORD OPTION…
    "$program" --platform "$1.xml" --record "$2" "${@:3}"
}

chunks() { # chunks RECORD: print the chunks of a record with their workers and times
    sqlite3 "$1" 'SELECT * FROM chunk ORDER BY chunk; SELECT * FROM iteration ORDER BY run'
}

# Each task must be done once in every run, and a second simulation must print the same times to the last bit.
for one in equal unequal osc freeze; do
    for policy in auto daf ss static; do
        for again in 1 2; do
            farm $one $again.kilter --tasks '600@lognormal(5ms,0.5)' --iterations 2 --policy $policy \
                --result-bytes 9000 >$again.out
        done
        cmp 1.out 2.out || fail "platform $one, policy $policy: two simulations print different times"
        chunks 1.kilter >1.chunks
        chunks 2.kilter >2.chunks
        cmp 1.chunks 2.chunks || fail "platform $one, policy $policy: two simulations deal different chunks"
        dealt=$(sqlite3 1.kilter 'SELECT count(*), min(n), max(n) FROM (SELECT count(*) n FROM
            (WITH RECURSIVE t(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM t WHERE i < 599) SELECT i FROM t), chunk
            WHERE i >= lo AND i < hi GROUP BY run, i)')
        # Under auto, one of the last tasks may have a speculative copy. Under the other policies, each task is done exactly once.
        case $policy.$dealt in
        auto.1200\|1\|[12] | *.1200\|1\|1) ;;
        *) fail "platform $one, policy $policy: number of tasks, and how often a task was done at least and at most: $dealt" ;;
        esac
        rm ./*.kilter
    done
done

# Test a case whose time is known: one worker on the master's host, 100 tasks of 10 ms, and a master without costs.
platform one.xml <<<1
KILTER_ANSWER_S=0 farm one none --tasks '100@const(10ms)' --policy static >one.out
grep -q '"elapsed_s":1\.000[0-9]*,' one.out || fail "100 tasks of 10 ms on one worker do not take 1 s: $(cat one.out)"

# A worker on a slow host must get fewer tasks, so that the efficiency stays high.
farm unequal none --tasks '2000@const(1ms)' --policy auto >unequal.out
grep -Eq '"efficiency":(1|0\.9[5-9])' unequal.out || fail "unequal hosts: $(cat unequal.out)"

platform twice.xml <<<$'1 speed_file="osc-1.prof"\n1 speed_file="osc-1.prof"'
"$program" --platform twice.xml --tasks '9@const(1ms)' --record none 2>err && fail 'a profile that two hosts share is accepted'
head -n 1 err | grep -q 'SimGrid says: .*osc-1.prof' || fail "two hosts share a profile, but the error does not name it: $(cat err)"

refuses() { # CODE WORDS COMMAND…
    local code=0
    timeout 20 "${@:3}" >out 2>err || code=$?
    [ "$code" -eq "$1" ] || fail "${*:3} ended with exit code $code, not $1: $(cat err)"
    grep -q "$2" err || fail "the error of ${*:3} does not have the words $2: $(cat err)"
    [ "$(wc -l <err)" -eq 1 ] || fail "the error of ${*:3} has more than one line: $(cat err)"
}
tasks=(--tasks '100@const(10ms)' --record none)
refuses 1 'host n2 is switched off at 0.1' "$program" --platform off.xml "${tasks[@]}"
refuses 2 'platform' "$program" "${tasks[@]}"
refuses 2 'missing.xml' "$program" --platform missing.xml "${tasks[@]}"
echo '<platform version="4.1"><zone id="z" routing="Full"><host id="a"/></zone></platform>' >bad.xml
refuses 2 'bad.xml' "$program" --platform bad.xml "${tasks[@]}"
echo 'this is not a platform' >text.xml
refuses 2 'text.xml' "$program" --platform text.xml "${tasks[@]}"
printf 'n0\nn9\n' >hosts
refuses 2 "line 2: the platform has no host 'n9'" "$program" --platform equal.xml --hosts hosts "${tasks[@]}"
echo n0 >hosts
refuses 2 'the number of hosts is 1' "$program" --platform equal.xml --hosts hosts "${tasks[@]}"
refuses 2 'tasks' "$program" --platform equal.xml
refuses 2 'tasks' "$program" --platform equal.xml --tasks '7@never(1ms)'
refuses 2 'iterations' "$program" --platform equal.xml --iterations 0 "${tasks[@]}"
refuses 2 'no policy' "$program" --platform equal.xml --policy best "${tasks[@]}"
refuses 2 'simulated machine' "$program" --platform equal.xml --transport zmq "${tasks[@]}"
refuses 2 'not an option' "$program" --platform equal.xml "${tasks[@]}" --frobnicate
refuses 2 'KILTER_ANSWER_S' env KILTER_ANSWER_S=often "$program" --platform equal.xml "${tasks[@]}"
