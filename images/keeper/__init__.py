"""The keeper: C sources, and build.py which compiles them. Owns: nothing in Python but the build."""
