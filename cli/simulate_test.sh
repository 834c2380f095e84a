#!/bin/sh
# Test kilter simulate on the command line. usage: simulate_test.sh KILTER
set -eu
kilter=$1
here=$(cd "$(dirname "$0")" && pwd)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"

. "$here/outside_test.sh"

refuses() { # CODE WORDS OPTION…
    code=$1 words=$2
    shift 2
    expect "$code" "$words" "$kilter" simulate "$@"
}

p='8x1.0,8x0.25@osc(60ms,30ms)' t='2000@lognormal(1ms,0.5)'
events='--engine events'

# the table has a row for each policy, and a second simulation prints the same table
"$kilter" simulate $events --platform "$p" --tasks "$t" --policy static,auto,AWF-B --iterations 3 >one
grep -q '^engine  *events' one || fail "the output does not name the engine: $(cat one)"
for policy in static auto awf-b; do
    grep -q "^$policy " one || fail "the table does not have a row for $policy: $(cat one)"
done
"$kilter" simulate $events --platform "$p" --tasks "$t" --policy static,auto,AWF-B --iterations 3 >two
diff one two >&2 || fail "the second simulation printed other output than the first"
"$kilter" simulate $events --platform "$p" --tasks "$t" --policy all --json >all.json
for policy in static ss fsc gss tss fac2 wf awf-b awf-c af dpf daf auto ect; do
    grep -q "\"policy\":\"$policy\"" all.json || fail "the JSON lacks $policy"
done

# a run begins while one host is stopped in a task of the previous run; the slow host must not wait for the stopped host
"$kilter" simulate $events --platform '1x1@freeze(5ms,100s),1x0.05;master=1' --tasks '4@lognormal(1ms,0.5)' --iterations 6 --json >out
grep -q '"policy":"auto"' out || fail "the table does not have a row for auto: $(cat out)"
! grep -Eq '"elapsed_s":[0-9]{2}' out || fail "the slow host waited for the stopped one: $(cat out)"

# the slow host must not wait either if more hosts are stopped than the master examines at once
for hosts in 230x1,25x1 20x1,40x1; do
    "$kilter" simulate $events --platform "$hosts@freeze(0.5s,100s);master=1;link=5us,1000GB/s" --tasks '60000@exp(1ms)' --json >out
    ! grep -Eq '"elapsed_s":[0-9]{2}' out || fail "the slow host waited for the stopped ones of $hosts: $(cat out)"
done

# --record and --gantt: kilter report can read the record, and a picture is drawn
"$kilter" simulate $events --platform "$p" --tasks "$t" --record a.kilter --iterations 2 >out
"$kilter" report a.kilter | grep -q 'kilter simulate' || fail "kilter report cannot read the record"
"$kilter" simulate $events --platform "$p" --tasks "$t" --policy gss,auto --record b.kilter >out
[ -s b-gss.kilter ] && [ -s b-auto.kilter ] || fail "kilter simulate did not write a record for each policy: $(ls)"
"$kilter" simulate $events --platform "$p" --tasks "$t" --gantt c.svg >out
grep -q '</svg>' c.svg || fail "kilter simulate --gantt drew no picture"
"$kilter" simulate $events --platform "$p" --tasks "$t" --record d.kilter --gantt d.svg >out
[ -s d.kilter ] && [ -s d.svg ] || fail "kilter simulate did not write both record and picture"

# peers: a row for each policy; the same output again; every task counted once although some peers die
peers='--organise peers'
"$kilter" simulate $peers --platform "$p;cluster=8,1ms" --tasks "$t" --policy all >one
for policy in help sos sos-half steal; do
    grep -q "^$policy " one || fail "the table of peers lacks a row for $policy: $(cat one)"
done
"$kilter" simulate $peers --platform "$p;cluster=8,1ms" --tasks "$t" --policy all >two
diff one two >&2 || fail "the second simulation of peers printed other output than the first"
"$kilter" simulate $peers --platform '9x1,4x1@die(10ms,60ms),4x1@join(20ms)' --tasks "$t" --between-tasks --json >out
grep -q '"counted":2000,"counted_again":0' out || fail "tasks were lost or counted twice: $(cat out)"
grep -q '"deaths":4' out || fail "not all four peers died: $(cat out)"
"$kilter" simulate $peers --platform "$p" --tasks "$t" --message-s 0 --json | grep -q '"message_s":0,' || fail "--message-s 0 has no effect"

# --write-platform writes a platform for SimGrid
"$kilter" simulate --platform "$p" --write-platform - >platform.xml
[ "$(grep -c '<host ' platform.xml)" = 16 ] || fail "the platform for SimGrid does not have 16 hosts"

