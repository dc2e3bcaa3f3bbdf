"""Tests of the API access without a wire: literal bytes, tables, a clock that is handed in."""
