"""
YAML as tests read it.

Owns: parsing a text once, however many tests ask for it. Everybody gets objects of his own.
"""

from __future__ import annotations

import pickle
from functools import cache
from pathlib import Path
from typing import Any

import yaml

# The same as yaml.SafeLoader, in C where PyYAML was built with it.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parsed(text: str) -> list[Any]:
    """All documents of a text."""
    found: list[Any] = pickle.loads(_pickled(text))
    return found


def read(path: Path) -> Any:
    """The only document of a file."""
    [found] = parsed(path.read_text(encoding="utf-8"))
    return found


@cache
def _pickled(text: str) -> bytes:
    return pickle.dumps(list(yaml.load_all(text, _LOADER)))
