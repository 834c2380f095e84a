#!/usr/bin/env bash
# kilter-sp solve --basket must give the same bits for any number of workers, policy and transport, even if workers die. The cost must be the same as
# with one candidate at a time, and error messages must be clear.
# usage: basket_test.sh KILTER-SP PROBLEMS [MPIEXEC]
set -u
# shellcheck source=apps/sp/test_support.sh
. "$(dirname "$0")/test_support.sh"

solve() {
    timeout 60 "$@" solve "$supply/supply.cor" "$supply/supply.tim" "$supply/supply.sto" --scenarios 300 --seed 5 \
        --check 0 --clusters 40 --json --basket 3
}

solve "$sp" --workers 1 --record none >"$work/out" || complain "a basket without faults failed"
expect cost_bits candidates decision
basket_cost=$(cost)
for workers in 2 3 5; do
    same solve "$sp" --record none --workers $workers
done
for policy in ss ect auto static; do
    same solve "$sp" --record none --workers 3 --policy $policy
done
same solve "$sp" --record none --workers 3 --transport inproc
if [ -n "$ranks" ]; then
    # shellcheck disable=SC2086 # $ranks is a list
    same solve $ranks "$sp" --record none
fi

# One candidate at a time, and cuts taken in their order of arrival (fast mode), must give the same cost.
for more in "--basket=1" "--basket=3 --mode fast"; do
    # shellcheck disable=SC2086 # $more is a list
    timeout 60 "$sp" solve "$supply/supply.cor" "$supply/supply.tim" "$supply/supply.sto" --scenarios 300 --seed 5 \
        --check 0 --clusters 40 --json --workers 3 --record none $more >"$work/out" || complain "solve failed with $more"
    echo "$basket_cost $(cost)" | awk '{ exit !(($1-$2)^2 <= 1e-11*$1*$1) }' ||
        complain "$more costs $(cost), not $basket_cost"
done

# Kill the master and resume with another one; then kill a worker.
mode=
lands_solve() {
    # shellcheck disable=SC2086 # $mode is a list
    "$@" solve "$lands/lands.cor" "$lands/lands.tim" "$lands/lands.sto" --scenarios 20000 --check 0 --json --workers 2 \
        --basket 2 $mode
}

# start WORDS…: run the function lands_solve in the background, under a parent process that ends a solve that hangs
start() {
    lands_solve exec timeout 60 "$sp" "$@" >"$work/out" 2>"$work/err" &
    keeper=$!
    until master=$(children_of $keeper) && [ -n "$master" ] || ! runs $keeper; do
        :
    done
    master=${master% }
}

# killed_after BYTES: kill the master when it has stored this number of bytes; if the master ends before that, try again with fewer bytes
killed_after() {
    bytes=$1
    while [ "$bytes" -gt 0 ]; do
        rm -f "$work/resume"*
        start --resume "$work/resume"
        until_stored "$work/resume" "$bytes" "$master"
        kill -9 "$master" 2>/dev/null
        wait $keeper 2>/dev/null
        [ $? -ne 137 ] || return
        bytes=$((bytes / 2))
    done
    complain "the master always ended before it was killed: $(cat "$work/err")"
}

lands_solve timeout 60 "$sp" --record none >"$work/out" || complain "a basket on lands failed"
expect cost_bits candidates decision
basket_cost=$(cost)
for bytes in 30000 120000 300000; do
    killed_after $bytes
    same lands_solve timeout 60 "$sp" --resume "$work/resume"
done
mode="--mode fast"
killed_after 100000
lands_solve timeout 60 "$sp" --resume "$work/resume" >"$work/out" || complain "a basket with a killed worker failed in fast mode"
echo "$basket_cost $(cost)" | awk '{ exit !(($1-$2)^2 <= 1e-11*$1*$1) }' ||
    complain "with a killed worker in fast mode the cost is $(cost), not $basket_cost"
mode=
start --record none
kill_a_worker "$master"
wait $keeper || complain "the solve failed after a worker was killed: $(cat "$work/err")"
check "with a killed worker"

# refused CODE TEXT WORDS…: the command must exit with CODE and print TEXT on stderr
refused() {
    code=$1 text=$2
    shift 2
    timeout 60 "$@" --workers 2 --record none >"$work/out" 2>"$work/err"
    got=$?
    [ $got -eq "$code" ] || complain "$* ends with $got, expected $code"
    grep -qF -- "$text" "$work/err" || complain "$* says $(cat "$work/err"), expected $text"
}
refused 2 "--basket 0; give a whole number" "$sp" solve a b c --scenarios 5 --basket 0
refused 2 "or leave out --basket" "$sp" solve a b c --grow 5,50 --basket 2 --clusters auto
sed 's/SITE      20/SITE      9/' "$supply/supply.cor" >"$work/small.cor"
refused 1 "the problem is infeasible: no decision makes every scenario feasible" "$sp" solve "$work/small.cor" \
    "$supply/supply.tim" "$supply/supply.sto" --scenarios 100 --basket 2
sed '/RUN2      DEMAND/a\    GAIN      COST      -1' "$supply/supply.cor" >"$work/endless.cor"
printf 'BUILD1 8\nBUILD2 8\n' >"$work/enough.at"
(
    cd "$work" || exit 1
    refused 1 "; written to kilter-sp-scenario-0.mps" "$sp" solve endless.cor "$supply/supply.tim" \
        "$supply/supply.sto" --scenarios 10 --start enough.at --basket 2
    exit $failed
) || failed=1
exit $failed
