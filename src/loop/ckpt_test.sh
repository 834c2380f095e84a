#!/bin/bash
# Test programs that die or stop, and are started again from a checkpoint. The exit code 77 means that something
# that the test needs is missing.
# usage: ckpt_test.sh MPIEXEC CKPT_MPI_TEST WHAT [ARGUMENT…]
#   resume KIND N:M…: a program dies on N ranks and continues on M ranks; its result must have the same bits as on one rank without checkpoints
#   damage: checkpoints that are cut off, have flipped bytes, or are other files must be replaced by older ones
#   refuse: programs and folders for which a checkpoint is impossible must be refused
#   failures: starts that fail before their first checkpoint must be counted
#   memory: a rank without memory, or whose rows cannot be packed, must not change the result
#   folders: ranks that do not share the folder of checkpoints must be refused or continue
#   full: a full disk, or a limit on file sizes, must not change the result
#   keep: a keeper reads the progress, asks for a checkpoint, and stops the program
#   readers: other programs must be able to read a checkpoint
set -u
mpiexec=$1 program=$2 what=$3
shift 3
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 KILTER_RECORD=none
unset KILTER_KEEP KILTER_KEEP_ATTEMPT KILTER_CHECKPOINT KILTER_CHECKPOINT_S
folder=$(mktemp -d) || exit 1
mounted=
trap '[ -z "$mounted" ] || umount "$mounted"; rm -rf "$folder"' EXIT
flags=()
! "$mpiexec" --version 2>&1 | grep -q 'Open MPI\|OpenRTE' ||
    flags=(--oversubscribe --bind-to none --mca odls_base_sigkill_timeout 0)
rows=23 sweeps=24

fail() {
    echo "FAILED: $*"
    sed 's/^/    /' "$folder/out"
    exit 1
}
launch() { # RANKS ARGUMENT…: run the program; its output is in $folder/out, its exit code in $code
    timeout -k 5 100 "$mpiexec" "${flags[@]}" -n "$1" "$program" "${@:2}" >"$folder/out" 2>&1 </dev/null
    code=$?
    ! grep -q "Sanitizer: [a-zA-Z]\|runtime error: \|^HDF5: " "$folder/out" || fail "a sanitizer or HDF5 reports an error"
}
with() { # RANKS ARGUMENT…: run the program with checkpoints as often as possible
    KILTER_CHECKPOINT=${path:-$folder/c} KILTER_CHECKPOINT_S=1e-9 launch "$@"
}
result() { sed -n 's/^result \([0-9a-f]*\) .*/\1/p' "$folder/out"; }
resumed() { sed -n 's/^resumed at \([0-9]*\)$/\1/p' "$folder/out"; }
says() { grep -qF -- "$1" "$folder/out" || fail "the program did not print: $1"; }
newest() { find "$folder" -maxdepth 1 -name 'c.*.h5' | sort | tail -n 1; }
reference() { # KIND: run without checkpoints, and store the result as the right one
    launch 1 run "$1" $rows $sweeps
    right=$(result)
    [ -n "$right" ] || fail "without checkpoints, the program has no result"
}
die() { # RANKS KIND SAVES: let the program die after some checkpoints
    rm -f "$folder"/c.*
    with "$1" run "$2" $rows $sweeps "$3"
    [ -z "$(result)" ] || fail "the program did not die"
    [ -n "$(newest)" ] || fail "the program left no checkpoint"
}
continue_right() { # RANKS KIND: check that the program continues from a checkpoint to the right result
    with "$1" run "$2" $rows $sweeps
    [ "$(result)" = "$right" ] || fail "kind $2 on $1 ranks: the result is '$(result)', not $right"
    [ "$(resumed)" -gt 0 ] || fail "kind $2 on $1 ranks: the program began anew"
}

resume() {
    local kind=$1 pair saves=0
    reference "$kind"
    for pair in "${@:2}"; do
        die "${pair%:*}" "$kind" $((1 + saves++ % 3))
        continue_right "${pair#*:}" "$kind"
        echo "kind $kind, $pair ranks: the program resumed at step $(resumed), with the same result"
    done
}

