#!/usr/bin/env bash
# Test kilter run --slurm without --keep. Scripts replace Slurm's commands. All nodes are this machine; jobs on the node named bad end at once. Files
# tell the scripts what to do. usage: grow_slurm_test.sh KILTER FARM
set -eu
. "$(dirname "$0")/farm_test.sh"
fail() {
    echo "FAILED: $*" >&2
    cat run.err run.out folder/output jobs/*/state >&2 2>/dev/null || :
    exit 1
}
trap end_jobs EXIT

# --- refused command lines
expect 2 "--slurm and --host cannot be combined" "$kilter" run --slurm '-N 1' --host a -- true
expect 2 "--jobs" "$kilter" run --jobs 2 --host a -- true
expect 2 "--keep and --jobs cannot be combined" "$kilter" run --keep --slurm '-N 1' --jobs 2 -- true
expect 2 "--folder has no effect" "$kilter" run --folder f --host a -- true
mkdir none
for command in sh env; do ln -s "$(command -v $command)" none/$command; done
expect 2 "there is no sbatch" env PATH="$place/none" "$kilter" run --slurm '-N 1' -- true

# --- the scripts that replace Slurm's commands
mkdir bin jobs
export place
: >bad
cat >bin/sbatch <<'ENDBIN'
#!/bin/bash
cd "$place"
[ ! -e refused ] || { echo "sbatch: error: invalid partition specified: nowhere" >&2; exit 1; }
exclude=,
for word; do
    case $word in
    --output=*) output=${word#*=} ;;
    --exclude=*) exclude=,${word#*=}, ;;
    esac
done
id=$((100 + $(ls jobs | wc -l)))
mkdir jobs/$id
node=$(hostname -s)
[ ! -e bad ] || [[ $exclude = *,bad,* ]] || node=bad
echo $node >jobs/$id/node
if [ -e full ]; then
    echo PENDING >jobs/$id/state
elif [ $node = bad ]; then
    echo FAILED >jobs/$id/state
else
    echo RUNNING >jobs/$id/state
    SLURM_JOB_NUM_NODES=1 SLURM_CPUS_ON_NODE=1 setsid sh -c 'sh "$1"; echo COMPLETED >"$2"' sh "${@: -1}" jobs/$id/state >>"$output" 2>&1 <&- &
    echo $! >jobs/$id/pid
fi
echo "sbatch: lua: a note of the site" >&2
echo "$id;cluster"
ENDBIN
cat >bin/srun <<'ENDBIN'
#!/bin/bash
while [[ $1 = -* ]]; do shift; done
exec "$@"
ENDBIN
cat >bin/squeue <<'ENDBIN'
#!/bin/bash
cd "$place"
for id in $(tr , ' ' <<<"${@: -1}"); do
    read -r state <jobs/$id/state
    [ $state != PENDING ] || { echo "$id|PENDING|1:00:00|"; continue; }
    echo "$id|$state|1:00:00|$(cat jobs/$id/node)"
done
ENDBIN
cat >bin/scancel <<'ENDBIN'
#!/bin/bash
cd "$place"
signal=KILL
[[ $1 != --signal=* ]] || { signal=${1#*=} && shift; }
for id; do
    [ ! -s jobs/$id/pid ] || kill -$signal -- "-$(cat jobs/$id/pid)" 2>/dev/null || :
    [ $signal = TERM ] || echo CANCELLED >jobs/$id/state
done
ENDBIN
chmod +x bin/*
PATH=$place/bin:$PATH

begin() { # begin NAME OPTION…: start a farm whose tasks end when the file NAME.stop.hold is removed
    record=$place/$1.kilter
    stop=$place/$1.stop
    : >"$stop.hold"
    shift
    "$kilter" run --slurm "-t 60 -x old" --folder folder --listen 127.0.0.1 "$@" -- "$farm" "$stop" --team all --record "$record" \
        >run.out 2>run.err &
    pid=$!
    children="$children $pid"
}
says() { grep -q -- "$1" run.err; }
in_state() { [ "$(cat jobs/*/state | grep -c "$1")" = "$2" ]; }

# --- a bad node gets no jobs after two failures; the farm grows on other nodes up to its limit
begin grows --jobs 3
until_so shows "^workers  *3 at work"
says "bad gets no more workers: no worker joined from two jobs in a row" || fail "the bad node is not excluded"
in_state RUNNING 3 || fail "the farm does not have three running jobs"
[ "$(stat -c %a folder/key)" = 600 ] || fail "the file with the key is readable by other users"
: >"$stop"
rm "$stop.hold"
wait $pid || fail "the farm ended with exit code $?"
in_state RUNNING 0 || fail "jobs run although the farm has ended"
[ ! -e folder/key ] && [ ! -s folder/jobs ] || fail "the folder still has the key or a list of jobs after the end"
"$kilter" report "$record" >report.out
grep -q "exclude .*bad gets no more workers" report.out && grep -q "grow .*a job is submitted" report.out ||
    fail "the report does not have the decisions to exclude a node and to grow: $(cat report.out)"

# --- jobs that wait in the queue are cancelled when the command ends; if it was killed, the next command cancels them
rm bad
: >full
begin waits --jobs 2
until_so in_state PENDING 1
cancelled=$(cat jobs/*/state | grep -c CANCELLED || :) # jobs that the farm had already cancelled itself
kill -9 $pid
wait $pid 2>/dev/null || :
begin waits --jobs 2
until_so says "jobs of an earlier command are cancelled"
until_so in_state CANCELLED $((cancelled + 1))
until_so in_state PENDING 1
kill -TERM $pid
code=0
wait $pid || code=$?
[ $code != 0 ] && in_state PENDING 0 || fail "after SIGTERM, the exit code is $code, and jobs: $(cat jobs/*/state)"

# --- two commands cannot use the same folder
begin first
until_so in_state PENDING 1
expect 2 "another kilter run uses" "$kilter" run --slurm "-t 60" --folder folder -- "$farm" x
kill -TERM $pid
wait $pid || :

# --- Slurm refuses the options for sbatch
rm full
: >refused
begin refused
code=0
wait $pid || code=$?
[ $code != 0 ] && says "no more jobs are submitted: sbatch: error: invalid partition" && says "no job is left" ||
    fail "the command with refused options ended with exit code $code"
