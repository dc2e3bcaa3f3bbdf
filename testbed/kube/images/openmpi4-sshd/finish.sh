#!/bin/sh
# Lets the server and the client in the root file system $1 work with the keys that mpi-operator mounts, and adds what
# the images of mpi-operator begin a launcher with: a program that first waits until all hosts of the job have an
# address.
set -eu
chroot "$1" ssh-keygen -A
printf '%s\n' 'StrictModes no' 'UseDNS no' > "$1/etc/ssh/sshd_config.d/jobs.conf"
printf '%s\n' 'Host *' '    StrictHostKeyChecking no' '    UserKnownHostsFile /dev/null' '    LogLevel ERROR' \
    > "$1/etc/ssh/ssh_config.d/jobs.conf"
cat > "$1/usr/local/bin/with-hosts" <<'END'
#!/bin/sh
for host in "$(hostname)" $(sed 's/[: ].*//' /etc/mpi/hostfile); do
    until getent hosts "$host" > /dev/null; do
        sleep 0.1
    done
done
exec "$@"
END
# What is in /run is removed from the image.
cat > "$1/usr/local/bin/serve-ssh" <<'END'
#!/bin/sh
mkdir -p /run/sshd
exec /usr/sbin/sshd -De
END
chmod 755 "$1/usr/local/bin/with-hosts" "$1/usr/local/bin/serve-ssh"
