"""The objects an Agent consists of, and how they are put together: each knows only those before it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agent_tui.engine.about.facts import ProjectFacts
from agent_tui.engine.accounts.accounts import Accounts
from agent_tui.engine.accounts.fixed import FixedParts
from agent_tui.engine.binding.binder import Binder
from agent_tui.engine.control.branches import BranchControl
from agent_tui.engine.control.lifetime import Lifetime
from agent_tui.engine.control.mode import ModeControl
from agent_tui.engine.control.models import ModelControl
from agent_tui.engine.control.sessions import SessionControl
from agent_tui.engine.parts import AgentParts
from agent_tui.engine.project.permissions import PermissionDesk
from agent_tui.engine.project.questions import QuestionDesk
from agent_tui.engine.project.told_mode import ToldMode
from agent_tui.engine.project.toolbox import Toolbox
from agent_tui.engine.project.trusting import Trusting
from agent_tui.engine.running.background import Background
from agent_tui.engine.running.relay import TurnRelay
from agent_tui.engine.running.runner import Runner
from agent_tui.engine.running.waiting import Waiting
from agent_tui.engine.session.sessions import Sessions
from agent_tui.engine.state.binding import Bindings
from agent_tui.engine.state.hub import Hub
from agent_tui.engine.state.run import RunStates
from agent_tui.engine.turns.subagent import run_subagent
from agent_tui.tools.base import ToolOutcome


@dataclass(slots=True, frozen=True)
class Objects:
    """``hub``: subscribers and background work. ``states``: what runs. ``bindings``: the session and the model in
    force. ``background``: commands that run beside the turns. ``fixed`` and ``accounts`` keep the numbers, ``waiting``
    and ``runner`` hold and run what the user sends, ``sessions``, ``branches``, ``models`` and ``mode`` change what it
    is sent to."""

    hub: Hub
    states: RunStates
    bindings: Bindings
    trusting: Trusting
    mode: ModeControl
    desk: PermissionDesk
    questions: QuestionDesk
    toolbox: Toolbox
    background: Background
    fixed: FixedParts
    accounts: Accounts
    waiting: Waiting
    runner: Runner
    sessions: SessionControl
    branches: BranchControl
    models: ModelControl
    project: ProjectFacts
    lifetime: Lifetime


def assemble(parts: AgentParts) -> Objects:
    """Puts the objects of one Agent together; nothing is opened yet."""
    hub, states, bindings = Hub(), RunStates(), Bindings()
    workspace, counter, secrets = parts.workspace, parts.counter, parts.secrets
    opened = Sessions(parts.store, str(parts.root))
    background = Background(hub)
    trusting = Trusting(parts.trust, parts.trusted)
    mode = ModeControl(hub, bindings, parts.permissions, parts.jail)
    desk = PermissionDesk(parts.permissions, hub.publish, parts.jail.ready if parts.jail else None)
    questions = QuestionDesk(parts.permissions, hub.publish, mode.set)
    told_mode = ToldMode(parts.permissions, jail=parts.jail)

    async def subagent(title: str, prompt: str, emit: Callable[[str], None]) -> ToolOutcome:
        told = ToldMode(parts.permissions, subagent=True, jail=parts.jail)
        runtime = bindings.current.runtime
        return await run_subagent(
            runtime, toolbox, counter, desk.judge, told, title, prompt, emit, lambda: accounts.tell()
        )

    toolbox = Toolbox(
        parts.settings,
        parts.paths,
        parts.root,
        parts.cwd,
        parts.added_dirs,
        lambda: bindings.current.conversation,
        extra=parts.extra_tools,
        subagent=subagent,
        secrets=secrets,
        hidden=parts.permissions.denies_reading,
        jail=parts.jail,
        domain=mode.domain,
        images=lambda: bindings.image_limits,
        jobs=background.jobs,
        user=questions,
    )
    fixed = FixedParts(hub, bindings, workspace, toolbox, trusting)
    accounts = Accounts(hub, states, bindings, fixed, workspace, counter, parts.settings)
    binder = Binder(parts, hub, states, bindings, fixed, accounts)
    waiting = Waiting(hub, bindings)
    relay = TurnRelay(
        hub, bindings, fixed, accounts, waiting, toolbox, desk, workspace, told_mode, background, binder.prepare_step
    )
    runner = Runner(hub, states, bindings, waiting, relay, secrets)
    sessions = SessionControl(
        hub,
        bindings,
        opened,
        binder,
        accounts,
        waiting,
        runner,
        toolbox,
        workspace,
        background,
        parts.permissions.reach,
    )
    branches = BranchControl(hub, bindings, accounts, runner, toolbox)
    models = ModelControl(hub, states, bindings, binder, accounts, runner, parts.catalogue, parts.store)
    project = ProjectFacts(parts, hub, bindings, fixed, accounts, binder, toolbox, trusting)
    lifetime = Lifetime(
        parts, hub, states, bindings, opened, accounts, binder, waiting, runner, sessions, mode, background
    )
    return Objects(
        hub,
        states,
        bindings,
        trusting,
        mode,
        desk,
        questions,
        toolbox,
        background,
        fixed,
        accounts,
        waiting,
        runner,
        sessions,
        branches,
        models,
        project,
        lifetime,
    )
