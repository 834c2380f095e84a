#!/bin/sh
# kilter-sp solve --basket, on farms: the same bits for any workers, policy, transport and loss, the cost of one
# candidate at a time, and what goes wrong is said.   usage: basket_test.sh KILTER-SP PROBLEMS [MPIEXEC]
set -u
sp=$1
lands=$2/lands
supply=$2/supply
mpiexec=${3:-}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0

complain() {
    echo "FAILED: $*"
    failed=1
}

solve() {
    timeout 60 "$@" solve "$supply/supply.cor" "$supply/supply.tim" "$supply/supply.sto" --scenarios 300 --seed 5 \
        --check 0 --clusters 40 --json --basket 3
}

# What must not depend on workers.
answer() {
    sed -n 's/.*"cost_bits": "\([^"]*\)".*"candidates": \([0-9]*\).*\(.decision.*\]\).*/\1 \2 \3/p' "$work/out"
}

cost() {
    sed -n 's/.*"cost": \([^,]*\),.*/\1/p' "$work/out"
}

# same WORDS…: the command's answer is the first one's
same() {
    if ! "$@" >"$work/out" 2>"$work/err"; then
        complain "$* says $(cat "$work/err")"
    elif [ "$(answer)" != "$expected" ]; then
        complain "$* gives $(answer), expected $expected"
    fi
}

solve "$sp" --workers 1 --record none >"$work/out" || complain "a plain basket"
expected=$(answer)
basket_cost=$(cost)
[ -n "$expected" ] || complain "no bits in $(cat "$work/out")"
for workers in 2 3 5; do
    same solve "$sp" --record none --workers $workers
done
for policy in ss ect auto static; do
    same solve "$sp" --record none --workers 3 --policy $policy
done
same solve "$sp" --record none --workers 3 --transport inproc
if [ -n "$mpiexec" ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    flags=
    if "$mpiexec" --version 2>&1 | grep -q 'Open MPI\|OpenRTE'; then
        flags='--oversubscribe --bind-to none'
    fi
    # shellcheck disable=SC2086 # $flags is a list
    same solve "$mpiexec" $flags -n 3 "$sp" --record none
fi

# One candidate at a time, and cuts as they come, end at the same cost.
for more in "--basket=1" "--basket=3 --mode fast"; do
    # shellcheck disable=SC2086 # $more is a list
    timeout 60 "$sp" solve "$supply/supply.cor" "$supply/supply.tim" "$supply/supply.sto" --scenarios 300 --seed 5 \
        --check 0 --clusters 40 --json --workers 3 --record none $more >"$work/out" || complain "solve $more"
    echo "$basket_cost $(cost)" | awk '{ exit !(($1-$2)^2 <= 1e-11*$1*$1) }' ||
        complain "$more costs $(cost), not $basket_cost"
done

# A master that was killed is followed by another; then a worker is killed.
mode=
lands_solve() {
    # shellcheck disable=SC2086 # $mode is a list
    "$@" solve "$lands/lands.cor" "$lands/lands.tim" "$lands/lands.sto" --scenarios 20000 --check 0 --json --workers 2 \
        --basket 2 $mode
}
lands_solve "$sp" --record none >"$work/out" || complain "a basket of lands"
expected=$(answer)
basket_cost=$(cost)
# killed_after BYTES WORDS…: when so much is stored
killed_after() {
    bytes=$1
    shift
    rm -f "$work/resume"*
    lands_solve exec "$@" --resume "$work/resume" >"$work/out" 2>"$work/err" &
    master=$!
    until [ -s "$work/resume-wal" ] && [ "$(wc -c <"$work/resume-wal")" -gt "$bytes" ] || ! kill -0 $master 2>/dev/null; do
        :
    done
    kill -9 $master 2>/dev/null
    wait $master 2>/dev/null
}
for bytes in 30000 120000 300000; do
    killed_after $bytes "$sp"
    same lands_solve "$sp" --resume "$work/resume"
done
mode="--mode fast"
killed_after 100000 "$sp"
lands_solve "$sp" --resume "$work/resume" >"$work/out" || complain "a killed basket in fast mode"
echo "$basket_cost $(cost)" | awk '{ exit !(($1-$2)^2 <= 1e-11*$1*$1) }' ||
    complain "a killed basket in fast mode costs $(cost), not $basket_cost"
mode=
lands_solve exec "$sp" --record none >"$work/out" 2>"$work/err" &
master=$!
killed=
while [ -z "$killed" ] && kill -0 $master 2>/dev/null; do
    for nursery in $(cat /proc/$master/task/$master/children 2>/dev/null); do
        for worker in $(cat "/proc/$nursery/task/$nursery/children" 2>/dev/null); do
            [ -n "$killed" ] || ! kill -9 "$worker" 2>/dev/null || killed=$worker
        done
    done
done
wait $master || complain "without worker ${killed:-(none)}: $(cat "$work/err")"
[ -n "$killed" ] || complain "no worker to kill"
[ "$(answer)" = "$expected" ] || complain "without a worker: $(answer), expected $expected"

# refused CODE TEXT WORDS…: the command ends with the code, and its text on stderr
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
refused 1 "the problem is infeasible: no decision lets every scenario be met" "$sp" solve "$work/small.cor" \
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
