"""One node is lost, once for all that has to be seen of it: it takes two minutes until its pods are replaced."""
