# Functions that the tests of kilter share. A test reads this file with ".".

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

# expect CODE WORDS COMMAND…: the command must exit with CODE, print nothing on stdout, and one line with WORDS on stderr
expect() {
    code=$1 words=$2
    shift 2
    got=0
    "$@" >out 2>err || got=$?
    [ "$got" = "$code" ] || fail "$* ended with exit code $got, not $code: $(cat err)"
    [ ! -s out ] || fail "$* printed on the standard output: $(cat out)"
    [ "$(wc -l <err)" = 1 ] || fail "$* did not print exactly one line of error: $(cat err)"
    grep -qF -- "$words" err || fail "the error of $* does not have the words $words: $(cat err)"
}

# same EXPECTED GOT WHAT: fail with the message WHAT unless the files EXPECTED and GOT are equal
same() {
    diff -u "$1" "$2" >&2 || fail "$3"
}
