"""
What every program of the runtime folder does first: undoes what the agent did to the environment and the words.

Owns: the counterpart of images/agent/launch.c, which says why. Programs that ours start, such as a
kubeconfig's credential plugins, belong to the container's image and must see what its user set.
"""

from __future__ import annotations

import os
import sys
from collections.abc import MutableMapping

_HELD = "MPIRT_HELD_"
_SET = "LC_ALL"


def prepare() -> None:
    """Make this process what `pip install mpirt` would have made of it."""
    # Of the script and what it was called as, the second one is a program's first word.
    del sys.argv[0]
    sys.path.append(f"{sys.prefix}/lib/site-packages")
    restore(os.environ)


def restore(environ: MutableMapping[str, str]) -> None:
    """Give held variables their names back."""
    environ.pop(_SET, None)
    for held in [name for name in environ if name.startswith(_HELD)]:
        environ[held.removeprefix(_HELD)] = environ.pop(held)
