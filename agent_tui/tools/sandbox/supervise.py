"""Stands over a command, outside its sandbox: tells how it ended, and leaves nothing of it behind.

Standard library only, loaded by itself in an isolated interpreter. Orphans of the command become this process's
children where the system can do that, so that all of them are found, however they left. It ends them when it is told
to, when whoever started it is gone, and when it is asked to end itself.

Words it writes to ``status``, one a line: ``started PID``, ``failed ERRNO``, ``exit CODE`` (negative: the signal),
``refused`` with the path of what is too large to be put back, ``alone`` once nothing of the command is left, ``kept``,
``held`` and ``changed`` with paths in hexadecimal, ``bye``. It reads from ``control``: ``t`` asks the command to end;
``k`` and ``u`` say whether it is to go on when nobody holds ``control`` any more; the end of it is its own, unless it
is to go on: then it takes the output over.
"""

import _signal as signal  # type: ignore[import-not-found]
import os
import select
import sys
import time

import confine  # type: ignore[import-not-found]
from processes import descendants  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_tui.tools.sandbox.spec import Supervision

_PATIENCE = 5.0
"""Seconds that killed processes get to disappear."""

_POLITE = 1.0
"""Seconds between being asked to end and killing, for a command whose end nobody else waits for."""


def main() -> None:
    spec, argv = confine.unpacked(sys.argv[1]), sys.argv[2:]
    _stay_behind(spec)
    Supervisor(spec, argv).run()


def _stay_behind(spec: "Supervision") -> None:
    """Goes on in a child, which is the supervisor. A command may kill that by its id: the orphans of both come to this
    process then, which ends them, and ends as the supervisor did. Where orphans do not come, there is one process."""
    if not confine.subreaper():
        return
    me, above = os.getpid(), os.getppid()
    child = os.fork()
    if child == 0:
        confine.die_with_parent(signal.SIGTERM)
        if os.getppid() != me:
            os._exit(1)
        return
    confine.unreadable()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, lambda number, _: _send(child, number))
    if spec.get("control") is None:
        confine.die_with_parent(signal.SIGTERM)
        if os.getppid() != above:
            _send(child, signal.SIGTERM)
    # All but the word that nothing is left: the streams are the command's, and whoever reads them waits for their end.
    status = spec.get("status")
    os.closerange(3, status if status is not None else 1 << 20)
    if status is not None:
        os.closerange(status + 1, 1 << 20)
    _leave_streams()
    _end_as(_outlive(child))


def _leave_streams() -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    os.close(nothing)


def _outlive(child: int) -> int:
    """Waits for the supervisor, and kills what it left behind. How it ended, as ``waitpid`` says it."""
    status = os.waitpid(child, 0)[1]
    deadline = time.monotonic() + _PATIENCE
    pause = 0.001
    while time.monotonic() < deadline:
        for pid in descendants(os.getpid()):
            _send(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            break
        time.sleep(pause)
        pause = min(pause * 2, 0.02)
    return status


def _end_as(status: int) -> None:
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        # Ending by the same signal is how a shell passes it on.
        signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -code)
    os._exit(max(code, 0))


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        return


