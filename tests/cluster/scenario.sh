#!/usr/bin/env bash
# Test faults of a farm in a cluster: in each scenario every result must be right and arrive once. Run this script on the head of the
# box:
#   box 3 scenario.sh NAME
# No scenario waits for a fixed time: workers do not finish their tasks until the fault has happened.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

endpoint=tcp://10.77.0.254:7777
words=(tasks=300 task_s=0.002 shared_bytes=100000 result_bytes=2000 "marks=$BOX/at-work" "hold=$BOX/hold" tell=10)
declare -A workers
mkdir "$BOX/at-work" "$BOX/hold"

finish_up() {
    local status=$?
    [ $status = 0 ] || tail -n 20 "$BOX"/master.* "$BOX"/h*/worker.err >&2
}
trap finish_up EXIT

start_master() { # OPTION…
    cluster-farm "${words[@]}" --listen $endpoint "$@" >"$BOX/master.out" 2>>"$BOX/master.err" &
    master=$!
    until_so grep -q -- "--join" "$BOX/master.err"
}

start_worker() { # HOST OPTION…
    on "$1" cluster-farm "${words[@]}" --join $endpoint "${@:2}" 2>"$BOX/$1/worker.err" &
    workers[$1]=$!
}

hold() { # hold HOST…: workers on these hosts do not finish their next task before let_go is called
    touch "${@/#/$BOX/hold/}"
}

let_go() { # HOST…
    rm -f "${@/#/$BOX/hold/}"
}

at_work() { # at_work HOST: succeed if the host has a task
    [ -e "$BOX/at-work/$1" ]
}

is_lost() { # is_lost HOST: succeed if the master reports the host as lost
    grep -q "on $1) " "$BOX/master.err"
}

told() { # told COUNT: succeed if this number of results has arrived
    grep -qx "results $1" "$BOX/master.out"
}

# start_three: start a farm of three workers, and wait until each worker has a task
start_three() { # OPTION…
    hold h1 h2 h3
    start_master --workers 3 "$@"
    for host in h1 h2 h3; do start_worker $host "$@"; done
    for host in h1 h2 h3; do until_so at_work $host; done
}

all_right() { # all_right HOST…: fail unless the master and the workers on these hosts end without an error
    local status=0 host
    wait $master || status=$?
    grep '^{' "$BOX/master.out" || :
    [ $status = 0 ] || fail "the master ended with exit code $status"
    for host in "$@"; do
        status=0
        wait "${workers[$host]}" || status=$?
        [ $status = 0 ] || fail "the worker on $host ended with exit code $status"
    done
}

well() {
    start_three
    let_go h1 h2 h3
    all_right h1 h2 h3
}

power() { # scenario power: h2 is switched off; a worker whose task takes longer than --lost-after does not count as lost
    start_three --lost-after 3
    act h2 kill power
    until_so is_lost h2
    ! is_lost h1 && ! is_lost h3 || fail "a worker counts as lost although it only does a long task: $(cat "$BOX/master.err")"
    let_go h1 h3
    all_right h1 h3
}

killed() { # scenario killed: all processes of h2 are killed, which closes the worker's connection
    start_three
    act h2 kill processes
    until_so is_lost h2
    let_go h1 h3
    all_right h1 h3
}

cut() { # scenario cut: the link of h2 is cut for longer than --lost-after; the worker loses its task and joins again
    start_three --lost-after 1
    act h2 link down
    until_so is_lost h2
    rm "$BOX/at-work/h2"
    let_go h2
    act h2 link up
    until_so at_work h2
    let_go h1 h3
    all_right h1 h2 h3
}

frozen() {
    start_three --lost-after 1
    act h2 freeze on
    until_so is_lost h2
    rm "$BOX/at-work/h2"
    let_go h2
    act h2 freeze off
    until_so at_work h2
    let_go h1 h3
    all_right h1 h2 h3
}

blink() { # scenario blink: the link is cut for less than --lost-after, so no worker counts as lost
    start_three --lost-after 60
    act h2 link down
    act h3 freeze on
    let_go h1 h2
    act h2 link up
    act h3 freeze off
    let_go h3
    all_right h1 h2 h3
    ! is_lost h2 && ! is_lost h3 || fail "a worker counts as lost after a short cut: $(cat "$BOX/master.err")"
}

slowed() {
    start_three
    act h2 speed 10
    let_go h1 h2 h3
    all_right h1 h2 h3
}

joins() {
    hold h1
    start_master
    start_worker h1
    until_so at_work h1
    start_worker h2
    until_so at_work h2
    let_go h1
    all_right h1 h2
}

leaves() { # scenario leaves: a worker ends by SIGTERM, in the middle of a task
    start_three
    on h2 pkill -TERM -x cluster-farm
    let_go h2
    wait "${workers[h2]}" || fail "the worker that got SIGTERM ended with exit code $?"
    let_go h1 h3
    all_right h1 h3
}

master() { # scenario master: the master is killed, and started again with the same command
    words+=(hold_from=150)
    hold h1 h2 h3
    start_master --workers 3 --resume "$BOX/results.kilter"
    for host in h1 h2 h3; do start_worker $host; done
    until_so told 100
    kill -KILL $master
    wait $master || :
    let_go h1 h2 h3
    start_master --workers 3 --resume "$BOX/results.kilter"
    all_right h1 h2 h3
}

site() { # scenario site: two hosts have slow links with 5 ms and 1 MB/s
    act h2 link set 5000 1000000 0
    act h3 link set 5000 1000000 0
    well
}

lossy() { # scenario lossy: all links lose one frame in twenty
    for host in h1 h2 h3; do act $host link set 1000 0 50; done
    well
}

# --- runs with --organise peers, in which workers give tasks to each other ---

peers_cut() { # scenario peers_cut: the network splits; h2 has tasks, but cannot reach any host until the run has ended
    start_three --organise peers --lost-after 1
    act h2 link down
    until_so is_lost h2
    let_go h1 h3
    all_right h1 h3
}

peers_apart() { # scenario peers_apart: h1 and h2 cannot reach each other, but both reach the head and h3
    start_three --organise peers --lost-after 1
    local other
    other=$(on h2 hostname -I)
    on h1 ip route add blackhole "${other%% *}"
    ! on h1 ping -q -c 1 -W 1 "${other%% *}" >/dev/null 2>&1 || fail "h1 reaches h2 although their connection was blocked"
    let_go h1 h2 h3
    all_right h1 h2 h3
}

peers_two() { # scenario peers_two: two of three peers are killed at the same time
    start_three --organise peers
    act h2 kill processes
    act h3 kill processes
    until_so is_lost h2
    until_so is_lost h3
    let_go h1
    all_right h1
}

peers_census() { # scenario peers_census: h2 is killed; h3 is stopped first, and killed before it can answer the question who is alive (census) that follows the death of h2
    start_three --organise peers
    act h3 freeze on
    act h2 kill processes
    until_so is_lost h2
    act h3 kill processes
    until_so is_lost h3
    let_go h1
    all_right h1
}

poison() { # scenario poison: task 17 kills its worker
    words+=(poison=17)
    start_master --workers 3 --attempts 2
    for host in h1 h2 h3; do start_worker $host; done
    ! wait $master || fail "a task failed, but the master ended with exit code 0"
    grep '^{.*"right":299,"wrong":0,"twice":0,"missing":0,"failed":1,' "$BOX/master.out" || fail "$(cat "$BOX/master.out")"
}

"$1"
