#!/usr/bin/env bash
# Test the box itself, as root and as another user: names, links, speeds, freezing and killing of hosts, and that nothing is left behind. Without an
# argument, the script calls itself in the box with the argument `inside`.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/lib.sh"

takes() { # takes HOST MILLISECONDS SIZE: fail unless a ping of SIZE bytes takes at least this time
    on "$1" ping -c 1 -s "$3" -W 5 head >"$BOX/ping" || fail "$1 cannot reach the head by ping: $(<"$BOX/ping")"
    local ms
    ms=$(sed -n 's/^rtt [^=]*= \([0-9]*\).*/\1/p' "$BOX/ping")
    [ "$ms" -ge "$2" ] || fail "$1: $3 bytes took $ms ms, not $2: $(<"$BOX/ping")"
}

reached() { # HOST
    on "$1" ping -q -c 1 -W 1 head >/dev/null
}

inside() {
    # --- each host has its own name, files and processes
    [ "$(hostname) $(on h1 hostname) $(on h2 hostname)" = "head h1 h2" ] || fail "a host has the wrong name"
    on h1 touch /tmp/mine /dev/shm/mine
    [ -z "$(on h2 ls /tmp /dev/shm | grep mine)" ] || fail "h2 sees files of h1"
    [ "$(on h1 sh -c 'exit 7' || echo $?)" = 7 ] || fail "the exit code of a command on a host is not returned"
    on h1 sleep 1000 &
    until_so on h1 pgrep -x sleep
    ! on h2 pgrep -x sleep >/dev/null || fail "h2 sees processes of h1"

    # --- freezing a host, limiting its speed, and killing its processes
    state() { # LETTER
        on h1 ps -o stat= -C sleep | grep -q "$1"
    }
    act h1 freeze on
    until_so state T
    act h1 freeze off
    until_so state S
    act h1 speed 50
    if [ -n "$BOX_CPU" ]; then
        [ "$(<"$BOX_CPU/h1/cpu.cfs_quota_us")" = 5000 ] || fail "the quota is not that of half a core: $(<"$BOX_CPU/h1/cpu.cfs_quota_us")"
        grep -qx "$(pgrep -x sleep)" "$BOX_CPU/h1/tasks" || fail "a process is not in the control group of its host"
    else
        until_so state T
        until_so state S
    fi
    act h1 speed 100
    act h1 kill processes
    wait $! && fail "a killed process returned exit code 0"
    until_so on h1 true

    # --- links; only lower bounds of times are checked, so the test also passes on a busy machine
    for host in h1 h2; do reached $host || fail "$host cannot reach the head"; done
    act h1 link set 20000 0 0
    takes h1 40 56
    act h1 link set 0 10000 0
    takes h1 200 1000
    act h1 link set 0 0 1000
    ! reached h1 || fail "a link that loses all packets passes some"
    act h1 link set 0 0 0
    reached h1 || fail "a link without loss passes no packets"
    act h1 link down
    ! reached h1 || fail "a link that is down passes packets"
    reached h2 || fail "the link of h2 is down, too"
    act h1 link up
    until_so reached h1
    act h2 kill power
    ! on h2 true 2>/dev/null || fail "a host that is switched off can be reached"

    # --- act refuses invalid arguments
    for words in "h1 frob" "h1 link" "h9 link up"; do
        ! act $words 2>/dev/null || fail "act accepts invalid arguments: $words"
    done
}

outside() { # COMMAND THAT STARTS BOX…
    "$@" "$place/hosts" true || return
    ! "$@" 1 false || fail "the box does not return the exit code of its command"
    "$@" --schedule "$place/schedule" 1 on h1 sh -c 'until [ -e /run/box/h1/off ]; do ip link show eth0 >/dev/null; ping -q -c1 -W1 head >/dev/null || touch /run/box/h1/off; done'
    "$@" 2 "$here/box_test.sh" inside || fail "the test inside the box failed; it was started by: $*"

    # --- nothing is left behind, even if a process of the box is killed
    local signal
    for signal in KILL TERM; do
        "$@" 2 on h1 sleep $marker &
        until_so pgrep -f "^sleep $marker"
        kill -$signal "$(pgrep -f "bash .*/box 2 on h1 sleep $marker")"
        wait $! 2>/dev/null || :
        until_so no_process
    done
    "$@" 1 true # the next box removes what is left
    [ -z "$(ls -d /sys/fs/cgroup/cpu/kilter-box-"$!" 2>/dev/null)" ] || fail "a control group was left behind"
}

no_process() {
    ! pgrep -f "^sleep $marker" >/dev/null
}

if [ "${1-}" = inside ]; then
    inside
    exit
fi
command -v ping >/dev/null || { echo "skipped: ping is not installed" >&2; exit 77; }
place=$(mktemp -d)
chmod 755 "$place"
trap 'rm -rf "$place"' EXIT
marker=7$$
printf '# two hosts\n\nfast\nslow 30 1000 1000000 10\n' >"$place/hosts"
printf '# nothing at first\n0.1 h1 link down\n' >"$place/schedule"
status=0
outside "$here/box" || status=$?
[ $status != 77 ] || exit 77
[ $status = 0 ] || fail "the test of the box failed with exit code $status"
if [ "$(id -u)" != 0 ]; then
    echo "skipped: the test with control groups, because the user is not root"
elif setpriv --reuid=65534 --regid=65534 --clear-groups "$here/box" 1 true; then
    outside setpriv --reuid=65534 --regid=65534 --clear-groups "$here/box"
else
    echo "skipped: the test as another user, because that user cannot make user namespaces"
fi
