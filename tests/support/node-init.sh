#!/bin/sh
# PID 1 of a node, already in new namespaces: builds the node's root and becomes its sshd.
# usage: node-init.sh DIR NAME DEVICE
set -e
dir=$1 name=$2 device=$3
mount -t tmpfs -o size=64m,mode=755 "$name-upper" "$dir/top"
mkdir "$dir/top/upper" "$dir/top/work" "$dir/top/root"
root=$dir/top/root
mount -t overlay -o "lowerdir=/,upperdir=$dir/top/upper,workdir=$dir/top/work" "$name-root" "$root"
hostname "$name"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount --bind /dev "$root/dev"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$root/dev/pts"
mount -t tmpfs -o size=64m,mode=1777 "$name-shm" "$root/dev/shm"
mount -t tmpfs -o size=64m,mode=1777 "$name-tmp" "$root/tmp"
mount -t tmpfs -o size=16m,mode=755 "$name-run" "$root/run"
mount -t tmpfs -o size=64m,mode=700 "$name-home" "$root/root"
mkdir -p "$root/run/sshd" "$root/root/.ssh" "$root/root/.cache"
mount "$device" "$root/root/.cache"
chmod 700 "$root/root/.ssh" "$root/root/.cache"
cp "$dir/authorized_keys" "$root/root/.ssh/authorized_keys"
cp "$dir/host_key" "$root/run/host_key"
chmod 600 "$root/run/host_key"
cp /proc/sys/kernel/random/uuid "$root/run/boot_id"
mount --bind "$root/run/boot_id" "$root/proc/sys/kernel/random/boot_id"
cat > "$root/run/sshd_config" <<CONFIG
Port 22
HostKey /run/host_key
PidFile none
UsePAM no
UseDNS no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
MaxStartups 1000
MaxSessions 100
PrintMotd no
PrintLastLog no
Subsystem sftp internal-sftp
CONFIG
: > "$root/var/log/btmp"
exec chroot "$root" /usr/sbin/sshd -D -f /run/sshd_config
