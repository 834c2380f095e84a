#!/bin/sh
# The README stays true: its lines of C are the example's, its files are there, its options are known, its commands are targets.
# usage: readme_test.sh SOURCE EXAMPLE-BINARY KILTER KILTER-SP
set -eu
cd "$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sed -n '/^```c$/,/^```$/p' README.md | sed '1d;$d' >"$work/readme.c"
[ "$(wc -l <"$work/readme.c")" -eq 10 ] || { echo "README: its farm has not ten lines"; exit 1; }
while IFS= read -r line; do
    grep -qxF -- "$line" examples/01_squares.c || { echo "README: not a line of the example: $line"; exit 1; }
done <"$work/readme.c"
[ "$(wc -l <examples/01_squares.c)" -le 25 ] || { echo "examples/01_squares.c has more than 25 lines"; exit 1; }
grep -o '](\([^)#]*\))' README.md CONTRIBUTING.md src/README.md | sed 's/^\([^:]*\):](\(.*\))/\1 \2/' | while read -r page file; do
    case $file in http*) continue ;; esac
    [ -e "$(dirname "$page")/$file" ] || { echo "$page: there is no $file"; exit 1; }
done
"$2" --kilter-help >"$work/help"
grep -o -- '^\./squares --[a-z-]*' README.md | sed 's/.* //' | while read -r option; do
    grep -q -- "^  $option" "$work/help" || { echo "README: $option is no option"; exit 1; }
done
grep -oE '^make [a-z]+' README.md | sed 's/make //' | while read -r target; do
    grep -q "^$target:" Makefile || { echo "README: there is no target $target"; exit 1; }
done
"$3" report --help >/dev/null
# the man page of kilter-sp knows the options of its help, and no others but the farm's
"$4" evaluate --help | sed -n '/^Kilter/q; s/^  --\([a-z]*\).*/\1/p' | sort -u >"$work/known"
[ -s "$work/known" ]
while read -r option; do
    grep -q "Fl -$option" docs/man/kilter-sp.1 || { echo "kilter-sp.1 lacks --$option"; exit 1; }
done <"$work/known"
"$4" --kilter-help | sed -n 's/^  --\([a-z-]*\) .*/\1/p' >>"$work/known"
echo version >>"$work/known"
grep -o 'Fl -[a-z-]*' docs/man/kilter-sp.1 | sed 's/Fl -//' | while read -r option; do
    grep -qx -- "$option" "$work/known" || { echo "kilter-sp.1: there is no --$option"; exit 1; }
done
