"""Makes the folders that a process sees out of a list of mounts, with nothing else below its root.

Standard library only, loaded by ``confine`` when it is needed, in a process that has a mount namespace of its own.
No link is followed on the way to what is mounted, nor to where: a command that runs already may have made them.
"""

import ctypes
import os

_PRIVATE, _NOSUID, _NODEV, _NOEXEC, _DETACH = 1 << 18 | 1 << 14, 2, 4, 8, 2
_OPEN_TREE, _MOVE_MOUNT, _OPENAT2, _SET_ATTRIBUTES = 428, 429, 437, 442
_FSOPEN, _FSCONFIG, _FSMOUNT = 430, 431, 432
_SET_STRING, _CREATE, _CLOEXEC_MOUNT = 1, 6, 1
_CLONE, _CLOEXEC, _EMPTY_PATH, _RECURSIVE, _FROM_TO_EMPTY = 1, 0o2000000, 0x1000, 0x8000, 0x44
_NO_SYMLINKS, _BENEATH = 4, 8
_LOCK, _NO_DEVICES, _ALL = 1 | 2, 4, 1 | 2 | 4
_OLD = "/.old"
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")

_libc = ctypes.CDLL(None, use_errno=True)


def _call(what: str, result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _mount(source: str, target: str, kind: "str | None", flags: int, data: str = "") -> None:
    arguments = (os.fsencode(source), os.fsencode(target), kind and kind.encode(), ctypes.c_ulong(flags), data.encode())
    _call(target, _libc.mount(*arguments))


def _opened(folder: int, path: str) -> int:
    """A descriptor of ``path`` below ``folder``, as far as no link leads there."""
    how = (ctypes.c_uint64 * 3)(os.O_PATH | os.O_CLOEXEC, 0, _NO_SYMLINKS | _BENEATH)
    name = os.fsencode(path.lstrip("/") or ".")
    return _call(path, _libc.syscall(_OPENAT2, folder, name, ctypes.byref(how), ctypes.c_size_t(24)))


def _set(fd: int, path: str, attributes: int, recursive: bool) -> None:
    record = (ctypes.c_uint64 * 4)(attributes)
    flags = _EMPTY_PATH | (_RECURSIVE if recursive else 0)
    _call(path, _libc.syscall(_SET_ATTRIBUTES, fd, b"", flags, ctypes.byref(record), ctypes.c_size_t(32)))


def _folder(root: int, path: str) -> int:
    """A descriptor of the folder at ``path``, which is made where there is none. A link on the way is an error: it
    could lead to the old root."""
    try:
        return _opened(root, path)
    except FileNotFoundError:
        above, _, name = path.rstrip("/").rpartition("/")
        way = _folder(root, above)
        try:  # noqa: SIM105 - an import more for every command
            os.mkdir(name, dir_fd=way)
        except FileExistsError:
            pass
        os.close(way)
    return _opened(root, path)


def _bind(old: int, source: str, target: str, attributes: int) -> None:
    origin, root = _opened(old, source), os.open("/", os.O_PATH | os.O_CLOEXEC)
    folder = os.fstat(origin).st_mode & 0o170000 == 0o040000
    above, _, name = target.rpartition("/")
    if folder:
        os.close(_folder(root, target))
    elif name:
        way = _folder(root, above)
        if not os.path.lexists(target):
            os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=way))
        os.close(way)
    place = _opened(root, target)
    flags = _CLONE | _CLOEXEC | _EMPTY_PATH | _RECURSIVE
    tree = _call(source, _libc.syscall(_OPEN_TREE, origin, b"", flags))
    _set(tree, source, attributes, recursive=True)
    _call(target, _libc.syscall(_MOVE_MOUNT, tree, b"", place, b"", _FROM_TO_EMPTY))
    for fd in (tree, place, origin, root):
        os.close(fd)


