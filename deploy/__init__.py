"""What is installed on a cluster: manifests, and the program that renders them as one file."""
