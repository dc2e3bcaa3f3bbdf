#!/bin/sh
# Removes from the root file system $1 what belongs to the host that built it, and what nobody runs.
set -eu
cd "$1"
rm -rf etc/hostname etc/resolv.conf etc/fstab etc/apt/sources.list etc/apt/apt.conf.d/99mmdebstrap etc/dpkg/dpkg.cfg.d
rm -rf var/log/* var/cache/debconf var/cache/ldconfig var/lib/systemd
rm -rf usr/share/bug usr/share/doc usr/share/doc-base usr/share/initramfs-tools usr/share/lintian usr/share/man
