"""The seccomp program, run by a small machine of our own: also for the architecture that is not under this test."""

from __future__ import annotations

import struct

import pytest

from agent_tui.tools.sandbox import filters
from tests.support.every import every

pytestmark = pytest.mark.quick

ALLOW, EPERM, EACCES, ENOSYS = 0x7FFF0000, 0x50001, 0x5000D, 0x50026
ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}


def run(program: bytes, number: int, arguments: tuple[int, ...] = (), architecture: int = 0xC000003E) -> int:
    data = struct.pack("<IIQ6Q", number, architecture, 0, *(*arguments, 0, 0, 0, 0, 0, 0)[:6])
    steps = list(struct.iter_unpack("<HBBI", program))
    here, value = 0, 0
    while True:
        code, yes, no, constant = steps[here]
        here += 1
        if code == 0x20:
            (value,) = struct.unpack_from("<I", data, constant)
        elif code == 0x06:
            return int(constant)
        else:
            met = {0x15: value == constant, 0x35: value >= constant, 0x45: bool(value & constant)}[code]
            here += yes if met else no


@every("machine", ARCHITECTURES)
@every("metadata", [True, False])
def test_each_call_has_its_outcome(machine: str, metadata: bool) -> None:
    architecture, column = ARCHITECTURES[machine]
    program = filters.program((filters.AF_INET,), metadata, machine)
    assert program is not None

    def outcome(name: str, *arguments: int) -> int | None:
        number = filters.CALLS[name][column]
        return None if number is None else run(program, number, arguments, architecture)

    for name in filters.NEVER:
        assert outcome(name) in (EPERM, None), name
    for name in filters.ABSENT:
        assert outcome(name) in (ENOSYS, None), name
    for name in filters.METADATA:
        assert outcome(name) in (ALLOW if metadata else EPERM, None), name
    assert outcome("socket", filters.AF_INET) == ALLOW
    assert outcome("socket", filters.AF_UNIX) == outcome("socket", 40) == EACCES
    assert outcome("socket", filters.AF_INET | 1 << 32) == ALLOW  # the kernel looks at the low half too
    assert outcome("ioctl", 0, 0x5412) == outcome("ioctl", 0, 0x5412 | 7 << 32) == outcome("ioctl", 0, 0x541C) == EPERM
    assert outcome("ioctl", 0, 0x5401) == ALLOW
    assert outcome("clone", 0x11) == ALLOW
    assert outcome("clone", 0x10000011) == outcome("clone", 0x40000000) == EPERM
    if metadata:
        assert outcome("fchmodat", 0, 0, 0o755) == ALLOW and outcome("fchmodat", 0, 0, 0o4755) == EPERM
        assert outcome("fchmod", 0, 0o6755) == EPERM


def test_other_architectures_and_interfaces_are_refused() -> None:
    program = filters.program((), True, "x86_64")
    assert program is not None
    assert run(program, 0, architecture=0x40000003) == EPERM  # 32 bit calls have other numbers
    assert run(program, 0x40000000 | 41) == ENOSYS  # and so has the x32 interface
    assert run(program, 0) == ALLOW
    assert filters.program((), True, "riscv64") is None


@every("machine", ARCHITECTURES)
def test_what_namespaces_would_keep_away_is_refused_where_there_are_none(machine: str) -> None:
    architecture, column = ARCHITECTURES[machine]

    def outcome(apart: bool, name: str, *arguments: int) -> int:
        program = filters.program((filters.AF_INET,), True, machine, apart=apart)
        number = filters.CALLS[name][column]
        assert program is not None and number is not None
        return run(program, number, arguments, architecture)

    for name in filters.SHARED:
        assert (outcome(True, name), outcome(False, name)) == (ALLOW, EPERM), name
    assert outcome(False, "prlimit64", 0) == ALLOW and outcome(False, "prlimit64", 4711) == EPERM
    assert outcome(True, "prlimit64", 4711) == ALLOW
    pairs = {kind: outcome(True, "socketpair", 1, kind) for kind in (1, 2, 3, 5)}
    assert pairs == {1: ALLOW, 2: EACCES, 3: EACCES, 5: ALLOW}
    assert outcome(True, "socketpair", 1, 2 | 0o2000000) == EACCES  # close-on-exec
    own = filters.program((filters.AF_UNIX,), True, machine)
    number = filters.CALLS["socketpair"][column]
    assert own is not None and number is not None and run(own, number, (1, 2), architecture) == ALLOW
