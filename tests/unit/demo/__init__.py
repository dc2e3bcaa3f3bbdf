"""Tests that mirror demo/."""
