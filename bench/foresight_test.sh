#!/usr/bin/env bash
# Run tools/foresight with four tiny rows, and check that the page it writes is complete. The test does not check the page's numbers, because
# they depend on the machine.
# usage: foresight_test.sh SOURCE_DIR BUILD_DIR     exit 77: a tool that the test needs is missing
set -euo pipefail
for tool in jq sqlite3; do command -v $tool >/dev/null || { echo "skipped: $tool is not installed" >&2; exit 77; }; done
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
export HOME=$place TMPDIR=$place XDG_STATE_HOME=$place FOUND=$place/found BUILD=$2 OUTPUT=$place/page
export TRANSPORTS="ipc tcp" KINDS="sleep compute" TASKS_MS=0.05 BYTES=10000 SIDES=results WORKERS="2 4" ENGINES=events RUN_S=0.01
export PAYLOAD=0
unset XDG_RUNTIME_DIR KILTER_RECORD KILTER_RECORD_DIR REPEAT KEEP PAGE_ONLY NO_PAGE BOX

fail() {
    echo "FAILED: $*" >&2
    cat "$place/page" >&2 || :
    exit 1
}

says() { # says PATTERN [COUNT]: fail unless COUNT lines of the page match
    [ "$(grep -Ec -- "$1" "$place/page")" = "${2:-1}" ] || fail "not ${2:-1} lines say: $1"
}

refuses() { # refuses NAME VALUE: fail unless tools/foresight refuses the variable's value with a message of one line
    local said
    said=$(env "$1=$2" "$tool" 2>&1) && fail "$1=$2 is taken"
    [[ $said =~ ^foresight:\ $1 ]] || fail "$1=$2: $said"
}

tool=$1/tools/foresight
"$tool" 2>"$place/said" || fail "$(<"$place/said")"
time='[0-9.]+ (µs|ms|s)'
bold='(\*\*)?'
error="$bold[+-][0-9]+ %$bold"
says '^The tables have 4 rows and 8 forecasts\.$'
says "^$bold[0-8] of 8 \([0-9]+ %\)$bold of the forecasts are within 10 % .*In $bold[0-4] of 4 \([0-9]+ %\)$bold rows the number of workers chosen"
says "^\| (ipc|tcp), (sleeping|computing) \| $bold[0-2] of 2 .*( \| $bold[01] of 1 \([0-9]+ %\)$bold \| $bold[0-9.]+$bold){2} \| $bold[0-2] of 2 \([0-9]+ %\)$bold \|$" 4
says '^The farm that chooses may try other numbers .* In [0-4] of 4 \([0-9]+ %\) rows'
says "^\| all \| $bold[0-8] of 8 "
says "^\| 0\.05 ms \| 8 B \| 10 kB \| [0-9]+ \| $time $error \| $time $error \|" 4
says '^\| 0\.05 ms \| 8 B \| 10 kB \| [0-9]+ \| [124] \| [0-9.e-]+ s² \| [1-4] \| (\*\*)?[0-9.]+(\*\*)? \| [0-9.]+ \| [0-9]+ \([0-9]+\) \|$' 4
says "^\| events \| $bold[0-8] of 8 "
says "^\| 0\.05 ms \| 8 B \| 10 kB \| [0-9]+ \| $error \| $error \|$" 4
says "^    [^ ]+: TRANSPORTS='ipc tcp' .*: [0-9]+ s$"

# Write the page again from the stored runs: the page must be the same as before. Then store every run twice: the table must still have the same
# rows.
cp "$place/page" "$place/before"
PAGE_ONLY=1 "$tool"
cmp "$place/page" "$place/before" || fail "the page differs after it was written again from the same runs"
cp "$place/found/runs.tsv" "$place/runs"
cat "$place/runs" >>"$place/found/runs.tsv"
PAGE_ONLY=1 "$tool"
says '^The tables have 4 rows and 8 forecasts\.$'

# The page must keep rows whose runs are not measured again.
cp "$place/before" "$place/page"
FOUND=$place/other PAGE_ONLY=1 "$tool"
says '^The tables have 4 rows and 8 forecasts\.$'
cp "$place/page" "$place/before"
FOUND=$place/other PAGE_ONLY=1 "$tool"
cmp "$place/page" "$place/before" || fail "the page differs after its rows were kept a second time"

# If a single worker was best in no row, a kept page has no time of a single worker. It must keep all other columns.
sed -Ei 's/^(\| 0\.05 ms \| 8 B \| 10 kB \| [0-9]+ \|) [124] \|/\1 2 |/' "$place/page"
says '^\| 0\.05 ms \| 8 B \| 10 kB \| [0-9]+ \| 2 \| [0-9.e-]+ s² \|' 4
FOUND=$place/other PAGE_ONLY=1 "$tool"
FOUND=$place/other PAGE_ONLY=1 "$tool"
says '^The tables have 4 rows and 8 forecasts\.$'
says "^\| 0\.05 ms \| 8 B \| 10 kB \| [0-9]+ \| $error \| $error \|$" 4

# A page of an earlier version, whose table of choices has other columns, is refused and stays.
sed -i 's/ choosing farm | looks / looks /' "$place/page"
cp "$place/page" "$place/before"
said=$(FOUND=$place/other PAGE_ONLY=1 "$tool" 2>&1) && fail "an earlier page is taken"
[[ $said = *'the table of choices has no column "choosing farm"' ]] || fail "an earlier page: $said"
cmp "$place/page" "$place/before" || fail "an earlier page changed"
sed -i 's/ index | looks / index | choosing farm | looks /' "$place/page"

# With measurements of large messages, the page gets a section on them. Later, without these measurements, the page must keep the section.
{
    for way in shared sockets; do
        printf '%s\tresults, looked at\t1000000\t%s\n' "$way" "$([ $way = shared ] && printf '8\t0.01' || printf '2\t0.1')"
        printf 'small\t%s\t0.5\t0.5\t1\n' "$way"
    done
    printf 'version\tabc\n'
} >"$place/other/payload.tsv"
FOUND=$place/other PAGE_ONLY=1 "$tool"
says '^Results of 1 MB arrive at 8\.0 GB/s, and through sockets at 2\.0 GB/s\. That is 4\.0 times .* 0\.10 times as much'
says 'need 1\.000 times the CPU time .* \(median of 1 pairs'
cp "$place/page" "$place/before"
rm "$place/other/payload.tsv"
FOUND=$place/other PAGE_ONLY=1 "$tool"
cmp "$place/page" "$place/before" || fail "the section on large messages changed although it was not measured again"

# Check that the page counts how many of the forecasts' 90 % intervals contain the measured time.
awk -F'\t' -v OFS='\t' '$7 == "forecast" { $10 = 0; $11 = $8 == 2 ? 1000 : 0 } { print }' "$place/runs" >"$place/found/runs.tsv"
PAGE_ONLY=1 "$tool"
says '\*\*4 of 8 \(50 %\)\*\* of the stated 90 % intervals contain what was measured'

refuses TRANSPORTS carrier
refuses KINDS "sleep dream"
refuses BYTES 7
refuses WORKERS "1 2"
refuses RUN_S soon
