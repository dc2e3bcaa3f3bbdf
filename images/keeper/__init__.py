"""The keeper: C sources, which ../build.py compiles. Owns: nothing in Python."""
