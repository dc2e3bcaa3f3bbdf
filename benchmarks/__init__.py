"""
Side by side against what people use today, on the test cluster: `python -m benchmarks`.

A benchmark starts programs as users start them and prints what they cost, beside the bound that they were given.
It asserts nothing: it fails only when something could not be measured.
"""
