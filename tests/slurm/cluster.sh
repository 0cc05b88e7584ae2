#!/usr/bin/env bash
# A real SLURM cluster on this one machine: munged, slurmctld and three slurmd, each with GPUS made-up GPUs
# (2) and MEMORY MB (16000) to grant, however little this machine has.
#
#   tests/slurm/cluster.sh install   the Debian packages (root, once)
#   tests/slurm/cluster.sh start     returns when all nodes are idle
#   tests/slurm/cluster.sh revive    starts killed nodes again, while others may be at work
#   tests/slurm/cluster.sh mend      the same, and waits until all are idle
#   tests/slurm/cluster.sh stop
#
# FOLDER holds its state (default /run/geosd-slurm). No systemd, cgroups or containers are needed, so
# memory limits are scheduled but not enforced. /etc/slurm is written: Snakemake's job step drops
# SLURM_CONF, so the configuration must lie where SLURM looks. /etc/hosts gets the nodes' names, by which
# the processes of a training on two nodes meet. A configuration of others is left alone, and `stop`
# removes ours: with it and without a controller every snakemake on this machine, under any
# profile, waits nine seconds, because the SLURM plugin asks the controller while it is imported.
set -euo pipefail

FOLDER=${FOLDER:-/run/geosd-slurm}
CONF=/etc/slurm/slurm.conf GRES=/etc/slurm/gres.conf HOSTS=/etc/hosts
NODES=3 CPUS=4 GPUS=${GPUS:-2} MEMORY=${MEMORY:-16000}
HOST=$(hostname -s)
MARK="# written by tests/slurm/cluster.sh"

stop_with() { printf '%s\nHint: %s\n' "$1" "$2" >&2; exit 1; }

install_packages() {
  command -v slurmctld slurmd munged >/dev/null && return
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null \
    || stop_with "SLURM's packages are missing and only root on Debian can install them." \
                 "apt-get install slurmctld slurmd slurm-client munge"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    slurmctld slurmd slurm-client munge >/dev/null
}

ours() { grep -qsF "$MARK" $CONF; }

configure() {
  local i
  [ ! -s $CONF ] || ours \
    || stop_with "$CONF belongs to a cluster that is not ours." "run this on a machine without SLURM"
  mkdir -p /etc/slurm "$FOLDER"/{state,log,run,dev}
  # A GPU is a character device here, a second /dev/null: with a plain file CUDA_VISIBLE_DEVICES stays unset.
  for ((i = 0; i < GPUS; i++)); do
    [ -c "$FOLDER/dev/gpu$i" ] || mknod -m 666 "$FOLDER/dev/gpu$i" c 1 3
  done
  echo "Name=gpu Type=h100 File=$FOLDER/dev/gpu[0-$((GPUS - 1))]" > $GRES
  cat > $CONF <<CONF
$MARK
ClusterName=geosd
SlurmctldHost=$HOST(127.0.0.1)
SlurmUser=root
StateSaveLocation=$FOLDER/state
SlurmdSpoolDir=$FOLDER/spool/%n
SlurmctldPidFile=$FOLDER/run/slurmctld.pid
SlurmdPidFile=$FOLDER/run/slurmd.%n.pid
SlurmctldLogFile=$FOLDER/log/slurmctld.log
SlurmdLogFile=$FOLDER/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
# Three nodes of four CPUs each, whatever this machine has.
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=bf_interval=2,sched_interval=2,batch_sched_delay=0
MpiDefault=none
ReturnToService=2
SlurmdTimeout=15
KillWait=20
MinJobAge=3600
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
GresTypes=gpu
$(for ((i = 1; i <= NODES; i++)); do
    echo "NodeName=n$i NodeHostname=$HOST NodeAddr=127.0.0.1 Port=$((17000 + i))" \
         "CPUs=$CPUS RealMemory=$MEMORY Gres=gpu:h100:$GPUS"
  done)
PartitionName=cpu Nodes=n[1-$NODES] Default=YES MaxTime=1-0 PriorityTier=10 PreemptMode=OFF
PartitionName=gpu Nodes=n[1-$NODES] MaxTime=1-0 PriorityTier=1 PreemptMode=REQUEUE
PartitionName=urgent Nodes=n[1-$NODES] MaxTime=1-0 PriorityTier=20 PreemptMode=OFF
CONF
  forget_names
  for ((i = 1; i <= NODES; i++)); do echo "127.0.0.1 n$i $MARK" >> $HOSTS; done
}

# Rewritten in place: a container may not let go of the file.
forget_names() {
  local others
  others=$(grep -vF "$MARK" $HOSTS || true)
  printf '%s\n' "$others" > $HOSTS
}

start_munge() {
  munge -n < /dev/null 2>/dev/null | unmunge >/dev/null 2>&1 && return
  [ -s /etc/munge/munge.key ] || mungekey --create
  chown munge:munge /etc/munge/munge.key
  install -d -o munge -g munge -m 755 /run/munge
  install -d -o munge -g munge -m 700 /var/lib/munge /var/log/munge
  runuser -u munge -- munged
  cp /run/munge/munged.pid "$FOLDER/run/munged.pid"   # `stop` ends the one that was started here, no other
}

start_node() {
  mkdir -p "$FOLDER/spool/$1"
  slurmd -N "$1"
}

revive() {
  local i file
  for ((i = 1; i <= NODES; i++)); do
    file=$FOLDER/run/slurmd.n$i.pid
    [ -s "$file" ] && kill -0 "$(cat "$file")" 2>/dev/null || start_node "n$i"
  done
}

mend() { revive; wait_for_nodes; }

all_idle() { [ "$(sinfo -hNp cpu -t idle -o %N 2>/dev/null | wc -l)" = "$NODES" ]; }

wait_for_nodes() {
  local i
  for ((i = 0; i < 300; i++)); do
    all_idle && return
    sleep 0.2
  done
  tail -n 20 "$FOLDER"/log/*.log >&2
  stop_with "The nodes are not idle after a minute." "their logs are above; sinfo -N -R says why"
}

start() {
  local i
  configure
  start_munge
  if scontrol ping 2>/dev/null | grep -q "is UP"; then wait_for_nodes; return; fi   # it runs already
  slurmctld -c   # without the jobs of an earlier start
  for ((i = 1; i <= NODES; i++)); do start_node "n$i"; done
  wait_for_nodes
}

# By the ids that the daemons wrote down, never by a name.
stop() {
  local file
  scancel --user root 2>/dev/null || true
  sleep 1
  for file in "$FOLDER"/run/*.pid; do
    [ -s "$file" ] && kill "$(cat "$file")" 2>/dev/null || true
  done
  if ours; then rm -f $CONF $GRES; forget_names; fi
}

case ${1:-} in
  install) install_packages ;;
  start) start ;;
  revive) revive ;;
  mend) mend ;;
  stop) stop ;;
  *) sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
