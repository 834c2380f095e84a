#!/bin/sh
# Test kilter list and kilter prune, and the choice of a record when none is named. usage: records_test.sh KILTER FARM RECORD_WRITER
set -eu
. "$(dirname "$0")/farm_test.sh"
writer=$3
state=$place/home/.local/state/kilter

# holds FILE WORDS: fail unless the file contains the words; lacks FILE WORDS: fail if the file contains them
holds() {
    grep -qF -- "$2" "$1" || fail "no '$2' in: $(cat "$1")"
}
lacks() {
    ! grep -qF -- "$2" "$1" || fail "'$2' in: $(cat "$1")"
}
# record NAME DAY KIND PROGRAM [FOLDER]: make a record in the state folder, last written on this day of January 2020
record() {
    "$writer" "$3" "$state/$1.kilter" "$4" ${5+"$5"}
    touch -d "2020-01-$2" "$state/$1.kilter"
    [ ! -e "$state/$1.kilter-wal" ] || touch -d "2020-01-$2" "$state/$1.kilter-wal"
}
there() { # there: print the names of all records in the state folder, in one line
    (cd "$state" && ls | grep -v "wal$\|shm$" | tr '\n' ' ')
}
# is_there NAME…: fail unless the state folder holds exactly these files
is_there() {
    [ "$(there)" = "$*${*:+ }" ] || fail "the state folder holds $(there) instead of $*"
}

# --- list and prune without any record or folder
"$kilter" list >out
holds out "0 records, 0.0 kB, in $state"
[ "$("$kilter" list --json)" = '{"records":[]}' ] || fail "kilter list --json prints wrong JSON if there are no records"
"$kilter" prune --keep 1 | grep -q "^0 records deleted" || fail "prune deleted records that do not exist"
expect 2 "No such file" "$kilter" list "$place/nowhere"
expect 2 "No such file" "$kilter" prune --keep 1 "$place/nowhere"
expect 2 "unknown option '--frob'" "$kilter" list --frob

# --- list prints a line for each record; the record that was written last comes first
mkdir -p "$state"
record finished 09 finished squares
record cancelled 08 cancelled squares "$place"
record killed 07 killed cubes
record loop 06 loop waves
record ended_loop 05 ended_loop waves
record killed_loop 04 killed_loop waves
record resumed 03 resumed squares
record empty 02 empty "a program of a very long name"
record farm 01 many squares
echo "no record" >"$state/junk.kilter"
head -c 5000 "$state/finished.kilter" >"$state/cut.kilter"
: >"$state/new.kilter"
echo key >"$state/farm.key"
TZ=UTC0 "$kilter" list >list
grep -n "" list | grep -q "^1:began  *program  *kind  *work  *took  *state  *size  *file$" || fail "heads: $(cat list)"
[ "$(sed -n '2,10s/.* //p' list | tr '\n' ' ')" = "finished.kilter cancelled.kilter killed.kilter loop.kilter ended_loop.kilter killed_loop.kilter resumed.kilter empty.kilter farm.kilter " ] ||
    fail "order: $(cat list)"
grep -q "^Nov 14  2023  squares  *farm  *360 tasks  *42.50 s  *finished  *[0-9.]* kB  *finished.kilter$" list || fail "$(cat list)"
grep -q " squares  *farm  *120 tasks .* cancelled  .* cancelled.kilter$" list || fail "$(cat list)"
grep -q " cubes  *farm  *120 tasks .* cut off  .* killed.kilter$" list || fail "$(cat list)"
grep -q " waves  *loop  *16 sweeps .* finished .* loop.kilter$" list || fail "$(cat list)"
grep -q " waves  *loop  *16 sweeps .* failed .* ended_loop.kilter$" list || fail "$(cat list)"
grep -q " waves  *loop  *8 sweeps  *4.00 s  *cut off .* killed_loop.kilter$" list || fail "$(cat list)"
grep -q " a program of a …  *farm  *0 tasks .* finished .* empty.kilter$" list || fail "$(cat list)"
grep -q "^unreadable  *cut.kilter: it is damaged or cut" list || fail "$(cat list)"
grep -q "^unreadable  *junk.kilter: it is not a run record$" list || fail "$(cat list)"
grep -q "^unreadable  *new.kilter: it is empty" list || fail "$(cat list)"
lacks list farm.key
holds list "9 records, "
[ "$(awk '{ n = length($0); if (n > most) most = n } END { print most }' list)" -le 120 ] || fail "too wide: $(cat list)"
"$kilter" list --json >list.json
if command -v sqlite3 >/dev/null; then
    ask() { sqlite3 :memory: "SELECT $1 FROM json_each(readfile('list.json'), '$.records')"; }
    [ "$(ask "count(*), sum(value ->> '$.bytes')")" = "12|$(cat "$state"/*.kilter "$state"/*-wal "$state"/*-shm | wc -c)" ] ||
        fail "kilter list --json gives a wrong number of bytes: $(cat list.json)"
    [ "$(ask "group_concat(value ->> '$.state')")" = "unreadable,unreadable,unreadable,finished,cancelled,cut off,finished,failed,cut off,finished,finished,finished" ] ||
        fail "kilter list --json gives wrong states of records: $(cat list.json)"
    [ "$(ask "group_concat(value ->> '$.folder')")" = "$place" ] || fail "kilter list --json gives wrong folders of records: $(cat list.json)"
    [ "$(ask "sum(value ->> '$.results')")" = 1 ] || fail "kilter list --json gives wrong results of records: $(cat list.json)"