# refused command lines
refuses 2 "unknown option '--frob'" --frob
refuses 2 "unknown argument 'frob'" frob
refuses 2 "--tasks wants a value" --tasks
refuses 2 "--seed is given twice: '1' and '2'" --platform "$p" --tasks "$t" --seed 1 --seed 2
refuses 2 "--gantt -: the standard output" --platform "$p" --tasks "$t" --gantt -
refuses 2 "--record -: the standard output" --platform "$p" --tasks "$t" --record -
refuses 2 "--policy has no effect without --tasks" --platform "$p" --write-platform - --policy auto
refuses 2 "--platform is missing; give a SPEC" --tasks "$t"
refuses 2 "--tasks is missing; give a SPEC" --platform "$p"
refuses 2 "--platform: platform '4x1@osc(1s)', column 11: ',' must follow the period" --platform '4x1@osc(1s)' --tasks "$t"
refuses 2 "--platform: platform '20000000x1', column 1: the number of hosts must be from 1 to 10000000" \
    --platform 20000000x1 --tasks "$t"
refuses 2 "--tasks: tasks '5@const(1)', column 10: the mean needs a unit" --platform "$p" --tasks '5@const(1)'
refuses 2 "--organise: 'dice'" --platform "$p" --tasks "$t" --organise dice
refuses 2 "2000000 hosts; give at most 1048576 for peers" --platform 2000000x1 --tasks "$t" $peers
refuses 2 "peers have no policy 'auto'" --platform "$p" --tasks "$t" $peers --policy help,auto
refuses 2 "--policy: 'sos' is in the list twice" --platform "$p" --tasks "$t" $peers --policy all,sos
refuses 2 "--record and --organise peers cannot be combined" --platform "$p" --tasks "$t" $peers --record e.kilter
refuses 2 "--answer-s and --organise peers cannot be combined" --platform "$p" --tasks "$t" $peers --answer-s 1
refuses 2 "--message-s has no effect without --organise" --platform "$p" --tasks "$t" --message-s 1
refuses 2 "join(), die() and cluster= need --organise peers" --platform '2x1,2x1@join(1s)' --tasks "$t"
refuses 2 "join(), die() and cluster= need --organise peers" --platform '2x1,2x1@die(1s,2s)' --write-platform -
refuses 2 "no peer is present at the start" --platform '2x1@join(1s)' --tasks "$t" $peers
refuses 1 "peer 0, the root, died at 0.01 s: " --platform '4x1@die(10ms,10ms)' --tasks "$t" $peers
refuses 2 "there is no policy 'best'" --platform "$p" --tasks "$t" --policy auto,best
refuses 2 "there is no policy ''" --platform "$p" --tasks "$t" --policy auto,
refuses 2 "--policy: 'auto' is in the list twice" --platform "$p" --tasks "$t" --policy all,auto
refuses 2 "--engine: 'dice'" --platform "$p" --tasks "$t" --engine dice
refuses 2 "does not read SimGrid's files" --platform platform.xml --tasks "$t" --engine events
refuses 2 "--platform '$PWD': Is a directory" --platform "$PWD" --tasks "$t"
refuses 2 "--platform 'no.xml': No such file" --platform no.xml --tasks "$t"
refuses 2 "--iterations: '0' is not a whole number from 1 to 100000" --platform "$p" --tasks "$t" --iterations 0
refuses 2 "--iterations: '-1' is not a whole number" --platform "$p" --tasks "$t" --iterations -1
refuses 2 "--seed: 'x' is not a whole number" --platform "$p" --tasks "$t" --seed x
refuses 2 "--answer-s: '-1' is not a number of seconds from 0 to 1000" --platform "$p" --tasks "$t" --answer-s -1
refuses 2 "--byte-s: '-1' is not a number of seconds from 0 to 1000" --platform "$p" --tasks "$t" --byte-s -1
refuses 2 "--answer-s: 'nan' is not a number of seconds" --platform "$p" --tasks "$t" --answer-s nan
refuses 2 "--task-bytes: '1e3' is not a whole number" --platform "$p" --tasks "$t" --task-bytes 1e3
refuses 2 "--gantt draws the run of one policy; 2 policies were given" --platform "$p" --tasks "$t" --policy gss,auto --gantt e.svg
refuses 2 "a.kilter exists" $events --platform "$p" --tasks "$t" --record a.kilter
refuses 1 "writing 'no/e.svg'" $events --platform "$p" --tasks "$t" --gantt no/e.svg
refuses 1 "writing 'no/e.xml'" --platform "$p" --write-platform no/e.xml
"$kilter" simulate $events --platform "$p" --tasks "$t" >/dev/full 2>err && fail "kilter simulate ends with exit code 0 although its output could not be written"
grep -q "No space left" err || fail "unexpected error on a full disk: $(cat err)"
