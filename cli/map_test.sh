#!/usr/bin/env bash
# Test kilter map on this host. usage: map_test.sh KILTER
set -eu
. "$(dirname "$0")/farm_test.sh"
map() { "$kilter" map "$@"; }
export SHELL=/bin/bash
is() { # is WANTED: fail unless the standard input is exactly this text
    cat >got
    printf '%s\n' "$1" | same - got "$1" || exit 1
}
gives() { # gives CODE COMMAND…: fail unless the command ends with this exit code
    wanted=$1
    shift
    code=0
    "$@" >out 2>err || code=$?
    [ "$code" = "$wanted" ] || fail "$*: code $code, not $wanted: $(cat err)"
}

# --- refused command lines
echo >columns-file
expect 2 "--jobs: 'x' is not a number of slots" "$kilter" map -j x true
expect 2 "--halt: 'later' is neither never" "$kilter" map --halt later true
expect 2 "--timeout: '-1' is neither" "$kilter" map --timeout=-1 true
expect 2 "--colsep: '(' is not a regular expression" "$kilter" map --colsep '(' true ::: a
expect 2 "reading values from none: No such file" "$kilter" map -a none true
expect 2 "::::: name a file after it" "$kilter" map true ::::
expect 2 "line 2 contains a zero byte; give -0" "$kilter" map true < <(printf 'a\nb\0c\n')
gives 2 map --results columns-file/x 'touch begun; echo' ::: a
grep -q -- '--results: making folders in columns-file/x: Not a directory' err && [ ! -e begun ] || fail "results into a file: $(cat err)"
expect 2 "--joblog: creating none/log: No such file" "$kilter" map --joblog none/log true ::: a
cp /dev/null record && printf 'SQLite format 3\0' >record
expect 2 "--joblog: record is a run record" "$kilter" map --joblog record true ::: a
ten=(::: 1 2 3 4 5 6 7 8 9 10)
expect 2 "the lists of values have too many combinations" "$kilter" map true "${ten[@]}" "${ten[@]}" "${ten[@]}" "${ten[@]}" "${ten[@]}" "${ten[@]}" "${ten[@]}" \
    "${ten[@]}" "${ten[@]}" "${ten[@]}" "${ten[@]}" "${ten[@]}" "${ten[@]}" "${ten[@]}" "${ten[@]}" "${ten[@]}" "${ten[@]}" "${ten[@]}" "${ten[@]}" "${ten[@]}"
(trap '' CHLD && gives 1 map false ::: a) || fail "exit codes are lost if the parent ignores SIGCHLD"
"$kilter" map -j 2 --help | grep -q '^usage: kilter map' || fail "kilter map -j 2 --help does not print the help"

# --- values replace {} and its variants in command lines
map -k echo {} ::: a 'b  c' '' "it's" '*' '$HOME' | is "$(printf '%s\n' a 'b  c' '' "it's" '*' '$HOME')"
map echo ::: $'two\nlines' | is $'two\nlines'
map -k 'echo {#}/{##} {2.}-{1} {};' ::: a b ::: x.y 'z  w' |
    is "$(printf '%s\n' '1/4 x-a a x.y' '2/4 z  w-a a z  w' '3/4 x-b b x.y' '4/4 z  w-b b z  w')"
