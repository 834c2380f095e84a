#!/usr/bin/env bash
# Test kilter run --keep --slurm. Scripts replace Slurm's commands, and files tell the scripts what to do. The file `nodes` has a line NAME STATE
# [PARTITION] for each node. `limit` has the time limit of each job in seconds. A job's file `state` is what squeue prints. If `full` exists, sbatch
# refuses jobs. If `deaf` exists, sbatch accepts a job but reports an error. usage: keep_slurm_test.sh KILTER
set -eu
. "$(dirname "$0")/farm_test.sh"
solver=$here/keep_test_solver
fail() {
    echo "FAILED: $*" >&2
    cat kept.err kept.out >&2 2>/dev/null || :
    exit 1
}
trap end_jobs EXIT
unset KILTER_KEEP KILTER_CHECKPOINT KILTER_KEEP_ATTEMPT
mkdir bin jobs
export place
cat >bin/sbatch <<'ENDBIN'
#!/bin/bash
cd "$place"
number=1 output=/dev/null exclude=, all="$* "
while [ $# -gt 1 ]; do
    case $1 in
    -N) number=$2 && shift ;;
    --output=*) output=${1#*=} ;;
    --exclude=*) exclude=,${1#*=}, ;;
    --job-name=*) name=${1#*=} ;;
    esac
    shift
done
[ ! -e full ] || { echo "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy" >&2; exit 1; }
id=$((100 + $(ls jobs | wc -l)))
mkdir jobs/$id
echo "$all" >jobs/$id/options
echo "$name" >jobs/$id/name
setsid job $id "$number" "$exclude" "$1" >>"$output" 2>&1 <&- &
echo $! >jobs/$id/pid
if [ -e deaf ]; then
    rm deaf
    echo "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation" >&2
    exit 1
fi
echo "sbatch: warning: the site has rules" >&2
echo "12 nodes are down today"
echo "$id;cluster"
ENDBIN
cat >bin/job <<'ENDBIN'
#!/bin/bash
# Wait until enough nodes are idle, run the job's script there, and leave them.
id=$1 most=${2##*-} least=${2%%-*}
choose() {
    local node state partition chosen=()
    while read -r node state partition; do
        [ "$state" != idle ] || [ "$partition" = side ] || [[ $3 = *,$node,* ]] || [ ${#chosen[@]} -ge "$most" ] || chosen+=("$node")
    done <nodes
    [ ${#chosen[@]} -ge "$least" ] || return 1
    for node in "${chosen[@]}"; do sed -i "s/^$node .*/$node allocated/" nodes; done
    date +%s >jobs/$id/began
    printf '%s\n' "${chosen[@]}" >jobs/$id/nodes
}
cd "$place"
exec 8>nodes.lock
until flock 8 && choose "$@"; do
    flock -u 8
    sleep 0.1
done
flock -u 8
export SLURM_JOB_ID=$id NODES=$(paste -sd' ' jobs/$id/nodes)
trap '' USR1
(trap - USR1; exec bash "$4") 8>&- &
echo $! >jobs/$id/script
wait $!
leave $id
ENDBIN
cat >bin/leave <<'ENDBIN'
#!/bin/bash
cd "$place"
[ -s jobs/$1/nodes ] || exit 0
exec 8>nodes.lock
flock 8
while read -r node; do sed -i "s/^$node allocated/$node idle/" nodes; done <jobs/$1/nodes
ENDBIN
cat >bin/squeue <<'ENDBIN'
#!/bin/bash
cd "$place"
[ ! -e away ] || { echo "slurm_load_jobs error: Unable to contact slurm controller (connect failure)" >&2; exit 1; }
if [[ $4 = --name=* ]]; then
    for job in jobs/*; do
        [ "$(cat $job/name)" != "${4#*=}" ] || echo "${job#jobs/}"
    done
    exit 0
fi
id=$5
if ! kill -0 "$(cat jobs/$id/pid)" 2>/dev/null; then
    leave $id
    echo "slurm_load_jobs error: Invalid job id specified" >&2
    exit 1
fi
left=UNLIMITED state=RUNNING
[ ! -s jobs/$id/state ] || state=$(cat jobs/$id/state)
if [ ! -s jobs/$id/nodes ]; then
    echo "PENDING|10:00|main|"
else
    [ ! -e limit ] || left=0:$(printf %02d $(($(cat limit) + $(cat jobs/$id/began) - $(date +%s))))
    echo "$state|$left|main|$(paste -sd, jobs/$id/nodes)"
fi
ENDBIN
cat >bin/sinfo <<'ENDBIN'
#!/bin/bash
cd "$place"
while read -r node state partition; do echo "$node|$state|2|0.00|${partition:-main*}|(null)"; done <nodes
ENDBIN
cat >bin/scancel <<'ENDBIN'
#!/bin/bash
cd "$place"
if [ "$1" = --signal=KILL ]; then pkill -KILL -P "$(cat jobs/$2/script)"; else kill -KILL -- "-$(cat jobs/$1/pid)"; fi
ENDBIN
cat >bin/srun <<'ENDBIN'
#!/bin/bash
while [[ $1 = -* ]]; do
    [ "$1" != --mpi ] || shift
    shift
done
list=
for node in $NODES; do list+=${list:+,}$node:1; done
exec "$1" 0 "$list" "${@:2}"
ENDBIN
chmod +x bin/*
PATH=$place/bin:$PATH

nodes() { # nodes LINE…: write the lines into the file `nodes`, with a lock, because ending jobs write into this file, too
    printf '%s\n' "$@" | flock "$place/nodes.lock" tee "$place/nodes" >/dev/null
}
run() { # NAME SLURM-OPTIONS OPTION… -- ARGUMENT…
    name=$1
    slurm=$2
    shift 2
    options=()
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    nodes "n1 idle" "n2 idle" "n3 idle" "n4 idle"
    mkdir -p "$place/$name"
    cd "$place/$name"
    "$kilter" run --keep --slurm "$slurm" --folder keep --look 1 "${options[@]}" -- "$solver" "$@" >>kept.out 2>>kept.err &
    pid=$!
    children="$children $pid"
}
ends() {
    code=0
    wait $pid || code=$?
    [ $code = "$1" ] || fail "the command of run $name ended with exit code $code, not $1: $(cat kept.err)"
}
says() { grep -q -- "$1" "$place/$name/kept.err"; }
swept() { [ "$(sed -n 's/.*"sweeps":\([0-9]*\),.*/\1/p' keep/progress)" -ge "$1" ]; }
on() { [ "$(sed -n 's/^attempt .* on //p' kept.out | tail -n 1)" = "$1" ]; }
attempts() { grep -c "^attempt .* begins" kept.out; }

# --- a run with one job: the command prints the job's output
run plain "-N 2 -t 10" -- 20
ends 0
on n1:1,n2:1 || fail "the job did not run on the first two nodes: $(cat kept.out)"
grep -qx "result 20" kept.out || fail "the output of the job was not printed: $(cat kept.out)"
[ "$(attempts)" = 1 ] || fail "a job without failures has $(attempts) attempts"

# --- sbatch seems to fail although the job was accepted: the job is found by its name, and no second job is submitted
: >"$place/deaf"
run doubtful "-N 1 -J mine" -- 20
ends 0
grep -qx "result 20" kept.out && [ "$(attempts)" = 1 ] || fail "the job was not found: $(cat kept.out)"
grep -q "^mine-[0-9a-f]*-1$" "$place/jobs/101/name" || fail "the name of the job does not begin with the name that the user gave: $(cat "$place/jobs/101/name")"
[ "$(ls "$place/jobs")" = "100
101" ] || fail "a second job was submitted: $(ls "$place/jobs")"

# --- refused options: options of kilter run that have no effect under Slurm, and options of sbatch that Kilter cannot allow
for option in --hosts=x --ranks=2 --least=1 --pick=best --launcher=srun --mpirun=x --ssh=x; do
    expect 2 "--slurm and ${option%=*} cannot be combined" "$kilter" run --keep --slurm -N2 $option -- true
done
expect 2 "--slurm: --requeue cannot be used" "$kilter" run --keep --slurm "-N2 --requeue" --folder bad -- true
for command in sbatch squeue sinfo scancel; do # one command is missing
    rm -rf "$place/three"
    cp -r "$place/bin" "$place/three"
    rm "$place/three/$command"
    ln -s "$(command -v sh)" "$place/three/sh"
    expect 2 "--slurm: there is no sbatch, squeue, sinfo or scancel here" env PATH="$place/three" "$kilter" run --keep --slurm -N2 --folder bad -- true
done
expect 2 "--slurm: --exclude: './f' is not a list of hosts" "$kilter" run --keep --slurm "-x ./f" --folder bad -- true
[ ! -e bad ] || fail "a refused call made the run's folder"

# --- an attempt fails; then a job disappears together with its batch script
mkdir "$place/failing"
echo 3 >"$place/failing/die.12"
run failing "-N 2 -w n[1-2]" -- 100000
until_so says "attempt 2: .*after sweep 10"
until_so swept 15
kill -9 -- "-$(cat "$place/jobs/$(sed -n 's/^job //p' keep/state)/pid")"
until_so says "the program is gone, and its exit code is not known"
until_so says "attempt 3"
until_so swept 20
: >"$place/away" # Slurm's controller cannot be reached for a while: the run is not affected
reached=$(sed -n 's/.*"sweeps":\([0-9]*\),.*/\1/p' keep/progress)
until_so swept $((reached + 100))
[ "$(attempts)" = 3 ] || fail "a new attempt began because the controller could not be reached: $(cat kept.err)"
rm "$place/away"

# --- the administrator drains a node: the run leaves it; then kilter drain drains another node
state() { # NODE STATE
    flock "$place/nodes.lock" sed -i "s/^$1 .*/$1 $2/" "$place/nodes"
}
last_on() { sed -n 's/^attempt .* on //p' kept.out | tail -n 1; }
first=$(last_on)
first=${first%%:*}
state $first draining
until_so says "$first is taken away"
until_so says "attempt 4: .*after sweep"
until_so swept $((reached + 150))
[[ ,$(last_on) != *,$first:* ]] || fail "the run is on the node that was taken away"
newest=$place/jobs/$(ls "$place/jobs" | tail -n 1)/options
grep -q -- " --nodelist=n[12] --exclude=$first " "$newest" || fail "the job does not have the nodes of the user: $(cat "$newest")"
expect 2 "the queue chooses the hosts" "$kilter" move keep --to n2
second=$(last_on)
second=${second%%:*}
[ "$("$kilter" drain keep --host "$second")" = "the run leaves $second as soon as its state is saved" ] || fail "kilter drain prints a wrong answer"
state $first idle # otherwise too few nodes are free
until_so says "$second was drained"
until_so says "attempt 5: .*after sweep"
until_so grep -q "^attempt 5" kept.out
[[ ,$(last_on) != *,$second:* ]] || fail "the drained node was used again"
kill -TERM $pid
ends 143
grep -q -- "--exclude=[^ ]*$second" "$place/jobs/$(ls "$place/jobs" | tail -n 1)/options" || fail "the last job did not exclude the drained node"

# --- a job that Slurm queues again is cancelled, and a new job follows; an unknown state of a job changes nothing
run requeued "-N 1" -- 100000
until_so swept 12
job=$place/jobs/$(sed -n 's/^job //p' keep/state)
echo FORGOTTEN >"$job/state"
reached=$(sed -n 's/.*"sweeps":\([0-9]*\),.*/\1/p' keep/progress)
until_so swept $((reached + 60))
echo REQUEUED >"$job/state"
until_so says "Slurm has queued job ${job##*/} again: it is cancelled"
until_so says "attempt 2: .*after sweep"
until_so grep -q '"attempt":2,' keep/progress
kill -TERM $pid
ends 143

# --- the keeper is killed: the next keeper finds the job
run killed "-N 1" -- 100000
until_so swept 12
kill -9 $pid
wait $pid || :
expect 2 "is a job of Slurm, which may still run: give --slurm as before" \
    "$kilter" run --keep --launcher own --folder keep -- "$solver" 100000
run killed "-N 1" -- 100000
until_so says "which is still running"
until_so says "kilter run: going on"
reached=$(sed -n 's/.*"sweeps":\([0-9]*\),.*/\1/p' keep/progress)
until_so swept $((reached + 20))
[ "$(attempts)" = 1 ] || fail "the next keeper submitted the job again"
kill -TERM $pid
ends 143

# --- before the job's time limit, the program is saved, and the run continues in another job
echo 12 >"$place/limit"
run limited "-N 1" -- 100000
until_so says "the time limit is in .*: the run is saved"
until_so says "attempt 2: .*after sweep"
kill -TERM $pid
ends 143
! says "restart\|lost" || fail "reaching the time limit counted as a failure: $(cat kept.err)"

# --- without a keeper, the job itself asks the program to save before the time limit
rm "$place/limit"
run alone "-N 1" -- 100000
until_so swept 12
kill -9 $pid
kill -USR1 "$(cat "$place/jobs/$(sed -n 's/^job //p' keep/state)/script")"
until_so test -s keep/ended
run alone "-N 1" -- 100000
until_so says "attempt 2: .*after sweep"
! says "are lost" || fail "a job that lost its keeper lost sweeps: $(cat kept.err)"
kill -TERM $pid
ends 143

# --- more nodes become free, and the next job gets more nodes
run more "-N 1-3" -- 100000
until_so swept 3
kill -TERM $pid
ends 143
nodes "n1 idle" "n2 allocated" "n3 allocated" "n4 idle" "n5 idle side" # n4 is excluded
"$kilter" run --keep --slurm "-N 1-3 -x n4" --folder keep --look 1 -- "$solver" 100000 >>kept.out 2>>kept.err &
pid=$!
children="$children $pid"
until_so on n1:1
until_so swept 30
! says "hosts are free" || fail "nodes that other jobs use count as free: $(cat kept.err)"
state n2 idle
state n3 idle
until_so says "2 hosts are free: 3 instead of 1 hosts save"
until_so on n1:1,n2:1,n3:1
kill -TERM $pid
ends 143

# --- Slurm refuses the job
: >"$place/full"
run refused "-N 1" -- 20
ends 1
says "submitting a job: sbatch: error: Batch job submission failed" || fail "the command does not print why sbatch refused the job: $(cat kept.err)"
