#!/usr/bin/env bash
# Programs and library have read-only relocations that are done at the start (full RELRO), and guards on the stack.
# usage: hardened_test.sh FILE...     (a static library is left out)
set -euo pipefail
failed=0
for file in "$@"; do
    case $file in *.a) continue ;; esac
    said=$(readelf -Wld --dyn-syms "$file")
    for wanted in 'GNU_RELRO' 'BIND_NOW|FLAGS.* NOW' '__stack_chk_fail'; do
        grep -qE "$wanted" <<<"$said" || { echo "$file has no $wanted"; failed=1; }
    done
done
exit $failed
