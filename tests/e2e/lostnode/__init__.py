"""One node is lost, once for all that has to be seen of it: Kubernetes takes a minute to give it up."""
