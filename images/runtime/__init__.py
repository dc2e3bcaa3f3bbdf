"""The runtime image: mpirt in a folder that runs in any launcher's container, and how it gets there."""
