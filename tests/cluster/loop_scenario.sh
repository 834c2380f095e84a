#!/usr/bin/env bash
# Test faults of a loop over ranks on two hosts of the box. Run this script on the box's head, as root:
#   box 2 loop_scenario.sh NAME
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[ "$(id -u)" = 0 ] || { echo "skipped: only root can give hosts different speeds" >&2; exit 77; }
mpirun --version 2>/dev/null | grep -q 'Open MPI' || { echo "skipped: there is no mpirun of Open MPI" >&2; exit 77; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

finish_up() {
    local status=$?
    [ $status = 0 ] || tail -n 20 "$BOX"/mpirun.* "$BOX"/said.* >&2
}
trap finish_up EXIT

# Start ranks 0 and 1 on h1 and rank 2 on h2. OPTION is an option of mpirun.
start_loop() { # EXECUTIONS ITERATION_S OPTION…
    mpirun --mca plm_rsh_agent on_shell --mca oob_tcp_if_include 10.77.0.0/24 --mca btl_tcp_if_include 10.77.0.0/24 \
        --mca btl self,vader,tcp --mca pml ob1 --bind-to none --oversubscribe "${@:3}" -host h1:2,h2:1 -n 3 \
        "$(command -v cluster-loop)" "$BOX" "$1" "$2" >"$BOX/mpirun.out" 2>"$BOX/mpirun.err" </dev/null &
    mpirun=$!
}

rows_of() { # RANK
    sed -n 's/^right: rows //p' "$BOX/said.$1"
}

says_dead() { # RANK OTHER
    grep -q "^failed: .*rank $2 is dead" "$BOX/said.$1"
}

slowed() { # scenario slowed: rows move away from a slow host
    act h2 speed 10
    start_loop 500 1e-4
    wait $mpirun || fail "mpirun ended with exit code $?"
    echo "rows: $(rows_of 0) $(rows_of 1) $(rows_of 2)"
    # the other two ranks share their rows in any way, because other programs may use one of their cores
    [ $((6 * $(rows_of 2))) -lt $(($(rows_of 0) + $(rows_of 1) + $(rows_of 2))) ] ||
        fail "the slow host has half of an equal share or more: $(rows_of 0) $(rows_of 1) $(rows_of 2)"
}

lose() { # lose ACTION…: start a loop, and carry out the action on host h2
    start_loop 100000 1e-4 --enable-recovery
    until_so [ -e "$BOX/at-work" ]
    act h2 "$@"
}

ended() { # HOST
    ! on "$1" pgrep -x cluster-loop
}

# Scenario killed: all processes of h2 are killed. If Open MPI notices the death before Kilter does, Open MPI ends the ranks that sent to the dead
# rank over TCP.
killed() {
    lose kill processes
    until_so ended h1
    says_dead 0 2 || says_dead 1 2 || grep -q 'peer hung up\|TCP connect to a peer' "$BOX/mpirun.err" ||
        fail "no rank reports the dead rank"
    cat "$BOX"/said.[01]
}

cut() { # scenario cut: the link of h2 is cut, so that h2 is silent
    lose link down
    until_so says_dead 0 2
    until_so says_dead 1 2
    until_so ended h1
    cat "$BOX"/said.[01]
}

"$1"
