#!/usr/bin/env bash
# Test tools/layercheck with a build. A room (folder of src/) may not use a symbol of a room above it. The list of files that need each
# other in a circle may only shrink.
# usage: symbols_test.sh LAYERCHECK     CC names the compiler
set -euo pipefail
layercheck=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/tree build=$work/build
failed=0

source_of() { # ROOM/FILE.c LINE…: write the source file, and compile it as CMake does
    local object=src/CMakeFiles/all.dir/$1.o
    mkdir -p "$tree/src/${1%/*}" "$build/${object%/*}"
    printf '%s\n' "${@:2}" >"$tree/src/$1"
    "${CC:-cc}" -c -o "$build/$object" "$tree/src/$1"
    echo "  \"command\": \"cc -o $object -c $1\"," >>"$build/compile_commands.json"
}

listed() { # CIRCLE…
    mkdir -p "$tree/tests/rules"
    printf '%s\n' '# a comment stays' "$@" >"$tree/tests/rules/circles.txt"
}

clean() { # make a correct tree: the room farm uses base; in farm, a.c uses b.c, which uses c.c
    rm -rf "$tree" "$build"
    mkdir -p "$tree/src"
    printf '    base | farm\n' >"$tree/src/README.md"
    listed
    source_of base/base.c 'int base(void) { return 0; }'
    source_of farm/a.c 'int base(void), b(void);' 'int a(void) { return b() + base(); }'
    source_of farm/b.c 'int c(void);' 'int b(void) { return c(); }'
    source_of farm/c.c 'int c(void) { return 0; }'
}

circle() { # make the tree with a circle of three files: in farm, c.c also uses a.c
    source_of farm/c.c 'int a(void);' 'int c(void) { return a(); }'
}

accepts() { # WHAT
    local said
    said=$("$layercheck" "$tree" "$build") || { printf 'layercheck refuses %s:\n%s\n' "$1" "$said"; failed=1; }
}

refuses() { # WHAT EXPECTED
    local said status=0
    said=$("$layercheck" "$tree" "$build") || status=$?
    if [ "$status" -ne 1 ] || ! grep -qF -- "$2" <<<"$said"; then
        printf 'layercheck on %s: exit %s, expected "%s", said:\n%s\n' "$1" "$status" "$2" "$said"
        failed=1
    fi
}

clean
accepts 'rooms and files in order'
source_of base/base.c 'int c(void);' 'int base(void) { return c(); }'
refuses 'a symbol from above, declared without an include' 'src/base/base.c:1: needs c of src/farm/c.c: farm comes after base'

clean; circle
refuses 'a circle' 'src/farm:1: 3 needs make a circle of a.c b.c c.c'
listed 'farm 3 a.c b.c c.c'
accepts 'a circle that is listed'
listed 'farm 2 a.c b.c c.c'
refuses 'more needs than are listed' 'src/farm:1: 3 needs make a circle'
listed 'farm 9 a.c b.c'
refuses 'a file more than is listed' 'src/farm:1: 3 needs make a circle'
listed 'farm 4 a.c b.c c.c d.c'
refuses 'a circle that has shrunk' 'circles.txt:1: no longer true'

# layercheck --update removes circles from the list, but adds none.
"$layercheck" --update "$tree" "$build"
[ "$(cat "$tree/tests/rules/circles.txt")" = $'# a comment stays\nfarm 3 a.c b.c c.c' ] || { echo "layercheck --update does not shrink the list"; failed=1; }
listed 'farm 2 a.c b.c c.c'
! "$layercheck" --update "$tree" "$build" >"$work/said" || { echo "layercheck --update accepts a larger circle"; failed=1; }
grep -q '^farm 2' "$tree/tests/rules/circles.txt" || { echo "layercheck --update writes the larger circle to the list"; failed=1; }
clean; listed 'farm 3 a.c b.c c.c'
refuses 'a listed circle that is gone' 'no longer true'
"$layercheck" --update "$tree" "$build"
accepts 'the list without it'

# layercheck ignores tests and objects of deleted sources.
clean
source_of farm/a_test.c 'int c2(void), d(void);' 'int d(void) { return c2(); }'
source_of farm/c2.c 'int d(void);' 'int c2(void) { return d(); }'
accepts 'a circle through a test'
clean; circle; rm "$tree/src/farm/c.c"
accepts 'a circle through a source that is gone'

exit "$failed"
