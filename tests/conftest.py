"""What every test starts from."""

from __future__ import annotations

import sys

if sys.dont_write_bytecode:
    # PYTHONDONTWRITEBYTECODE: each worker, and hundreds of processes, would compile anew all that is imported below.
    sys.dont_write_bytecode = False

import contextlib
import gc
import logging
import os
import signal
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import settings

from agent_tui.pipes import programs
from agent_tui.pipes.pipe import STRICT
from agent_tui.tools.sandbox.box import Sandbox
from tests.support import sandbox_world
from tests.support.forms import LONG, examples, one_of
from tests.support.mcp_servers import PREPARE_SERVER, servers_from
from tests.support.nursery import (
    FORKED_WORKER,
    HOST,
    PREPARE_HOST,
    PREPARE_PROGRAM,
    PREPARE_WORKER,
    WORKER,
    forked,
    nursery,
)
from tests.support.room_report import RoomReport
from tests.support.surroundings import settle
from tests.support.waiting import Bell

settle(os.environ)
time.tzset()

settings.register_profile("suite", deadline=None, max_examples=examples(50, 500), derandomize=not LONG)
settings.load_profile("suite")

os.environ[STRICT] = "1"
"""Set for the processes that tests start, too: a name that only one side of a pipe knows is an error here."""

for _number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
    # In the background of a script, or under nohup, these are ignored here and in all that is started: a test that
    # sends one would wait for ever. A handler is not passed on, so what is started begins as in a terminal.
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, lambda *_: None)


@pytest.hookimpl(trylast=True)  # the terminal's own reporter is made there, too
def pytest_configure(config: pytest.Config) -> None:
    """PYTHONWARNINGS was read when Python started; what pytest is told of warnings holds."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(RoomReport(terminal))
    if sys.warnoptions:
        sys.warnoptions.clear()
        warnings.resetwarnings()


HOLDING = ("sandbox", "world")
"""Fixtures that stand for one of the means that hold commands; ``world`` where git asks remotes."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are processors: many tests wait for a process that they started. Each more makes anew what
    all of its tests share."""
    return (os.cpu_count() or 2) + 1


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """A test that runs the program in this process sets its log up; the next one must not find it so."""
    logger = logging.getLogger("agent_tui")
    before = (logger.level, logger.propagate, list(logger.handlers))
    yield
    for handler in logger.handlers:
        if handler not in before[2]:
            handler.close()
    logger.level, logger.propagate, logger.handlers[:] = before


@pytest.fixture(autouse=True)
def programs_as_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that runs the program in this process says where commands may write; the next one must not find it so."""
    for name, value in (("_written", set[str]()), ("_spared", set[str]()), ("_held", False)):
        monkeypatch.setattr(programs, name, value)


@pytest.fixture
def bell(tmp_path: Path) -> Iterator[Callable[[str], Bell]]:
    """Makes named pipes in the test's folder, by which other processes tell something."""
    with contextlib.ExitStack() as stack:
        yield lambda name: stack.enter_context(Bell(tmp_path / name))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs what takes ``sandbox`` by the means that hold a command here, and what takes ``sandbox_or_none`` by none as
    well: tests of the sandbox and of the judge by every one, others by one of each kind. Those that are not here are
    skipped once: in ``tests/tools/sandbox/test_means.py``. Of several the first is not ``slow``, another for another
    test; ``AGENT_TUI_TEST_MEANS=all`` has none be."""
    every = 1 if os.environ.get("AGENT_TUI_TEST_MEANS") == "all" else 1_000
    for name, more in (("sandbox", ()), ("sandbox_or_none", ("none",))):
        if name in metafunc.fixturenames:
            whole = metafunc.definition.path.parent.name in ("sandbox", "judge")
            here, test = sandbox_world.here(), metafunc.function.__name__
            first = crc32(test.encode()) % len(here)
            means = one_of(here[first:] + here[:first], every) if whole else sandbox_world.in_turn(test)
            metafunc.parametrize(name, [*means, *more], indirect=True, scope="session")


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Collector, obj: object) -> list[pytest.Item] | None:
    """What is left out is not made: most tests have many forms."""
    left_out = collector.config.option.markexpr == "not slow"
    return [] if left_out and any(mark.name == "slow" for mark in getattr(obj, "pytestmark", ())) else None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """To import files without a quick test takes longer than the quick tests."""
    if (asked := config.option.markexpr) in ("quick", "versions") and collection_path.match("test_*.py"):
        return f"mark.{asked}" not in collection_path.read_text("utf-8") or None
    return None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Python's search for what nobody uses leaves alone what was imported and collected: that stays to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Further forms than ``forms(n)`` allows are slow. Of the slow forms of a test, each is run by one of the means
    that hold commands, in turn (a single form by all); in the long form, and with ``AGENT_TUI_TEST_MEANS=all``, by
    every one."""
    _mark_further_forms(items)
    if config.option.markexpr in ("quick", "versions"):  # a whole file may be marked so
        _leave_out(config, items, {id(item) for item in items if item.get_closest_marker("slow")})
    if LONG or os.environ.get("AGENT_TUI_TEST_MEANS") == "all":
        return
    by_test: dict[str, list[pytest.Function]] = {}
    for item in items:
        if isinstance(item, pytest.Function):
            by_test.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left_out: set[int] = set()
    for tests in by_test.values():
        left_out |= {id(test) for name in HOLDING for test in _means_in_turn(tests, name)}
    _leave_out(config, items, left_out)


