#!/bin/sh
# The user and the program of mpi-operator's examples, as their images have them. It says who it is and where.
set -eu
echo 'mpiuser:x:1000:1000::/home/mpiuser:/bin/sh' >> "$1/etc/passwd"
mkdir -p "$1/home/mpiuser"
cat > "$1/home/mpiuser/pi" <<'END'
#!/bin/sh
echo "rank ${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-none}} of ${OMPI_COMM_WORLD_SIZE:-${PMI_SIZE:-none}} on $(hostname)"
END
chmod 755 "$1/home/mpiuser/pi"
chmod 1777 "$1/home/mpiuser"