fi
mkdir other
cp "$state/loop.kilter" other
"$kilter" list "$state" other >both
holds both "1 record, "
"$kilter" list other/nowhere other >both 2>err && fail "kilter list succeeds for a missing folder"
holds both "loop.kilter"
holds err "other/nowhere"

escape=$(printf '\033')
cp "$state/loop.kilter" "other/x$escape[31m.kilter"
"$kilter" prune --keep 0 --dry-run other >both
holds both 'x?[31m.kilter'
grep -q "$escape" both && fail "prune prints a file name with control characters"
rm other/x*

# --- the record that is chosen: the newest of this folder's programs, else of the given program, else of all
"$kilter" report 2>err | holds /dev/stdin "cancelled.kilter"
holds err "kilter: $state/cancelled.kilter: the newest record of this folder's programs"
(cd other && "$kilter" report --json 2>err | grep -q '"record":"[^"]*/finished.kilter"') || fail "the chosen record is not the newest of all records"
holds other/err "kilter: $state/finished.kilter: the newest record of all"
"$kilter" report --program cubes 2>err | holds /dev/stdin "killed.kilter"
holds err "kilter: $state/killed.kilter: the newest record of this program"
"$kilter" predict --program squares 2>err | holds /dev/stdin "finished.kilter, run 2"
expect 2 "the newest record of 'nobody': there is none in '$state'" "$kilter" report --program nobody
expect 2 "cannot be combined" "$kilter" report --program cubes a.kilter
expect 2 "cannot be combined" "$kilter" predict --program cubes a.kilter
expect 2 "--program is given twice" "$kilter" report --program cubes --program squares
expect 2 "--program wants a value" "$kilter" report --program

# --- refused options of prune
expect 2 "give --keep, --older or both" "$kilter" prune
expect 2 "give --keep, --older or both" "$kilter" prune --program squares
for count in -1 x 1x ''; do
    expect 2 "is not a whole number" "$kilter" prune --keep "$count"
done
for time in 5 d x5d 5dd -5d 1e999d nan ''; do
    expect 2 "a number with its unit" "$kilter" prune --older "$time"
done
expect 2 "--keep is given twice" "$kilter" prune --keep 1 --keep 2

# --- prune keeps foreign and damaged files, records with results, and records that are not old
before=$(there)
"$kilter" prune --keep 1 --dry-run >out
[ "$(there)" = "$before" ] || fail "kilter prune --dry-run deleted something"
holds out "4 records would be deleted, "
"$kilter" prune --older 520w >out
holds out "0 records deleted, 0.0 kB freed; 9 kept"
holds out "3 files left alone: not readable as a record"
"$kilter" prune --keep 1 --program squares >out
holds out "deleted   cancelled.kilter"
holds out "deleted   farm.kilter"
holds out "kept      resumed.kilter: the record holds results for --resume"
holds out "2 records deleted, "
is_there cut.kilter empty.kilter ended_loop.kilter farm.key finished.kilter junk.kilter killed.kilter killed_loop.kilter loop.kilter new.kilter resumed.kilter

