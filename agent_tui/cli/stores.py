"""The session database as commands of the shell open it: what there is to say of that goes to standard error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from agent_tui import terminal_output
from agent_tui.paths import user_paths
from agent_tui.store.reading import open_for_reading
from agent_tui.store.store import BUSY_TIMEOUT, Store
from agent_tui.text.clean import one_line


@contextmanager
def store_to_read() -> Iterator[Store]:
    """The store, or a copy of what cannot be written. Raises ``StoreError``."""
    with open_for_reading(user_paths().database) as store:
        _tell(store)
        yield store


@contextmanager
def store_to_change() -> Iterator[Store]:
    """The store; other programs that write are waited for. Raises ``StoreError``."""
    with Store.open(user_paths().database, write_timeout=BUSY_TIMEOUT) as store:
        _tell(store)
        yield store


def _tell(store: Store) -> None:
    if store.notice is not None:
        terminal_output.complain(one_line(store.notice, 400))
