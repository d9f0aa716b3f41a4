"""Lays restrictions on the process that runs this, for good, and then becomes the command.

Standard library only, loaded by itself in an isolated interpreter: every import here is paid by every command. What
cannot be laid on ends the process: nothing runs with less than was asked for.
"""

import ctypes
import marshal
import os
import sys
import zlib

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | 1 << 14 | 1 << 15
READ = EXECUTE | READ_FILE | READ_DIR
SPECIAL = 1 << 6 | 1 << 11
"""Making device files: nobody's need."""

_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
_NEWEST = (1 << 16) - 1
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_tui.tools.sandbox.spec import Confinement

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_CAPBSET_DROP = 1, 4, 22, 24
_SECCOMP, _WITH_LISTENER = (277 if os.uname().machine == "aarch64" else 317), 8
_PR_SET_SUBREAPER, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _CLEAR_ALL = 36, 38, 47, 4
_KEPT_CAPABILITIES = (0, 1, 3, 4)
"""To own, read and change files as root is used to: which ones is Landlock's to say."""

_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000
_NEW_REST = 0x20000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x20000000
"""Mounts, control groups, names of the machine, shared memory, and processes."""
_SIGKILL = 9
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 1
"""Requests about a device of the network, and the flag that switches it on."""

_libc = ctypes.CDLL(None, use_errno=True)


