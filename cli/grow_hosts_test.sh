#!/usr/bin/env bash
# Test kilter run --hosts without --keep: the workers of a farm run on the hosts of a list. A script replaces ssh. All hosts are this machine.
# The test writes the fitness of each host into a file.
# usage: grow_hosts_test.sh KILTER FARM
set -eu
. "$(dirname "$0")/farm_test.sh"
fail() {
    echo "FAILED: $*" >&2
    cat run.err run.out >&2 2>/dev/null || :
    exit 1
}

# --- refused command lines
expect 2 "--hosts and --host cannot be combined" "$kilter" run --hosts f --host a -- true
expect 2 "--pick has no effect" "$kilter" run --pick best --host a -- true
expect 2 "hosts.none" "$kilter" run --hosts hosts.none -- true
: >empty
expect 2 "names no host" "$kilter" run --hosts empty -- true

# --- the script that replaces ssh
cat >ssh <<'END'
#!/bin/sh
host=$1
shift
[ ! -e "$place/unreachable.$host" ] || exit 255
case "$*" in *--serve*) ;; *) exec sh -c "$*" ;; esac
say() {
    [ ! -e "$place/unreachable.$host" ] || exit 1
    probe=1
    [ ! -e "$place/probe.$host" ] || read -r probe <"$place/probe.$host"
    echo "kilter-host 1 reading cores 2 probe $probe steps_per_s 1e9 memory_left 1e9 memory_total 2e9" \
        "swap_free 0 swap_total 0 load 0 waits_cpu 0 waits_memory 0 waits_io 0"
}
say
while read -r line; do
    case $line in look*) say ;; esac
done
END
chmod +x ssh
export place
begin() { # begin NAME OPTION…: start a farm whose tasks end when the file NAME.stop.hold is removed
    record=$place/$1.kilter
    stop=$place/$1.stop
    : >"$stop.hold"
    shift
    "$kilter" run --hosts hosts --ssh "$place/ssh" --look 0.1 --listen 127.0.0.1 "$@" -- "$farm" "$stop" --team all --record "$record" \
        >run.out 2>run.err &
    pid=$!
    children="$children $pid"
}
says() { grep -q -- "$1" run.err; }
at_work() { shows "^workers  *$1 at work"; }

# --- workers follow the hosts' fitness
printf '%s slots=1\n' first second busy absent >hosts
echo 0.1 >probe.busy
: >unreachable.absent
begin follows
until_so at_work 2
says "workers on first" && says "workers on second" && ! says "workers on busy" && ! says "workers on absent" ||
    fail "workers are not on the two fit hosts"
rm unreachable.absent
until_so at_work 3
echo 'new slots=1' >>hosts
until_so at_work 4
says "workers on absent" && says "workers on new" || fail "workers are not on the two hosts that became fit later"
echo 0.1 >probe.second
until_so says "host second is released: its fitness is 0.1"
sed -i '/^first/d' hosts
until_so says "host first is released: it is not in the list any more"
: >unreachable.new
until_so says "host new is released: its fitness is 0.00"
rm "$stop.hold" # workers leave after their task
until_so at_work 1
: >"$stop"
wait $pid || fail "the farm whose hosts changed ended with exit code $?"
"$kilter" report "$record" >report.out
grep -q "grow .*a host gets workers" report.out && grep -q "shrink .*host second is released" report.out ||
    fail "the report does not have the decisions to grow and shrink: $(cat report.out)"
! pgrep -f "$stop" >/dev/null || fail "workers run although the farm has ended"

# --- the picker `random` chooses hosts
rm -f probe.* unreachable.*
printf '%s slots=1\n' one two >hosts
begin picks --pick random --seed 3
until_so at_work 2
: >"$stop"
rm "$stop.hold"
wait $pid || fail "the farm with the picker random ended with exit code $?"

# --- no host is fit: the command ends with an error
: >unreachable.one
: >unreachable.two
begin none --wait 0.3
code=0
wait $pid || code=$?
[ $code != 0 ] && says "no host is left; the run is ended" || fail "the command ends with exit code $code although no host is fit"
