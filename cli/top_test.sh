#!/usr/bin/env bash
# Test kilter top with real farms, in a pseudo-terminal and as a server. usage: top_test.sh KILTER FARM
set -eu
. "$(dirname "$0")/farm_test.sh"
export TERM=xterm COLUMNS=100 LINES=30 LC_ALL=C.UTF-8 KILTER_RECORD_DIR="$place"

expect 2 "kilter top needs a terminal" "$kilter" top
expect 2 "--interval-s: '0' is not" "$kilter" top --interval-s 0
expect 2 "--serve: '0' is not a whole number from 1 to 65535" "$kilter" top --serve 0
if "$kilter" top --serve 1 nothing.kilter 2>&1 | grep -q "built without"; then
    echo "kilter was built without libmicrohttpd: kilter top --serve was not tested"
    serves=
else
    serves=1
fi

# --- kilter top in a terminal
open_top() { # ARGUMENT…: start kilter top in a pseudo-terminal; the keys come from file descriptor 3
    rm -f keys
    mkfifo keys
    : >screen
    script -qfec "$kilter top --interval-s 0.1 $*" /dev/null <keys >>screen 2>&1 &
    top=$!
    children="$children $top"
    exec 3>keys
}
# Write to a descriptor. Do not end this script if the reader has just closed its end.
write_to() { (trap '' PIPE && printf "$2" >&"$1") 2>/dev/null || :; } # DESCRIPTOR FORMAT
press() { write_to 3 "$1"; }
screen_has() { # WORDS: make kilter top paint the whole screen (Ctrl-L), wait for the last line, and check that the screen has the words
    : >screen
    press '\f'
    for look in $(seq 100); do
        ! grep -aq "q: quit\|built without" screen || break
        sleep 0.05
    done
    grep -aq -- "$1" screen
}
# A key has no effect while the farm is late with an answer. So the tests press the key, and answer its question, again and again until the farm reacts.
asked() { # KEY WORDS ANSWER: press the key, which asks a question with these words, and press the answer
    press "$1"
    screen_has "$2" || return 1
    press "$3"
    ! screen_has "does not answer"
}
has_other_policy() { ! shows "^policy  *auto"; }

if ! command -v script >/dev/null; then
    echo "the command script is not installed: kilter top in a terminal was not tested"
else
    start top --workers 3
    open_top
    until_so screen_has "tune_test_farm\|built without"
    if screen_has "built without ncurses"; then
        echo "kilter was built without ncurses: kilter top in a terminal was not tested"
    else
        until_so screen_has "kilter top: 1 run"
        until_so screen_has "units per s"
        until_so asked d "Let worker [012] finish" y
        until_so shows "^workers  *2 at work"
        until_so asked p "Policy from the next run on" 'p\n'
        until_so has_other_policy
        # key e stops the farm cleanly: kilter top shows the end and continues
        until_so asked e "Stop this run cleanly" y
        until_so screen_has "cancelled"
        got=0
        wait $pid || got=$?
        [ $got = 143 ] || fail "the farm that was ended in order has exit code $got: $(cat farm.err)"
        press q
        wait $top || fail "kilter top ended with exit code $?: $(cat screen)"
        exec 3>&-
        # the master is killed: kilter top shows it
        start killed --workers 1
        open_top "$record"
        until_so screen_has "units per s"
        kill -9 $pid
        wait $pid 2>/dev/null || :
        until_so screen_has "the program was killed or crashed"
        press q
        wait $top || fail "kilter top ended with exit code $? after a killed run: $(cat screen)"
    fi
    exec 3>&-
fi
[ -n "$serves" ] || exit 0

# --- kilter top --serve
ask() { # ask PATH [REQUEST]: print the server's answer with its headers
    exec 4<>"/dev/tcp/127.0.0.1/$port" || return 1
    write_to 4 "${2:-GET $1 HTTP/1.1\r\nHost: localhost:$port\r\nConnection: close\r\n\r\n}"
    cat <&4
    exec 4>&-
}
answers() { ask "$1" 2>/dev/null | grep -aq -- "$2"; }

start served --workers 2
serve() {
    "$kilter" top --interval-s 0.05 --serve $port "$record" >served.out 2>served.err &
    server=$!
    children="$children $server"
}
serves() { # if another process uses the port, try the next one
    grep -q "serving http://127.0.0.1:$port/" served.out && return
    kill -0 $server 2>/dev/null || { port=$((port + 1)) && serve; }
    return 1
}
port=$((20000 + $$ % 12000)) # the system gives connections ports from 32768 on
serve
until_so serves
expect 1 "port $port: this port is in use" "$kilter" top --serve $port "$record"
until_so answers /metrics '^kilter_workers{program="tune_test_farm",record=".*"} 2'
ask /metrics | grep -q '^Content-Type: text/plain; version=0.0.4' || fail "the server sends metrics with a wrong content type"
answers / '<html lang="en" data-live="1">' || fail "no page"
until_so answers /data 'HTTP/1.1 200'
answers /events 'event: record' || fail "the server sends no event about a changed record"
answers /events 'event: state' || fail "the server sends no event about the state of the farm"
# A client that has seen the present state of the record gets no event about the record. The record changes all the time, so try this a few times.
fresh() {
    id=$(ask /events | tr -d '\r' | sed -n 's/^id: //p')
    ! ask /events "GET /events HTTP/1.1\r\nHost: 127.0.0.1:$port\r\nLast-Event-ID: $id\r\nConnection: close\r\n\r\n" | grep -q 'event: record'
}
: >"$stop.hold"
until_so fresh
rm "$stop.hold"

# the server answers wrong requests with an error, and continues
answers /nothing 'HTTP/1.1 404' || fail "the server does not refuse an unknown path"
for request in "POST / HTTP/1.1\r\nHost: localhost:$port\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc=405" \
    "GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n=403" \
    "GET / HTTP/1.1\r\nConnection: close\r\n\r\n=40" "nonsense\r\n\r\n=HTTP" \
    "GET / HTTP/1.1\r\nHost: localhost:$port\r\nX: $(head -c 60000 /dev/zero | tr '\0' x)\r\n\r\n=HTTP"; do
    ask "" "${request%=*}" 2>/dev/null >answer || :
    grep -aq "HTTP/1.. ${request##*=}" answer || [ "${request##*=}" = HTTP ] || # the connection may be closed before the answer is read
        fail "a wrong request was answered: $(head -c 200 answer)"
done
# more silent clients connect than are allowed, and read nothing; the server still answers
away=()
for i in $(seq 40); do
    exec {held}<>"/dev/tcp/127.0.0.1/$port" || break
    away+=($held)
    write_to "$held" 'GET / HTTP/1.1\r\n'
done
for held in "${away[@]}"; do exec {held}>&-; done
until_so answers /metrics kilter_workers

# The master is killed: the server reports the end of the run and continues. Ctrl-C ends the server.
kill -9 $pid
wait $pid 2>/dev/null || :
until_so answers /events 'event: end'
answers /events 'The run is over: the program was killed or crashed' || fail "the server sends no event about the end of the run: $(ask /events)"
kill -INT $server
wait $server || fail "the server ended with exit code $?: $(cat served.err)"