def _mark_further_forms(items: list[pytest.Item]) -> None:
    seen: Counter[str] = Counter()
    for item in items:
        if (mark := item.get_closest_marker("forms")) is not None and item.get_closest_marker("slow") is None:
            test = item.nodeid.partition("[")[0]
            seen[test] += 1
            if seen[test] > mark.args[0]:
                item.add_marker("slow")


def _leave_out(config: pytest.Config, items: list[pytest.Item], left_out: set[int]) -> None:
    config.hook.pytest_deselected(items=[item for item in items if id(item) in left_out])
    items[:] = [item for item in items if id(item) not in left_out]


def _means_in_turn(tests: list[pytest.Function], name: str) -> list[pytest.Function]:
    """What is left out of the forms of one test whose fixture of this name is held by one of the means."""
    if not hasattr(tests[0], "callspec") or tests[0].callspec.params.get(name) not in sandbox_world.MEANS:
        return []
    forms = list(dict.fromkeys(_form(test) for test in tests))
    means = list(dict.fromkeys(test.callspec.params[name] for test in tests))
    if len(forms) < 2:
        return []
    slow = [test for test in tests if test.get_closest_marker("slow")]
    out = [t for t in slow if (forms.index(_form(t)) + means.index(t.callspec.params[name])) % len(means)]
    assert {_form(test) for test in tests if test not in out} == {*forms}, "each is tried by one"
    return out


def _form(test: pytest.Function) -> tuple[tuple[str, int], ...]:
    """Which form of a test it is, whatever holds its commands: the values are those of one list for all of them."""
    return tuple(sorted((name, id(value)) for name, value in test.callspec.params.items() if name not in HOLDING))


@pytest.fixture(scope="session")
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """The sandbox of one means after the other."""
    return sandbox_world.held_by(request.param)


@pytest.fixture(scope="session")
def sandbox_or_none(request: pytest.FixtureRequest) -> Sandbox:
    """The same, and that of a system on which nothing holds a command."""
    return sandbox_world.held_by(request.param)


@pytest.fixture(scope="session")
def worker_nursery() -> Iterator[str]:
    """Where provider workers are forked that have imported what they need."""
    with nursery(PREPARE_WORKER) as address:
        yield address


@pytest.fixture(scope="session")
def host_nursery() -> Iterator[str]:
    """The same for tool hosts."""
    with nursery(PREPARE_HOST) as address:
        yield address


@pytest.fixture(scope="session")
def server_nursery() -> Iterator[str]:
    """The same for the MCP servers of tests."""
    with nursery(PREPARE_SERVER) as address:
        yield address


@pytest.fixture(scope="session")
def program_nursery(worker_nursery: str) -> Iterator[str]:
    """The same for the whole program, on the command line."""
    with nursery(PREPARE_PROGRAM + FORKED_WORKER.format(worker_nursery)) as address:
        yield address


@pytest.fixture
def forked_worker(worker_nursery: str) -> Iterator[None]:
    """The program's worker is forked, not started: for tests that need one and do not ask how it starts."""
    with forked({WORKER: worker_nursery}):
        yield


@pytest.fixture
def forked_host(host_nursery: str) -> Iterator[None]:
    """The same for the tool host."""
    with forked({HOST: host_nursery}):
        yield


@pytest.fixture
def forked_servers(server_nursery: str) -> Iterator[None]:
    """The same for MCP servers that tests configure."""
    with servers_from(server_nursery):
        yield