printf 'a\nb\n' | map -k echo | is $'a\nb'
printf 'a b\0c\nd' | map -k -0 echo | is $'a b\nc\nd'
printf 'a,b\nc,d\n' >columns
map -k --colsep , -a columns echo {2} {1} | is $'b a\nd c'
map -k echo :::: columns :::+ x y | is $'a,b x\nc,d y'
map -k --colsep '\d' 'echo {1}-{2}-{3}' ::: a1b2c | is 'a-b-c'
map -k --colsep '[\d,]*' 'echo {1}-{2}-{3}' ::: 'a1,b2c' | is 'a-b-c'
map -q echo '$x  {}' ::: a | is '$x  a'
printf '%s\n' 'echo "a  b"' 'exit 3' | { map || [ $? = 1 ]; } | is 'a  b'
map -k --tag 'echo a; echo b' ::: 1 2 | is $'1\ta\n1\tb 1\n2\ta\n2\tb 2'
map --dry-run 'convert {} {.}.png' ::: 'b c.tiff' | is "convert 'b c.tiff' 'b c'.png"
f() { echo "f $1"; }
export -f f
map f ::: a | is 'f a'
map 'echo $PARALLEL_SEQ $PARALLEL_JOBSLOT {%}' ::: a | is '1 1 1'
: | map false
mkdir -p bin/folder bin2
printf 'echo "script $1"\n' >bin2/folder
printf '#!/no/such/interpreter\n' >bin2/broken
chmod +x bin2/folder bin2/broken
PATH=$PWD/bin:$PWD/bin2:$PATH map folder ::: a | is 'script a' # a folder is not a program, and a script needs no first line "#!"
PATH=$PWD/bin2:$PATH gives 1 map broken ::: a
grep -q 'bin2/broken: ' err || fail "a script whose interpreter is not there: $(cat err)"
map -k --help ::: a >out 2>&1 || :
grep -q '^usage' out || fail "help"
[ "$(seq 1000 | map -k echo | md5sum)" = "$(seq 1000 | md5sum)" ] || fail "kilter map -k did not print 1000 outputs in order"
[ "$(seq 100 | map -j 2 'printf "{}: %s " {#}; echo ' | awk 'NF != 2' | wc -l)" = 0 ] || fail "mixed lines"

# --- exit codes, --halt, --timeout and --retries
gives 2 map 'exit {}' ::: 0 3 4
gives 101 map false ::: {1..150}
gives 3 map -j1 --halt now,fail=1 'exit {}' ::: 0 3 4 5
gives 3 map -j1 --halt soon,fail=1 'exit {}' ::: 0 3 4 5
gives 0 map -j1 --halt now,success=1 'exit {}' ::: 5 0 4
gives 50 map -j1 --halt soon,fail=50% 'exit {}' ::: 5 6 7 8 9 1
gives 1 map -j2 --halt now,fail=1 'if [ {} = 1 ]; then exec sleep 100; fi; exit 1' ::: 1 2
gives 3 map -j1 --halt soon,fail=1 'echo >begun.{#}; exit {}' ::: 0 3 0 4 5
[ "$(echo begun.*)" = 'begun.1 begun.2' ] || fail "--halt soon let further commands begin: $(echo begun.*)"
gives 3 map -j1 --halt now,fail=1 'echo >began.{#}; exit {}' ::: 0 3 0 4 5
[ "$(echo began.*)" = 'began.1 began.2' ] || fail "--halt now let further commands begin: $(echo began.*)"
gives 1 map --timeout 0.5 'trap "" TERM; sleep 100; sleep 100' ::: a
grep -q 'stopped a command after 1.* s, its time limit: trap' err || fail "$(cat err)"
gives 0 map --timeout 1h true ::: a
gives 1 map --timeout 0.2 'sh -c "trap \"\" TERM; echo \$\$ >deaf; while :; do sleep 1; done" & until [ -s deaf ]; do sleep 0.01; done; wait # {}' ::: a
is_over() { ! kill -0 "$(cat "$1")"; }
until_so is_over deaf # Kilter also ends a process that ignores SIGTERM and outlives the first process of its command
gives 1 map --timeout 0.2 'set -m; sleep 100 & echo $! >apart; sleep 100 # {}' ::: a
until_so is_over apart # Kilter also ends a process in a process group of its own
gives 1 map -j1 --timeout 300% 'sleep {}' ::: 0.1 0.1 0.1 100
gives 1 map no-such-command ::: a
gives 1 map --retries 3 'echo x >>tries; echo {}; false' ::: a
[ "$(wc -l <tries) $(cat out)" = "3 a" ] || fail "a failing command with --retries 3 was not started three times: $(cat tries out)"
gives 0 map -j1 --retries 5 'echo x >>tries2; [ $(wc -l <tries2) = 3 ] # {}' ::: a
gives 1 map echo < <(head -c 1000000 /dev/zero | tr '\0' x)
grep -q 'Argument list too long: its arguments are too long for the system: echo xxx' err || fail "$(head -c 300 err)"

