#!/bin/bash
# Check that kilter hosts sorts three control groups of this machine by fitness, correctly in each of 20 rounds. The first group is idle, the second
# has a quota of half a core, and two other programs use the core of the third.
# usage: hosts_groups_test.sh KILTER exit 77: control groups cannot be used here
set -eu
kilter=$1
here=$(cd "$(dirname "$0")" && pwd)
rounds=20
skip() {
    echo "skipped: $*" >&2
    exit 77
}
[ "$(id -u)" = 0 ] || skip "only root makes control groups"
[ "$(nproc)" -ge 2 ] || skip "the idle group and the others need a core each"

place=$(mktemp -d)
children=()
group=
# Try several times to remove a group: a killed process stays in its group for a moment.
remove_groups() {
    for _ in $(seq 500); do
        rmdir "$group"/*/ "$group" 2>/dev/null || :
        [ -d "$group" ] || return 0
        sleep 0.01
    done
    echo "the control group $group could not be removed" >&2
}
end() {
    [ ${#children[@]} = 0 ] || kill -9 "${children[@]}" 2>/dev/null || :
    [ -z "$group" ] || remove_groups
    rm -rf "$place"
}
trap end EXIT
cd "$place"
. "$here/outside_test.sh"

# --- make the groups; their weights are large, so other programs of this machine hardly change the measurement
make_groups() { # make_groups FOLDER: make the three groups in this folder; false if control groups there have no limits of processor time
    group=$1/kilter-hosts-$$
    mkdir "$group" 2>/dev/null || { group=; return 1; }
    [ ! -f "$group/cgroup.subtree_control" ] || echo +cpu >"$group/cgroup.subtree_control" 2>/dev/null || :
    mkdir "$group/idle" "$group/quota" "$group/loaded"
    [ -f "$group/quota/cpu.cfs_quota_us" ] || [ -f "$group/quota/cpu.max" ] || { remove_groups; group=; return 1; }
}
make_groups /sys/fs/cgroup/cpu || make_groups /sys/fs/cgroup || skip "there are no control groups with limits of processor time"
if [ -f "$group/quota/cpu.max" ]; then
    echo "50000 100000" >"$group/quota/cpu.max"
    weight=cpu.weight most=10000
else
    echo 100000 >"$group/quota/cpu.cfs_period_us"
    echo 50000 >"$group/quota/cpu.cfs_quota_us"
    weight=cpu.shares most=262144
fi
for one in "$group" "$group/idle" "$group/quota" "$group/loaded"; do
    echo $most >"$one/$weight"
done

# --- start the load of one group, and write a replacement for ssh that enters the group with the name of the host
cores=($(taskset -cp $$ | sed 's/.*: //; s/[,-]/ /g'))
cat >enter <<SCRIPT
#!/bin/sh
core=${cores[1]}
[ "\$1" != idle ] || core=${cores[0]}
echo \$\$ >"$group/\$1/cgroup.procs"
shift
exec taskset -c \$core sh -c "\$*"
SCRIPT
chmod +x enter
for _ in 1 2; do
    "$place/enter" loaded 'i=0; while [ $i -lt 100000000 ]; do i=$((i + 1)); done' &
    children+=($!)
    disown $! # so that the shell prints no message when this process ends
done
printf 'quota\nloaded\nidle\n' >list

# --- measure in rounds
mkfifo seen
"$kilter" hosts --ssh "$place/enter" --no-network --weight 1 --json --watch 0.01 list >seen 2>err &
children+=($!)
disown $!
head -n $rounds <seen >out
[ "$(wc -l <out)" = $rounds ] || fail "not $rounds rounds: $(cat err)"
jq -r '[.hosts | sort_by(-.fitness)[].host] | join(" ")' out | sort | uniq -c >orders
jq -r '[.hosts[] | "\(.host) \(.fitness * 1000 | round / 1000)"] | join(", ")' out
right=$(awk '$2 " " $3 " " $4 == "idle quota loaded" { print $1 }' orders)
echo "the order of the three groups was right in ${right:-0} of $rounds rounds"
[ "$right" = $rounds ] || fail "the order of the three groups is wrong: $(cat orders)"
jq -es 'all(.[].hosts[] | select(.host == "quota"); .quota_cores == 0.5)' out >/dev/null || fail "kilter hosts does not show the quota of the group: $(cat out)"
