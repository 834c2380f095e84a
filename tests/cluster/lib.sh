# What the scripts in the box share; they read it with ".".

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

# until_so COMMAND…: again and again, until it succeeds
until_so() {
    local tries
    for ((tries = 0; tries < 600; tries++)); do
        if "$@" >/dev/null 2>&1; then return; fi
        sleep 0.05
    done
    fail "never so: $*"
}
