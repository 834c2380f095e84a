#!/usr/bin/env bash
# Programs and shared libraries have read-only relocations that are done at the start (full RELRO), a stack that is not
# executed, guards on the stack, and calls that _FORTIFY_SOURCE checks. Of a static library: the last two.
# usage: hardened_test.sh [--debug] FILE...     --debug: built without _FORTIFY_SOURCE, as it is not optimised
set -euo pipefail
wanted=('__stack_chk_fail')
[ "${1-}" = --debug ] && shift || wanted+=('__[a-z]+_chk(@|$)')
[ $# -gt 0 ] || { echo "usage: hardened_test.sh [--debug] FILE..." >&2; exit 2; }
failed=0
# holds FILE TEXT PATTERN...
holds() {
    local file=$1 said=$2
    shift 2
    for pattern in "$@"; do
        grep -qE "$pattern" <<<"$said" || { echo "$file has no $pattern"; failed=1; }
    done
}
for file in "$@"; do
    case $file in
    *.a) holds "$file" "$(nm --undefined-only --format=posix "$file" | awk '{ print $1 }')" "${wanted[@]}" ;;
    *) holds "$file" "$(readelf -Wld "$file"; nm -D --undefined-only --format=posix "$file" | awk '{ print $1 }')" \
        'GNU_RELRO' 'BIND_NOW|FLAGS.* NOW' 'GNU_STACK.* RW ' "${wanted[@]}" ;;
    esac
done
exit $failed
