#!/bin/sh
# Test kilter hosts on the command line, with a shell script instead of ssh. usage: hosts_test.sh KILTER
set -eu
kilter=$1
here=$(cd "$(dirname "$0")" && pwd)
place=$(mktemp -d)
watcher=
trap '[ -z "$watcher" ] || kill -9 $watcher 2>/dev/null || :; rm -rf "$place"' EXIT
cd "$place"
. "$here/outside_test.sh"
unset SLURM_JOB_NODELIST SLURM_JOB_CPUS_PER_NODE
export SSH_CONNECTION="127.0.0.1 1 127.0.0.1 2" # with this address, agents listen only on the loopback interface

# --- refused command lines
expect 2 "unknown option '--frob'" "$kilter" hosts --frob
expect 2 "unknown option '-j'" "$kilter" hosts -j
expect 2 "--count wants a value" "$kilter" hosts -n
expect 2 "--count: 'x' is not a whole number" "$kilter" hosts -n x
expect 2 "--count: '0' is not" "$kilter" hosts -n0
expect 2 "--count is given twice: '1' and '2'" "$kilter" hosts -n 1 --count 2
expect 2 "--pick: 'worst' is none of: forecast best round-robin random best-few" "$kilter" hosts --pick worst
expect 2 "--weight: '1.5' is not a number from 0 to 1" "$kilter" hosts --weight 1.5
expect 2 "--watch and --pick cannot be combined" "$kilter" hosts --watch 1 --pick best
expect 2 "--watch and --count cannot be combined" "$kilter" hosts --watch 1 -n 1
expect 2 "FILE and --here cannot be combined" "$kilter" hosts --here list
expect 2 "one file at a time" "$kilter" hosts a b
expect 2 "none: No such file or directory; name a file with hosts" "$kilter" hosts none
printf 'a\nb c\n' >bad
expect 2 "bad, line 2: 'c' after the name of a host is not slots=N" "$kilter" hosts bad
: >empty
expect 2 "empty: it names no host" "$kilter" hosts empty
SLURM_JOB_NODELIST='n[' expect 2 "Slurm's list of nodes 'n['" "$kilter" hosts

# --- measure only this host
"$kilter" hosts >out
grep -q "^$(hostname) " out || fail "kilter hosts does not list this host: $(cat out)"
grep -q "^1 host, mean fitness " out || fail "no summary: $(cat out)"
SLURM_JOB_NODELIST='no-such-node' "$kilter" hosts --here --json >out
grep -q '"reachable": *true' out || fail "kilter hosts --here did not measure this host: $(cat out)"

# --- a script replaces ssh: it reaches hosts a and b, but not the host nowhere
cat >ssh <<'SCRIPT'
#!/bin/sh
echo "$1" >>"$place/reached"
[ "$1" != nowhere ] || { echo "no route to nowhere" >&2; exit 255; }
shift
exec sh -c "$*"
SCRIPT
chmod +x ssh
export place
cat >list <<'LIST'
# a hostfile
a slots=1
nowhere slots=4
b slots=2
LIST
"$kilter" hosts --ssh "$place/ssh" list >out
[ "$(sort reached | tr '\n' ' ')" = "a b nowhere " ] || fail "kilter hosts did not contact exactly the listed hosts: $(cat reached)"
grep -q "^nowhere  *0.00 .*unreachable: the connection ended: no route to nowhere" out || fail "the unreachable host is not listed: $(cat out)"
grep -q "^3 hosts, mean fitness 0\.[0-9]*; the network has 30 % of the weight" out || fail "no summary: $(cat out)"
[ "$(sed -n '2,3s/ .*//p' out | sort | tr '\n' ' ')" = "a b " ] || fail "the reachable hosts are not listed first: $(cat out)"

# --- JSON
"$kilter" hosts --ssh "$place/ssh" --weight 1 --json --pick best -n 2 --seed 7 list >out
holds() { # holds CONDITION: fail unless the condition of jq is true for the JSON output
    jq -e "$1" out >/dev/null || fail "the JSON does not hold $1: $(cat out)"
}
holds '[.hosts[].host] == ["a", "nowhere", "b"]'
holds '[.hosts[].slots] == [1, 4, 2]'
holds '.hosts[1] | .fitness == 0 and .reachable == false and (.why | contains("no route")) and .cores == null'
holds '[.hosts[0, 2] | .reachable and .fitness > 0 and .fitness <= 1 and .cores >= 1 and .probe > 0] | all'
holds '[.hosts[0, 2] | .fitness == .host_fitness] | all'
holds '(.picked | sort) == ["a", "b"] and .seed == 7'
holds '(.mean_fitness - (.hosts[0].fitness + .hosts[2].fitness) / 3) | . < 1e-9 and . > -1e-9'
holds '(.links | length) == 1 and (.links[0] | .bytes_per_s > 0 and .trip_s > 0 and ([.from, .to] | sort) == ["a", "b"])'

# --- with --pick, only the names of hosts are printed
for picker in forecast best round-robin random best-few; do
    "$kilter" hosts --ssh "$place/ssh" --no-network --pick $picker -n 2 list >out 2>err || fail "--pick $picker: $(cat err)"
    [ "$(sort out | tr '\n' ' ')" = "a b " ] || fail "--pick $picker: $(cat out)"
    "$kilter" hosts --ssh "$place/ssh" --no-network --pick $picker list >out 2>err || fail "--pick $picker: $(cat err)"
    [ -s out ] || fail "--pick $picker picks nothing"
    ! grep -q nowhere out || fail "--pick $picker picks a host that cannot be reached"
done
expect 1 "2 of the 3 wanted hosts can be reached" "$kilter" hosts --ssh "$place/ssh" -n 3 list
echo nowhere >gone
expect 1 "0 of the 1 wanted hosts can be reached" "$kilter" hosts --ssh "$place/ssh" --pick best gone
"$kilter" hosts --ssh "$place/ssh" gone >out || fail "kilter hosts fails if no host can be reached"

# --- with --no-network, links between hosts are not measured
"$kilter" hosts --ssh "$place/ssh" --no-network --json list >out
holds '.links == []'

# --- kilter hosts --watch ends when nobody reads its output
mkfifo seen
"$kilter" hosts --here --watch 0.1 --json >seen 2>err &
watcher=$!
head -n 3 <seen >out
wait $watcher 2>/dev/null || :
watcher=
[ "$(grep -c '"mean_fitness"' out)" = 3 ] || fail "kilter hosts --watch did not print three measurements: $(cat out)"

# --- an agent on a host ignores unknown requests, and ends when its input ends
printf 'hello\nlook probe_s 0\n' | "$kilter" hosts --serve >out
[ "$(wc -l <out)" = 1 ] || fail "the agent did not print exactly one answer: $(cat out)"
grep -q "^kilter-host 1 reading cores [0-9]" out || fail "the answer of the agent is wrong: $(cat out)"
