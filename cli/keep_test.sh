#!/usr/bin/env bash
# Test kilter run --keep, kilter move and kilter drain. Program, launcher and hosts are replaced by scripts. usage: keep_test.sh KILTER
set -eu
. "$(dirname "$0")/farm_test.sh"
solver=$here/keep_test_solver
fail() {
    echo "FAILED: $*" >&2
    cat kept.err kept.out >&2 2>/dev/null || :
    exit 1
}
clean() { # the test must end the programs, which outlive a killed keeper
    for child in $children; do kill -9 $child 2>/dev/null || :; done
    for file in "$place"/*/keep/running; do
        [ ! -s "$file" ] || kill -TERM "$(cat "$file")" 2>/dev/null || :
    done
    for file in "$place"/*/keep/running; do
        tries=0
        while [ -s "$file" ] && kill -0 "$(cat "$file")" 2>/dev/null && [ $((tries += 1)) -lt 100 ]; do sleep 0.1; done
    done
    rm -rf "$place"
}
trap clean EXIT
unset KILTER_KEEP KILTER_CHECKPOINT KILTER_KEEP_ATTEMPT

# --- refused command lines
expect 2 "no program given" "$kilter" run --keep
expect 2 "--hosts and --host cannot be combined" "$kilter" run --hosts x --host a -- true
expect 2 "--keep and --host cannot be combined" "$kilter" run --keep --host a -- true
expect 2 "--keep and --listen cannot be combined" "$kilter" run --keep --listen a -- true
expect 2 "--slurm and --ranks cannot be combined" "$kilter" run --keep --slurm -N2 -n 2 -- true
expect 2 "--weight has no effect without --pick" "$kilter" run --keep --weight 0.5 -- true
expect 2 "--least 3 is more than --ranks 2" "$kilter" run --keep -n 2 --least 3 -- true
expect 2 "--mpirun has no effect with --launcher own" "$kilter" run --keep --launcher own --mpirun x -- true
expect 2 "--launcher: 'ssh' is none of: auto mpirun srun own" "$kilter" run --keep --launcher ssh -- true
expect 2 "--pick: 'worst' is none of" "$kilter" run --keep --pick worst -- true
expect 2 "no-such-file: No such file" "$kilter" run --keep --hosts no-such-file --launcher own -- true
expect 2 "--mpirun: 'true --version' names neither Open MPI nor MPICH" "$kilter" run --keep --mpirun true -- true
for name in ranks least tries; do
    expect 2 "--$name: '0' is not a whole number" "$kilter" run --keep --$name 0 -- true
done
expect 2 "--hang: '0' is not a number of seconds above 0" "$kilter" run --keep --hang 0 -- true
expect 2 "no folder given" "$kilter" move
expect 2 "'nowhere' is not the folder of a kept run" "$kilter" move nowhere
expect 2 "--to: ',' is not a list of hosts" "$kilter" move --to , x.keep
expect 2 "--checkpoint: the value is empty" "$kilter" run --keep --checkpoint '' -- true
expect 2 "there is no program ''" "$kilter" run --keep --launcher own -- ''
expect 2 "there is no program './nothere'" "$kilter" run --keep -- ./nothere
expect 2 "there is no program 'no-such-program'" "$kilter" run --keep --launcher own -- no-such-program
ls -d ./*.keep 2>/dev/null && fail "a refused command line left a keep folder"

# --- hosts a to d, which all stand for this machine
ln -s "$here/keep_test_agent" ssh
export place
printf '%s slots=2\n' a b c d >hosts

run() { # run NAME OPTION… -- ARGUMENT…: start the solver with kilter run --keep in the background, in the folder NAME
    name=$1
    shift
    options=()
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    mkdir -p "$place/$name"
    cd "$place/$name"
    env --default-signal=INT "$kilter" run --keep --hosts ../hosts --ssh "$place/ssh" --launcher own --folder keep \
        "${options[@]}" -- "$solver" '{ranks}' '{hosts}' "$@" >>kept.out 2>>kept.err & # shells start background commands with SIGINT ignored
    pid=$!
    children="$children $pid"
}
ends() { # ends CODE: fail unless the keeper ends with this exit code
    code=0
    wait $pid || code=$?
    [ $code = "$1" ] || fail "the keeper of run $name ended with exit code $code, not $1: $(cat kept.err)"
}
says() { grep -q -- "$1" "$place/$name/kept.err"; }
swept() { # swept N: succeed if the program has done at least N sweeps
    [ "$(sed -n 's/.*"sweeps":\([0-9]*\),.*/\1/p' "$place/$name/keep/progress")" -ge "$1" ]
}
solver_pid() { sed -n 's/.*"pid":\([0-9]*\),.*/\1/p' "$place/$name/keep/progress"; }
attempts() { grep -c "^attempt .* begins" kept.out; }
on() { # on HOSTS: succeed if the last attempt runs on these hosts
    [ "$(sed -n 's/^attempt .* on //p' kept.out | tail -n 1)" = "$1" ] || { tail -n 3 kept.out; false; }
}
gone() { ! kill -0 "$1" 2>/dev/null; }

