"""MPI and Horovod jobs on Kubernetes, without sshd and without kubectl."""
