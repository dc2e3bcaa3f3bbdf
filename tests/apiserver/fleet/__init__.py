"""
A loopback API server for thousands of sessions at once, in one process and one thread, without a process per exec.

    python -m tests.apiserver.fleet --pods 5000 --folder DIR      writes DIR/kubeconfig, prints its path, serves

It tells the truth and costs little, so that what is measured is the client. For faults there is tests.apiserver,
for the proof that something works there is a cluster.
"""
