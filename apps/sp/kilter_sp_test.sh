#!/usr/bin/env bash
# Test kilter-sp on the command line. The answer must have the same bits for every number of workers, policy and transport. Exit codes and error
# texts are checked, too.
# usage: kilter_sp_test.sh KILTER-SP PROBLEMS [MPIEXEC]
set -u
# shellcheck source=apps/sp/test_support.sh
. "$(dirname "$0")/test_support.sh"

evaluate() {
    timeout 60 "$@" evaluate "$lands/lands.cor" "$lands/lands.tim" "$lands/lands.sto" --at "$lands/lands.at" \
        --scenarios 3000 --seed 11 --json --record none
}

evaluate "$sp" --workers 1 >"$work/out" || complain "evaluate failed"
expect estimate_bits

for workers in 2 7; do
    same evaluate "$sp" --workers $workers
done
for policy in $("$sp" --kilter-help | sed -n '/^Policies:/,/^Policies of peers/ s/^  \([a-z0-9-]*\) .*/\1/p'); do
    same evaluate "$sp" --workers 3 --policy "$policy"
    policies=${policies:-}${policies:+ }$policy
done
case " ${policies:-} " in *" static "*" auto "*) ;; *) complain "policies: ${policies:-none}" ;; esac
same evaluate "$sp" --workers 3 --transport inproc
same evaluate "$sp" --workers 3 --organise peers
if [ -n "$ranks" ]; then
    # shellcheck disable=SC2086 # $ranks is a list
    same evaluate $ranks "$sp"
fi

# ---- solve gives the same bits for every number of workers, policy and transport (faults_test.sh tests it with faults)

solve() {
    timeout 60 "$@" solve "$supply/supply.cor" "$supply/supply.tim" "$supply/supply.sto" --scenarios 300 --seed 5 \
        --check 200 --json
}

solve "$sp" --workers 1 --record none >"$work/out" || complain "solve failed"
expect cost_bits estimate_bits candidates decision
for workers in 2 3 5; do
    same solve "$sp" --record none --workers $workers
done
for policy in $policies; do
    same solve "$sp" --record none --workers 3 --policy "$policy"
done
same solve "$sp" --record none --workers 3 --transport inproc
if [ -n "$ranks" ]; then
    # shellcheck disable=SC2086 # $ranks is a list
    same solve $ranks "$sp" --record none
fi

# Solve a problem with random recourse, whose first stage has no rows. The bits must be the same on any workers, and every method must give the
# same cost.
solve_mill() {
    timeout 60 "$@" solve "$mill/mill.cor" "$mill/mill.tim" "$mill/mill.sto" --scenarios 40 --seed 5 --check 200 \
        --json --record none
}
solve_mill "$sp" --workers 1 >"$work/out" || complain "solve failed with random recourse"
expect cost_bits estimate_bits candidates decision
cost >"$work/costs"
same solve_mill "$sp" --workers 3
for more in "--method de" "--mode fast" "--clusters 3"; do
    # shellcheck disable=SC2086 # a list
    timeout 60 "$sp" solve "$mill/mill.cor" "$mill/mill.tim" "$mill/mill.sto" --scenarios 40 --seed 5 $more --json \
        --decision "$work/mill.at" --workers 2 --record none >"$work/out" || complain "random recourse, $more"
    cost >>"$work/costs"
done
awk 'NR == 1 { c = $1 } ($1-c)^2 > (2e-6*c)^2 { bad = 1 } END { exit NR != 4 || bad }' "$work/costs" ||
    complain "costs differ: $(cat "$work/costs")"
timeout 60 "$sp" evaluate "$mill/mill.cor" "$mill/mill.tim" "$mill/mill.sto" --at "$work/mill.at" --scenarios 50 \
    --workers 2 --record none >"$work/out" || complain "evaluate failed with random recourse"

# Both methods and both modes must give the same cost, and the file of the sampled problem must be written.
for more in "--method de" "--mode fast" "--lhs --method de" "--lhs" "--scenarios=all"; do
    scenarios="--scenarios 60"
    [ "$more" = --scenarios=all ] && scenarios=
    # shellcheck disable=SC2086 # lists
    timeout 60 "$sp" solve "$supply/supply.cor" "$supply/supply.tim" "$supply/supply.sto" $scenarios $more --json \
        --workers 2 --record none --mps "$work/mps" --decision "$work/found.at" >"$work/out" || complain "solve failed with $more"
    echo "$more $(cost)"
