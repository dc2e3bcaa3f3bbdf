"""Programs as they are built: what their headers say, and what runs them here."""

from __future__ import annotations

import os
import shutil
import struct
from dataclasses import dataclass

# How ELF, uname and QEMU call the processors.
MACHINES = {
    "amd64": (62, "x86_64"),
    "arm64": (183, "aarch64"),
    "ppc64le": (21, "ppc64le"),
    "riscv64": (243, "riscv64"),
    "s390x": (22, "s390x"),
}
_ORDERS = {b"\x7fELF\x02\x01": "<", b"\x7fELF\x02\x02": ">"}

PT_LOAD, PT_INTERP, PT_GNU_STACK, PT_GNU_RELRO = 1, 3, 0x6474E551, 0x6474E552
ET_DYN = 3
EXECUTABLE, WRITABLE = 1, 2


@dataclass(frozen=True, slots=True)
class Segment:
    kind: int
    flags: int


@dataclass(frozen=True, slots=True)
class Elf:
    """What the headers of a program say."""

    type: int
    machine: int
    segments: tuple[Segment, ...]

    @classmethod
    def read(cls, data: bytes) -> Elf:
        """Of 64 bits, little or big endian: other programs are refused."""
        order = _ORDERS.get(data[:6])
        assert order, "run: make programs"
        kind, machine = struct.unpack_from(f"{order}16xHH", data)
        table, size, count = struct.unpack_from(f"{order}32xQ14xHH", data)
        found = (struct.unpack_from(f"{order}II", data, table + size * index) for index in range(count))
        return cls(kind, machine, tuple(Segment(kind, flags) for kind, flags in found))


def assert_is_static(data: bytes, architecture: str) -> None:
    """
    Small enough for a ConfigMap of every job, for its processor, without a loader, and hardened.

    It is loaded at an address of its own each time, and no memory is both written and executed.
    """
    elf = Elf.read(data)
    loaded = [one.flags for one in elf.segments if one.kind == PT_LOAD]
    [stack] = [one.flags for one in elf.segments if one.kind == PT_GNU_STACK]

    assert len(data) <= 65536
    assert (elf.type, elf.machine) == (ET_DYN, MACHINES[architecture][0])
    assert [one for one in elf.segments if one.kind == PT_INTERP] == []
    assert len(loaded) > 1
    assert [flags for flags in loaded if flags & EXECUTABLE and flags & WRITABLE] == []
    assert any(one.kind == PT_GNU_RELRO for one in elf.segments)
    assert stack & EXECUTABLE == 0


def runner(architecture: str) -> list[str]:
    """What runs a program of that architecture here: the processor itself, or QEMU."""
    machine = MACHINES[architecture][1]
    if machine == os.uname().machine:
        return []
    found = shutil.which(f"qemu-{machine}-static")
    assert found, "as root: apt-get install qemu-user-static"
    return [found]
