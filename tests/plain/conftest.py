"""The command line of a home of its own, for plain mode without a terminal."""

from tests.cli.conftest import cli

__all__ = ["cli"]
