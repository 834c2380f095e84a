#!/bin/sh
# Test kilter report on the command line. usage: report_test.sh KILTER RECORD_WRITER
set -eu
kilter=$1
writer=$2
here=$(cd "$(dirname "$0")" && pwd)
doc=$here/../docs/reference/record.md
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
export TZ=UTC HOME="$place/home"
unset KILTER_RECORD_DIR XDG_STATE_HOME
cd "$place"

. "$here/outside_test.sh"

for kind in finished many killed empty resumed loop ended_loop killed_loop; do
    "$writer" $kind $kind.kilter
    "$kilter" report $kind.kilter >$kind.out
    same "$here/golden/$kind.out" $kind.out "kilter report $kind.kilter"
done
"$kilter" report --json finished.kilter >finished.json
same "$here/golden/finished.json" finished.json "kilter report --json"
"$kilter" report --json -- killed.kilter >killed.json
grep -q '"ended":false,"ended_s":null' killed.json || fail "a killed run is printed as ended: $(cat killed.json)"

# --failed prints the failed tasks with each attempt
"$kilter" report --failed finished.kilter >failed.out
grep -q '^task 31 *run 1, attempt 1, at worker 1 on ada, after 500 ms: worker 1 (process 102 on ada) was killed' failed.out || fail "report --failed does not print the first attempt: $(cat failed.out)"
grep -q '^task 31 *run 1, attempt 2, at worker 0 on ada, after 750 ms: no luck' failed.out || fail "report --failed does not print the second attempt: $(cat failed.out)"
! grep -q 'task 40' failed.out || fail "a task that did not fail is printed: $(cat failed.out)"
"$kilter" report --failed --json finished.kilter >failed.json
grep -q '^\[{"run":1,"task":31,"attempt":1,"worker":1,"host":"ada","at_s":0.5,"lost":true,"code":null,"signal":9,' failed.json || fail "the JSON of failures is wrong: $(cat failed.json)"
[ "$("$kilter" report --failed many.kilter)" = "no task failed" ] || fail "--failed prints a failure for a record without failures"
expect 2 "cannot be combined" "$kilter" report --failed --gantt x.svg finished.kilter

# an output file never replaces a record; if the standard output is closed, its descriptor is not used for another file
cp finished.kilter kept.kilter
for one in html gantt perfetto; do
    expect 2 "'kept.kilter' is a run record" "$kilter" report --$one kept.kilter finished.kilter
done
cmp -s finished.kilter kept.kilter || fail "kilter report overwrote a record"
"$kilter" report finished.kilter >&- 2>err && fail "with a closed output, report succeeded"
grep -q 'writing to the standard output: Bad file descriptor' err || fail "with a closed output: $(cat err)"

# --gantt draws all runs or one run, and prints an error if there is nothing to draw
"$kilter" report --gantt all.svg finished.kilter
[ "$(grep -c '</svg>' all.svg)" = 1 ] || fail "report --gantt drew no picture"
grep -q '>runs 0 to 2: 36 chunks on 3 workers' all.svg || fail "the picture does not have all three runs: $(cat all.svg)"
"$kilter" report --gantt=one.svg --run=1 finished.kilter
grep -q '>run 1: 12 chunks' one.svg || fail "the picture does not show run 1"
"$kilter" report --gantt killed.svg killed.kilter
grep -q 'did not end' killed.svg || fail "the picture shows a killed run as ended"
expect 2 "no tasks were dealt" "$kilter" report --gantt none.svg empty.kilter
[ ! -e none.svg ] || fail "report --gantt wrote a picture of nothing"
expect 2 "there is no run 7" "$kilter" report --gantt none.svg --run 7 finished.kilter
expect 1 "nowhere/a.svg': No such file" "$kilter" report --gantt nowhere/a.svg finished.kilter
"$kilter" report --gantt - finished.kilter >dash.svg
cmp -s all.svg dash.svg || fail "the picture on the standard output differs from the one in a file"
[ ! -e ./- ] || fail "report --gantt - wrote a file named -"
expect 2 "--gantt wants a value" "$kilter" report --gantt
expect 2 "--gantt is given twice" "$kilter" report --gantt a.svg --gantt b.svg finished.kilter
expect 2 "--run is given twice" "$kilter" report --gantt a.svg --run 1 --run 2 finished.kilter
expect 2 "--run: 'x' is not a whole number" "$kilter" report --gantt a.svg --run x
expect 2 "no effect without --gantt" "$kilter" report --run 1 finished.kilter
expect 2 "--json and --gantt cannot be combined" "$kilter" report --json --gantt a.svg finished.kilter

# a loop
"$kilter" report --json loop.kilter >loop.json
same "$here/golden/loop.json" loop.json "kilter report --json of a loop"
for kind in loop killed_loop; do
    "$kilter" report --gantt $kind.svg $kind.kilter
    [ "$(grep -c 'class="c[01]" d=' $kind.svg)" = 2 ] || fail "the picture does not have a band for each rank: $(cat $kind.svg)"
