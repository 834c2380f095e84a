#!/usr/bin/env bash
# Check that the commands of the tutorial "Kilter in ten minutes" work with an installed Kilter.
# usage: tutorial_test.sh BUILD PAGE     (CMAKE and CC come from the environment)
set -euo pipefail
build=$1 page=$2
fail() { echo "tutorial_test: $*" >&2; cat out err >&2 2>/dev/null || :; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$CMAKE" --install "$build" --prefix "$work/prefix" >/dev/null
mkdir "$work/home" "$work/there" "$work/bin"
ln -s "$(command -v "$CC")" "$work/bin/cc"
export HOME=$work/home PATH=$work/prefix/bin:$work/bin:$PATH OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
pkgconfig=$(dirname "$(find "$work/prefix" -name kilter.pc)")
export PKG_CONFIG_PATH=$pkgconfig LD_LIBRARY_PATH=${pkgconfig%/pkgconfig}
unset KILTER_RECORD XDG_STATE_HOME KILTER_RECORD_DIR
cd "$work/there"
ran=0
while IFS= read -r line; do
    bash -euc "$line" >out 2>err || fail "this command of the tutorial fails: $line"
    ran=$((ran + 1))
    case $line in
    *"kilter map -k --tag"*) printf '1\t14285\n2\t28571\n4\t57142\n8\t114285\n' | diff - out || fail "kilter map --tag printed wrong lines" ;;
    *"--resume count"*) printf '100000\n200000\n400000\n800000\n' | diff - out || fail "kilter map --resume printed wrong counts" ;;
    ./mandelbrot*) diff examples/07_mandelbrot.out out || fail "the example mandelbrot printed a wrong area" ;;
    esac
done < <(awk '/^```$/ { on = 0 } on { print } /^```sh$/ { on = 1 }' "$page" | sed "s|PREFIX|$work/prefix|")
[ "$ran" -ge 10 ] || fail "too few commands of the tutorial were run: $ran"
[ -s area.svg ] || fail "the commands of the tutorial drew no picture"