# --- outputs
map 'head -c 300000 /dev/urandom | tee kept' ::: a >copy
cmp copy kept
map -k 'head -c {} /dev/zero; head -c 100000 /dev/zero >&2' ::: 200000 10 2>copy.err | wc -c | is 200010
[ "$(wc -c <copy.err)" = 200000 ] || fail "standard error: $(wc -c <copy.err)"
"$kilter" map echo ::: a >/dev/full 2>err && fail "kilter map ends with exit code 0 although its output could not be written"
grep -q 'writing to the standard output: No space left on device' err || fail "$(cat err)"
set +o pipefail
[ "$(seq 10000 | map -k echo | head -1)" = 1 ] || fail "kilter map fails if its output is read only in part"
gives 0 map 'sleep 100 >/dev/null 2>&1 & echo $! >left # a process that the command leaves behind must not be ended
kill "$(cat left)" || fail "a process that the command left behind was ended"
gives 0 map 'exec >&- 2>&-; sleep 0.1 # {}' ::: a
gives 1 map 'cat; exec </dev/tty' ::: a </dev/null
gives 0 map --results kept.d 'echo {1}; echo {2} >&2' ::: a/b ::: c
[ "$(cat 'kept.d/1/a\_b/2/c/stdout' 'kept.d/1/a\_b/2/c/stderr' 'kept.d/1/a\_b/2/c/seq')" = $'a/b\nc\n1' ] || fail "results"
gives 0 map --results kept.d echo ::: ..
[ "$(cat 'kept.d/1/\../stdout')" = .. ] || fail "the output of the value .. is not in the folder of --results"
gives 1 map -k --joblog log 'kill -9 $$ # {}
exit {}' ::: 1
gives 1 map --joblog log 'if [ {} = 4 ]; then exit 4; fi; echo {}' ::: 4
awk -F '\t' 'NR == 1 && $9 == "Command" || NR == 2 && $1 == 1 && $2 == ":" && $7 == 4 && $8 == 0 { n++ } END { exit n != 2 }' log ||
    fail "log: $(cat log)"

# --- a worker is killed: its command runs again; kilter map is killed: its commands end
gives 0 map -j1 'echo x >>deaths; [ $(wc -l <deaths) -gt 1 ] || kill -9 $PPID; echo alive # {}' ::: a
[ "$(cat out)" = alive ] || fail "the command of a killed worker did not run again: $(cat out err)"
"$kilter" map -j2 'echo $$ >pid.{}; sleep 100' ::: 1 2 &
master=$!
children="$children $master"
until_so test -s pid.1 -a -s pid.2
kill -9 $master
wait $master || :
gone() { ! kill -0 "$(cat pid.1)" && ! kill -0 "$(cat pid.2)"; }
until_so gone
until_so left_nothing
rm pid.1
"$kilter" map --resume kept.kilter 'echo $$ >pid.{}; trap "exit 3" TERM; echo {}; if [ {} = 1 ]; then sleep 100 & wait; fi' ::: 1 2 >out.1 2>err.1 &
master=$!
until_so test -s pid.1
two_is_out() { grep -q 2 out.1; }
until_so two_is_out
kill -TERM $master
code=0
wait $master || code=$?
[ $code = 143 ] || fail "SIGTERM: code $code: $(cat err.1)"
grep -q 'interrupted: 1 of 2 commands had ended, 0 of them failed; to go on, repeat the command' err.1 || fail "$(cat err.1)"
until_so gone
left_nothing || fail "kilter map left files behind after SIGTERM"

gives 0 map -k --resume changed.kilter echo ::: 1 2
gives 2 map -k --resume changed.kilter --timeout 9 echo ::: 1 2
grep -q 'or say --resume-anyway' err || fail "--resume with another time limit: $(cat err)"
gives 0 map -k --resume changed.kilter --resume-anyway echo other ::: 1 3 4
same out <(printf '%s\n' 1 2 'other 4') "--resume-anyway with another command and other values"
gives 0 map -k --resume changed.kilter echo other ::: 1 3 4 # from now on, the record is of this command and these values
gives 2 map -k --resume changed.kilter --resume-anyway echo other ::: 1 3
for again in 1 2; do # KILTER_RESUME is like --resume, also for large outputs, and commands do not inherit it
    [ "$(KILTER_RESUME=$PWD/variable.kilter map 'seq 40000; echo $KILTER_RESUME # {}' ::: a | md5sum)" = "$( (seq 40000 && echo) | md5sum)" ] || fail "KILTER_RESUME: $again"
done
gives 1 map -k --resume added.kilter --retries 2 false ::: 1
gives 2 map -k --resume added.kilter --retries 2 --resume-anyway false ::: 1 2 # in the first run, the second start of command 1 had the task number that command 2 has now