flip() { # FILE OFFSET: change one bit of the byte at the offset
    local byte
    byte=$(od -An -tu1 -j "$2" -N 1 "$1")
    printf "\\x$(printf %02x $((byte ^ 64)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}
damage() {
    local kind file size at older
    reference content
    die 3 content 4
    mkdir "$folder/kept"
    cp "$folder"/c.*.h5 "$folder/kept"
    file=$(newest)
    size=$(stat -c %s "$file")
    [ "$(find "$folder" -name 'c.*.h5' | grep -vc kept)" -eq 2 ] || fail "there are not two generations of checkpoints"
    for at in 0 100 $((size / 2)) $((size - 1)); do # the file is torn: only its beginning is there
        rm -f "$folder"/c.*
        cp "$folder"/kept/* "$folder"
        truncate -s "$at" "$file"
        continue_right 2 content
        says "Kilter tries an older one"
    done
    # Change bytes at random places: a change must either have no effect, or the older checkpoint is used.
    RANDOM=4
    local noticed=0 i
    for ((i = 0; i < ${FLIPS:-4}; i++)); do
        rm -f "$folder"/c.*
        cp "$folder"/kept/* "$folder"
        flip "$file" $(((RANDOM * 32768 + RANDOM) % size))
        continue_right 2 content
        ! grep -q "Kilter tries an older one" "$folder/out" || noticed=$((noticed + 1))
    done
    echo "$noticed of $i flipped bytes were noticed"
    # Changed bytes in rows, content or values must always be noticed.
    for kind in arrays/0 content/data values/sum; do
        rm -f "$folder"/c.*
        cp "$folder"/kept/* "$folder"
        at=$(h5dump -H -p -d "$kind" "$file" 2>/dev/null | sed -n 's/.*OFFSET \([0-9]*\).*/\1/p')
        [ -n "$at" ] || { echo "h5dump is missing, so the offsets of rows are not known"; break; }
        flip "$file" $((at + 1))
        continue_right 2 content
        says "is damaged: the checksum of"
    done
    # The next checkpoint must not replace a valid generation and keep a damaged one.
    rm -f "$folder"/c.*
    cp "$folder"/kept/* "$folder"
    flip "$file" $((size - 1))
    with 2 run content $rows $sweeps 1
    [ "$(find "$folder" -maxdepth 1 -name 'c.*.h5' | wc -l)" -eq 3 ] || fail "a damaged generation counts as valid"
    rm "$(newest)"
    continue_right 3 content
    says "Kilter tries an older one"
    # If no checkpoint is valid, no file may be overwritten.
    rm -f "$folder"/c.*
    echo "no checkpoint" >"$folder/c.000007.h5"
    with 2 run content $rows $sweeps
    [ "$code" -ne 0 ] && says "none of its checkpoints is valid"
    [ "$(cat "$folder/c.000007.h5")" = "no checkpoint" ] || fail "a file that is no checkpoint was overwritten"
}

refuse() {
    reference doall
    die 2 doall 2
    local before
    before=$(cd "$folder" && md5sum c.*.h5)
    with 2 forgets $rows
    [ "$code" -ne 0 ] && says "call kilter_loop_resumed() first, or remove them"
    with 2 run doall $((rows + 1)) $sweeps
    [ "$code" -ne 0 ] && says "belongs to another program: it has $rows rows, but the program has $((rows + 1))"
    with 3 run across $rows $sweeps
    [ "$code" -ne 0 ] && says "belongs to another program"
    with 2 wrong doall $rows
    [ "$code" -ne 0 ] && says "it has 2 kept values, but the program has 3"
    [ "$before" = "$(cd "$folder" && md5sum c.*.h5)" ] || fail "a refused program changed the checkpoints"
    path=$folder/nowhere/c with 2 run doall $rows $sweeps
    [ "$code" -ne 0 ] && says "nowhere/c': No such file or directory; create it"
    path=$folder/ with 2 run doall $rows $sweeps
    [ "$code" -ne 0 ] && says "must end with a name"
    path=none with 2 misuse $rows
    [ "$code" -eq 0 ] || fail "without checkpoints, wrong calls are not refused"
    path=$folder/misuse with 2 misuse $rows
    [ "$code" -eq 0 ] || fail "the program's test of wrong calls failed"
    KILTER_CHECKPOINT=$folder/c KILTER_CHECKPOINT_S=soon launch 2 run doall $rows $sweeps
    [ "$code" -ne 0 ] && says "KILTER_CHECKPOINT_S: 'soon' is not a number of seconds"
    mkdir "$folder/closed"
    if [ "$(id -u)" -eq 0 ] && mount -t tmpfs -o ro none "$folder/closed" 2>/dev/null; then
        mounted=$folder/closed
        path=$folder/closed/c with 2 run doall $rows $sweeps
        [ "$code" -ne 0 ] && says "Read-only file system; choose a folder"
        umount "$mounted" && mounted=
    else
        echo "read-only folders are not tested: not allowed to mount a file system"
    fi
    continue_right 2 doall
}

failures() {
    command -v h5dump >/dev/null || { echo "h5dump is not installed"; exit 77; }
    reference doall
    die 2 doall 2
    local starts
    for starts in 1 2; do # these starts end before their first checkpoint
        KILTER_CHECKPOINT=$folder/c KILTER_CHECKPOINT_S=1e9 launch 2 run doall $rows $sweeps
        [ "$(result)" = "$right" ] && [ "$(resumed)" -gt 0 ] || fail "start $starts began anew, not from the checkpoint"
    done
    with 2 run doall $rows $sweeps 1
    h5dump -a failures "$(newest)" >"$folder/out"
    says "(0): 3"
    [ -z "$(find "$folder" -name '*.starts')" ] || [ -e "$folder/c.000002.h5" ] || fail "a file that counts starts was not removed"
}

memory() {
    reference content
    TEST_REFUSES=9 with 3 run content $rows $sweeps
    [ "$(result)" = "$right" ] || fail "rows that cannot be packed changed the result"
    says "could not be packed, or memory ran out; the loop continues"
    [ -n "$(newest)" ] || fail "no checkpoint was written after the first ones failed"
    rm "$folder"/c.*
    TEST_STARVES=1 with 3 run content $rows $sweeps
    [ "$(result)" = "$right" ] || fail "a rank without memory changed the result"
    [ -n "$(newest)" ] || fail "no checkpoint was written in the sweeps in which memory was enough"
}

folders() {
    reference doall
    mkdir -p "$folder/far/in"
    path=$folder/far/in/c
    TEST_HIDES=$folder/far with 2 run doall $rows $sweeps
    if grep -q "not allowed" "$folder/out"; then
        echo "not allowed to hide a folder from a rank"
        exit 77
    fi
    [ "$code" -ne 0 ] && says "rank 1 cannot write to the folder '$folder/far/in'"
    TEST_HIDES=$folder/far/in with 2 run doall $rows $sweeps
    [ "$(result)" = "$right" ] || fail "a folder that is not shared changed the result"
    says "is missing on this host; choose a folder that all hosts share"
}

full() {
    reference doall
    # A limit on file sizes has the same effect as a disk that is too small for the first checkpoint.
    TEST_FILE_BYTES=4096 with 2 run doall $rows $sweeps
    [ "$(result)" = "$right" ] || fail "a limit on file sizes changed the result"
    says "the loop continues, and older checkpoints stay"
    [ -z "$(find "$folder" -name 'c.*')" ] || fail "an unfinished file of a checkpoint stayed"
    mkdir "$folder/small"
    if [ "$(id -u)" -ne 0 ] || ! mount -t tmpfs -o size=64k none "$folder/small" 2>/dev/null; then
        echo "a full disk is not tested: not allowed to mount a file system"
        return
    fi
    mounted=$folder/small
    path=$folder/small/c
    with 2 run doall $rows $sweeps 2 # the program dies, and its generations of checkpoints stay
    local before
    before=$(cd "$folder/small" && ls)
    [ -n "$before" ] || fail "nothing was saved while the disk had room"
    dd if=/dev/zero of="$folder/small/fill" bs=1k status=none 2>/dev/null
    with 3 run doall $rows $sweeps
    [ "$(result)" = "$right" ] && [ "$(resumed)" -gt 0 ] || fail "a full disk changed the result"
    says "No space left on device; the loop continues, and older checkpoints stay"
    [ "$before" = "$(cd "$folder/small" && ls -I fill)" ] || fail "a full disk changed the existing checkpoints"
    rm "$folder/small/fill"
    with 1 run doall $rows $sweeps
    [ "$(result)" = "$right" ] && ! grep -q "could not be written" "$folder/out" || fail "the program did not save although the disk has room again"
    path=
}

ask() { # NUMBER WHAT: write a request, as a keeper does
    printf '{"version":1,"number":%d,"what":"%s"}\n' "$1" "$2" >"$keep/request.new"
    mv "$keep/request.new" "$keep/request"
}
await() { # JQ-EXPRESSION: wait until the expression is true for the progress file
    local tries
    for ((tries = 0; tries < 3000; tries++)); do
        [ -e "$keep/progress" ] && jq -e "$1" "$keep/progress" >"$folder/seen" 2>&1 && return
        kill -0 "$launcher" 2>/dev/null || break
        read -rt 0.02 <> <(:) || :
    done
    cat "$keep/progress"
    fail "this never became true for the progress file: $1"
}
begin_kept() { # RANKS: start the program as under a keeper
    export KILTER_KEEP=$keep KILTER_CHECKPOINT=$folder/c
    "$mpiexec" "${flags[@]}" -n "$1" "$program" keep $rows >"$folder/out" 2>&1 </dev/null &
    launcher=$!
}
# If the program answers the request to stop before it has stopped, write the answer to the file `early`.
watch_answer() { # NUMBER
    local line
    while kill -0 "$launcher" 2>/dev/null; do
        { read -r line <"$keep/progress"; } 2>/dev/null || continue
        [[ $line != *"\"answered\":$1,"* || $line = *'"stopped":true'* ]] || echo "$line" >"$folder/early"
    done
}
keep() {
    command -v jq >/dev/null || { echo "jq is not installed"; exit 77; }
    keep=$folder/keep
    mkdir "$keep"
    ask 3 stop # this request was meant for an earlier process
    KILTER_KEEP_ATTEMPT=1 begin_kept 3
    await '.attempt == 1 and .ranks == 3 and (.hosts | length) == 3 and (.rates | length) == 3 and .answered == 3 and .sweeps > 0'
    await '.sweep_s > 0 and .longest_s >= .sweep_s / 2 and .saves == 0'
    ask 4 save
    await '.answered == 4 and .saves == 1 and .saved_sweeps > 0 and .error == ""'
    [ -n "$(newest)" ] || fail "the program did not save on request"
    watch_answer 5 &
    ask 5 stop
    wait "$launcher"
    [ $? -ne 0 ] && [ ! -e "$folder/early" ] || fail "the answer came too early: $(cat "$folder/early")"
    wait
    says "stopped on request; start the program again to continue"
    jq -e '.answered == 5 and .stopped and .done and .saved_sweeps == .sweeps' "$keep/progress" >/dev/null ||
        fail "the progress file is wrong at the end: $(cat "$keep/progress")"
    local saved
    saved=$(jq .saved_sweeps "$keep/progress")
    KILTER_KEEP_ATTEMPT=2 begin_kept 2
    await ".attempt == 2 and .sweeps > $saved and .load_s > 0"
    ask 6 stop
    wait "$launcher"
    # A loop without checkpoints must write its progress, too.
    export KILTER_CHECKPOINT=none
    rm "$keep"/*
    launcher=$$
    KILTER_KEEP=$keep launch 2 run doall $rows 200
    jq -e '.done and .sweeps == 200 and .saves == 0' "$keep/progress" >/dev/null || fail "without checkpoints, the progress file is wrong"
}

readers() {
    local found=
    reference content
    die 3 content 3
    if command -v h5dump >/dev/null; then
        found=1
        h5dump -H "$(newest)" >"$folder/out" || fail "h5dump cannot read the checkpoint"
        says 'DATASET "data"'
        h5dump -a sweeps -d arrays/0 "$(newest)" >"$folder/out" || fail "h5dump cannot read the rows of the checkpoint"
    fi
    if python3 -c 'import h5py' 2>/dev/null; then
        found=1
        python3 - "$(newest)" $rows >"$folder/out" 2>&1 <<'PYTHON' || fail "h5py cannot read the checkpoint"
import sys, h5py
with h5py.File(sys.argv[1]) as f:
    rows = int(sys.argv[2])
    assert f.attrs["rows"] == rows and f.attrs["loop"] == b"test" and f.attrs["version"] == 1
    u = f["arrays/0"][:].view("f8")
    assert u.shape == (rows, 12) and (abs(u) < 100).all() and u.any()
    assert f["values/steps"][:].view("u8")[0] == f.attrs["sweeps"] > 0
    index = f["content/rows"][:]
    data = f["content/data"][:]
    assert index.shape == (rows, 3) and (index[:, 0] + index[:, 1] <= len(data)).all()
PYTHON
    fi
    [ -n "$found" ] || { echo "neither h5dump nor h5py is installed"; exit 77; }
}

$what "$@"
