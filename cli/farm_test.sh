# Functions for tests with real farms. A test script reads this file with ".", is called with the arguments KILTER FARM, and runs in a folder of its
# own.

kilter=$1
farm=${2:-}
here=$(cd "$(dirname "$0")" && pwd)
place=$(mktemp -d)
children=
trap 'for child in $children; do kill -9 $child 2>/dev/null || :; done; rm -rf "$place"' EXIT
export TMPDIR="$place/tmp" HOME="$place/home"
mkdir "$TMPDIR"
unset KILTER_RECORD_DIR XDG_STATE_HOME XDG_RUNTIME_DIR KILTER_RECORD KILTER_TESTS
cd "$place"

. "$here/outside_test.sh"

end_jobs() { # end the test's processes, and the jobs that the scripts in place of Slurm's commands started: a job outlives the command that submitted it
    for child in $children; do kill -9 $child 2>/dev/null || :; done
    for file in "$place"/jobs/*/pid; do
        [ ! -s "$file" ] || kill -KILL -- "-$(cat "$file")" 2>/dev/null || :
    done
    rm -rf "$place"
}

# until_so COMMAND…: repeat the command until it succeeds
until_so() {
    tries=0
    until "$@" >out 2>err; do
        tries=$((tries + 1))
        [ $tries -lt 600 ] || fail "this command never succeeded: $*: $(cat err)"
        sleep 0.1
    done
}

left_nothing() { # succeed if the master has removed all files that it made for workers or tools. Ignore files that the thread sanitizer leaves when a process is killed
    ! ls -A "$TMPDIR" | grep -v '^tsan\.' >&2
}

shows() { # shows WORDS: succeed if kilter tune prints the words
    "$kilter" tune --once "$record" | grep -q -- "$1"
}

start() { # start NAME OPTION…: start a farm in the background
    record=$place/$1.kilter
    stop=$place/$1.stop
    shift
    "$farm" "$stop" --team all --record "$record" "$@" 2>farm.err &
    pid=$!
    children="$children $pid"
    until_so "$kilter" tune --once "$record"
}