# --- with --keep and --older, prune deletes only records that exceed both limits, with their logs
touch "$state/ended_loop.kilter"
"$kilter" prune --keep 1 --older 1h >out
is_there cut.kilter empty.kilter ended_loop.kilter farm.key finished.kilter junk.kilter killed.kilter new.kilter resumed.kilter
freed=$(cat "$state"/killed.kilter* "$state/empty.kilter" "$state/ended_loop.kilter" "$state/finished.kilter" | wc -c)
"$kilter" prune --keep 0 >out
holds out "4 records deleted, $(awk -v bytes="$freed" 'BEGIN { printf "%.0f kB", bytes / 1000 }') freed; 1 kept"
[ -z "$(ls "$state" | grep "killed")" ] || fail "prune left the log of a deleted record: $(ls "$state")"
is_there cut.kilter farm.key junk.kilter new.kilter resumed.kilter
"$kilter" prune --keep 0 --results >out
is_there cut.kilter farm.key junk.kilter new.kilter

# --- prune does not take a link for a record; it names a record that it cannot delete, and deletes the others
ln -s "$place/other/loop.kilter" "$state/link.kilter"
"$kilter" prune --keep 0 >out
holds out "kept      link.kilter: the file is a link"
rm "$state/link.kilter"
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    chmod 0755 "$place"
    mkdir closed
    "$writer" finished closed/a.kilter
    chown -R 65534 closed
    chmod 0500 closed
    got=0
    setpriv --reuid=65534 --regid=65534 --clear-groups "$kilter" prune --keep 0 closed >out 2>err || got=$?
    [ $got = 1 ] || fail "prune ends with exit code $got although the folder allows no deletion"
    holds err "deleting 'closed/a.kilter': Permission denied"
    holds out "0 records deleted, "
    chown 65533 closed/a.kilter
    chmod 0666 closed/a.kilter
    setpriv --reuid=65534 --regid=65534 --clear-groups "$kilter" prune --keep 0 closed >out
    holds out "kept      a.kilter: the record belongs to another user"
else
    echo "not tested: prune in a folder that allows no deletion (this needs root and setpriv)"
fi

# --- prune never deletes a record that is being written; kilter tune finds such a record, also from another folder
cp -r other own
start own/running --workers 2
export KILTER_RECORD_DIR=$place/own
touch own/loop.kilter
"$kilter" list >list
grep -q " running .* running.kilter$" list || fail "kilter list does not show a running record: $(cat list)"
(cd other && "$kilter" tune --once 2>err) | grep -q "^farm " || fail "tune did not find the running record: $(cat other/err)"
"$kilter" prune --keep 0 --results >out
holds out "kept      running.kilter: a program is writing the record"
holds out "1 record deleted, "
[ -e own/running.kilter ] || fail "a record that is being written was deleted"
until_so "$kilter" predict own/running.kilter
kill -9 $pid
wait $pid 2>/dev/null || :
until_so left_nothing
"$kilter" list | grep -q " cut off .* running.kilter$" || fail "kilter list does not show a cut-off record: $("$kilter" list)"
"$kilter" predict own/running.kilter >out || fail "kilter predict cannot use the cut-off record"
unset KILTER_RECORD_DIR

# --- records get default names in the default folder; if a name exists, a number is added and a message is printed
first=$place/twice.kilter
for stop in one two; do
    : >$stop.now
    "$farm" "$place/never" --record "$first" --workers 1 2>$stop.err &
    pid=$!
    children="$children $pid"
    [ $stop = two ] || until_so "$kilter" tune --once "$first"
done
until_so "$kilter" tune --once "$place/twice-2.kilter"
holds two.err "'$first' exists, so the run record is '$place/twice-2.kilter'"
lacks one.err "exists"

# --- SIGTERM cancels a run, and the record shows it
kill -TERM $pid # not SIGINT, which background commands of a shell ignore
wait $pid || :
"$kilter" predict "$place/twice-2.kilter" >out || fail "kilter predict cannot use the cancelled record"
"$kilter" list "$place" | grep -q " cancelled .* twice-2.kilter$" || fail "kilter list does not show a cancelled record: $("$kilter" list "$place")"

# --- two prunes at the same time delete each record exactly once
mkdir many
for i in 1 2 3 4 5 6 7 8 9; do
    cp other/loop.kilter many/$i.kilter
    cp other/loop.kilter many/1$i.kilter
done
"$kilter" prune --keep 0 many >one &
pruner=$!
"$kilter" prune --keep 0 many >two
wait $pruner || fail "one of two concurrent prunes failed"
[ -z "$(ls many)" ] || fail "two prunes at the same time left records: $(ls many)"
[ "$(cat one two | grep "^deleted" | sort | uniq -c | awk '$1 > 1' | wc -l)" = 0 ] || fail "two prunes at the same time both report the same record: $(cat one two)"
