# Functions for scripts that run in the box. A script reads this file with ".".

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

# until_so COMMAND…: repeat the command until it succeeds; fail if it takes too long
until_so() {
    local tries
    for ((tries = 0; tries < 600; tries++)); do
        if "$@" >/dev/null 2>&1; then return; fi
        sleep 0.05
    done
    fail "this command did not succeed in time: $*"
}
