#!/usr/bin/env bash
# Run farms whose workers are peers on six hosts, and kill workers at random. Check that every result is right and arrives once. Run this script on
# the head of a box with hosts h1 to h6, whose speeds may differ:
#   box HOSTFILE|6 peers_kills.sh COUNT [FIRST-SEED]
# The script prints how many of the COUNT runs were right. Exit 1: not all were right. A run's seed chooses one to four of the six workers. For
# each of these, the seed also chooses the number of results after which the worker is killed. Two workers may die at once.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
count=$1 first=${2:-1} right=0
endpoint=tcp://10.77.0.254:7777
words=(tasks=300 task_s=0.005 result_bytes=2000 tell=10)
hosts=(h1 h2 h3 h4 h5 h6)
declare -A workers

choose() { # SEED: print lines RESULTS HOST, in the order of the kills
    awk -v seed="$1" 'BEGIN {
        srand(seed); kills = 1 + int(4 * rand())
        for (i = 1; i <= 6; i++) host[i] = "h" i
        for (i = 1; i <= kills; i++) {
            j = i + int((7 - i) * rand()); t = host[i]; host[i] = host[j]; host[j] = t
            at = i > 1 && rand() < 0.2 ? at : 10 + 10 * int(24 * rand())
            print at, host[i] } }' | sort -n
}

told() { # told COUNT: succeed if this number of results has arrived, or the run is over
    grep -qx "results $1" "$BOX/master.out" || ! kill -0 "$master" 2>/dev/null
}

# A host carries out a kill with some delay. So wait until the worker has ended: otherwise a late kill would end the worker of the next run.
kill_worker() { # HOST
    ! kill -0 "$master" 2>/dev/null || act "$1" kill processes
    wait "${workers[$1]}"
}

run() { # SEED
    local results host status=0
    cluster-farm "${words[@]}" --listen $endpoint --workers 6 --organise peers >"$BOX/master.out" 2>"$BOX/master.err" &
    master=$!
    until_so grep -q -- "--join" "$BOX/master.err"
    for host in "${hosts[@]}"; do
        (on "$host" cluster-farm "${words[@]}" --join $endpoint --organise peers || :) >/dev/null 2>&1 & # a subshell, so that the shell prints no message when the worker is killed
        workers[$host]=$!
    done
    choose "$1" >"$BOX/kills"
    while read -r results host; do
        until_so told "$results"
        kill_worker "$host"
    done <"$BOX/kills"
    wait $master || status=$?
    [ $status = 0 ] && grep -q '^{.*"right":300,"wrong":0,"twice":0,"missing":0,"failed":0,' "$BOX/master.out"
}

finish_up() {
    local status=$?
    [ $status = 0 ] || { echo "seed $seed:"; cat "$BOX/kills" "$BOX/master.err"; tail -n 3 "$BOX/master.out"; } >&2
}
trap finish_up EXIT
for ((seed = first; seed < first + count; seed++)); do
    if run "$seed"; then right=$((right + 1)); else echo "seed $seed: $(tail -n 3 "$BOX/master.err" "$BOX/master.out")" >&2; fi
    wait
done
echo "$right of $count"
[ "$right" = "$count" ]
