#!/usr/bin/env bash
# Check that tools/layercheck accepts a correct tree, and names file, line and fault in a tree with one fault.
# usage: layercheck_test.sh LAYERCHECK
set -euo pipefail
layercheck=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

file() { # PATH LINE…
    mkdir -p "$(dirname "$tree/$1")"
    printf '%s\n' "${@:2}" >"$tree/$1"
}

# Make a small tree that follows every rule and uses each exception once.
clean_tree() {
    tree=$work/tree
    rm -rf "$tree"
    file src/README.md '# Rooms' '' '    base  decide | sys  transport  move  balance  farm'
    file src/CMakeLists.txt 'set(PURE_ROOMS base decide)' 'set(ROOMS sys transport move balance farm)'
    file include/kilter/status.h '#include <stddef.h>'
    file include/kilter/farm.h '#include "kilter/status.h"'
    file include/kilter/kilter.h '#include "kilter/farm.h"'
    file src/base/base.h '#include "kilter/status.h"'
    file src/base/inner.h ''
    file src/decide/decide.h '#include "base/base.h"'
    file src/decide/table.h ''
    file src/decide/decide.c '#include "decide/decide.h"' '#include "decide/table.h"' '#include "table.h"' '#include <math.h>'
    file src/decide/decide_test.c '#include "base/inner.h"'
    file src/sys/sys.c '#include <sys/stat.h>' '#include <hwloc.h>'
    file src/transport/transport.h '#include "base/base.h"'
    file src/transport/transport_mpi.c '#include <mpi.h>'
    file src/transport/transport_zmq.c '#include <zmq.h>' '#include <sys/socket.h>'
    file src/move/wire.h ''
    file src/farm/farm.c '#include "kilter/farm.h"' '#include "decide/decide.h"' '#include "move/wire.h"'
    file cli/main.c '#include "transport/transport.h"' '#include "kilter/kilter.h"'
    file apps/sp/smps.h ''
    file apps/sp/main.c '#include "kilter/kilter.h"' '#include "smps.h"' '#include "apps/sp/smps.h"'
    file examples/one.c '#include <kilter/farm.h>'
    file bench/pingpong.c '#include "transport/transport.h"' '#include <zmq.h>'
    file src/move/move_test.c '#include "farm/farm.h"' # allowed: tests of this room are linked with all rooms, unlike tests of a pure room
    file tests/any_test.c '#include "decide/table.h"'
}

refuses() { # refuses WHAT EXPECTED: fail unless layercheck prints a line with EXPECTED, which begins with FILE:LINE
    local said status=0
    said=$("$layercheck" "$tree") || status=$?
    if [ "$status" -ne 1 ] || ! grep -qF -- "$2" <<<"$said" || [ "$(wc -l <<<"$said")" -ne 2 ]; then
        printf 'layercheck on %s: exit %s, expected "%s", said:\n%s\n' "$1" "$status" "$2" "$said"
        failed=1
    fi
}

clean_tree
"$layercheck" "$tree" || { echo "layercheck refuses a correct tree"; failed=1; }

clean_tree; file src/decide/decide.c '' '#include "transport/transport.h"'
refuses 'an include uphill' 'src/decide/decide.c:2: decide may not include transport/transport.h: transport comes after decide'
clean_tree; file src/decide/decide_test.c '#include "farm/farm.h"'
refuses 'a pure test that includes uphill' 'src/decide/decide_test.c:1: decide may not include farm/farm.h'
clean_tree; file src/farm/farm.c '#include <decide/table.h>'
refuses 'a way past the door' 'src/farm/farm.c:1: farm may not include decide/table.h: the door of decide is decide/decide.h'
clean_tree; file cli/main.c '# include "decide/table.h"'
refuses 'the cli past a door' 'cli/main.c:1: cli may not include decide/table.h'
clean_tree; file bench/pingpong.c '#include "decide/table.h"'
refuses 'a bench past a door' 'bench/pingpong.c:1: bench may not include decide/table.h'
clean_tree; file src/move/move.c '#include "kilter/farm.h"'
refuses 'a public header uphill' 'src/move/move.c:1: move may not include kilter/farm.h: farm comes after move'
clean_tree; file src/farm/farm.c '#include "kilter/kilter.h"'
refuses 'the public header of everything' 'src/farm/farm.c:1: a room may not include kilter/kilter.h'
clean_tree; file src/base/base.c '#include "../decide/decide.h"'
refuses 'a path that climbs' 'src/base/base.c:1: "../decide/decide.h" climbs out'
clean_tree; file src/base/base.c '#include "nowhere.h"'
refuses 'a header from nowhere' 'src/base/base.c:1: "nowhere.h" is neither public'
clean_tree; file src/base/base.c '#include "apps/sp/smps.h"'
refuses 'an app in a room' 'src/base/base.c:1: "apps/sp/smps.h" is neither public'
clean_tree; file include/kilter/farm.h '#include "base/base.h"'
refuses 'an internal header in a public one' 'include/kilter/farm.h:1: a public header may not include base/base.h'
clean_tree; file apps/sp/main.c '#include "transport/transport.h"'
refuses 'an app inside' 'apps/sp/main.c:1: apps/sp may include only kilter/*.h and its own headers, not transport/transport.h'
clean_tree; file apps/sp/main.c '#include "base/base.h"'
refuses 'an app in the lowest room' 'apps/sp/main.c:1: apps/sp may include only kilter/*.h and its own headers, not base/base.h'
clean_tree; file apps/lp/main.c '#include "apps/sp/smps.h"'
refuses 'an app in another app' 'apps/lp/main.c:1: "apps/sp/smps.h" is neither public'
clean_tree; file examples/one.c '#include "base/base.h"'
refuses 'an example inside' 'examples/one.c:1: examples may include only kilter/*.h, not base/base.h'
clean_tree; file src/decide/decide.c '#include <mpi.h>'
refuses 'a library in the wrong room' 'src/decide/decide.c:1: <mpi.h> belongs to other files'
clean_tree; file src/attic/attic.c ''
refuses 'a room without a place' 'src/attic/:1: is not in the order of rooms'
clean_tree; file src/CMakeLists.txt 'set(PURE_ROOMS base)' 'set(ROOMS decide sys transport farm)'
refuses 'rooms that are not built' 'src/CMakeLists.txt:1: builds the rooms "base decide sys transport farm"'

exit "$failed"
