#!/bin/sh
# Check that the lines of C in the README are lines of the examples, and that the files, options and commands that the README names exist.
# usage: readme_test.sh SOURCE EXAMPLE-BINARY KILTER KILTER-SP
set -eu
cd "$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# List each line of the README's C blocks, with the example that is named before the block. Each block has ten lines.
awk 'match($0, /\(examples\/[a-z0-9_]*\.c\)/) && !in_c { file = substr($0, RSTART + 1, RLENGTH - 2) }
     /^```$/ { in_c = 0 } in_c { print file "\t" $0 } /^```c$/ { in_c = 1 }' README.md >"$work/lines"
[ "$(cut -f1 "$work/lines" | sort | uniq -c | awk '{ print $1, $2 }')" = "10 examples/01_squares.c
10 examples/11_redblack.c" ] || { echo "README: the farm and the loop do not have ten lines each"; exit 1; }
while IFS='	' read -r file line; do
    grep -qF -- "$line" "$file" || { echo "README: $file does not have the line: $line"; exit 1; }
done <"$work/lines"
[ "$(wc -l <examples/01_squares.c)" -le 25 ] || { echo "examples/01_squares.c has more than 25 lines"; exit 1; }
grep -o '](\([^)#]*\))' README.md CONTRIBUTING.md src/README.md | sed 's/^\([^:]*\):](\(.*\))/\1 \2/' | while read -r page file; do
    case $file in http*) continue ;; esac
    [ -e "$(dirname "$page")/$file" ] || { echo "$page: there is no $file"; exit 1; }
done
"$2" --kilter-help >"$work/help"
grep -o -- '^\./squares --[a-z-]*' README.md | sed 's/.* //' | while read -r option; do
    grep -q -- "^  $option" "$work/help" || { echo "README: there is no option $option"; exit 1; }
done
grep -oE '^make [a-z]+' README.md | sed 's/make //' | while read -r target; do
    grep -q "^$target:" Makefile || { echo "README: there is no target $target"; exit 1; }
done
"$3" report --help >/dev/null
# Check that the man page of kilter-sp lists its own options, as its help does. The options of farms come later in the help.
options_of() {
    "$1" "$2" --help | sed -n '/^Kilter/q; s/^  --\([a-z]*\).*/\1/p' | sort -u
}
# Print the options in the man page's list after "The options of .Cm COMMAND are:".
listed_of() {
    awk -v command=".Cm $1" '/^\.Bl/ && is == "are:" && of == command { on = 1 } /^\.El/ { on = 0 }
         on && /^\.It Fl -/ { print substr($3, 2) } { of = is; is = $0 }' docs/man/kilter-sp.1
}
for command in evaluate solve predict; do
    options_of "$4" $command | grep -vx help >"$work/$command"
    [ -s "$work/$command" ]
    listed_of $command | sort -u | grep -vx join | diff "$work/$command" - ||
        { echo "kilter-sp.1 lists other options of $command than its help"; exit 1; }
done
cat "$work/evaluate" "$work/solve" "$work/predict" >"$work/known"
"$4" --kilter-help | sed -n 's/^  --\([a-z-]*\) .*/\1/p' >>"$work/known"
printf 'help\nversion\n' >>"$work/known"
grep -o 'Fl -[a-z-]*' docs/man/kilter-sp.1 | sed 's/Fl -//' | while read -r option; do
    grep -qx -- "$option" "$work/known" || { echo "kilter-sp.1: there is no --$option"; exit 1; }
done