done
grep -q '>redblack: 60 iterations on 2 ranks, 1 move<' loop.svg || fail "unexpected title: $(cat loop.svg)"
[ "$(grep -c '<path class="refused"' loop.svg)" = 2 ] || fail "the picture shows no refused move: $(cat loop.svg)"
grep -q 'the loop did not end' killed_loop.svg || fail "a killed loop is shown as ended"
expect 2 "has no runs" "$kilter" report --gantt none.svg --run 0 loop.kilter
expect 2 "record of a distributed loop" "$kilter" predict loop.kilter

# refused command lines
expect 2 "unknown option '--frob'; try 'kilter report --help'" "$kilter" report --frob
expect 2 "unknown option '-x'" "$kilter" report many.kilter -x
expect 2 "one file at a time" "$kilter" report a b
expect 2 "unknown command 'repotr' (did you mean report?); try 'kilter --help'" "$kilter" repotr
expect 2 "unknown option '--frob'" "$kilter" --frob
expect 2 "unknown command 'frob'" "$kilter" help frob
expect 2 "no command" "$kilter"
expect 2 "'missing.kilter': No such file" "$kilter" report missing.kilter
expect 2 "'-dash': No such file" "$kilter" report -- -dash
expect 2 "not a run record" "$kilter" report "$doc"
head -c 5000 finished.kilter >cut.kilter
expect 2 "'cut.kilter': it is damaged or cut" "$kilter" report cut.kilter
"$kilter" report finished.kilter >/dev/full 2>err && fail "kilter report ends with exit code 0 although its output could not be written"
grep -q "No space left" err || fail "unexpected error on a full disk: $(cat err)"

# help
"$kilter" --version | grep -Eq '^kilter [0-9]+\.[0-9]+\.[0-9]+$' || fail "--version"
"$kilter" --help | grep -q '^  report ' || fail "--help"
"$kilter" help | grep -q '^usage: kilter' || fail "help"
"$kilter" help report >one
"$kilter" report --frob --help >two
same one two "help report and report --help"

# without FILE, report takes the newest record, by the time of its log if it has one
expect 2 "no file *.kilter in '$place/home/.local/state/kilter'" "$kilter" report
mkdir -p home/.local/state/kilter state/kilter own
cp empty.kilter home/.local/state/kilter/
"$kilter" report | grep -q "record  *$place/home/.local/state/kilter/empty.kilter" || fail "from HOME"
cp many.kilter state/kilter/
XDG_STATE_HOME=$place/state "$kilter" report | grep -q "state/kilter/many.kilter" || fail "from XDG_STATE_HOME"
cp finished.kilter own/b.kilter
cp empty.kilter own/a.kilter
cp many.kilter own/newest.other
touch -d 2020-01-01 own/a.kilter
touch -d 2019-01-01 own/b.kilter
export KILTER_RECORD_DIR=$place/own
"$kilter" report | grep -q "own/a.kilter" || fail "kilter report did not take the newest record"
touch -d 2020-01-01 own/b.kilter
"$kilter" report | grep -q "own/b.kilter" || fail "report did not take the last name among two equally new records"
cp killed.kilter own/0.kilter
cp killed.kilter-wal own/0.kilter-wal
touch -d 2018-01-01 own/0.kilter
"$kilter" report | grep -q "own/0.kilter" || fail "report did not take the record that is being written"
expect 2 "the run cannot be reached" "$kilter" tune --once killed_loop.kilter
env -u HOME -u KILTER_RECORD_DIR "$kilter" report 2>err && fail "kilter report printed something without a record"
grep -q "name the file" err || fail "unexpected error without a record: $(cat err)"

# docs/reference/record.md names every column of a record, and its SQL queries work
if command -v sqlite3 >/dev/null; then
    [ "$(sqlite3 finished.kilter "SELECT count(*) FROM sqlite_schema WHERE name = 'loop'")" = 0 ] || fail "the record of a farm has tables of loops"
    sqlite3 loop.kilter "SELECT name FROM sqlite_schema WHERE type = 'table'" >tables
    while read -r table; do
        grep -q "^\*\*$table\*\*" "$doc" || fail "docs/reference/record.md does not have the table $table"
        awk -v head="**$table**" 'index($0, "**") == 1 { on = index($0, head) == 1 } /^## / { on = 0 } on' "$doc" >section
        for column in $(sqlite3 loop.kilter "SELECT name FROM pragma_table_info('$table')"); do
            grep -qw "$column" section || fail "docs/reference/record.md does not have the column $table.$column"
        done
    done <tables
    awk '/^```sql/ { on = 1; file = sprintf("query%02d", n++); next } /^```/ { on = 0 } on { print > file }' "$doc"
    for query in query*; do
        record=finished.kilter
        ! grep -q "kind = 'move'" "$query" || record=loop.kilter
        sqlite3 -bail $record <"$query" >rows || fail "docs/reference/record.md: $(cat "$query")"
        [ -s rows ] || fail "docs/reference/record.md: no rows from $(cat "$query")"
    done
else
    echo "sqlite3 is not installed: the queries of docs/reference/record.md were not tested"
fi