class _Ruleset(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def abi() -> int:
    """The kernel's version of Landlock; 0 where there is none."""
    version: int = _libc.syscall(_CREATE, None, ctypes.c_size_t(0), 1)
    return max(0, version)


def handled(version: int) -> int:
    """All rights to files that a version knows."""
    return _RIGHTS.get(version, _NEWEST)


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _prctl(option: int, a: int = 0, b: object = 0) -> int:
    value = ctypes.c_ulong(b) if isinstance(b, int) else b
    result: int = _libc.prctl(option, ctypes.c_ulong(a), value, ctypes.c_ulong(0), ctypes.c_ulong(0))
    return result


def subreaper() -> bool:
    """Makes orphans of the family this process's own children; False where the system cannot."""
    return sys.platform == "linux" and _prctl(_PR_SET_SUBREAPER, 1) == 0


def die_with_parent(number: int) -> None:
    """Has this process get signal ``number`` when its parent is gone."""
    if sys.platform == "linux":
        _prctl(_PR_SET_PDEATHSIG, number)


def unreadable() -> None:
    """Keeps others of the same user out of this process's memory."""
    if sys.platform == "linux":
        _prctl(_PR_SET_DUMPABLE, 0)


def _unlinked(path: str) -> int:
    """A descriptor of an absolute path that no link leads to. Raises OSError."""
    fd = os.open("/", os.O_PATH | os.O_CLOEXEC)
    for name in path.strip("/").split("/"):
        above, fd = fd, os.open(name, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=fd)
        os.close(above)
    return fd


def _as_checked(path: str, device: int, inode: int) -> None:
    """Raises OSError where another thing is at ``path`` than was looked at before: it may be written."""
    found = os.lstat(path)
    if (found.st_dev, found.st_ino) != (device, inode):
        raise OSError(13, f"{path} is another one now")


def _landlock(rules: list[tuple[str, str]] | None, network: bool, scope: int) -> None:
    """With ``rules`` None only what ``scope`` names is held."""
    version = abi()
    everything = 0 if rules is None else handled(version)
    attributes = _Ruleset(everything, 0, 0)
    size = 8
    if version >= 4:
        attributes.net = 0 if network else 3
        size = 16
    if version >= 6:
        attributes.scoped = scope
        size = 24
    ruleset = _checked(_libc.syscall(_CREATE, ctypes.byref(attributes), ctypes.c_size_t(size), 0), "landlock")
    rights = {
        "r": READ & everything,
        "f": READ_FILE,
        "w": everything & ~SPECIAL,
        "o": everything & ~SPECIAL,
        "l": READ_DIR,
        "d": (READ_FILE | WRITE_FILE | 1 << 14) & everything,
    }
    for path, kind in rules or ():
        try:
            # A link that took the place of what was meant is not followed; where commands write, none on the way.
            parent = _unlinked(path) if kind == "o" else os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue
        mode = os.fstat(parent).st_mode & 0o170000
        allowed = rights[kind] if mode == 0o040000 else rights[kind] & FILE_RIGHTS
        if mode != 0o120000 and allowed:
            rule = _Beneath(allowed, parent)
            _checked(_libc.syscall(_ADD, ruleset, 1, ctypes.byref(rule), 0), f"landlock: {path}")
        os.close(parent)
    _checked(_libc.syscall(_RESTRICT, ruleset, 0), "landlock")
    os.close(ruleset)


def own_network() -> bool:
    """Moves this process into a network that has nothing but a loopback; True when that took a user namespace of its
    own. Raises OSError where the kernel does not let it: user namespaces may be switched off."""
    inside = os.geteuid() != 0 or _libc.unshare(_NEW_NETWORK) < 0
    if inside:
        _own_user(_NEW_NETWORK)
    _loopback()
    return inside


def _own_user(more: int) -> None:
    """Moves this process into a user namespace, where it is who it was, and into the namespaces ``more``."""
    user, group = os.geteuid(), os.getegid()
    _checked(_libc.unshare(_NEW_USER | more), "namespaces of its own")
    _prctl(_PR_SET_DUMPABLE, 1)  # else these files belong to root
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123
            file.write(text)
    unreadable()


def _loopback() -> None:
    fd = _checked(_libc.socket(2, 2, 0), "a network of its own")
    request = ctypes.create_string_buffer(b"lo", 40)
    _checked(_libc.ioctl(fd, ctypes.c_ulong(_GET_FLAGS), request), "loopback")
    request[16] = bytes((ord(request[16]) | _UP,))
    _checked(_libc.ioctl(fd, ctypes.c_ulong(_SET_FLAGS), request), "loopback")
    os.close(fd)


def _apart(mounts: "Sequence[tuple[str, str, str]]", cwd: str, network: bool) -> None:
    """Goes on in a process that sees ``mounts`` and none but its own children, without any capability.

    Two processes stay behind: this one, which is there for its parent and ends as the command does, and the first one
    inside, which takes the ends of orphans. What is left of the command ends with either of them.
    """
    parent = os.getppid()
    _own_user(_NEW_REST | (_NEW_NETWORK if network else 0))
    if network:
        _loopback()
    die_with_parent(_SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    told, tell = os.pipe()
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)  # not to be had while the root changes
    first = os.fork()
    if first:
        _left_with(told, nothing)
        _stand_in(first, told)
    os.close(told)
    die_with_parent(_SIGKILL)
    if not _heard(tell):
        os._exit(1)
    from newroot import make  # type: ignore[import-not-found]

    make(mounts, cwd)
    _drop_capabilities(True, ())
    _checked(_libc.capset((ctypes.c_uint32 * 2)(0x20080522), (ctypes.c_uint32 * 6)()), "capabilities")
    command = os.fork()
    if command:
        _left_with(tell, nothing)
        pid, status = 0, 0
        while pid != command:
            pid, status = os.waitpid(-1, 0)
        os.write(tell, status.to_bytes(4, "little"))
        os._exit(0)
    os.close(tell)
    os.close(nothing)
    os.setsid()


def _stand_in(first: int, told: int) -> None:
    """Ends as the command does that ``first`` has started."""
    said = os.read(told, 4)
    _, ended = os.waitpid(first, 0)
    code = os.waitstatus_to_exitcode(int.from_bytes(said, "little") if said else ended)
    if code < 0:
        _default(-code)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _heard(tell: int) -> bool:
    """Returns whether somebody still reads what is written to ``tell``: a process that ended before we asked to end
    with it does not."""
    import select

    poll = select.poll()
    poll.register(tell, 0)
    return not poll.poll(0)


def _left_with(fd: int, nothing: int) -> None:
    """Closes all files but one: whoever reads what the command writes waits for no other."""
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    os.closerange(3, fd)
    os.closerange(fd + 1, os.sysconf("SC_OPEN_MAX"))


def _join(fds: tuple[int, ...]) -> bool:
    """Moves this process into the network that others share, and into the user namespace it belongs to, which comes
    first where there is one: then True. Raises OSError."""
    for fd in fds:
        _checked(_libc.setns(fd, 0), "the network of the session")
        os.close(fd)
    return len(fds) > 1


def _drop_capabilities(inside: bool, kept: tuple[int, ...] = _KEPT_CAPABILITIES) -> None:
    """``inside``: a user namespace of its own has given this process all of them, whoever it is."""
    if os.geteuid() == 0 or inside:
        for capability in range(64):
            if capability not in kept and _prctl(_PR_CAPBSET_DROP, capability) < 0:
                if ctypes.get_errno() == 22:
                    break  # behind the last one the kernel knows
                raise OSError(ctypes.get_errno(), "capabilities")
    _prctl(_PR_CAP_AMBIENT, _CLEAR_ALL)


def _seccomp(program: bytes) -> None:
    filter_ = _Program(len(program) // 8, program)
    _checked(_prctl(_PR_SET_SECCOMP, 2, ctypes.byref(filter_)), "seccomp")


def _noticed(to: int, program: bytes) -> None:
    """Lets whoever has the other end of the socket ``to`` listen to the calls that ``program`` names. A kernel that
    cannot do that leaves the socket without a word: nothing depends on being told."""
    import _socket

    filter_ = _Program(len(program) // 8, program)
    listener = _libc.syscall(_SECCOMP, 1, _WITH_LISTENER, ctypes.byref(filter_))
    if listener >= 0:
        _socket.socket(fileno=os.dup(to)).sendmsg([b"n"], [(1, 1, listener.to_bytes(4, sys.byteorder))])
        os.close(listener)
    os.close(to)


def lay_on(spec: "Confinement") -> None:
    """Lays on what ``spec`` says: ``join`` (descriptors of a network that is shared) or ``own_network``; ``mounts``
    with ``cwd`` for all other namespaces, in which another process goes on; ``rules`` (path, rights), ``network``
    and ``scope`` (1: abstract unix sockets, 2: signals) of Landlock; ``seccomp``; ``noticed`` (a socket and a
    program for it); ``same`` are places (path, device, inode) that must be what they were. With ``only_join``
    nothing else, for a command that restricts itself. Raises OSError."""
    inside, mounts, own = False, spec.get("mounts"), spec.get("own_network", False)
    if spec.get("join"):
        inside, own = _join(spec["join"]), False
    elif own and mounts is None:
        inside = own_network()
    if spec.get("only_join"):
        return
    for place in spec.get("same", ()):
        _as_checked(*place)
    if mounts is not None:
        _apart(mounts, spec["cwd"], own)
    elif spec.get("capabilities", True):
        _drop_capabilities(inside)
    _checked(_prctl(_PR_SET_NO_NEW_PRIVS, 1), "no_new_privs")
    if spec.get("rules") is not None or spec.get("scope"):
        _landlock(spec.get("rules"), spec.get("network", True), spec.get("scope", 3))
    if program := spec.get("seccomp"):
        _seccomp(program)
    if noticed := spec.get("noticed"):
        _noticed(*noticed)


def unpacked(text: str):  # type: ignore[no-untyped-def]  # the record that the starter's caller packed
    """The specification as ``start`` packed it, or the file with it that ``@`` and a descriptor name."""
    if text.startswith("@"):
        with open(int(text[1:]), encoding="ascii") as file:  # noqa: PTH123
            text = file.read()
    return marshal.loads(zlib.decompress(bytes.fromhex(text)))


def main() -> None:
    spec, argv = unpacked(sys.argv[1]), sys.argv[2:]
    for number in (2, 13, 25):  # SIGINT, SIGPIPE, SIGXFSZ: what the interpreter does about them a command would inherit
        _default(number)
    try:
        lay_on(spec)
    except OSError as error:
        os.write(2, f"The sandbox cannot be laid on: {error}\n".encode())
        os._exit(126)
    try:
        os.execvpe(argv[0], argv, os.environ)
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode(errors="replace"))
        os._exit(127)


def _default(number: int) -> None:
    import _signal  # type: ignore[import-not-found]

    if number not in (_SIGKILL, 19):
        _signal.signal(number, _signal.SIG_DFL)
