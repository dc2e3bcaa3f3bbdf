#!/bin/sh
# Gives busybox its applets, and root and nobody their names; there is no package in it that would.
set -eu
mkdir -p "$1/etc" "$1/root" "$1/sbin" "$1/usr/bin" "$1/usr/sbin" "$1/var/tmp"
chmod 700 "$1/root"
chmod 1777 "$1/tmp" "$1/var/tmp"
chroot "$1" /bin/busybox --install -s
printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n' > "$1/etc/passwd"
printf 'root:x:0:\nnogroup:x:65534:\n' > "$1/etc/group"
rm -rf "$1/var/lib/dpkg"
