#!/bin/sh
# Puts Intel MPI out of the folder $2, which has its package of PyPI as it is, into the root file system $1, where
# Intel's own images have it. Of its libraries, which are there under all of their names, each is kept once.
set -eu
root=$1/opt/intel/mpi
mkdir -p "$root"
python3 - "$2"/archives/impi_rt-*.whl "$root" <<'END'
import pathlib, sys, zipfile

wheel, root = sys.argv[1], pathlib.Path(sys.argv[2])
LIBRARIES = {"libmpi.so.12", "libmpifort.so.12", "libmpi_shm_heap_proxy.so"}
PROGRAMS = {"mpirun", "mpiexec", "mpiexec.hydra", "hydra_bstrap_proxy", "hydra_pmi_proxy", "IMB-MPI1"}
with zipfile.ZipFile(wheel) as archive:
    for name in archive.namelist():
        _, is_data, path = name.partition(".data/data/")
        folder, _, rest = path.partition("/")
        wanted = {"bin": PROGRAMS, "lib": LIBRARIES}.get(folder)
        if not is_data or (wanted is not None and rest not in wanted and "/" not in rest) or name.endswith("/"):
            continue
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(archive.read(name))
        file.chmod(0o755 if folder == "bin" else 0o644)
END
ln -s libmpi.so.12 "$root/lib/libmpi.so"
echo /opt/intel/mpi/lib > "$1/etc/ld.so.conf.d/intelmpi.conf"
chroot "$1" ldconfig
