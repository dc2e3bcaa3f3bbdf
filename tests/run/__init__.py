"""
How the tests are run: in which order, how many at once, what a failure means, and what is said at the end.

`python -m tests.run --help` lists the commands; the Makefile uses them. The decisions are pure (verdict, summary,
tiers), pytest's outcomes come as data (recorder, records), and only the rest starts processes and writes files.
"""
