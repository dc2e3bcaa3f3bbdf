#!/bin/sh
# Puts torch and NumPy out of the tar $2, which the recipe horovod has built, and PyPI's packages out of the folder $3
# into the root file system $1. DeepSpeed comes as source; nothing of it is compiled.
set -eu
sh "${0%/*}/../horovod/finish.sh" "$1" "$2"
packages=$1/usr/local/lib/python3.11/dist-packages
rm -rf "$packages"/horovod*
cp --recursive "$3/wheels/." "$packages"
for source in "$3"/sources/deepspeed-*.tar.gz; do
    tar --extract --file "$source" --directory "$packages" --strip-components 1 --wildcards '*/deepspeed/*'
    tar --extract --file "$source" --directory "$1/usr/local/bin" --strip-components 2 --wildcards '*/bin/deepspeed'
done
# Each process of a job would compile them anew, in every container.
chroot "$1" python3 -m compileall -q --invalidation-mode unchecked-hash "${packages#"$1"}"
