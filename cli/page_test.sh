#!/bin/sh
# Test kilter report --html, --perfetto and --csv. usage: page_test.sh KILTER RECORD_WRITER PAGE_TOOL
# If node and a Chromium are installed, the page is also opened in a browser.
set -eu
kilter=$1
writer=$2
tool=$3
here=$(cd "$(dirname "$0")" && pwd)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
export TZ=UTC HOME="$place"
unset KILTER_RECORD_DIR XDG_STATE_HOME
cd "$place"
. "$here/outside_test.sh"

evil='</script><script>window.evil = 1</script><img src=x onerror="window.evil = 1">'
"$writer" finished evil.kilter "$evil"
"$writer" finished finished.kilter
for kind in many killed empty loop; do
    "$writer" $kind $kind.kilter
    "$kilter" report --html $kind.html $kind.kilter 2>err
    grep -q '</html>' $kind.html || fail "no page was written for $kind.kilter"
done

# texts of the record are escaped in the page, and the page loads nothing from other hosts
"$kilter" report --html evil.html evil.kilter 2>err
"$kilter" report --html finished.html finished.kilter 2>err
[ "$(grep -c '</script' evil.html)" = "$(grep -c '</script' finished.html)" ] || fail "a program's name ends a script"
grep -q '<h1>&lt;/script&gt;' evil.html || fail "the name is not escaped: $(grep '<h1>' evil.html)"
grep -q "default-src 'none'" evil.html || fail "the page may load something"
! grep -qE '(src|href)="?(https?:)?//' evil.html || fail "the page refers to other hosts"
grep -q '<p>2 workers did 120 tasks in 2.12 s, at 94.1 % of their full speed.</p><p>If every' finished.html || fail "the page lacks its sentences"

expect 2 "--json and --html cannot be combined" "$kilter" report --json --html a.html finished.kilter
expect 2 "--html and --csv cannot be combined" "$kilter" report --html a.html --csv d finished.kilter
expect 2 "'missing.kilter': No such file" "$kilter" report --html a.html missing.kilter
expect 2 "'missing.kilter': No such file" "$kilter" report --perfetto a.json missing.kilter
expect 2 "'missing.kilter': No such file" "$kilter" report --csv tables missing.kilter
expect 1 "nowhere/a.html': No such file" "$kilter" report --html nowhere/a.html finished.kilter
[ ! -e a.html ] && [ ! -e a.json ] || fail "a file was written on an error"

# --perfetto writes an event for each chunk, each decision and each failure; of a loop, it writes each rank's iterations in each round
"$kilter" report --perfetto evil.json evil.kilter
events() { jq -r "[.traceEvents[] | select($2)] | $3" $1.json; }
[ "$(events evil '.ph == "X"' length)" = 36 ] || fail "not every chunk is an event"
[ "$(events evil '.ph == "X" and .tid == 2' '.[0] | "\(.name) \(.ts) \(.dur) \(.args.tasks)"')" = "tasks 10-19 1000000 507812.5 10" ] || fail "a chunk's event is wrong"
[ "$(events evil '.cat == "decision"' length)" = 39 ] || fail "not every decision is an event"
[ "$(events evil '.cat == "failure"' '.[2].args.text')" = "no luck" ] || fail "a failure is missing"
[ "$(events evil '.name == "process_name"' '.[0].args.name')" = "$evil" ] || fail "the name is wrong"
"$kilter" report --perfetto loop.json loop.kilter
[ "$(events loop '.ph == "C" and .name == "iterations, rank 1"' 'map(.args.iterations) | join(" ")')" = "30 30 45 45" ] || fail "a loop's shares are wrong"

# the tables have the rows that SQLite reads from the record
"$kilter" report --csv tables evil.kilter
for table in run chunk decision failure worker; do
    sqlite3 evil.kilter "SELECT count(*) FROM $table" >count
    echo '.mode csv
.import tables/'$table'.csv t
SELECT count(*) FROM t;' | sqlite3 :memory: >got
    same count got "rows of $table.csv"
done
printf '.mode csv\n.import tables/run.csv t\nSELECT program FROM t;' | sqlite3 :memory: | grep -qF "window.evil" || fail "the program is missing in run.csv"
# even if the name of a table contains "../", no file is written outside of the folder
sqlite3 many.kilter 'CREATE TABLE "../outside" (a); INSERT INTO "../outside" VALUES (1)'
"$kilter" report --csv tables2 many.kilter
[ -f tables2/chunk.csv ] && [ ! -e outside.csv ] || fail "a table was written outside of the folder"
: >plain
expect 1 "plain/" "$kilter" report --csv plain finished.kilter

# --- in a browser

command -v node >/dev/null && "$tool" run 2>/dev/null || [ $? = 2 ] || { echo "no node: the page was not opened"; exit 0; }
got=0
"$tool" run evil.html "$(cat "$here/page_test.js")" >result 2>err || got=$?
[ $got != 77 ] || { echo "no Chromium: the page was not opened"; exit 0; }
[ $got = 0 ] && [ "$(cat result)" = '"right"' ] || fail "in the browser: $(cat result err)"

# a browser that cannot unpack the data says so, and still shows the sentences
sed 's|<script type=|<script>delete window.DecompressionStream</script>&|' finished.html >old.html
"$tool" run old.html 'document.body.innerText' >result 2>err || fail "in an old browser: $(cat err)"
grep -q 'This browser cannot unpack the data of this page' result || fail "an old browser does not say what is missing: $(cat result)"
grep -q '2 workers did 120 tasks' result || fail "an old browser does not show the sentences: $(cat result)"
