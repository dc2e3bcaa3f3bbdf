#!/bin/sh
# Builds Horovod's wheel in the root file system $1, with the wheels in $2 and its source in $3, into $4.
set -eu
root=$1
mkdir "$root/wheels" "$root/source" "$root/out"
cp "$2"/*.whl "$root/wheels"
tar --extract --file "$3"/horovod-*.tar.gz --directory "$root/source" --strip-components 1
(
    cd "$root/source"
    # PyTorch's headers need C++17 since 2.1; Horovod asks for 14.
    sed -i 's/set(CMAKE_CXX_STANDARD 14)/set(CMAKE_CXX_STANDARD 17)/' CMakeLists.txt horovod/torch/CMakeLists.txt
    # As it is, with debug information and at -O3, the library has 62 MB and takes twice as long to compile.
    sed -i 's/"-O2" "-O3"/"-O2 -g" "-Os"/' CMakeLists.txt
)
chroot "$root" /bin/sh -eu <<'END'
pip=$(echo /wheels/pip-*.whl)/pip
python3 "$pip" install --no-index --find-links /wheels --break-system-packages --root-user-action ignore \
    --no-compile cffi cloudpickle packaging psutil pyyaml torch
export HOROVOD_WITH_GLOO=1 HOROVOD_WITH_PYTORCH=1
export HOROVOD_WITHOUT_MPI=1 HOROVOD_WITHOUT_MXNET=1 HOROVOD_WITHOUT_TENSORFLOW=1
export MAKEFLAGS="-j$(nproc)"
cd /source
python3 "$pip" wheel --no-index --no-build-isolation --no-deps --wheel-dir /out .
END
cp "$root"/out/*.whl "$4"
