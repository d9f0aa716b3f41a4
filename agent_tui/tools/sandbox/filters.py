"""Seccomp programs: the system calls that neither mounts nor Landlock can hold.

Classic BPF as the kernel reads it. A call is judged by its number and the low halves of its arguments, which is all
the kernel itself looks at for the ones named here. Numbers are those of the kernel's own tables.
"""

from __future__ import annotations

import platform
import struct
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

EPERM, EACCES, ENOSYS = 1, 13, 38

AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
INTERNET = (AF_INET, AF_INET6, AF_NETLINK)

_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32 = 0x40000000


def _calls(table: str) -> dict[str, tuple[int | None, ...]]:
    """System calls with their numbers on x86_64 and aarch64; ``-`` where that has no such call."""
    entries = (entry.partition("=") for entry in table.split())
    return {name: tuple(int(n) if n != "-" else None for n in numbers.split("/")) for name, _, numbers in entries}


NEVER = _calls(
    """
    unshare=272/97 setns=308/268 mount=165/40 umount2=166/39 pivot_root=155/41 chroot=161/51 open_tree=428/428
    move_mount=429/429 fsopen=430/430 fsconfig=431/431 fsmount=432/432 fspick=433/433 mount_setattr=442/442
    open_tree_attr=467/467 open_by_handle_at=304/265 bpf=321/280 perf_event_open=298/241 userfaultfd=323/282
    keyctl=250/219 add_key=248/217 request_key=249/218 kexec_load=246/104 kexec_file_load=320/294 init_module=175/105
    finit_module=313/273 delete_module=176/106 reboot=169/142 swapon=167/224 swapoff=168/225 settimeofday=164/170
    clock_settime=227/112 sethostname=170/161 setdomainname=171/162 quotactl=179/60 acct=163/89 iopl=172/-
    ioperm=173/- pidfd_getfd=438/438
    """
)
# Programs ask for these and do without when the kernel has none. io_uring would open sockets unseen; the flags of
# clone3 cannot be looked at, those of clone can.
ABSENT = _calls("io_uring_setup=425/425 io_uring_enter=426/426 io_uring_register=427/427 clone3=435/435")
METADATA = _calls(
    """
    chmod=90/- fchmod=91/52 fchmodat=268/53 fchmodat2=452/452 chown=92/- fchown=93/55 lchown=94/- fchownat=260/54
    utime=132/- utimes=235/- futimesat=261/- utimensat=280/88 setxattr=188/5 lsetxattr=189/6 fsetxattr=190/7
    removexattr=197/14 lremovexattr=198/15 fremovexattr=199/16 setxattrat=463/463 removexattrat=466/466
    file_setattr=469/469
    """
)
SHARED = _calls(
    """
    shmget=29/194 shmctl=31/195 shmat=30/196 msgget=68/186 msgsnd=69/189 msgrcv=70/188 msgctl=71/187 semget=64/190
    semop=65/193 semtimedop=220/192 semctl=66/191 mq_open=240/180 mq_unlink=241/181
    """
)
"""Memory and queues that have no place among the files: other programs' of the same user, without a namespace."""

_OTHERS = _calls(
    """
    socket=41/198 ioctl=16/29 clone=56/220 socketpair=53/199 prlimit64=302/261 open=2/- openat=257/56 creat=85/-
    mkdir=83/- mkdirat=258/34 unlink=87/- unlinkat=263/35 rmdir=84/- rename=82/- renameat=264/38 renameat2=316/276
    link=86/- linkat=265/37 symlink=88/- symlinkat=266/36 truncate=76/45 mknod=133/- mknodat=259/33
    """
)
CALLS = NEVER | ABSENT | METADATA | SHARED | _OTHERS

CHANGES: dict[str, tuple[tuple[int | None, int], ...]] = {
    **dict.fromkeys(("open", "creat", "mkdir", "unlink", "rmdir", "truncate", "mknod", "chmod"), ((None, 0),)),
    **dict.fromkeys(("openat", "mkdirat", "unlinkat", "mknodat", "fchmodat", "fchmodat2"), ((0, 1),)),
    "rename": ((None, 0), (None, 1)),
    **dict.fromkeys(("renameat", "renameat2"), ((0, 1), (2, 3))),
    "link": ((None, 1),),
    "linkat": ((2, 3),),
    "symlink": ((None, 1),),
    "symlinkat": ((1, 2),),
    **dict.fromkeys(("chown", "lchown", "utime", "utimes", "setxattr", "lsetxattr"), ((None, 0),)),
    **dict.fromkeys(("removexattr", "lremovexattr"), ((None, 0),)),
    **dict.fromkeys(("fchownat", "futimesat", "utimensat"), ((0, 1),)),
}
"""The calls that change files by their name: the arguments that are the folder (None: the working one) and the name."""

_FLAGS_ARGUMENT = {"open": 1, "openat": 2}
_TO_WRITE = 0o1103
"""O_WRONLY, O_RDWR, O_CREAT and O_TRUNC."""

