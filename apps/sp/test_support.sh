# Functions for kilter-sp's tests of the command line. The tests source this file with their arguments: KILTER-SP PROBLEMS [MPIEXEC]
# shellcheck shell=bash disable=SC2034 # the tests use the variables
sp=$1
lands=$2/lands
supply=$2/supply
mill=$2/mill
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0

ranks= # words that start a command on three ranks; empty without MPI
if [ -n "${3:-}" ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    ranks="$3 -n 3"
    if "$3" --version 2>&1 | grep -q 'Open MPI\|OpenRTE'; then
        ranks="$3 --oversubscribe --bind-to none -n 3"
    fi
fi

complain() {
    echo "FAILED: $*"
    failed=1
}

# End the test if a command is missing. bash calls this function in a separate process, which cannot set the variable `failed` of the test.
command_not_found_handle() {
    echo "FAILED: $1: there is no such command" >&2
    kill $$
}

# Print the parts of the answer in $work/out that must not depend on the workers.
answer() {
    grep -o '"[a-z]*_bits": "[^"]*"\|"candidates": [0-9]*\|"decision": \[[^]]*\]' "$work/out"
}

# Print only the cost from the answer in $work/out.
cost() {
    sed -n 's/.*"cost": \([^,]*\),.*/\1/p' "$work/out"
}

# expect NAMES…: store the present answer, which must have the members NAMES; later, the function `check` compares other answers with it
expect() {
    expected=$(answer)
    for name; do
        case $expected in *"\"$name\""*) ;; *) complain "no $name in $(cat "$work/out")" ;; esac
    done
}

# check WORDS…: check that the last call gave the expected answer; WORDS name the call in messages
check() {
    [ "$(answer)" = "$expected" ] || complain "$* gives $(answer) $(cat "$work/err"), expected $expected"
}

# same WORDS…: run a command, which must give the expected answer
same() {
    if "$@" >"$work/out" 2>"$work/err"; then
        check "$@"
    else
        complain "$* says $(cat "$work/err")"
    fi
}

children_of() {
    cat "/proc/$1/task/$1/children" 2>/dev/null
}

# runs PID: succeed while the process runs; fail if it has ended, even if no process has waited for it yet
runs() {
    grep -q '^State:.[^XZ]' "/proc/$1/status" 2>/dev/null
}

# kill_a_worker MASTER: kill the first worker of a master; workers are children of the master's only child process
kill_a_worker() {
    while runs "$1"; do
        for supervisor in $(children_of "$1"); do
            for worker in $(children_of "$supervisor"); do
                kill -9 "$worker" 2>/dev/null && return
            done
        done
    done
    complain "no worker to kill"
}

# Print the number of bytes that --resume FILE has stored; this number only grows while a master lives.
stored() {
    cat "$1" "$1-wal" 2>/dev/null | wc -c
}

# until_stored FILE BYTES MASTER: wait until this number of bytes is stored, or the master has ended
until_stored() {
    until [ "$(stored "$1")" -gt "$2" ] || ! runs "$3"; do
        :
    done
}
