# A real Slurm of four nodes n1 to n4 on this machine, for tests. A test reads this file with ".", after farm_test.sh. Each node is a slurmd with
# its own host name and mounts. No process is left when the test ends.
# exit 77: root, namespaces, slurm-wlm or munge are missing
skip() {
    echo "skipped: $*"
    rm -rf "$place"
    exit 77
}
[ "$(id -u)" = 0 ] || skip "a Slurm for the test needs root"
for command in slurmctld slurmd sbatch munged unshare; do
    command -v $command >/dev/null || skip "there is no $command"
done
unshare -m -u true 2>/dev/null || skip "namespaces are not allowed"
export SLURM_CONF=$place/slurm.conf
daemons=()
stop_box() {
    for child in $children; do kill -9 $child 2>/dev/null || :; done
    scancel -u root 2>/dev/null || :
    for file in "$place"/pid.*; do
        [ ! -s "$file" ] || kill "$(cat "$file")" 2>/dev/null || :
    done
    for daemon in "${daemons[@]}"; do
        kill "$daemon" 2>/dev/null || :
        wait "$daemon" 2>/dev/null || :
    done
    rm -rf "$place" 2>/dev/null || :
}
trap stop_box EXIT
host=$(hostname -s)
mkdir -p munge state pmix
dd if=/dev/urandom of=munge/key bs=64 count=1 2>/dev/null
chown -R munge: munge
chmod 0711 munge "$place"
chmod 0400 munge/key
runuser -u munge -- munged --foreground --key-file="$place/munge/key" --socket="$place/munge/socket" \
    --pid-file="$place/munge/pid" --log-file="$place/munge/log" --seed-file="$place/munge/seed" >/dev/null 2>&1 &
daemons+=($!)
until_so test -S munge/socket
# Find five consecutive free ports. They must be below the ports that the system assigns to connections.
first_port=$((20000 + $$ % 12000))
while ss -Hltn | awk '{ sub(/.*:/, "", $4); print $4 }' | grep -qxE "$(seq -s'|' $first_port $((first_port + 4)))"; do
    first_port=$((20000 + (first_port + 5) % 12000))
done
{
    cat <<ENDCONF
ClusterName=box
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$place/munge/socket
CredType=cred/munge
StateSaveLocation=$place/state
SlurmdSpoolDir=$place/spool.%n
SlurmctldPidFile=$place/pid.ctld
SlurmdPidFile=$place/pid.%n
SlurmctldLogFile=$place/log.ctld
SlurmdLogFile=$place/log.%n
SlurmctldPort=$first_port
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=2,batch_sched_delay=0,sched_min_interval=0
SlurmdParameters=config_overrides
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
KillWait=5
PropagateResourceLimits=NONE
ENDCONF
    for i in 1 2 3 4; do
        echo "NodeName=n$i NodeHostname=$host NodeAddr=127.0.0.1 Port=$((first_port + i)) CPUs=2 RealMemory=1000 State=UNKNOWN"
    done
    echo "PartitionName=main Nodes=n[1-4] Default=YES MaxTime=INFINITE State=UP"
} >slurm.conf
echo "PMIxCliTmpDirBase=$place/pmix" >mpi.conf # all nodes use this machine's file system, so each mounts a folder of its own at this path
slurmctld -D -f "$SLURM_CONF" >ctld.out 2>&1 &
daemons+=($!)
for i in 1 2 3 4; do
    mkdir -p spool.n$i pmix.n$i
    unshare -m -u sh -c "mount --bind '$place/pmix.n$i' '$place/pmix' && hostname n$i && exec slurmd -D -f '$SLURM_CONF' -N n$i" \
        >slurmd.$i.out 2>&1 &
    daemons+=($!)
done
fail() {
    echo "FAILED: $*" >&2
    cat "$place"/*.err "$place"/*.out >&2 2>/dev/null || :
    tail -n 5 "$place"/log.* >&2 2>/dev/null || :
    exit 1
}
idle() { [ "$(sinfo -h -t idle -o %D)" = "$1" ]; }
until_so idle 4
