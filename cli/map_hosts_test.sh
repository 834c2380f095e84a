#!/usr/bin/env bash
# Test kilter map on other hosts. A script replaces ssh. usage: map_hosts_test.sh KILTER
set -eu
. "$(dirname "$0")/farm_test.sh"
export SHELL=/bin/bash here_too=$PWD KILTER_LOST_AFTER=2
cat >ssh <<'TEXT'
#!/usr/bin/env bash
# ssh HOST SCRIPT: a host that is down cannot be reached
[ ! -e "$here_too/down.$1" ] || exit 255
echo $$ >>"$here_too/shells.$1"
HOSTED=$1 HOME=$here_too/home exec bash -c "$2"
TEXT
chmod +x ssh
mkdir home
hosts=(--hosts hosts --ssh "$PWD/ssh" --listen 127.0.0.1)
map() { "$kilter" map "${hosts[@]}" "$@"; }
once() { # once FILE COUNT: fail unless the file has each number from 1 to COUNT exactly once
    seq "$2" | same - <(sort -n "$1") "$1: each once"
}

# --- refused command lines and lists of hosts
expect 2 "--shared-fs has no effect without --hosts" "$kilter" map --shared-fs true ::: a
expect 2 "none: No such file" "$kilter" map --hosts none true ::: a
: >hosts
expect 2 "hosts: it names no host" "$kilter" map --hosts hosts true ::: a
expect 1 "--serve is for kilter map --hosts" "$kilter" map --serve tcp://127.0.0.1:9 </dev/null
printf 'h1 slots=1\n' >hosts
touch down.h1
map true ::: a >out 2>err && fail "kilter map succeeds although no host can be reached"
grep -q 'h1: the host cannot be reached' err && grep -q 'none of the hosts can be used' err || fail "$(cat err)"
[ "$(grep -c 'h1:' err)" = 1 ] || fail "a host is reported more than once: $(cat err)"
rm down.h1

# --- hosts get values and send outputs; commands begin in this folder only with --shared-fs; --use has an effect on each host
map -k --tag 'echo $HOSTED $PWD; cat >&2 # {}' ::: 'a  b' >out 2>err
same out <(printf 'a  b\th1 %s\n' "$PWD/home") "the home folder: $(cat err)"
map --shared-fs --resource gpu=4 --use gpu=2 'pwd; echo $CUDA_VISIBLE_DEVICES; head -c 300000 /dev/zero | tr "\0" x # {}' ::: a >out
[ "$(head -2 out)" = "$PWD"$'\n'0,1 ] && [ "$(wc -c <out)" -gt 300000 ] || fail "with --shared-fs: $(head -c 200 out)"

# --- a host is killed and leaves the list, and another host joins: each command has exactly one result
printf 'h1 slots=1\nh2 slots=1\n' >hosts
rm -f shells.*
"$kilter" map "${hosts[@]}" --shared-fs 'echo x >>ran; while [ ! -e go ]; do sleep 0.02; done; echo {}' ::: $(seq 30) >out.1 2>err.1 &
master=$!
children="$children $master"
until_so test -s shells.h1 -a -s shells.h2
two_run() { [ "$(wc -l <ran)" -ge 2 ]; }
until_so two_run
touch down.h1
kill -9 "$(tail -1 shells.h1)"
printf 'h2 slots=1\nh3 slots=1\n' >hosts
until_so test -s shells.h3
three_run() { [ "$(wc -l <ran)" -ge 3 ]; }
until_so three_run
touch go
wait $master || fail "with a dead host: $(cat err.1)"
once out.1 30
rm -f down.h1 go ran

# --- a host leaves the list: its command runs again on another host, and all commands have results
printf 'h1 slots=1\nh2 slots=1\n' >hosts
"$kilter" map "${hosts[@]}" --shared-fs 'echo x >>ran; while [ ! -e go ]; do sleep 0.02; done; echo {}' ::: $(seq 6) >out.1 2>err.1 &
master=$!
children="$children $master"
until_so two_run
printf 'h2 slots=1\n' >hosts
until_so grep -q 'unfinished task' err.1
touch go
wait $master || fail "kilter map failed after a host left the list: $(cat err.1)"
once out.1 6
rm -f go ran
printf 'h1 slots=1\nh2 slots=1\n' >hosts

# --- the master is killed: the hosts end their commands; the process that reaches the hosts is killed: the master prints one error
start() {
    rm -f pid.* shells.*
    "$kilter" map "${hosts[@]}" --shared-fs 'echo $$ >pid.{}; sleep 100' ::: 1 2 >out.1 2>err.1 &
    master=$!
    children="$children $master"
    until_so test -s pid.1 -o -s pid.2
}
gone() { local one; for one in pid.*; do ! kill -0 "$(cat "$one")" 2>/dev/null || return 1; done; }
start
kill -9 $master
wait $master || :
until_so gone
start
kill -9 "$(ps -o pid= --ppid $master | while read -r one; do [ "$(ps -o sid= -p "$one" | tr -d ' ')" = "$one" ] && ps --ppid "$one" -o pid= | grep -q . && echo "$one"; done | head -1)"
code=0
wait $master || code=$?
[ $code = 1 ] && grep -q 'the process that reaches the hosts was killed' err.1 || fail "code $code: $(cat err.1)"
until_so gone
start
kill -TERM $master
code=0
wait $master || code=$?
[ $code = 143 ] || fail "SIGTERM: $code: $(cat err.1)"
until_so gone
