"""
Comparisons with what people use today, and what mpirt's controller costs: `python -m benchmarks`.

A benchmark starts programs as users start them and prints what they cost, beside the bound where there is one. It
asserts nothing: it fails only when something could not be measured.
"""
