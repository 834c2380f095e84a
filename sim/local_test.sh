#!/usr/bin/env bash
# Test the synthetic farm kilter-simfarm on two real workers. usage: local_test.sh PROGRAM
set -euo pipefail
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
unset "${!KILTER_@}"

"$program" --workers 2 --record run.kilter --tasks '200@uniform(1ms,0.3)' --iterations 2 --task-bytes 500 \
    --result-bytes 900 >out
[ "$(grep -c '"tasks":200,' out)" -eq 2 ] || { echo "the farm did not do two iterations of 200 tasks: $(cat out)" >&2; exit 1; }
busy=$(sqlite3 run.kilter 'SELECT count(DISTINCT worker), sum(hi - lo), sum(busy_s) > 0.2 FROM chunk')
[ "$busy" = '2|400|1' ] || { echo "the numbers of workers and tasks, or the times of tasks, are wrong: $busy" >&2; exit 1; }
