#!/bin/sh
# Installs the wheels in $2 into the root file system $1, without pip itself and without what only builds use.
set -eu
root=$1
mkdir "$root/wheels"
cp "$2"/*.whl "$root/wheels"
chroot "$root" /bin/sh -eu <<'END'
cd /wheels
pip=$(echo pip-*.whl)
mkdir installer
mv "$pip" installer
python3 "installer/$pip/pip" install --no-index --break-system-packages --root-user-action ignore *.whl
END
rm -rf "$root/wheels"
cd "$root"/usr/local/lib/python3*/dist-packages
rm -rf torch/include torch/share torch/test torch/lib/*_test.so
# torch does not even import without this one.
find torch/bin -type f ! -name torch_shm_manager -delete
find mpmath networkx numpy sympy -type d -name tests -prune -exec rm -rf {} +
chroot "$root" horovodrun --check-build | tee /dev/stderr | grep --fixed-strings '[X] Gloo'
