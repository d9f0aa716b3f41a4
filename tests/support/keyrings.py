"""A keyring in memory in the place of the system's."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace

import pytest

Kept = dict[tuple[str, str], str]
"""Passwords by service and name."""


def use_keyring(monkeypatch: pytest.MonkeyPatch, **functions: Callable[..., object]) -> Kept:
    """A keyring in memory, with some of its functions replaced."""
    kept: Kept = {}
    monkeypatch.delenv("PYTHON_KEYRING_BACKEND", raising=False)
    own = {
        "get_keyring": lambda: SimpleNamespace(priority=5),
        "get_password": lambda service, name: kept.get((service, name)),
        "set_password": lambda service, name, key: kept.__setitem__((service, name), key),
        "delete_password": lambda service, name: kept.__delitem__((service, name)),
    }
    monkeypatch.setitem(sys.modules, "keyring", SimpleNamespace(**{**own, **functions}))
    return kept


def no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package is there, and has no keyring to talk to."""
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
