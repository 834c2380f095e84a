#!/usr/bin/env bash
# Check that the API reference is built without warnings, contains every public function and struct, and has well-formed man pages.
# usage: reference_test.sh SOURCE VERSION
set -euo pipefail
source=$1 version=$2
fail() { echo "reference_test: $*" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$source/tools/apidocs" "$work/api" "$source/include" "$version" || exit
man=$work/api/man/man3
"$source/tools/public-functions" "$source"/include/kilter/*.h | sed 's/_sized$//' >"$work/names"
sed -n 's/^typedef struct \(kilter_[a-z_]*\) {$/\1/p' "$source"/include/kilter/*.h >>"$work/names"
[ "$(wc -l <"$work/names")" -gt 30 ] || fail "the headers have too few names: $(cat "$work/names")"
while read -r name; do
    [ -s "$man/$name.3" ] || fail "there is no man page $name(3)"
    grep -rqs "$name" "$work/api/html" || fail "the HTML pages do not name $name"
done <"$work/names"
for page in "$man"/*; do
    to=$(sed -n 's/^\.so man3\///p' "$page")
    [ -z "$to" ] || [ -s "$man/$to" ] || fail "$(basename "$page") leads to $to, which does not exist"
    case $(basename "$page") in kilter* | KILTER*) ;; *) fail "$(basename "$page") does not begin with kilter" ;; esac
    [ -n "$to" ] || ! command -v mandoc >/dev/null || mandoc -T lint -W error "$page" >"$work/lint" ||
        fail "$(cat "$work/lint")"
done
grep -q "$version" "$work/api/html/index.html" || fail "the HTML pages do not contain the version"
! grep -rlF "$source" "$work/api" || fail "these pages contain the path of the source tree"

# tools/apidocs must refuse an undocumented function and name it
cp -r "$source/include" "$work/include"
sed -i 's|^#ifdef __cplusplus|KILTER_API void kilter_silent(int x);\n&|' "$work/include/kilter/status.h"
! "$source/tools/apidocs" "$work/bad" "$work/include" "$version" >"$work/said" 2>&1 || fail "an undocumented function is accepted"
grep -q kilter_silent "$work/said" || fail "the undocumented function is not named"
