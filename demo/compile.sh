#!/bin/sh
# Compiles with the mpicc of a root file system: ROOT SOURCE PROGRAM. As examples/pi/Dockerfile does it.
set -eu
cp "$2" "$1/root/pi.c"
chroot "$1" mpicc -O2 -o /root/pi /root/pi.c -lm
cp "$1/root/pi" "$3"
chmod 755 "$3"
