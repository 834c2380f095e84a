#!/bin/sh
# Test kilter run on the command line, with a shell script instead of ssh. usage: run_test.sh KILTER FARM
set -eu
. "$(dirname "$0")/farm_test.sh"

# --- refused command lines
expect 2 "no program given" "$kilter" run
expect 2 "no program given" "$kilter" run --host a --
expect 2 "no host given" "$kilter" run -- true
expect 2 "unknown option '--frob'" "$kilter" run --frob a -- true
expect 2 "'true': write -- before the program" "$kilter" run --host a true x
expect 2 "--host wants a value" "$kilter" run --host -- true
expect 2 "--ssh: the value is empty" "$kilter" run --ssh '' -- true
expect 2 "--ssh: there is no command '-x' here" "$kilter" run --ssh '-x y' --host a -- true
expect 2 "--ssh: there is no command 'no-such-command' here" "$kilter" run --ssh 'no-such-command y' --host a -- true
for count in 0 x 1x -1 '' 10001; do
    expect 2 "give the number of workers" "$kilter" run --host "a:$count" -- true
done
expect 2 "is not the name of a host" "$kilter" run --host ':3' -- true
expect 2 "is not the name of a host" "$kilter" run --host '-oProxyCommand=x' -- true
expect 2 "no address before the port" "$kilter" run --listen 'a b' --host a -- true

# --- a script replaces ssh; some hosts cannot be reached
cat >ssh <<'END'
#!/bin/sh
echo "$1" >>"$place/reached"
[ "$1" != nowhere ] || { echo "no such host" >&2; exit 255; }
shift
exec sh -c "$*"
END
chmod +x ssh
export place


begin() { # NAME ARGUMENT…: start a farm with kilter run in the background, so that kilter tune can look at it
    stop="$place/$1's stop"
    record=$place/$1.kilter
    shift
    "$kilter" run --ssh "$place/ssh" --listen 127.0.0.1 "$@" -- "$farm" "$stop" --team all --record "$record" >run.out 2>run.err &
    pid=$!
    children="$children $pid"
    until_so "$kilter" tune --once "$record"
}

# --- two of three hosts can be reached: they get the folder and the key, and the run succeeds
begin two --host a:2 --host nowhere --host b:1
until_so shows "^workers  *3 at work"
until_so grep -q "^kilter run: nowhere cannot be reached" run.err
ps -eo args >list
! grep -q "worker-secret" list || fail "the key appears in a list of processes"
grep -alF "two's stop" /proc/[0-9]*/cmdline 2>/dev/null >list || :
while read -r file; do
    ! tr '\0' '\n' 2>/dev/null <"${file%cmdline}environ" | grep -q "worker-secret" || fail "the key appears in the environment of a process"
done <list
! grep -q "worker-secret" "$record"* || fail "the key appears in the record"
: >"$stop"
code=0
wait $pid || code=$?
[ $code = 0 ] || fail "kilter run with two hosts ended with exit code $code: $(cat run.err)"
! grep -v "^kilter run: nowhere cannot be reached\|^no such host" run.err || fail "kilter run prints messages although the run succeeded: $(cat run.err)"
[ "$(sort reached | tr '\n' ' ')" = "a b nowhere " ] || fail "unexpected hosts were reached: $(cat reached)"
[ -z "$(ls "$TMPDIR")" ] || fail "left behind: $(ls "$TMPDIR")"

# --- kilter run passes on the program's output and exit code
cat >says <<'END'
#!/bin/sh
case "$*" in
*--join*) cat >key.seen; [ "$1 $2" = "an argument" ] && grep -q "^worker-secret " key.seen || exit 3 ;;
*) echo "out: $1"; echo "err: $2" >&2; until [ -s key.seen ]; do sleep 0.1; done; exit 7 ;;
esac
END
chmod +x says
code=0
"$kilter" run --ssh "$place/ssh" --listen 127.0.0.1 --host a:1 -- ./says an argument >out 2>err || code=$?
[ $code = 7 ] || fail "kilter run ended with exit code $code, not with the 7 of the program: $(cat err)"
grep -qx "out: an" out || fail "output: $(cat out)"
grep -qx "err: argument" err || fail "errors: $(cat err)"
! grep -q "server-secret" key.seen || fail "a worker got the secret key of the master"

# --- if no host is left, the run ends, because no worker can join
code=0
"$kilter" run --ssh "$place/ssh" --listen 127.0.0.1 --host nowhere:1 --host nowhere:2 -- "$farm" "$place/never" --record none >out 2>err || code=$?
[ $code != 0 ] || fail "a run without hosts succeeded"
grep -q "no host is left" err || fail "the message that no host is left is missing: $(cat err)"

# --- the program does not exist
code=0
"$kilter" run --ssh "$place/ssh" --listen 127.0.0.1 --host a:1 -- ./missing >out 2>err || code=$?
[ $code = 127 ] || fail "kilter run of a missing program ended with exit code $code, not 127: $(cat err)"
grep -q "starting ./missing: No such file" err || fail "the message about the missing program is missing: $(cat err)"

# --- a killed worker is restarted; a worker that leaves by itself is not
begin again --host a:2
until_so shows "^workers  *2 at work"
joined() { # print the process id of a worker
    ps -eo pid=,comm=,args= | awk -v name="$(basename "$farm" | cut -c1-15)" -v place="$place/again." \
        '$2 == name && /--join/ && index($0, place) { print $1; exit }'
}
for round in 1 2 3; do
    kill -9 "$(joined)"
    until_so shows "^ *$((round + 1))  *busy"
    until_so shows "^workers  *2 at work"
done
grep -q "kilter run: a worker on a ended with code 137, and is started again" run.err || fail "the message about the restarted worker is missing: $(cat run.err)"
kill "$(joined)"
until_so shows "^workers  *1 at work"
: >"$stop"
wait $pid || fail "kilter run with a restarted worker ended with exit code $?: $(cat run.err)"
[ "$(grep -c "started again" run.err)" = 3 ] || fail "a worker that left by itself was restarted: $(cat run.err)"

# --- if kilter run is killed, its master and workers end
begin killed --host a:2
until_so shows "^workers  *2 at work"
kill -9 $pid
gone() {
    ps -eo args >list
    ! grep -qF "$place/killed" list
}
until_so gone
until_so left_nothing

# --- if the master of kilter run is killed, kilter run and the workers end
begin master --host a:2
until_so shows "^workers  *2 at work"
kill -9 "$(ps -eo pid=,args= | awk -v place="$place/master." \
    '/--listen/ && /--key/ && index($0, place) && !/kilter run/ && !/awk/ { print $1; exit }')"
code=0
wait $pid || code=$?
[ $code = 137 ] || fail "with a killed master, the exit code is $code: $(cat run.err)"
left_nothing || fail "left behind: $(ls -A "$TMPDIR")"
