#!/usr/bin/env bash
# Check that tools/prose finds each kind of offence and accepts plain sentences, and that a seed always gives the same sample. Also
# check the lines around an item.
# usage: prose_test.sh PROSE
set -euo pipefail
prose=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "prose_test: $*" >&2; exit 1; }
command -v git >/dev/null || { echo "skipped: git is not installed"; exit 77; }
cd "$work"
git init -q .
mkdir src page

file() { # NAME LINE…
    printf '%s\n' "${@:2}" >"$1"
    git add "$1"
}

file src/good.c '/* Return the chunk to the bag. */' 'static const char *text = "reading the file: no memory";'
file page/good.md '# A page' '' 'The master deals tasks to its workers.'
[ -z "$("$prose" --offenders)" ] || fail "tools/prose finds offences in plain sentences: $("$prose" --offenders)"

offends() { # offends WORDS TEXT: fail unless tools/prose finds the offence named WORDS in TEXT, in a comment, a message, a page and a script
    file src/bad.c "/* $2 */"
    "$prose" --offenders src/bad.c | grep -q "^src/bad.c:1: .*$1" || fail "tools/prose does not find the offence in a comment: $2"
    file src/bad.c '' "puts(\"$2\");"
    "$prose" --offenders src/bad.c | grep -q "^src/bad.c:2: .*$1" || fail "tools/prose does not find the offence in a message: $2"
    file page/bad.md "$2"
    "$prose" --offenders page/bad.md | grep -q "^page/bad.md:1: .*$1" || fail "tools/prose does not find the offence on a page: $2"
    file src/bad.sh '#!/bin/sh' "# $2"
    "$prose" --offenders src/bad.sh | grep -q "^src/bad.sh:2: .*$1" || fail "tools/prose does not find the offence in a script: $2"
    file src/bad.c '' && file page/bad.md '' && file src/bad.sh ''
}
offends 'not lifeline' 'The lifeline of a rank is closed.'
offends 'begins with' 'Of these workers the first one is taken.'
offends 'begins with' 'Whoever asks gets a task from the master.'
offends 'is given twice' 'The option stands there twice in the line.'
offends 'words in a sentence' 'This sentence has many words because one and another and another and another and another and another and another and another and another and another and another and another and another word follow it.'
[ -z "$("$prose" --offenders)" ] || fail "tools/prose finds offences although all were removed: $("$prose" --offenders)"

# The number of offenders must equal the stored number: tools/prose --check accepts neither more nor fewer.
"$prose" --store stored
"$prose" --check stored . || fail "tools/prose --check does not accept the numbers that were just stored"
file src/bad.c '/* Of these workers the first one is taken. */'
! "$prose" --check stored . >out || fail "tools/prose --check accepts one offender more than stored"
grep -q '^src: 1 offenders, 0 stored: mend' out || fail "tools/prose does not print the expected message: $(cat out)"
"$prose" --store stored
file src/bad.c ''
! "$prose" --check stored . >out || fail "tools/prose --check accepts one offender less than stored"
grep -q 'store the new number' out || fail "tools/prose does not print the expected message: $(cat out)"
! "$prose" --store stored src 2>out || fail "tools/prose stores the numbers of a part of the tree"
grep -q "'src' is one word too many" out || fail "tools/prose does not print the expected message: $(cat out)"
! "$prose" --offenders nowhere 2>out || fail "tools/prose accepts a path without files"
grep -q "no file of the repository is below 'nowhere'" out || fail "tools/prose does not print the expected message: $(cat out)"

# samples
for n in 1 2 3 4 5 6 7 8 9; do file "src/n$n.c" "/* Return number $n of the list. */"; done
"$prose" --seed 5 --count 4 >one
"$prose" --seed 5 --count 4 >two
cmp one two || fail "the same seed gives two different samples"
[ "$(wc -l <one)" = 5 ] && grep -q '^seed 5, 4 of 12$' one || fail "the sample does not have four of twelve items: $(cat one)"
"$prose" --seed 6 --count 4 >two
! cmp -s one two || fail "two seeds give the same sample"
"$prose" --count 1 | grep -qE '^seed [0-9]+, 1 of 12$' || fail "tools/prose does not print the seed of a sample"

# the lines around each item
file src/around.c 'int before;' '/* Return the third part. */' 'int after;' 'int later;'
"$prose" --count 1 --around 1 src/around.c >out
[ "$(tail -n +3 out)" = "$(printf '        | %s\n' 'int before;' '/* Return the third part. */' 'int after;')" ] || fail "not one line before and after: $(cat out)"
