#!/bin/sh
# Test kilter predict on the command line. usage: predict_test.sh KILTER RECORD_WRITER
set -eu
kilter=$1
writer=$2
here=$(cd "$(dirname "$0")" && pwd)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
export HOME="$place/home"
unset KILTER_RECORD_DIR XDG_STATE_HOME
cd "$place"

. "$here/outside_test.sh"

# holds FILE WORDS: fail unless the file contains the words
holds() {
    grep -qF -- "$2" "$1" || fail "these words are missing: $2; in: $(cat "$1")"
}

example="--work-s 1.6 --bytes 4096 --startup-s 1e-3 --per-byte-s 1e-6 --max-workers 60"

# the worked example of César et al. (2006), with inputs from options
"$kilter" predict --verbose $example >example.out
same "$here/golden/predict.out" example.out "the worked example of César et al."
holds example.out 'asynchronous  best n = 23 (lowest P_i), fastest n = 40 (lowest T_t)'
grep -q '^23 *93.7433 .*best' example.out || fail "T_t(23)"
grep -q '^40 *81.1024 .*fastest' example.out || fail "T_t(40)"
"$kilter" predict --json $example --task-mean-s 1e-3 --task-sd-s 5e-4 >example.json
same "$here/golden/predict.json" example.json "the worked example of César et al. as JSON"
if command -v sqlite3 >/dev/null; then
    [ "$(sqlite3 :memory: "SELECT json_extract(readfile('example.json'), '$.asynchronous.best.workers')")" = 23 ] ||
        fail "kilter predict --json does not print valid JSON: $(cat example.json)"
fi

# inputs from a record: options replace recorded values; several rounds are closer to the measured time than one
"$writer" finished finished.kilter
"$kilter" predict --verbose finished.kilter >record.out
same "$here/golden/predict-record.out" record.out "from a record"
"$kilter" predict --verbose --run 1 --master-s 0 --work-s 8 finished.kilter >given.out
holds given.out 'finished.kilter, run 1 of squares on 2 workers'
holds given.out '8.00 s to compute, on one worker (given)'
holds given.out '0.00 s of the master alone (given)'

# the last run was organised by peers, so it does not tell the costs of a master's messages: an earlier run is used
if command -v sqlite3 >/dev/null; then
    cp finished.kilter peers.kilter
    sqlite3 peers.kilter "
        CREATE TEMP TABLE last AS SELECT * FROM iteration ORDER BY run DESC LIMIT 1;
        CREATE TEMP TABLE theirs AS SELECT * FROM chunk WHERE run = (SELECT run FROM last);
        UPDATE last SET run = run + 1, began_s = began_s + 100, ended_s = ended_s + 200, chunks = 0;
        UPDATE theirs SET id = id + 1000, run = run + 1;
        INSERT INTO iteration SELECT * FROM last;
        INSERT INTO chunk SELECT * FROM theirs;"
    "$kilter" predict --verbose peers.kilter | sed 's/peers\.kilter/finished.kilter/' | grep -v '^measured' >peers.out
    grep -v '^measured' record.out | same - peers.out "a run by peers after the others"
    "$kilter" predict --verbose --run 3 peers.kilter >peers.out
    holds peers.out 'peers.kilter, run 3 of squares'
fi

