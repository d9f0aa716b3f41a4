"""The parts that the Agent is built from; ``bootstrap`` fills them in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from pathlib import Path
from typing import Protocol

from agent_tui.config import Settings
from agent_tui.context.trust import FolderTrust
from agent_tui.engine.extensions import Extensions, Workspace
from agent_tui.engine.models import ModelCatalogue
from agent_tui.engine.toolbox import ExtraTools
from agent_tui.models.events import Notice
from agent_tui.models.requests import Counter, ModelSpec, Provider
from agent_tui.paths import Paths
from agent_tui.providers.secrets import Redactor
from agent_tui.records import dataclass
from agent_tui.store.store import Store
from agent_tui.tools.permissions.permissions import Permissions
from agent_tui.tools.sandbox.jail import Jail


class Backend(Protocol):
    """The worker as the Agent sees it: started early, closed at the end."""

    async def start(self) -> None: ...

    async def prepare(self, spec: ModelSpec | None = None) -> None:
        """Loads what the model (or any real one) needs, in the background, ahead of the first call. Raises
        WorkerError."""
        ...

    async def close(self) -> None: ...


@dataclass(slots=True)
class AgentParts:
    """Everything an Agent uses. ``resume`` is a session id, or its beginning, ``session`` one to go on with or to
    begin; ``continue_newest`` wins over a new session. ``can_fall_back``: a session whose model is gone goes on with
    another, because somebody reads that it does.
    ``keep_index``: what is said is put into the index of texts, in the background.
    ``run_budget`` is what may be spent in all, in dollars.
    ``reload`` reads the settings again, after the folder was trusted. ``secrets`` knows the user's keys."""

    settings: Settings
    paths: Paths
    root: Path
    cwd: Path
    store: Store
    provider: Provider
    counter: Counter
    backend: Backend
    catalogue: ModelCatalogue
    workspace: Workspace
    permissions: Permissions
    trust: FolderTrust
    extra_tools: ExtraTools | None = None
    extensions: Extensions | None = None
    reload: Callable[[], Settings] | None = None
    added_dirs: list[Path] = field(default_factory=list)
    jail: Jail | None = None
    model_key: str | None = None
    run_budget: float | None = None
    can_fall_back: bool = True
    keep_index: bool = False
    resume: str | None = None
    session: str | None = None
    continue_newest: bool = False
    trusted: bool = False
    secrets: Redactor = field(default_factory=Redactor)
    notices: list[Notice] = field(default_factory=list)
