#!/usr/bin/env bash
# Check that three runs print the same checksum: the plain MPI program on 1 and 4 ranks, and the Kilter program on 3 ranks. Also run the filter on its
# own output picture, and conjugate gradients with Kilter's exact sums on several numbers of ranks.
# usage: loops_same_test.sh PLAIN KILTER N SWEEPS LAUNCHER…     LAUNCHER is the command line up to the number of ranks
set -euo pipefail
plain=$1 kilter=$2 words=("$3" "$4")
shift 4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
checksum() { sed -n 's/.*"checksum":"\([0-9a-f]\{16\}\)".*/\1/p' "$work/out"; }
same() { # same RANKS PROGRAM: fail unless the program's checksum equals the first run's checksum
    "${launcher[@]}" "$1" "$2" "${words[@]}" >"$work/out"
    expected=${expected:-$(checksum)}
    [ -n "$expected" ] && [ "$(checksum)" = "$expected" ] || { echo "$2 ${words[*]} on $1 ranks: $(checksum), not $expected"; exit 1; }
}
launcher=("$@") expected=
case $plain in *cg) # sums by MPI are rounded and depend on the number of ranks; exact sums do not depend on it
    words+=(--exact)
    for ranks in 1 2 3 5; do same "$ranks" "$kilter"; done
    exit 0 ;;
esac
same 1 "$plain"
same 4 "$plain"
same 3 "$kilter"
case $plain in *filter) ;; *) exit 0 ;; esac
"${launcher[@]}" 2 "$kilter" "${words[@]}" --output "$work/clean.pgm" >"$work/out"
words=(1 2 --picture "$work/clean.pgm") expected=
same 1 "$plain"
same 3 "$kilter"
head -c 100 "$work/clean.pgm" >"$work/short.pgm"
if "${launcher[@]}" 1 "$kilter" --picture "$work/short.pgm" >"$work/out" 2>&1; then
    echo "a truncated picture was accepted"
    exit 1
fi
grep -q "ends too early" "$work/out"
