#!/bin/sh
# In the root file system $1: compiles Horovod from its source in $2, and takes of torch what training needs.
# Both go into $3/files.tar.
set -eu
root=$1
mkdir "$root/source" "$root/files"
tar --extract --file "$2"/horovod-*.tar.gz --directory "$root/source" --strip-components 1
# As it is, with debug information and at -O3, the library has 62 MB and takes twice as long to compile.
sed -i 's/"-O2" "-O3"/"-O2 -g" "-Os"/' "$root/source/CMakeLists.txt"
chroot "$root" /bin/sh -eu <<'END'
export HOROVOD_WITH_GLOO=1 HOROVOD_WITH_PYTORCH=1
export HOROVOD_WITHOUT_MPI=1 HOROVOD_WITHOUT_MXNET=1 HOROVOD_WITHOUT_TENSORFLOW=1
export MAKEFLAGS="-j$(nproc)"
cd /source
pip3 install --no-index --no-build-isolation --no-deps --break-system-packages --root-user-action ignore --root /files .

cd /files
cp --archive --parents /usr/lib/python3/dist-packages/torch /usr/lib/*/libtorch*.so.* /usr/lib/*/libc10.so.* \
    /usr/lib/*/libshm.so.* .
# These are torch's own tests, but for the one without which it does not import.
find usr/lib/python3/dist-packages/torch/bin -type f ! -name torch_shm_manager -delete
# libtorch is linked with OpenCV, ffmpeg and others, and uses not one symbol of them. They would bring 600 MB of GDAL,
# Qt, LLVM and the like.
cpu=$(echo usr/lib/*/libtorch_cpu.so.*.*.*)
for library in $(ldd -u "/$cpu" | awk '$1 ~ "/" { print $1 }'); do
    patchelf --remove-needed "${library##*/}" "$cpu"
done
END
tar --create --file "$3/files.tar" --directory "$root/files" .