# --- a run without failures
run healthy -n 3 --stay -- 30
ends 0
[ "$(attempts)" = 1 ] || fail "a run without failures has $(attempts) attempts"
on a:2,b:1 || fail "a run without failures was moved"
grep -qx "result 30" kept.out || fail "the result of the program was not printed: $(cat kept.out)"
[ "$(cat kept.err)" = "kilter run: attempt 1: 3 ranks on a (2), b" ] || fail "a run without failures prints more than its first attempt: $(cat kept.err)"
expect 2 "is done; remove this folder" "$kilter" run --keep --hosts ../hosts --ssh "$place/ssh" --launcher own \
    --folder keep -- "$solver" '{ranks}' '{hosts}' 30
expect 2 "with other arguments" "$kilter" run --keep --hosts ../hosts --ssh "$place/ssh" --launcher own \
    --folder keep -- "$solver" '{ranks}' '{hosts}' 31
expect 2 "no keeper works on 'keep'" "$kilter" move keep
"$kilter" report keep/keep.kilter >report || fail "kilter report cannot read the record of the run"
grep -q "^Run keep_test_solver took .* and did 30 sweeps: done\." report || fail "the report does not say that the run is done: $(cat report)"

cd "$place" # if KILTER_CHECKPOINT is empty, the checkpoints are in the keep folder
KILTER_CHECKPOINT='' run empty -n 2 --stay -- 20
ends 0
[ -s keep/checkpoint ] || fail "the checkpoints are not in the keep folder: $(ls keep)"

# --- the program fails twice: each time the run continues from its last checkpoint
cd "$place" && mkdir failing && cd failing
echo 3 >die.12
echo 4 >die.22
run failing -n 2 --stay -- 40
ends 0
grep "^attempt" kept.out >begins
printf 'attempt %s begins with sweep %s on a:2\n' 1 0 2 10 3 20 | same begins - "attempts after failures"
says "ended with exit code 3 after sweep 12; 2 sweeps (40 ms of work) are lost" || fail "the message about the failure is missing: $(cat kept.err)"
says "done after 3 attempts" || fail "the message about the end is missing: $(cat kept.err)"
"$kilter" report keep/keep.kilter >report
grep -q "3 attempts, 0 planned moves, 2 failures" report || fail "the report does not count two failures: $(cat report)"

# --- a program that always fails at the same sweep: the keeper gives up, and returns the program's exit code
cd "$place" && mkdir bug && cd bug
echo 7 >die.12
: >die.always
run bug -n 2 --stay -- 40
ends 7
[ "$(attempts)" = 4 ] || fail "a program that always fails has $(attempts) attempts" # only the first attempt saved something
on b:2 || fail "the last attempt was not on other hosts"
says "given up: .*3 attempts in a row saved nothing after sweep 10" || fail "the message about giving up is missing: $(cat kept.err)"
rm die.12 # the same command tries again
run bug -n 2 --stay -- 40
ends 0
grep -qx "attempt 5 begins with sweep 10 on b:2" kept.out || fail "the same command did not continue the run: $(cat kept.out)"

# --- a program that cannot be started
cd "$place"
code=0
"$kilter" run --keep --ssh "$place/ssh" --hosts hosts --launcher own --folder missing.keep -- ./missing 2>kept.err || code=$?
[ $code = 127 ] || fail "a missing launcher gives exit code $code"
grep -q "starting ./missing: No such file" kept.err && grep -q "given up: the launcher could not be started" kept.err ||
    fail "the message about a missing program is missing: $(cat kept.err)"

code=0
"$kilter" run --keep --ssh "$place/ssh" --hosts hosts --launcher own --folder plain.keep -- ./hosts 2>kept.err || code=$?
[ $code = 126 ] || fail "a launcher that is not executable gives exit code $code"

# --- a program that hangs is ended, and so are processes that the launcher left behind
mkdir hang && cd hang
: >hang.12
cat >launch <<'ENDLAUNCH'
#!/bin/bash
trap '' TERM
"$@" &
wait
ENDLAUNCH
chmod +x launch
"$kilter" run --keep --hosts ../hosts --ssh "$place/ssh" --launcher own --folder keep -n 2 --hang 1 --stay -- \
    ./launch "$solver" '{ranks}' '{hosts}' 30 >kept.out 2>kept.err || fail "the run failed whose program hung once: $(cat kept.err)"