class Supervisor:
    def __init__(self, spec: "Supervision", argv: list[str]) -> None:
        self._spec, self._argv = spec, argv
        self._status, self._control = spec.get("status"), spec.get("control")
        self._parent = os.getppid()
        self._child = 0
        self._code: int | None = None
        self._alone = self._ending = False
        self._linux = confine.subreaper()
        self._keepers: list = []  # type: ignore[type-arg]
        self._going_on = False
        self._log = None  # a keep.Log, once the output was taken over

    def run(self) -> None:
        for fd in (self._status, self._control, self._spec["keep"]["output"] if "keep" in self._spec else None):
            if fd is not None:
                os.set_inheritable(fd, False)
        confine.unreadable()
        if self._spec.get("watch"):
            from watch import Keeper, TooLarge  # type: ignore[import-not-found]

            try:
                self._keepers = [Keeper(folder, names, self._spec["held"]) for folder, names in self._spec["watch"]]
            except TooLarge as large:
                self._say(f"refused {os.fsencode(large.args[0]).hex()}")
                os._exit(1)
        wake, write = os.pipe()
        for fd in (wake, write):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(write)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            signal.signal(number, lambda *_: None)
        if self._control is None:
            # Nobody holds a pipe for this one: the kernel tells when the parent is gone.
            confine.die_with_parent(signal.SIGTERM)
            if os.getppid() != self._parent:
                os._exit(1)
        self._start()
        self._loop(wake)

    def _start(self) -> None:
        start, started = os.pipe()
        me = os.getpid()
        self._child = os.fork()
        if self._child == 0:
            self._become(started, me)
        for fd in (started, *self._spec.get("fds", ())):
            os.close(fd)
        failure = os.read(start, 16)
        os.close(start)
        self._say(f"failed {failure.decode()}" if failure else f"started {self._child}")
        if failure and self._status is None:
            os.write(2, f"{self._argv[0]}: {os.strerror(int(failure))}\n".encode(errors="replace"))
        if self._control is not None or self._spec.get("quiet"):
            # The command's streams are its own: whoever reads them must see their end when it ends.
            _leave_streams()
        self._reap()

    def _become(self, started: int, parent: int) -> None:
        try:
            for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
                signal.signal(number, signal.SIG_DFL)
            for name in ("SIGPIPE", "SIGXFSZ"):
                if hasattr(signal, name):
                    signal.signal(getattr(signal, name), signal.SIG_DFL)
            signal.set_wakeup_fd(-1)
            os.setsid()
            self._stay(parent)
            spec = self._spec.get("confine")
            if spec is not None:
                confine.lay_on(spec)
                # Again: a change of what the process may do can take it off. Among its own, it has another parent.
                self._stay(1 if spec.get("mounts") else parent)
            os.execvpe(self._argv[0], self._argv, os.environ)
        except OSError as error:
            os.write(started, str(error.errno or 0).encode())
        finally:
            os._exit(127)

    @staticmethod
    def _stay(parent: int) -> None:
        """Stays as long as ``parent`` does."""
        confine.die_with_parent(signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    def _loop(self, wake: int) -> None:
        watched = [wake] + ([self._control] if self._control is not None else [])
        while True:
            # Without the kernel's word a parent that is gone is noticed by looking.
            ready, _, _ = select.select(watched, [], [], None if self._linux or self._control is not None else 1.0)
            if wake in ready:
                caught = os.read(wake, 4096)
                self._reap()
                if any(number != signal.SIGCHLD for number in caught):
                    self._end(polite=self._control is None)
            if self._control is not None and self._control in ready:
                orders = os.read(self._control, 64)
                if not orders and not self._going_on:
                    self._end(polite=False)
                if not orders:
                    watched = [wake, self._take_over()]
                self._obey(orders)
            if self._log is not None:
                if self._log.source in ready and not self._log.take():
                    watched = [wake]
                if self._code is not None:
                    self._end(polite=False)
            elif self._control is None and (self._code is not None or os.getppid() != self._parent):
                self._end(polite=False)

    def _obey(self, orders: bytes) -> None:
        for order in orders.decode("ascii", "replace"):
            self._going_on = order == "k"
            if order == "t":
                self._signal(signal.SIGTERM)

    def _take_over(self) -> int:
        """Whoever started the command is gone, and it goes on: its output is to be taken here from now on."""
        from keep import Log  # type: ignore[import-not-found]

        if self._control is not None:
            os.close(self._control)
        keep, self._control = self._spec["keep"], None
        self._log = Log(keep["output"], keep["log"], keep["limit"])
        return keep["output"]

    def _reap(self) -> None:
        """Takes the ends of children, the command's own and the orphans'."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                if not self._alone:
                    self._alone = True
                    self._say("alone")
                return
            if pid == 0:
                return
            if pid == self._child:
                self._code = os.waitstatus_to_exitcode(status)
                self._say(f"exit {self._code}")

    def _signal(self, number: int) -> set[int]:
        """Sends a signal to all of the command. A backend's own process is only ever killed: it would take the command
        with it at once."""
        carrier = self._child if number != signal.SIGKILL and self._spec.get("carrier") else 0
        family = [pid for pid in descendants(os.getpid()) if pid != carrier]
        for pid in family:
            _send(pid, number)
        return {*family} if self._linux or self._code is not None else {*family} | self._group(number)

    def _group(self, number: int) -> set[int]:
        """Signals the command's group, for systems on which not all of a family is found."""
        try:
            os.killpg(self._child, number)
        except OSError:
            return set()
        return {self._child}

    def _end(self, polite: bool) -> None:
        """Kills what is left, puts back what was to be kept, and ends."""
        if polite and self._code is None:
            self._signal(signal.SIGTERM)
            self._wait(_POLITE, kill=False)
        self._wait(_PATIENCE, kill=True)
        for keeper in self._keepers:
            for word, path in keeper.put_back():
                self._say(f"{word} {os.fsencode(path).hex()}")
        self._say("bye")
        code = self._code
        if self._log is not None:
            self._log.rest(
                "stopped" if code is None else f"ended by signal {-code}" if code < 0 else f"exit code {code}"
            )
        if self._control is not None or code is None:
            os._exit(0)
        _end_as(-code if code < 0 else code << 8)

    def _wait(self, seconds: float, kill: bool) -> None:
        deadline = time.monotonic() + seconds
        pause = 0.001
        while time.monotonic() < deadline:
            self._reap()
            if self._alone:
                return
            if kill and not self._signal(signal.SIGKILL) and not self._linux:
                return
            time.sleep(pause)
            pause = min(pause * 2, 0.02)

    def _say(self, line: str) -> None:
        if self._status is not None:
            try:
                os.write(self._status, line.encode() + b"\n")
            except OSError:
                self._status = None  # nobody listens any more
