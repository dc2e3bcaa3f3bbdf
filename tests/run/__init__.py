"""
How the tests are run: in which order, how many at once, what a failure means, and what is said at the end.

`python -m tests.run --help` lists the commands; the Makefile uses them. The decisions are pure (verdict, summary,
tiers), pytest's outcomes come as data (recorder, records), and only the rest starts processes and writes files.

No pytest plugin does the same: pytest-rerunfailures repeats a test at once, in the process in which it failed,
and knows no list of flaky tests; pytest-reportlog and pytest-json-report do not say which tests were selected, so
a run that stops early would look complete; pytest-split knows neither tiers nor samples.
"""
