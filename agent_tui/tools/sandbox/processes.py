"""The processes below one, by what the system lists.

Standard library only: the supervisor loads it, too.
"""

import os


def descendants(root: int) -> list[int]:
    """All processes below ``root``, as far as their parents are known. Parents come before their children: a shell that
    gets a signal after the command it waits for would begin the next one."""
    children: dict[int, list[int]] = {}
    for pid, parent in _parents():
        children.setdefault(parent, []).append(pid)
    found = [root]
    for pid in found:
        found.extend(children.pop(pid, ()))
    return found[1:]


def _parents() -> list[tuple[int, int]]:
    rows: list[tuple[int, int]] = []
    try:
        names = os.listdir("/proc")  # noqa: PTH208
    except OSError:
        return _parents_by_ps()
    for name in names:
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                    # The command's name is in parentheses and may hold anything; what follows the last one is fixed.
                    fields = file.read().rpartition(b")")[2].split()
                rows.append((int(name), int(fields[1])))
            except (OSError, ValueError, IndexError):
                continue
    return rows


def _parents_by_ps() -> list[tuple[int, int]]:
    """Returns the pid and parent pid of every process, as ``ps`` lists them; used where there is no /proc. That ``ps``
    itself is in the list does no harm: it has ended."""
    with os.popen("/bin/ps -axo pid=,ppid=") as listing:
        rows = [line.split() for line in listing]
    return [(int(row[0]), int(row[1])) for row in rows if len(row) == 2]