# --- commands of --after that wait for each other
cat >list <<'TEXT'
# a comment
link: one two
    sleep 0.01
    echo link
one:
    echo one
two: one
    echo two
bad: one
    echo bad; exit 3
after-bad: bad link
    echo never
last: after-bad
    echo never
TEXT
gives 3 map -j2 -k --after list
same out <(printf '%s\n' link one two bad) "--after"
grep -q '^kilter map: 2 commands were not run, because a command before them failed$' err || fail "skipped: $(cat err)"
gives 3 map -k --after list --resume list.kilter
gives 3 map -k --after list --resume list.kilter
same out <(printf '%s\n' link one two bad) "--after with --resume"
printf 'a: b\n echo\nb: c a\n echo\nc:\n echo\n' >circle
expect 2 "circle: line 3: the command waits for itself" "$kilter" map --after circle
printf 'a:\n echo\nb: c\n echo\n' >unknown
expect 2 "unknown: line 3: no command has the name c" "$kilter" map --after unknown
expect 2 "'x': with --after, all commands are in its file" "$kilter" map --after list x
printf 'a:\n touch begun; sleep 100\nb: a\n echo never\n' >waits
"$kilter" map -j1 --after waits --resume killed.kilter >out.1 2>err.1 &
master=$!
children="$children $master"
until_so test -e begun
kill -TERM $master
code=0
wait $master || code=$?
[ $code = 143 ] || fail "kilter map --after got SIGTERM and ended with exit code $code: $(cat err.1)"
grep -q 'interrupted: 0 of 2' err.1 && [ ! -s out.1 ] || fail "killed: $(cat out.1 err.1)"

# --- resources, memory and cores that commands need
gives 2 map --use license=1 echo ::: a
grep -q 'say with --resource license=N how many this host has' err || fail "$(cat err)"
map -k --resource gpu=4 --use gpu=2 'echo $CUDA_VISIBLE_DEVICES $KILTER_GPU # {}' ::: a | is '0,1 0,1'
CUDA_VISIBLE_DEVICES=3 gives 2 map --resource gpu=2 --use gpu=2 echo ::: a
grep -q 'this host has only 1' err || fail "more GPUs than CUDA_VISIBLE_DEVICES names: $(cat err)"
CUDA_VISIBLE_DEVICES=-1 gives 2 map --use gpu=1 echo ::: a
grep -q 'this host has only 0' err || fail "CUDA_VISIBLE_DEVICES names no GPU: $(cat err)"
CUDA_VISIBLE_DEVICES=7 map --use gpu=1 'echo $CUDA_VISIBLE_DEVICES $KILTER_GPU # {}' ::: a | is '7 0'
gives 0 map --resource license=1 --use license=1 'mkdir held && rmdir held # {}' ::: 1 2 3 4 5 6
gives 0 map --memory 1M --cores 1 'echo $OMP_NUM_THREADS # {}' ::: a
[ "$(cat out)" = 1 ] || fail "--cores: $(cat out)"
expect 2 "--memory: a command needs 1e+06 GB" "$kilter" map --memory 1000T true ::: a
expect 2 "--cores: a command needs 60000 cores" "$kilter" map --cores 60000 true ::: a
expect 2 "--memory: 'much' is not a number of bytes" "$kilter" map --memory much true ::: a

# --- endless and large outputs, and a full disk
gives 1 map --output-limit 1M yes ::: a
grep -q 'stopped a command because its output exceeds 1 MB, the limit of --output-limit: yes a' err && [ "$(wc -l <err)" = 1 ] || fail "$(cat err)"
[ "$(map 'head -c 100000000 /dev/zero # {}' ::: a | md5sum)" = "$(head -c 100000000 /dev/zero | md5sum)" ] || fail "100 MB"
if unshare -m true 2>/dev/null; then
    mkdir small
    code=0
    unshare -m sh -c 'mount -t tmpfs -o size=40m none small && TMPDIR=$PWD/small "$0" map yes ::: a' "$kilter" >out 2>err || code=$?
    [ $code = 1 ] && grep -q 'stopped a command because its output fills the disk of .*; make room there, or set TMPDIR: yes a' err || fail "a full disk: $code: $(cat err)"
fi
gives 0 map --dry-run echo :::: <(seq 100000 200000)
[ "$(wc -l <out)" = 100001 ] || fail "kilter map --dry-run does not print all 100,001 command lines"
until_so left_nothing