name=hang
says "no sweep has ended in .*, and the limit is 1 s" || fail "the message about the hang is missing: $(cat kept.err)"
[ "$(attempts)" = 2 ] || fail "a run whose program hung once has $(attempts) attempts"
cd "$place" && mkdir frozen
run frozen -n 2 --hang 1 --stay -- 400
until_so swept 12
kill -STOP "$(solver_pid)"
until_so says "attempt 2: .*after sweep"
kill -TERM $pid
ends 143

# --- ranks that outlive their launcher end before the next attempt
cd "$place" && mkdir orphans
cat >orphans/launch <<'ENDLAUNCH'
#!/bin/bash
"$@" &
solver=$!
if [ ! -e once ]; then
    until [ -s "$KILTER_CHECKPOINT" ]; do read -rt 0.05 <> <(:) || :; done
    echo $solver >once
    exit 9
fi
wait $solver
ENDLAUNCH
chmod +x orphans/launch
cd orphans
"$kilter" run --keep --hosts ../hosts --ssh "$place/ssh" --launcher own --folder keep -n 2 --stay -- \
    ./launch "$solver" '{ranks}' '{hosts}' 200 >kept.out 2>kept.err || fail "the run failed whose ranks outlived their launcher: $(cat kept.err)"
gone "$(cat once)" || fail "a rank of the first attempt is alive after the second attempt began"
grep -qx "result 200" kept.out || fail "the result of the program was not printed"

# --- files in the keep folder cannot be written, as on a full disk: the test makes folders with the names of these files
cd "$place"
mkdir full && : >full/mute
run full -n 2 --hang 1 --stay -- 200
until_so test -e keep/state && mkdir keep/room
ends 0
[ "$(attempts)" = 1 ] || fail "a program that cannot report was ended: $(cat kept.err)"
[ "$(grep -c "the program cannot report" kept.err)" = 1 ] || fail "one message about the full disk was expected: $(cat kept.err)"

cd "$place" # the exit code of a program that is done is not lost
run full_end -n 2 --stay -- 20
until_so swept 1
mkdir keep/ended
until_so swept 20
until_so gone "$(solver_pid)"
kill -0 $pid || fail "the keeper ended before it could know the program's exit code: $(cat kept.err)"
rmdir keep/ended
ends 0
[ "$(attempts)" = 1 ] || fail "a program that was done was started again: $(cat kept.err)"

cd "$place" # a request to the program is written as soon as there is room
run full_stop -n 2 --stay -- 100000
until_so swept 12
mkdir keep/request
kill -TERM $pid
until_so says "asking the program to save: writing .*request"
rmdir keep/request
ends 143
says "saved after sweep [0-9]* and stopped" || fail "the program did not save: $(cat kept.err)"

cd "$place" # an attempt that cannot be started, because there is no room, is tried again
mkdir full_start && echo 3 >full_start/die.12
run full_start -n 2 --stay -- 100000
until_so swept 10
rm keep/hosts && mkdir keep/hosts
until_so says "writing '.*keep/hosts': "
until_so says "the attempt could not be started; Kilter tries again for 600 s"
kill -TERM $pid
ends 143

cd "$place" # the keep folder is removed: the program goes on, and ends with its keeper
run removed -n 2 --stay -- 100000
until_so swept 12
removed=$(solver_pid)
mv keep moved
until_so says "writing '.*keep/room': No such file.*the program cannot report"
kill -INT $pid
until_so says "asking the program to save: writing"
kill -INT $pid
ends 130
gone "$removed" || fail "the program is alive after two signals to its keeper"

# --- kilter move moves the run, and kilter drain takes a host away or stops the run
cd "$place"
run moves -n 4 --stay -- 100000
until_so swept 12
on a:2,b:2 || fail "the run began on the wrong host"
[ "$("$kilter" move keep --to c,d)" = "the run moves to c,d, if these hosts are fit" ] || fail "kilter move prints a wrong answer"
until_so on c:2,d:2
until_so swept 13
expect 2 "'x' is not a host of this run" "$kilter" move keep --to x
expect 2 "name a host with --host" "$kilter" drain keep 1
expect 2 "no host given" "$kilter" drain keep
expect 2 "'x' is not a host of this run" "$kilter" drain keep --host x
[ "$("$kilter" drain --json keep --host c)" = '{"answer":"the run leaves c as soon as its state is saved"}' ] || fail "kilter drain prints a wrong answer"
until_so on a:2,d:2
until_so says "attempt 3"
expect 2 "another keeper works on" "$kilter" run --keep --hosts ../hosts --ssh "$place/ssh" --launcher own \
    --folder keep -- true
