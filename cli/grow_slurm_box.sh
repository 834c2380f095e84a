#!/usr/bin/env bash
# Test a farm whose workers are jobs, under a real Slurm with four nodes on this machine.
# usage: grow_slurm_box.sh KILTER FARM     exit 77: root, namespaces, slurm-wlm or munge are missing
set -eu
. "$(dirname "$0")/farm_test.sh"
. "$here/slurm_box.sh"
fail() {
    echo "FAILED: $*" >&2
    cat run.err run.out jobs/output >&2 2>/dev/null || :
    tail -n 5 "$place"/log.* >&2 2>/dev/null || :
    exit 1
}
record=$place/farm.kilter
stop=$place/stop
begin() { # OPTION…
    : >"$stop.hold"
    "$kilter" run --slurm "-N 1 --exclusive -t 10" --folder jobs --listen 127.0.0.1 "$@" -- \
        "$farm" "$stop" --team all --record "$record" >>run.out 2>>run.err &
    pid=$!
    children="$children $pid"
}
says() { grep -q -- "$1" run.err; }
jobs_are() { [ "$(squeue -h -o %i | wc -l)" = "$1" ]; }
on_host() { "$kilter" report --json "$record" | tr ',{' '\n\n' | grep -c "\"host\":\"$1\""; }

# jobs are submitted as long as there are tasks; each job has two workers on its node
begin --jobs 2
until_so shows "^workers  *4 at work"
jobs_are 2 || fail "the farm does not have two jobs: $(squeue)"
first=$(squeue -h -o %N | sort | head -n 1)

# the workers of a drained node leave the farm, and another node gets a job
rm "$stop.hold" # the workers finish their tasks
"$kilter" drain "$record" --host "$first" >/dev/null
until_so says "$first gets no more workers: its workers were sent home"
: >"$stop.hold"
until_so shows "^workers  *4 at work"
! squeue -h -o %N | grep -qx "$first" || fail "there is a job on the drained node: $(squeue)"

# the tasks end, and so does the farm
rm "$stop.hold"
: >"$stop"
wait $pid || fail "the farm on the nodes of Slurm failed"
until_so jobs_are 0
until_so idle 4
"$kilter" report "$record" >report.out
grep -q "$first gets no more workers" report.out || fail "kilter report does not have the decision about the drained node: $(cat report.out)"
rm "$stop"

# the command is killed: its jobs end with the master
record=$place/second.kilter
begin --jobs 2
until_so shows "^workers  *4 at work"
kill -9 $pid
wait $pid 2>/dev/null || :
rm "$stop.hold" # the workers finish their tasks, and find no master
until_so jobs_are 0
until_so idle 4

# the command gets SIGTERM: it cancels all jobs
record=$place/third.kilter
begin --jobs 2
until_so shows "^workers  *4 at work"
kill -TERM $pid
rm "$stop.hold"
wait $pid && fail "the command got SIGTERM and ended with exit code 0"
until_so jobs_are 0
until_so idle 4
