#!/bin/sh
# Makes the runtime's Python in the root file system $1, with the files in $2, and puts the folder into $3.
set -eu
cp -r "$2" "$1/build"
chroot "$1" python3 /build/assemble.py python /build/folder
cp -r "$1/build/folder" "$3"
