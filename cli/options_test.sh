#!/usr/bin/env bash
# Check that every option is in the help, on the man page and in the completion, and that a mistyped option is recognised.
# usage: options_test.sh KILTER FARM MAN-PAGES
set -eu
. "$(dirname "$0")/farm_test.sh"
man=$3

# Print the options of a command (or of farms), from its completion, its help or its man page.
completed() { if [ "$1" = farm ]; then "$kilter" complete farm --; else "$kilter" complete kilter "$1" --; fi | sed 's/\t.*//'; }
helped() { if [ "$1" = farm ]; then "$farm" --kilter-help 2>/dev/null; else "$kilter" "$1" --help; fi | sed -n 's/^  \(-[^h], \)\{0,1\}\(--[a-z-]*\).*/\2/p'; }
listed() {
    page=$man/kilter-$1.1
    [ "$1" != farm ] || page=$man/kilter.1
    sed -n 's/^\.It \(Fl [^h-] , \)\{0,1\}Fl \(-[a-z-]*\).*/-\2/p' "$page" | grep -vx -- --version
}

commands=$("$kilter" complete kilter '' | sed 's/\t.*//')
[ "$(echo "$commands" | wc -l)" -ge 8 ] || fail "commands: $commands"
for command in $commands farm; do
    completed "$command" | sort >completed
    [ -s completed ] || fail "$command has no options"
    helped "$command" | sort | same completed - "completion and help of $command"
    listed "$command" | sort | same completed - "completion and man page of $command"
    [ "$command" = farm ] || grep -q "^\.It Cm $command$" "$man/kilter.1" || fail "kilter.1 lacks $command"
    awk -v FS='\t' 'NF != 2 || $2 == "" { exit 1 }' <("$kilter" complete kilter "$command" --) || fail "$command: an option has no help text"
done

# --- the help is not too wide for a terminal
for command in $commands; do
    [ "$("$kilter" "$command" --help | wc -L)" -le 90 ] || fail "the help of $command has lines of more than 90 columns"
done
! LC_ALL=C "$kilter" predict --help | sed 's/…//g' | grep -q '[^ -~]' || fail "the help of predict contains characters outside ASCII"

# --- for an option with its last letter left out or changed, the error names the right option
for command in $commands; do
    for option in $(completed "$command"); do
        completed "$command" | grep -qx -- "${option%?}" && continue # skip it if the shorter word is an option, too, as with --hosts and --host
        expect 2 "unknown option '${option%?}' (did you mean --" "$kilter" "$command" "${option%?}"
        expect 2 "unknown option '${option%?}_' (did you mean $option?); try 'kilter $command --help'" \
            "$kilter" "$command" "${option%?}_=1"
    done
    expect 2 "unknown command '${command}_' (did you mean $command?)" "$kilter" "${command}_"
    expect 2 "unknown command '${command}_' (did you mean $command?)" "$kilter" help "${command}_"
done
expect 2 "unknown option '--prog' (did you mean --program?)" "$kilter" report --prog squares
expect 2 "unknown option '--versoin' (did you mean --version?)" "$kilter" --versoin
expect 2 "unknown option '--zzz'; try" "$kilter" report --zzz
expect 2 "unknown option '-j'; try" "$kilter" report -j

# --- refused values of options
expect 2 "--json: '2' is neither 0 nor 1" "$kilter" report --json=2
expect 2 "--program: the value is empty" "$kilter" report --program=
expect 2 "--engine: 'dice' is none of: smpi events" "$kilter" simulate --engine dice
expect 2 "--program wants a value" "$kilter" report --program -- a.kilter
expect 2 "'--json': No such file" "$kilter" report -- --json
expect 2 "'a.kilter': No such file" "$kilter" report a.kilter --json
expect 2 "--run has no effect without --gantt" "$kilter" report --run 1

# --- the man page has the environment variable of each option of farms
for option in $(completed farm | grep -vx -- --kilter-help); do
    variable=KILTER_$(echo "${option#--}" | tr 'a-z-' 'A-Z_')
    grep -qx "\.It Ev $variable" "$man/kilter.1" || fail "kilter.1 lacks $variable"
done

# --- completion
completes() { # WANTED WORD…
    wanted=$1
    shift
    "$kilter" complete "$@" | sed 's/\t.*//' | tr '\n' ' ' >out
    [ "$(cat out)" = "$wanted" ] || fail "complete $*: $(cat out), not $wanted"
}
completes "predict prune " kilter pr
completes "replay report run " kilter help r
completes "--program " kilter report --j --pr
completes "--gantt " kilter report --json --g
completes ":files " kilter report --gantt ''
completes ":files " kilter report a
completes ":files " kilter report -- --js
completes "" kilter report --run ''
completes "awf-b awf-c af auto " kilter simulate --policy a
completes "--engine=smpi " kilter simulate --engine=s
completes "smpi events " kilter simulate --engine ''
completes "" kilter simulate --engine=smpi ''
completes "zmq mpi inproc " farm --transport ''
completes "--resume --resume-anyway " farm in.txt --resu
completes "" kilter nothing ''
expect 2 "complete: give" "$kilter" complete

# --- completion in the shells bash, zsh and fish
mkdir -p bin
ln -sf "$kilter" bin/kilter
PATH=$PWD/bin:$PATH
: >one.kilter
cat >ask.bash <<'END'
. "$1/kilter.bash"
ask() { COMP_LINE=$* COMP_POINT=${#COMP_LINE}; "_$kind"; echo "${COMPREPLY[*]}"; }
kind=kilter
ask kilter repo
ask kilter report --f
ask kilter simulate --engine=e
ask kilter report one
kind=kilter_farm
ask ./squares --bi
END
cat >ask.zsh <<'END'
# In place of the functions of zsh's line editor.
_describe() { print -l -- ${${(P)2}%%:*} }
_files() { print -l -- one* }
compset() { [[ $words[CURRENT] == ${~2}* ]] }
ask() { local -a words=("$@[2,-1]"); local CURRENT=$(($# - 1)); source $place/_kilter $1 }
place=$1
ask kilter kilter repo
ask kilter kilter report --f
ask kilter kilter simulate --engine=e
ask kilter kilter report one
ask farm ./squares --bi
END
cat >ask.fish <<'END'
source $argv[1]/kilter.fish
complete -c squares -a '(__kilter_complete farm)'
for line in 'kilter repo' 'kilter report --f' 'kilter simulate --engine=e' 'kilter report one' 'squares --bi'
    complete -C $line | string replace -r '\t.*' ''
end
END
for shell in bash zsh fish; do
    if ! command -v $shell >/dev/null; then
        echo "$shell is not installed: completion in $shell was not tested"
        continue
    fi
    $shell ask.$shell "$here/completion" >out || fail "completion does not work in $shell"
    sed 's/^--engine=//' out >answers
    printf '%s\n' report --failed events one.kilter --bind | same answers - "completion in $shell"
done
left_nothing || fail "the test left files behind: $(ls -A "$TMPDIR")"
