"""Providers that count truly: servers on loopback with a tokenizer, a window, checks and a prefix cache of their own.

Nothing of the product is imported here: what the product believes is checked against what these servers know.
"""

from tests.support.true_provider.script import BusyScript, ProjectFile, Script
from tests.support.true_provider.server import TrueProvider, Truth
from tests.support.true_provider.wire import Exchange, Model

__all__ = ["BusyScript", "Exchange", "Model", "ProjectFile", "Script", "TrueProvider", "Truth"]