until_so grep -q '"attempt":3,' keep/progress # wait for a report: a program that has not reported would be ended at once, without saving
[ "$("$kilter" drain keep --all)" = "the run stops" ] || fail "kilter drain --all prints a wrong answer"
ends 75
says "saved after sweep [0-9]* and stopped; run the same command to continue" || fail "the message about the stop is missing: $(cat kept.err)"
sqlite3 keep/keep.kilter "SELECT count(*) FROM decision WHERE kind = 'relocate' AND spent_s > 0" 2>/dev/null | grep -qx 2 ||
    ! command -v sqlite3 >/dev/null || fail "the record has no outcomes of the two moves"

# --- a program that cannot save is not moved
: >refuse
run moves -n 4 --stay -- 100000
until_so says "attempt 4"
until_so swept 14
"$kilter" move keep --to c >/dev/null || "$kilter" move keep --to b >/dev/null
until_so says "could not save, and continues: the disk is full"
rm refuse
kill -INT $pid
ends 130

# --- the run leaves a host that became slow
cd "$place"
run slow -n 2 --look 1 -- 100000
until_so swept 20
on a:2 || fail "the run began on the wrong host"
: >slow.a
until_so says "other hosts are faster: a sweep takes \(1[0-9][0-9]\|200\) ms here"
until_so grep -q "^attempt 2 begins with sweep .* on [bcd]:2" kept.out
kill -TERM $pid
ends 143

# --- the keeper is killed, but the program continues: the next keeper finds the program, or finds out how the program ended
cd "$place"
run killed -n 2 --stay -- 100000
until_so swept 12
kill -9 $pid
until_so gone $pid
reached=$(sed -n 's/.*"sweeps":\([0-9]*\),.*/\1/p' keep/progress)
until_so swept $((reached + 5))
mkdir "$place/slurm"
for command in sbatch squeue sinfo scancel; do ln -s /bin/true "$place/slurm/$command"; done
expect 2 "still runs on this host: start its keeper without --slurm" env PATH="$place/slurm:$PATH" \
    "$kilter" run --keep --slurm -N1 --folder keep -- "$solver" '{ranks}' '{hosts}' 100000
sed -i.here 's/^keeper_host .*/keeper_host elsewhere/' keep/state
expect 2 "was started on host elsewhere, and may still run" "$kilter" run --keep --hosts ../hosts --ssh "$place/ssh" \
    --launcher own --folder keep -- "$solver" '{ranks}' '{hosts}' 100000
mv keep/state.here keep/state
run killed -n 2 --stay -- 100000
until_so says "which is still running"
[ "$(attempts)" = 1 ] || fail "the program was started again"
"$kilter" drain keep --host a >/dev/null
until_so says "attempt 2"
until_so swept $((reached + 10))
kill -9 $pid # the keeper; then the program dies, too, while there is no keeper
until_so gone $pid
kill -9 "$(solver_pid)"
until_so test -s keep/ended
run killed -n 2 --stay -- 100000
until_so says "attempt 3"
until_so grep -q '"attempt":3,' keep/progress # until then, keep/running may have the number of an earlier guard
guard=$(cat keep/running)
kill -9 $pid # the keeper; then the program's guard is killed, too
until_so gone $pid
kill -9 "$guard"
until_so gone "$(solver_pid)"
run killed -n 2 --stay -- 100000
until_so says "the program is gone, and its exit code is not known"
until_so says "attempt 4"
kill -TERM $pid
ends 143

# --- a program that does not answer to SIGTERM ends after a second signal
cd "$place" && mkdir stubborn && : >stubborn/hang.12
run stubborn -n 2 --hang 1000 --stay -- 100000
until_so swept 12
stubborn=$(solver_pid)
kill -INT $pid
until_so says "saving and stopping"
kill -INT $pid
ends 130
gone "$stubborn" || fail "the program is alive after two signals"

# --- hosts that cannot be reached get no ranks
cd "$place"
: >"$place/unreachable.a"
run unreachable -n 4 --stay -- 20
ends 0
on b:2,c:2 || fail "the unreachable host was used"
: >"$place/unreachable.b"
: >"$place/unreachable.c"
: >"$place/unreachable.d"
run nowhere -n 2 --wait 1 -- 20
ends 1
says "0 ranks fit on the hosts, and 1 are needed: waiting for hosts; a: unreachable" && says "no host has become fit" || fail "$(cat kept.err)"
rm "$place"/unreachable.*

# --- pickers
run best -n 2 --pick best --stay -- 20
ends 0
run turn -n 2 --pick round-robin --stay -- 20
ends 0