# a forecast uses the mean cost of the last six similar runs; the first run, other runs and runs without tasks do not count
if command -v sqlite3 >/dev/null; then
    "$writer" many many.kilter
    # costly FILE CPU_S… [SQL]: give the last runs of a record with 20 runs these CPU times of local workers, and earlier runs 9 s
    costly() {
        local file=$1 run=0 sql="" cpu_s
        shift
        cp many.kilter "$file"
        while [ $run -lt 20 ]; do
            cpu_s=9
            if [ $run -ge 14 ]; then cpu_s=$1 && shift; fi
            for kind in local_cpu_s=$cpu_s local_tasks=120 cores=2 messages=24 farm_cpu_s=0.5; do
                sql="$sql INSERT INTO measurement(at_s, kind, value, count) SELECT began_s + 2.2, '${kind%=*}', ${kind#*=}, 1 FROM iteration WHERE run = $run;"
            done
            run=$((run + 1))
        done
        sqlite3 "$file" "$sql ${1:-}"
        "$kilter" predict --verbose "$file" | sed "s/$file/a.kilter/" >"$file.out"
    }
    costly equal.kilter 1 1 1 1 1 1
    holds equal.kilter.out "the master's core"
    holds equal.kilter.out "T_c           4.00 s to compute"
    costly mean.kilter 0.8 1.2 0.8 1.2 0.8 1.2
    same equal.kilter.out mean.kilter.out "the mean of six costs"
    costly bounds.kilter 1 1 1 1 1 1 "UPDATE iteration SET bound_s = bound_s * (run % 2 + 0.5)"
    same equal.kilter.out bounds.kilter.out "the mean of six bounds"
    costly late.kilter 9 9 1 1 1 1 "UPDATE iteration SET workers = 3 WHERE run = 15; UPDATE measurement SET value = -1 WHERE kind = 'messages' AND at_s > 190"
    grep -v '^measured\|^corrected' equal.kilter.out >equal.out
    grep -v '^measured\|^corrected' late.kilter.out | same equal.out - "runs before one with other workers"
    costly empty_last.kilter 1 1 1 1 1 1 "INSERT INTO iteration SELECT run + 1, 0, 0, policy, 0, began_s + 10, 0, 0, 0, workers, ended_s + 10, 0, 0, decision, status FROM iteration WHERE run = 19;
        INSERT INTO measurement(at_s, kind, value, count) SELECT began_s + 2.2, 'local_cpu_s', 0.001, 1 FROM iteration WHERE run = 20"
    same equal.kilter.out empty_last.kilter.out "a run without tasks at the end"
    costly null.kilter 9 9 1 1 1 1 "UPDATE iteration SET bound_s = NULL WHERE run = 15"
    grep -v '^measured\|^corrected' null.kilter.out | same equal.out - "runs before one without a bound"
    costly other.kilter 9 9 1 1 1 1 "UPDATE chunk SET bytes_in = 2 * bytes_in WHERE run = 15"
    grep -v '^measured\|^corrected' other.kilter.out | same equal.out - "runs before one with other bytes"
    # three runs: the first one is dear, and does not count
    three() { # FILE CPU_S: give the first run these CPU seconds of local workers, and the others 1 s
        cp finished.kilter "$1"
        for kind in local_cpu_s=1 local_tasks=120 cores=2 messages=24 farm_cpu_s=0.5; do
            sqlite3 "$1" "INSERT INTO measurement(at_s, kind, value, count)
                SELECT began_s + 2.2, '${kind%=*}', CASE WHEN run = 0 AND '$kind' = 'local_cpu_s=1' THEN $2 ELSE ${kind#*=} END, 1 FROM iteration"
        done
        "$kilter" predict --verbose "$1" | sed "s/$1/a.kilter/" >"$1.out"
    }
    three cold.kilter 9
    three warm.kilter 1
    same warm.kilter.out cold.kilter.out "a dear first run"
    costly dear.kilter 1 1 1 1 1 2
    ! cmp -s equal.kilter.out dear.kilter.out || fail "other costs give the same forecast"
fi

# --speeds and --hosts predict for other workers
"$kilter" predict --verbose $example --speeds 2x0.5,1 >speeds.out
holds speeds.out '3, the fastest first, together 2 times as fast as one worker'
grep -q '^3 *2.00 *80[0-9]\.' speeds.out || fail "three workers with the speed of two: unexpected time: $(cat speeds.out)"
"$kilter" predict --verbose finished.kilter --hosts finished.kilter >hosts.out
holds hosts.out '(--hosts, relative to'
grep -q '^2 *2.00 *9.8751' hosts.out || fail "unexpected forecast for the workers of the recorded run: $(cat hosts.out)"
"$kilter" predict --verbose $example --hosts finished.kilter >foreign.out
holds foreign.out 'one worker (--hosts, relative to their own'

# --iterations predicts a whole program, as in table 3 of the paper on the asynchronous trust-region method (ATR): the problem SSN with N = 10,000 and T = 400 takes 4.07 min = 4 min 04 s
atr="--work-s 321.5 --tasks 400 --master-s 2.709615384615385 --speeds 50x1 --iterations 26"
"$kilter" predict --verbose $atr >program.out
holds program.out '4 min 04 s for 26 iterations on 50 workers, 50 of them used'
"$kilter" predict --json $atr | grep -q '"program":{"iterations":26,"workers":50,"workers_used":50,"total_s":244.0' ||
    fail "the JSON about the whole program is wrong"
"$kilter" predict --verbose --work-s 10 --tasks 10 --speeds 5x2,0.1 --iterations 9 >slow.out
holds slow.out '10.00 s for 9 iterations on 6 workers, 5 of them used'
"$kilter" predict --verbose --iterations 5 finished.kilter >recorded.out
grep -q "the record's own . runs: .* measured, .* predicted (" recorded.out || fail "the output does not have the expected program time: $(cat recorded.out)"
expect 2 "the number of tasks of each run is not known" "$kilter" predict --work-s 1 --iterations 3
expect 2 "--iterations: '0' is not a whole number from 1 to" "$kilter" predict --work-s 1 --iterations 0

# the plot of the prediction
"$kilter" predict --plot a.svg finished.kilter >/dev/null
holds a.svg 'squares, run 2: useful number of workers'
holds a.svg '>measured<'
[ "$(grep -c '</svg>' a.svg)" = 1 ] || fail "kilter predict --plot drew no picture"
"$kilter" predict $example --plot=b.svg >/dev/null
holds b.svg '>lowest index: 23<'
holds b.svg '>lowest time: 40<'
holds b.svg '>capability of the master: 41<'

# without --verbose, the output begins with a sentence and has no symbols
"$kilter" predict $example >plain.out
[ "$(head -1 plain.out)" = "Up to 23 workers are worth using: the run then takes 93.7 ms; it is fastest with 40: 81.1 ms." ] ||
    fail "unexpected first sentence: $(head -1 plain.out)"
grep -q '^ *23 *93.7433 *74.2  pays best$' plain.out || fail "unexpected table without --verbose: $(cat plain.out)"
"$kilter" predict finished.kilter >plain2.out
head -1 plain2.out | grep -q '^With 16 workers the run takes 8.16 s (90 % interval: ' || fail "unexpected first sentence: $(head -1 plain2.out)"
! grep -E 'T_c|T_t|l_m|m_o|P_i|λ|α' plain.out plain2.out || fail "the output has symbols without --verbose"

# refused command lines and records
expect 2 "--work-s: '-1' is not a number of seconds above 0" "$kilter" predict --work-s -1
expect 2 "--work-s: '0' is not a number of seconds above 0" "$kilter" predict --work-s 0
expect 2 "--work-s: 'nan' is not a number" "$kilter" predict --work-s nan
expect 2 "--work-s: 'inf' is not a number" "$kilter" predict --work-s inf
expect 2 "--work-s: '1e999' is not a number" "$kilter" predict --work-s 1e999
expect 2 "--work-s: '1s' is not a number" "$kilter" predict --work-s 1s
expect 2 "--work-s is given twice" "$kilter" predict --work-s 1 --work-s 2
expect 2 "--speeds is given twice" "$kilter" predict --work-s 1 --speeds 1 --speeds 2
expect 2 "--max-workers is given twice" "$kilter" predict --work-s 1 --max-workers 1 --max-workers 2
expect 2 "--plot -: the standard output" "$kilter" predict --work-s 1 --plot -
expect 2 "--work-s wants a value" "$kilter" predict --work-s
expect 2 "--alpha: '1.5' is not a number from 0 to 1" "$kilter" predict --work-s 1 --alpha 1.5
expect 2 "--alpha: '-0.1' is not a number from 0 to 1" "$kilter" predict --work-s 1 --alpha -0.1
expect 2 "--bytes: '-4' is not a number from 0" "$kilter" predict --bytes -4
expect 2 "--tasks: '0' is not a whole number from 1" "$kilter" predict --tasks 0
expect 2 "--work-s: '-1' is not" "$kilter" predict --work-s=-1
expect 2 "--tasks: '1.5' is not a whole number" "$kilter" predict --tasks 1.5
expect 2 "--startup-s: '1e300' is not a number of seconds from 0 to" "$kilter" predict --work-s 1 --startup-s 1e300
expect 2 "longer than all the work" "$kilter" predict --work-s 1 --task-mean-s 2
expect 2 "are not 1 s of work" "$kilter" predict --work-s 1 --tasks 7 --task-mean-s 0.01
expect 2 "'0x1' is not a speed" "$kilter" predict --work-s 1 --speeds 0x1
expect 2 "--max-workers: '0' is not a whole number from 1 to 1000000" "$kilter" predict --max-workers 0
expect 2 "--max-workers: '2.5' is not" "$kilter" predict --max-workers 2.5
expect 2 "--run: '-1' is not a whole number" "$kilter" predict --run -1
expect 2 "'0' is not a speed above 0" "$kilter" predict --work-s 1 --speeds 1,0
expect 2 "'' is not a speed" "$kilter" predict --work-s 1 --speeds 1,
expect 2 "'-1' is not a speed" "$kilter" predict --work-s 1 --speeds 2,-1
expect 2 "'2000000x1' is not a speed" "$kilter" predict --work-s 1 --speeds 2000000x1
expect 2 "more than 1000000 workers" "$kilter" predict --work-s 1 --speeds 600000x1,600000x1
expect 2 "cannot be combined" "$kilter" predict --work-s 1 --speeds 1 --hosts finished.kilter
expect 2 "name the FILE" "$kilter" predict --work-s 1 --run 1
expect 2 "unknown option '--frob'; try 'kilter predict --help'" "$kilter" predict --frob
expect 2 "one file at a time" "$kilter" predict a b
expect 2 "no file *.kilter in" "$kilter" predict
expect 2 "'missing.kilter': No such file" "$kilter" predict missing.kilter
expect 2 "'missing.kilter': No such file" "$kilter" predict --work-s 1 --hosts missing.kilter
expect 2 "the record has no run 9" "$kilter" predict --run 9 finished.kilter
"$writer" killed killed.kilter
"$kilter" predict --verbose killed.kilter >cut.out
grep -q "^part .*the run was cut off, or still goes on: 120 of its 120 tasks were done" cut.out || fail "unexpected output for a killed run: $(cat cut.out)"
"$kilter" predict --verbose --run 0 killed.kilter | same cut.out - "the same run, named"

# the run was cancelled: the prediction assumes that its other tasks are like the tasks that were done
"$writer" cancelled cancelled.kilter
"$kilter" predict --verbose cancelled.kilter >cut.out
holds cut.out 'the run ended early: cancelled: 90 of its 120 tasks were done'
holds cut.out '4.00 s to compute, on one worker'
holds cut.out '2880 bytes in messages'
holds cut.out '120 tasks (tasks of the run)'
holds cut.out '33.3 ms a task'
! grep -q "^measured" cut.out || fail "a cancelled run is printed as a measured one"
"$kilter" predict --json cancelled.kilter | grep -qF '"cut":{"status":"cancelled","tasks_done":90,"tasks":120}' ||
    fail "the JSON does not show that the run was cut off"
"$kilter" predict --verbose --iterations 3 --hosts cancelled.kilter cancelled.kilter >cut.out
holds cut.out 'together 2 times as fast'
"$writer" later cancelled-later.kilter # run 0 is complete and run 1 is not: run 0 is used
"$kilter" predict --verbose cancelled-later.kilter >whole.out
holds whole.out 'cancelled-later.kilter, run 0 of'
! grep -q "^part" whole.out || fail "a complete run is printed as if tasks were missing"
"$kilter" predict --verbose --run 1 cancelled-later.kilter | grep -q "^part" || fail "an incomplete run is printed as if all tasks were done"
"$writer" empty empty.kilter
expect 2 "'empty.kilter': no task of the record is done" "$kilter" predict empty.kilter
head -c 5000 finished.kilter >cut.kilter
expect 2 "'cut.kilter': it is damaged or cut" "$kilter" predict cut.kilter
expect 1 "nowhere/a.svg': No such file" "$kilter" predict $example --plot nowhere/a.svg
"$kilter" predict $example >/dev/full 2>err && fail "kilter predict ends with exit code 0 although its output could not be written"

# without FILE, the newest record is used
mkdir -p home/.local/state/kilter
cp finished.kilter home/.local/state/kilter/
"$kilter" predict 2>err | grep -q "home/.local/state/kilter/finished.kilter, run 2" || fail "kilter predict did not take the newest record"
grep -q "^kilter: $place/home/.local/state/kilter/finished.kilter: the newest record of all" err || fail "predict does not print which record it took: $(cat err)"

"$kilter" help predict | grep -q '^usage: kilter predict' || fail "kilter help predict prints no usage"
