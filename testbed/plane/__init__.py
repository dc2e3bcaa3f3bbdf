"""
A control plane without nodes: etcd, API server, controller manager, scheduler, and KWOK, which plays the kubelets.

It runs as any user, on a loopback address of its own, beside any other cluster. `plane` starts and stops one,
`shared` finds the one of a whole pytest run, `stages` says what becomes of pods, `nodes` makes and loses nodes.
"""
