#!/usr/bin/env bash
# Test kilter simulate --engine smpi as a command. usage: engine_test.sh KILTER
set -euo pipefail
kilter=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
unset "${!KILTER_@}"

fail() {
    echo "$*" >&2
    exit 1
}

simulate() {
    "$kilter" simulate --engine smpi "$@"
}

platform='3x1.0,3x0.25@osc(60ms,30ms);master=1' tasks='600@lognormal(2ms,0.5)'

# Two runs of the same command must print the same table. The record must have all tasks, and a picture must be drawn.
for again in 1 2; do
    simulate --platform "$platform" --tasks "$tasks" --policy static,ss,auto --iterations 2 >$again.table
done
cmp 1.table 2.table || fail "the same command prints two different tables: $(cat 1.table 2.table)"
grep -q '^engine *smpi' 1.table || fail "no engine: $(cat 1.table)"
simulate --platform "$platform" --tasks "$tasks" --iterations 2 --record run.kilter --gantt run.svg >out
[ "$(sqlite3 run.kilter 'SELECT sum(hi - lo) FROM chunk')" = 1200 ] || fail 'tasks are missing from the record'
grep -q '</svg>' run.svg || fail 'no picture'

# A platform that is described in the command, and the same platform as a SimGrid file, must give the same times.
"$kilter" simulate --platform 4x1 --write-platform equal.xml
simulate --platform 4x1 --tasks "$tasks" --json | grep -o '"elapsed_s":[^,]*' | head -1 >described
simulate --platform equal.xml --tasks "$tasks" --json | grep -o '"elapsed_s":[^,]*' | head -1 >written
cmp described written || fail "described: $(cat described), as a file: $(cat written)"

# Send large messages, which SMPI sends only when the receiver is ready. 20 MB must take at least 20 s over 1 MB/s.
simulate --platform '2x1;link=1ms,1MB/s;master=1' --tasks '200@const(1ms)' --task-bytes 100000 --policy gss \
    --result-bytes 70000 --json >big
elapsed_s=$(grep -o '"elapsed_s":[^,]*' big | head -1 | cut -d: -f2)
awk -v s="$elapsed_s" 'BEGIN { exit !(s > 20 && s < 40) }' || fail "20 MB over 1 MB/s took $elapsed_s s"

# Send messages in two parts to and from 100 workers at once. The run takes 4 ms; it would take 16 ms if workers slept after a message has arrived.
simulate --platform '15x1,15x2,14x3,14x4,14x5,14x6,14x7;link=50us,1GB/s;master=1' --tasks '400@const(1ms)' --task-bytes 5000 --result-bytes 720 --policy ect \
    --iterations 3 --json | jq '.policies[0].iterations[2].elapsed_s' >parts
awk '{ exit !($1 < 8e-3) }' parts || fail "a run of 1 ms of work on each of 100 workers took $(cat parts) s"

refuses() { # CODE WORDS OPTION…
    local code=0
    timeout 20 "$kilter" simulate --engine smpi --tasks "$tasks" "${@:3}" >out 2>err || code=$?
    [ "$code" -eq "$1" ] || fail "with the options ${*:3}, the exit code is $code, not $1: $(cat err)"
    [ ! -s out ] || fail "with the options ${*:3}, something was printed on stdout"
    grep -q "$2" err || fail "with the options ${*:3}, the error does not have the words $2: $(cat err)"
    [ "$(wc -l <err)" -eq 1 ] || fail "with the options ${*:3}, the error has more than one line: $(cat err)"
}
refuses 2 'missing.xml' --platform missing.xml
echo 'this is not a platform' >text.xml
refuses 2 'text.xml' --platform text.xml
printf '0.1 0\n' >off.prof
sed 's|<host id="n2" |&state_file="off.prof" |' equal.xml >off.xml
refuses 1 'host n2 is switched off at 0.1' --platform off.xml
KILTER_LIBEXEC=$work refuses 2 'kilter-simfarm-smpi is not installed' --platform 4x1
printf '#!/bin/sh\necho nonsense\n' >kilter-simfarm-smpi
chmod +x kilter-simfarm-smpi
KILTER_LIBEXEC=$work refuses 1 'ended after 0 of 1 runs' --platform 4x1
printf '#!/bin/sh\nkill -9 $$\n' >kilter-simfarm-smpi
KILTER_LIBEXEC=$work refuses 1 'ended by signal 9' --platform 4x1
