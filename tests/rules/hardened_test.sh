#!/usr/bin/env bash
# Check that programs and shared libraries have four protections. They are full RELRO (relocations are read-only after the start), calls
# checked by _FORTIFY_SOURCE, no executable stack, and stack guards. For a static library, check only stack guards and _FORTIFY_SOURCE.
# usage: hardened_test.sh [--debug] FILE...     --debug: the build is not optimised and lacks _FORTIFY_SOURCE
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
        grep -qE "$pattern" <<<"$said" || { echo "$file does not have the protection $pattern"; failed=1; }
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