_DATAGRAM = 2
"""The bit that SOCK_DGRAM and SOCK_RAW have, SOCK_STREAM and SOCK_SEQPACKET not. One of a pair of these can still send
to any socket that has a name."""
_NAMESPACES = 0x7E020000
_TERMINAL = (0x5412, 0x541C)  # TIOCSTI and TIOCLINUX put words into a terminal's input
_SET_USER_ID = 0o4000
_MODE_ARGUMENT = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2}


class _Jump(NamedTuple):
    code: int
    value: int
    yes: str
    no: str = "next"


def _equals(value: int, outcome: str) -> _Jump:
    return _Jump(0x15, value, outcome)


def _has(bits: int, outcome: str) -> _Jump:
    return _Jump(0x45, bits, outcome)


_Items = list[bytes | str | _Jump]


@lru_cache(maxsize=16)
def program(
    sockets: tuple[int, ...], metadata: bool, machine: str | None = None, *, apart: bool = True
) -> bytes | None:
    """The filter of a sandbox. ``sockets`` are the address families that may be opened; ``metadata`` says whether
    modes, owners, times and attributes of files may be set; ``apart``: namespaces keep other processes and what they
    share out of reach. None for an architecture that is not known."""
    machine = machine or platform.machine()
    if machine not in _ARCHITECTURE:
        return None
    number = {name: call for call, name in numbers(CALLS, machine).items()}
    items: _Items = [_load(4), _Jump(0x15, _ARCHITECTURE[machine], "next", "EPERM"), _load(0)]
    if machine == "x86_64":
        items.append(_Jump(0x35, _X32, "ENOSYS"))
    never = (*NEVER, *(() if metadata else METADATA), *(() if apart else SHARED))
    items += [_equals(number[name], "EPERM") for name in never if name in number]
    items += [_equals(number[name], "ENOSYS") for name in ABSENT]
    items += _examined(number["socket"], 0, [_equals(family, "ALLOW") for family in sockets], "EACCES")
    if AF_UNIX not in sockets:
        items += _examined(number["socketpair"], 1, [_has(_DATAGRAM, "EACCES")], "ALLOW")
    if not apart:
        # Limits of other processes end them, or keep them from work.
        items += _examined(number["prlimit64"], 0, [_equals(0, "ALLOW")], "EPERM")
    items += _examined(number["clone"], 0, [_has(_NAMESPACES, "EPERM")], "ALLOW")
    items += _examined(number["ioctl"], 1, [_equals(code, "EPERM") for code in _TERMINAL], "ALLOW")
    for name, argument in _MODE_ARGUMENT.items():
        if metadata and name in number:
            items += _examined(number[name], argument, [_has(_SET_USER_ID, "EPERM")], "ALLOW")
    return _assemble([*items, "ALLOW"])


def numbers(names: Iterable[str], machine: str | None = None) -> dict[int, str]:
    """The calls of these names by number; empty for an architecture that is not known."""
    machine = machine or platform.machine()
    if machine not in _ARCHITECTURE:
        return {}
    column = list(_ARCHITECTURE).index(machine)
    return {number: name for name in names if (number := CALLS[name][column]) is not None}


@lru_cache(maxsize=1)
def noticing() -> bytes | None:
    """A filter that refuses nothing, and tells whoever listens of every call that would change a file. None for an
    architecture that is not known."""
    machine = platform.machine()
    if machine not in _ARCHITECTURE:
        return None
    items: _Items = [_load(4), _Jump(0x15, _ARCHITECTURE[machine], "next", "ALLOW"), _load(0)]
    for number, name in numbers(CHANGES).items():
        if name in _FLAGS_ARGUMENT:
            items += _examined(number, _FLAGS_ARGUMENT[name], [_has(_TO_WRITE, "NOTICE")], "ALLOW")
        else:
            items.append(_equals(number, "NOTICE"))
    return _assemble([*items, "ALLOW"])


def _load(offset: int) -> bytes:
    return struct.pack("<HBBI", 0x20, 0, 0, offset)


def _examined(call: int, argument: int, tests: list[_Jump], otherwise: str) -> _Items:
    """Where the call is ``call``, ``tests`` of one argument, and else ``otherwise``."""
    return [_Jump(0x15, call, "next", f"+{len(tests) + 2}"), _load(16 + 8 * argument), *tests, otherwise]


def _assemble(items: _Items) -> bytes:
    """Outcomes stand once at the end, in reach of every jump; a bare outcome in between is a jump to it."""
    ends = {"ALLOW": 0x7FFF0000, "EPERM": 0x00050000 | EPERM, "EACCES": 0x00050000 | EACCES}
    ends |= {"ENOSYS": 0x00050000 | ENOSYS, "NOTICE": 0x7FC00000}

    def distance(target: str, index: int) -> int:
        if target == "next":
            return 0
        if target.startswith("+"):
            return int(target)
        return len(items) + list(ends).index(target) - index - 1

    out = b""
    for index, item in enumerate(items):
        if isinstance(item, bytes):
            out += item
        elif isinstance(item, str):
            out += struct.pack("<HBBI", 0x06, 0, 0, ends[item])
        else:
            out += struct.pack("<HBBI", item.code, distance(item.yes, index), distance(item.no, index), item.value)
    return out + b"".join(struct.pack("<HBBI", 0x06, 0, 0, value) for value in ends.values())
