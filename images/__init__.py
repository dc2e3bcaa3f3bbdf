"""What container images are made of, one folder each. Nothing here is installed by pip."""
