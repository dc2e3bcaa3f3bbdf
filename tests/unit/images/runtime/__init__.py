"""The runtime image's parts, each without the others. That they work together is shown on the cluster."""
