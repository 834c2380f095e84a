#!/usr/bin/env bash
# Test faults of a farm in a cluster: in each case every result is right and arrives once. Run this on the head:
#   box 3 scenario.sh NAME
# No step waits for a fixed time: workers hold their tasks until the fault has happened.
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

hold() { # HOST…: keep the next task of these hosts from ending before let_go
    touch "${@/#/$BOX/hold/}"
}

let_go() { # HOST…
    rm -f "${@/#/$BOX/hold/}"
}

at_work() { # HOST: test whether the host has a task
    [ -e "$BOX/at-work/$1" ]
}

is_lost() { # HOST: test whether the master reports the host as lost
    grep -q "on $1) " "$BOX/master.err"
}

told() { # COUNT: test whether this number of results has arrived
    grep -qx "results $1" "$BOX/master.out"
}

# Start a farm of three workers that all have a task.
start_three() { # OPTION…
    hold h1 h2 h3
    start_master --workers 3 "$@"
    for host in h1 h2 h3; do start_worker $host "$@"; done
    for host in h1 h2 h3; do until_so at_work $host; done
}

all_right() { # HOST…: check that the master and the workers on these hosts end without an error
    local status=0 host
    wait $master || status=$?
    grep '^{' "$BOX/master.out" || :
    [ $status = 0 ] || fail "the master's exit code is $status"
    for host in "$@"; do
        status=0
        wait "${workers[$host]}" || status=$?
        [ $status = 0 ] || fail "exit code $status of the worker on $host"
    done
}

well() {
    start_three
    let_go h1 h2 h3
    all_right h1 h2 h3
}

power() { # h2 is switched off; a worker whose task takes longer than --lost-after does not count as lost
    start_three --lost-after 3
    act h2 kill power
    until_so is_lost h2
    ! is_lost h1 && ! is_lost h3 || fail "a worker in a long task counts as lost: $(cat "$BOX/master.err")"
    let_go h1 h3
    all_right h1 h3
}

killed() { # all processes of h2 are killed, which closes the worker's connection
    start_three
    act h2 kill processes
    until_so is_lost h2
    let_go h1 h3
    all_right h1 h3
}

cut() { # the link of a host is cut for longer than --lost-after: the worker loses its tasks and may join again
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

blink() { # the link is cut for less than --lost-after, so no worker counts as lost
    start_three --lost-after 60
    act h2 link down
    act h3 freeze on
    let_go h1 h2
    act h2 link up
    act h3 freeze off
    let_go h3
    all_right h1 h2 h3
    ! is_lost h2 && ! is_lost h3 || fail "a worker counts as lost: $(cat "$BOX/master.err")"
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

leaves() { # a worker ends by SIGTERM, in the middle of a task
    start_three
    on h2 pkill -TERM -x cluster-farm
    let_go h2
    wait "${workers[h2]}" || fail "exit code $? of the worker that should leave"
    let_go h1 h3
    all_right h1 h3
}

master() { # the master dies, and is started again with the same command
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

site() { # two hosts have slow links: 5 ms and 1 MB/s
    act h2 link set 5000 1000000 0
    act h3 link set 5000 1000000 0
    well
}

lossy() { # the links lose one frame in twenty
    for host in h1 h2 h3; do act $host link set 1000 0 50; done
    well
}

# --- runs that the workers organise as peers ---

peers_cut() { # the network splits: h2 has a task and its share of the others, but cannot reach any host until the run has ended
    start_three --organise peers --lost-after 1
    act h2 link down
    until_so is_lost h2
    let_go h1 h3
    all_right h1 h3
}

peers_apart() { # h1 and h2 do not reach each other; both reach the head and h3
    start_three --organise peers --lost-after 1
    local other
    other=$(on h2 hostname -I)
    on h1 ip route add blackhole "${other%% *}"
    ! on h1 ping -q -c 1 -W 1 "${other%% *}" >/dev/null 2>&1 || fail "h1 still reaches h2"
    let_go h1 h2 h3
    all_right h1 h2 h3
}

peers_two() { # two of three peers die at once
    start_three --organise peers
    act h2 kill processes
    act h3 kill processes
    until_so is_lost h2
    until_so is_lost h3
    let_go h1
    all_right h1
}

peers_census() { # h2 dies; h3 is stopped and dies before it can answer the census that follows
    start_three --organise peers
    act h3 freeze on
    act h2 kill processes
    until_so is_lost h2
    act h3 kill processes
    until_so is_lost h3
    let_go h1
    all_right h1
}

poison() { # task 17 kills its worker
    words+=(poison=17)
    start_master --workers 3 --attempts 2
    for host in h1 h2 h3; do start_worker $host; done
    ! wait $master || fail "a task failed, but the master's exit code is 0"
    grep '^{.*"right":299,"wrong":0,"twice":0,"missing":0,"failed":1,' "$BOX/master.out" || fail "$(cat "$BOX/master.out")"
}

"$1"