def _mount_at(target: str, kind: str, flags: int, data: str = "") -> None:
    """Mounts by a descriptor of ``target``, which its user may not be let into: a folder of root's that is masked."""
    root = os.open("/", os.O_PATH | os.O_CLOEXEC)
    place = _folder(root, target)
    made = _call(kind, _libc.syscall(_FSOPEN, kind.encode(), _CLOEXEC_MOUNT))
    if data:
        key, _, value = data.partition("=")
        _call(kind, _libc.syscall(_FSCONFIG, made, _SET_STRING, key.encode(), value.encode(), 0))
    _call(kind, _libc.syscall(_FSCONFIG, made, _CREATE, None, None, 0))
    tree = _call(kind, _libc.syscall(_FSMOUNT, made, _CLOEXEC_MOUNT, flags))
    _call(target, _libc.syscall(_MOVE_MOUNT, tree, b"", place, b"", _FROM_TO_EMPTY))
    for fd in (tree, made, place, root):
        os.close(fd)


def _devices(old: int) -> None:
    _mount_at("/dev", "tmpfs", _NOSUID | _NOEXEC, "mode=0755")
    for name in _DEVICES:
        _bind(old, f"/dev/{name}", f"/dev/{name}", _NOSUID)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        os.symlink(f"/proc/self/fd/{number}", f"/dev/{name}")  # noqa: PTH211
    os.symlink("/proc/self/fd", "/dev/fd")  # noqa: PTH211
    os.symlink("pts/ptmx", "/dev/ptmx")  # noqa: PTH211
    for name in ("shm", "pts"):
        os.mkdir(f"/dev/{name}")  # noqa: PTH102
    _mount("tmpfs", "/dev/shm", "tmpfs", _NOSUID | _NODEV, "mode=1777")
    _mount("devpts", "/dev/pts", "devpts", _NOSUID | _NOEXEC, "newinstance,ptmxmode=0666,mode=620")


def make(plan: "list[tuple[str, str, str]]", cwd: str) -> None:
    """Makes ``plan`` this process's root and goes to ``cwd``. Each mount is a kind, a source and a target, see
    ``backends.Mount``. Raises OSError."""
    _mount("none", "/", None, _PRIVATE)
    _mount("tmpfs", "/tmp", "tmpfs", _NOSUID | _NODEV, "mode=0755")
    os.mkdir(f"/tmp{_OLD}")  # noqa: PTH102
    os.chdir("/tmp")
    _call("pivot_root", _libc.pivot_root(b".", _OLD[1:].encode()))
    os.chdir("/")
    old = os.open(_OLD, os.O_PATH | os.O_CLOEXEC)
    root = os.open("/", os.O_PATH | os.O_CLOEXEC)
    for kind, source, target in plan:
        if kind in ("read", "write"):
            _bind(old, source, target, _ALL & ~1 if kind == "write" else _ALL)
        elif kind == "dir":
            os.close(_folder(root, target))
        elif kind == "link":
            way = _folder(root, os.path.dirname(target))  # noqa: PTH120
            os.symlink(source, os.path.basename(target), dir_fd=way)  # noqa: PTH119
            os.close(way)
        elif kind == "proc":
            _mount_at(target, "proc", _NOSUID | _NODEV | _NOEXEC)
        elif kind == "dev":
            _devices(old)
        elif kind == "empty":
            _mount_at(target, "tmpfs", _NOSUID | _NODEV, "mode=0755")
        elif kind == "lock" and target != "/":
            fd = _opened(root, target)
            _set(fd, target, _LOCK, recursive=False)
            os.close(fd)
    os.close(root)
    os.close(old)
    _call(_OLD, _libc.umount2(_OLD.encode(), _DETACH))
    os.rmdir(_OLD)  # noqa: PTH106
    fd = os.open("/", os.O_PATH | os.O_CLOEXEC)
    _set(fd, "/", _LOCK, recursive=False)
    os.close(fd)
    os.chdir(cwd)
