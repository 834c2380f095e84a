#!/usr/bin/env bash
# kilter top on real farms, in a pseudo-terminal and as a server: top_test.sh KILTER FARM
set -eu
. "$(dirname "$0")/farm_test.sh"
export TERM=xterm COLUMNS=100 LINES=30 LC_ALL=C.UTF-8 KILTER_RECORD_DIR="$place"

expect 2 "it needs a terminal" "$kilter" top
expect 2 "--interval-s: '0' is not" "$kilter" top --interval-s 0
expect 2 "--serve: '0' is not a whole number from 1 to 65535" "$kilter" top --serve 0
if "$kilter" top --serve 1 nothing.kilter 2>&1 | grep -q "built without"; then
    echo "built without libmicrohttpd: the server was not tried"
    serves=
else
    serves=1
fi

# --- the terminal
open_top() { # ARGUMENT…: start kilter top in a pseudo-terminal, with keys from file descriptor 3
    rm -f keys
    mkfifo keys
    : >screen
    script -qfec "$kilter top --interval-s 0.1 $*" /dev/null <keys >>screen 2>&1 &
    top=$!
    children="$children $top"
    exec 3>keys
}
press() { printf "$1" >&3; }
screen_has() { # WORDS: paint the whole screen, with Ctrl-L, wait for its last line, and look for the words
    : >screen
    press '\f'
    for look in $(seq 100); do
        ! grep -aq "q: quit\|built without" screen || break
        sleep 0.05
    done
    grep -aq -- "$1" screen
}
# While a farm answers late, keys have no effect. So callers repeat the key and the answer.
asked() { # KEY WORDS ANSWER: the key asks a question with these words, and its answer is carried out
    press "$1"
    screen_has "$2" || return 1
    press "$3"
    ! screen_has "does not answer"
}
has_other_policy() { ! shows "^policy  *auto"; }

if ! command -v script >/dev/null; then
    echo "no script here: the terminal was not tried"
else
    start top --workers 3
    open_top
    until_so screen_has "tune_test_farm\|built without"
    if screen_has "built without ncurses"; then
        echo "built without ncurses: the terminal was not tried"
    else
        until_so screen_has "kilter top: 1 run"
        until_so screen_has "units per s"
        until_so asked d "Let worker [012] finish" y
        until_so shows "^workers  *2 at work"
        until_so asked p "Policy from the next run on" 'p\n'
        until_so has_other_policy
        # the farm is ended in order, and kilter top says so and goes on
        until_so asked e "End this run in order" y
        until_so screen_has "cancelled"
        got=0
        wait $pid || got=$?
        [ $got = 143 ] || fail "the farm ended with $got: $(cat farm.err)"
        press q
        wait $top || fail "kilter top ended with $?: $(cat screen)"
        exec 3>&-
        # kill a run
        start killed --workers 1
        open_top "$record"
        until_so screen_has "units per s"
        kill -9 $pid
        wait $pid 2>/dev/null || :
        until_so screen_has "it was killed or crashed"
        press q
        wait $top || fail "kilter top ended with $?: $(cat screen)"
    fi
    exec 3>&-
fi
[ -n "$serves" ] || exit 0

# --- the server
ask() { # PATH [REQUEST]: print the answer, headers included
    exec 4<>"/dev/tcp/127.0.0.1/$port" || return 1
    printf "${2:-GET $1 HTTP/1.1\r\nHost: localhost:$port\r\nConnection: close\r\n\r\n}" >&4
    cat <&4
    exec 4>&-
}
answers() { ask "$1" 2>/dev/null | grep -aq -- "$2"; }

start served --workers 2
port=$((20000 + $$ % 20000))
"$kilter" top --interval-s 0.05 --serve $port "$record" >served.out 2>served.err &
server=$!
children="$children $server"
until_so grep -q "serving http://127.0.0.1:$port/" served.out
expect 1 "port $port: it is in use" "$kilter" top --serve $port "$record"
until_so answers /metrics '^kilter_workers{program="tune_test_farm",record=".*"} 2'
ask /metrics | grep -q '^Content-Type: text/plain; version=0.0.4' || fail "metrics have a wrong type"
answers / '<html lang="en" data-live="1">' || fail "no page"
until_so answers /data 'HTTP/1.1 200'
answers /events 'event: record' || fail "no event about the record"
answers /events 'event: state' || fail "no event about the state"
# A client that has seen the present state gets no event about the record. The state changes all the time, so try it a few
# times.
fresh() {
    id=$(ask /events | tr -d '\r' | sed -n 's/^id: //p')
    ! ask /events "GET /events HTTP/1.1\r\nHost: 127.0.0.1:$port\r\nLast-Event-ID: $id\r\nConnection: close\r\n\r\n" | grep -q 'event: record'
}
: >"$stop.hold"
until_so fresh
rm "$stop.hold"

# wrong requests get an error, and the server goes on
answers /nothing 'HTTP/1.1 404' || fail "an unknown path is answered"
for request in "POST / HTTP/1.1\r\nHost: localhost:$port\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc=405" \
    "GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n=403" \
    "GET / HTTP/1.1\r\nConnection: close\r\n\r\n=40" "nonsense\r\n\r\n=HTTP" \
    "GET / HTTP/1.1\r\nHost: localhost:$port\r\nX: $(head -c 60000 /dev/zero | tr '\0' x)\r\n\r\n=HTTP"; do
    ask "" "${request%=*}" 2>/dev/null >answer || :
    grep -aq "HTTP/1.. ${request##*=}" answer || [ "${request##*=}" = HTTP ] || # the connection may be closed before the answer is read
        fail "a wrong request was answered: $(head -c 200 answer)"
done
# silent clients: open more connections than are allowed, and read from none
away=()
for i in $(seq 40); do
    exec {held}<>"/dev/tcp/127.0.0.1/$port" || break
    away+=($held)
    printf 'GET / HTTP/1.1\r\n' >&$held 2>/dev/null || :
done
for held in "${away[@]}"; do exec {held}>&-; done
until_so answers /metrics kilter_workers

# the farm dies; the server says so and goes on; Ctrl-C ends it
kill -9 $pid
wait $pid 2>/dev/null || :
until_so answers /events 'event: end'
answers /events 'The run is over: it was killed or crashed' || fail "the end is not told: $(ask /events)"
kill -INT $server
wait $server || fail "the server ended with $?: $(cat served.err)"
