#!/usr/bin/env bash
# Check the blocks of C on pages. The name of an example stands before each block, and the example must contain the block's lines in this order.
# usage: blocks_test.sh SOURCE PAGE…
set -euo pipefail
cd "$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for page in "${@:2}"; do
    rm -f "$work"/*
    awk -v work="$work" '/^`examples\/.*`:$/ { file = substr($0, 2, length($0) - 3) }
        /^```c$/ { if (file == "") next; block = work "/block." ++n; print file >(work "/file." n); inside = 1; next }
        /^```$/ { inside = 0; file = "" }
        inside { print >block }
        END { print n + 0 >(work "/count") }' "$page"
    [ "$(cat "$work/count")" -ge 1 ] || { echo "$page: the page does not have a block of C with the name of its file"; exit 1; }
    for ((n = 1; n <= $(cat "$work/count"); n++)); do
        file=$(cat "$work/file.$n")
        first=$(grep -nxF -- "$(head -1 "$work/block.$n")" "$file" | head -1 | cut -d: -f1)
        [ -n "$first" ] || { echo "$page: $file does not have the line: $(head -1 "$work/block.$n")"; exit 1; }
        tail -n "+$first" "$file" | head -n "$(wc -l <"$work/block.$n")" | diff -u - "$work/block.$n" ||
            { echo "$page: the block differs from $file"; exit 1; }
    done
done