done >"$work/costs"
awk '{ c = $NF } /^--method de/ { d = c } /^--mode fast/ { if ((c-d)^2 > 1e-8*d*d) bad = 1 } /^--lhs --method/ { l = c }
     /^--lhs [0-9]/ { if ((c-l)^2 > 1e-8*l*l) bad = 1 } END { exit NR != 5 || bad }' "$work/costs" ||
    complain "costs differ: $(cat "$work/costs")"
grep -q '^ENDATA' "$work/mps" || complain "no problem was written"
timeout 60 "$sp" evaluate "$supply/supply.cor" "$supply/supply.tim" "$supply/supply.sto" --at "$work/found.at" \
    --scenarios 50 --workers 1 --record none >"$work/out" || complain "the written decision cannot be evaluated"
timeout 60 "$sp" solve "$lands/lands.cor" "$lands/lands.tim" "$lands/lands.sto" --grow 100,1000,3000 --workers 2 \
    --record "$work/grown.kilter" >"$work/out" || complain "solve failed with --grow"
grep -q '^scenarios *3000 ' "$work/out" || complain "--grow ends with $(cat "$work/out")"
awk '/^cost/ { print $2 }' "$work/out" >"$work/grown"
rows=$(sqlite3 "$work/grown.kilter" "SELECT group_concat(d.count) FROM decision d JOIN iteration i USING (run)
    WHERE d.kind = 'program' AND d.forecast_s > i.began_s AND i.ended_s IS NOT NULL ORDER BY d.run")
echo "$rows" | grep -Eq '^[1-9][0-9]*,[1-9][0-9]*,1$' || complain "the record of --grow has the forecasts '$rows'"
[ -n "$(sqlite3 "$work/grown.kilter" "SELECT program_version FROM session")" ] ||
    complain "the record lacks the version of kilter-sp"

# A warning must be printed if numbers are too large or too far apart for CLP's tolerances. If there is no warning, the methods must give the same cost.
sed '/RUN1M1 *PLANT1/ s/1$/1e11/' "$lands/lands.cor" >"$work/apart.cor"
: >"$work/costs"
for method in tr de; do
    timeout 60 "$sp" solve "$work/apart.cor" "$lands/lands.tim" "$lands/lands.sto" --scenarios 60 --check 0 --json \
        --method $method --workers 1 --record none >"$work/out" 2>"$work/err"
    code=$?
    [ $code -eq 0 ] || { [ $method = de ] && grep -q "its duals prove\|misses rows" "$work/err"; } ||
        complain "$method ends with $code: $(cat "$work/err")"
    grep -q "apart.cor: the matrix has 1e+11 (column RUN1M1, row PLANT1) beside 1 " "$work/err" ||
        complain "$method does not name the number: $(cat "$work/err")"
    [ $code -ne 0 ] || cost >>"$work/costs"
done
awk '($1-227.1006667)^2 > (1e-6*$1)^2 { bad = 1 } END { exit bad || NR == 0 }' "$work/costs" ||
    complain "costs differ: $(cat "$work/costs")"

# The answer must be printed even if something fails after the solve: a scenario is infeasible at the decision, or the disk is full.
for more in "--decision /dev/full --check 0" "--check 100"; do
    # shellcheck disable=SC2086 # a list
    timeout 60 "$sp" solve "$supply/supply.cor" "$supply/supply.tim" "$supply/supply.sto" --scenarios 2 --seed 4 \
        --workers 1 --record none $more >"$work/out" 2>"$work/err"
    code=$?
    [ $code -eq 1 ] && grep -q '^cost  *22 ' "$work/out" &&
        grep -q "writing '/dev/full': \|estimating out of sample: scenario [0-9]* of seed 5: .* infeasible" "$work/err" ||
        complain "$more ends with $code, $(cat "$work/out" "$work/err")"
done

timeout 60 "$sp" solve "$lands/lands.cor" "$lands/lands.tim" "$lands/lands.sto" --grow 100,1000,3000 --workers 2 \
    --clusters auto --policy ect --record none >"$work/out" || complain "solve failed with --clusters auto"
awk 'NR == FNR { c = $1 } /^cost/ { ok = ($2-c)^2 <= 1e-10*c*c } END { exit !ok }' "$work/grown" "$work/out" ||
    complain "--clusters auto ends with $(cat "$work/out"), not $(cat "$work/grown")"

timeout 60 "$sp" predict "$lands/lands.cor" "$lands/lands.tim" "$lands/lands.sto" --scenarios 20000 --on 40x1,9x0.25,1e-9 \
    --candidates 12 --benchmark 300 --workers 2 --record none >"$work/out" || complain "predict failed"
grep -q '^time  *[0-9.]* s for 20000 scenarios on 50 workers, 49 of them used; bound' "$work/out" ||
    complain "predict says $(cat "$work/out")"
grep -q '^candidates  *12; 400 clusters' "$work/out" || complain "predict's candidates: $(cat "$work/out")"
grep -q '^benchmark  *300 scenarios, .* on [12] workers*: .* s measured, .* s predicted' "$work/out" ||
    complain "predict's benchmark: $(cat "$work/out")"
timeout 60 "$sp" predict "$lands/lands.cor" "$lands/lands.tim" "$lands/lands.sto" --scenarios 100 --workers 2 --json \
    --record none | grep -q '"workers": [12], .*"benchmark": {"scenarios": 100, ' || complain "predict --json"

timeout 60 "$sp" predict "$lands/lands.cor" "$lands/lands.tim" "$lands/lands.sto" --scenarios 20000 --clusters auto \
    --on 4x1 --workers 2 --record none >"$work/out" || complain "predict failed with --clusters auto"

# refused CODE TEXT WORDS…: the command must exit with CODE, print TEXT in one line on stderr, and nothing on stdout
refused() {
    code=$1 text=$2
    shift 2
    "$@" >"$work/out" 2>"$work/err"
    got=$?
    [ $got -eq "$code" ] || complain "$* ends with $got, expected $code"
    [ "$(wc -l <"$work/err")" -eq 1 ] || complain "$* prints $(cat "$work/err")"
    grep -qF -- "$text" "$work/err" || complain "$* says $(cat "$work/err"), expected $text"
    [ ! -s "$work/out" ] || complain "$* prints $(cat "$work/out")"
}

good() { # WORDS…: evaluate a correct problem, with these additional arguments
    "$sp" evaluate "$lands/lands.cor" "$lands/lands.tim" "$lands/lands.sto" --at "$lands/lands.at" --workers 1 \
        --record none "$@"
}
sed 's/BUDGET    10/BUDGET    1O/' "$lands/lands.cor" >"$work/bad.cor"
printf 'BUILD1 9\nBUILD2 9\nBUILD3 9\nBUILD4 9\n' >"$work/dear.at"
sed 's/BUILD1  .*/BUILD1  0/; s/BUILD2  .*/BUILD2  12/; s/BUILD[34]  .*/& 0/; s/  [0-9.]* 0$/  0/' \
    "$lands/lands.at" >"$work/thin.at"
sed 's/ 3\.96 / 99.0 /' "$lands/lands.sto" >"$work/peak.sto"
refused 2 "a command is missing" "$sp" --workers 1 --record none
refused 2 "there is no command salve" "$sp" salve --workers 1 --record none
refused 2 "--scenarios 0; give a whole number" good --scenarios 0
refused 2 "there is no option --scenaria" good --scenaria 5
refused 2 "no/file: No such file" "$sp" evaluate no/file "$lands/lands.tim" "$lands/lands.sto" --at x --scenarios 5 \
    --workers 1 --record none
refused 2 "one file too many" good more --scenarios 5
refused 2 "bad.cor:22: \"1O\" is not a number" "$sp" evaluate "$work/bad.cor" "$lands/lands.tim" \
    "$lands/lands.sto" --at "$lands/lands.at" --scenarios 5 --workers 1 --record none
refused 2 "dear.at:4: the decision is not feasible: first-stage row BUDGET" "$sp" evaluate "$lands/lands.cor" \
    "$lands/lands.tim" "$lands/lands.sto" --at "$work/dear.at" --scenarios 5 --workers 1 --record none
refused 2 "--gap 0; give a relative gap" "$sp" solve a b c --scenarios 5 --gap 0 --workers 1 --record none
refused 2 "--grow 5,5; give up to" "$sp" solve a b c --grow 5,5 --workers 1 --record none
refused 2 "--on 0x1 is not a list of speeds" "$sp" predict "$lands/lands.cor" "$lands/lands.tim" "$lands/lands.sto" \
    --scenarios 50 --on 0x1 --workers 1 --record none
refused 2 "--on 5x0 is not a list of speeds" "$sp" predict "$lands/lands.cor" "$lands/lands.tim" "$lands/lands.sto" \
    --scenarios 50 --on 5x0 --workers 1 --record none
refused 2 "--candidates 0; give a whole number" "$sp" predict a b c --scenarios 5 --candidates 0 --workers 1 --record none
refused 2 "--benchmark x; give a number" "$sp" predict a b c --scenarios 5 --benchmark x --workers 1 --record none
refused 2 "--clusters auto depends on measured times" "$sp" solve "$lands/lands.cor" "$lands/lands.tim" "$lands/lands.sto" \
    --scenarios 50 --clusters auto --resume "$work/auto" --workers 1
refused 2 "--clusters has no effect beside --method de" "$sp" solve a b c --scenarios 5 --clusters 2 --method de \
    --workers 1 --record none
refused 2 "--scenarios none; give a whole number from 1 to 1000000000, or all" "$sp" solve a b c --scenarios none \
    --workers 1 --record none
refused 2 "cannot be combined" "$sp" solve a b c --grow 5,6 --scenarios 5 --workers 1 --record none
sed 's/SITE      20/SITE      9/' "$supply/supply.cor" >"$work/small.cor"
sed '/RUN2      DEMAND/a\    GAIN      COST      -1' "$supply/supply.cor" >"$work/endless.cor"
printf 'BUILD1 8\nBUILD2 8\n' >"$work/enough.at"
(
    cd "$work" || exit 1
    refused 1 "; written to kilter-sp-scenario-0.mps" "$sp" solve endless.cor "$supply/supply.tim" \
        "$supply/supply.sto" --scenarios 10 --start enough.at --workers 2 --record none
    grep -q '^ENDATA' kilter-sp-scenario-0.mps || complain "no scenario was written"
    exit $failed
) || failed=1
refused 1 "the problem is infeasible: no decision makes every scenario feasible" "$sp" solve "$work/small.cor" \
    "$supply/supply.tim" "$supply/supply.sto" --scenarios 100 --workers 2 --record none
refused 1 "the problem is infeasible: no decision makes every scenario feasible" "$sp" solve "$work/small.cor" \
    "$supply/supply.tim" "$supply/supply.sto" --scenarios 100 --method de --workers 2 --record none
sed 's/SITE      20/SITE      -4/' "$supply/supply.cor" >"$work/none.cor"
for method in tr de; do
    refused 1 "the first stage is infeasible: no decision keeps its rows and bounds" "$sp" solve "$work/none.cor" \
        "$supply/supply.tim" "$supply/supply.sto" --scenarios 100 --method $method --workers 2 --record none
done
refused 1 "its second stage is infeasible" "$sp" evaluate "$lands/lands.cor" \
    "$lands/lands.tim" "$work/peak.sto" --at "$work/thin.at" --scenarios 1000 --workers 2 --record none

"$sp" --version | grep -q '^kilter-sp [0-9]' || complain "--version prints no version"
"$sp" --help | grep -q evaluate || complain "--help"
"$sp" predict --help | grep -q -- --on || complain "predict --help"
"$sp" solve --help | grep -q -- --grow || complain "solve --help"
"$sp" evaluate --help >"$work/out" || complain "evaluate --help failed"
grep -q -- --scenarios "$work/out" && grep -q -- --policy "$work/out" || complain "evaluate --help lacks options"
"$sp" --version >/dev/full 2>/dev/null && complain "a full disk causes no error"
exit $failed
