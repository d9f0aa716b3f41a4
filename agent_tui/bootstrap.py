"""The only place that wires the layers together."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agent_tui.config import Settings
from agent_tui.config.files import Layer, build_settings, env_layer, file_layer, merge
from agent_tui.context.brought import OwnCommand
from agent_tui.context.prompt import SYSTEM_PROMPT
from agent_tui.context.skills import own_skills
from agent_tui.context.trust import FolderTrust
from agent_tui.engine.agent import Agent
from agent_tui.engine.calls import RoutedProvider
from agent_tui.engine.extensions import Extensions, Workspace
from agent_tui.engine.models import DEMO, ModelCatalogue
from agent_tui.engine.state import AgentParts
from agent_tui.errors import AgentError, ConfigError
from agent_tui.logs import start_logging
from agent_tui.models.context import ContextUsage
from agent_tui.models.events import BackendChanged, Notice
from agent_tui.models.messages import Metadata
from agent_tui.models.steps import Step
from agent_tui.options import Options
from agent_tui.paths import (
    Paths,
    package_themes,
    private_dir,
    project_root,
    settle_home,
    strangers_root,
    user_paths,
    with_home,
)
from agent_tui.pipes.programs import keep_out_of
from agent_tui.providers.catalog import KEY_VARIABLES
from agent_tui.providers.client import ModelClient
from agent_tui.providers.demo import DemoProvider
from agent_tui.providers.secrets import Redactor, names_value
from agent_tui.store.keys import KeyStore
from agent_tui.store.locks import remove_left_behind
from agent_tui.store.store import UNSEEN_TIMEOUT, Store
from agent_tui.text.clean import plain_line
from agent_tui.tools.files.access import BadFile, FileAccess
from agent_tui.tools.files.named_files import with_environment
from agent_tui.tools.mcp.config import ServerInside, checked_servers, servers_of
from agent_tui.tools.mcp.offer import RememberedOffers
from agent_tui.tools.permissions.permissions import Permissions
from agent_tui.tools.permissions.reach import ProjectHosts, SessionReach
from agent_tui.tools.rules.rule import BUILTIN, checked_rules, checked_servers_tools
from agent_tui.tools.rules.standing import GivenRules, Holding, WorkFolders
from agent_tui.tools.sandbox.jail import Jail
from agent_tui.tools.sandbox.policy import Secrecy

if TYPE_CHECKING:
    from agent_tui.driver_options import DriverOptions
    from agent_tui.tools.hooks import Hook


def config_layers(options: Options, paths: Paths, project: Layer | None) -> list[Layer]:
    """All layers of configuration, lowest precedence first; ``project`` is what was accepted of the project's. Raises
    ConfigError for what cannot be read."""
    own = file_layer(paths.config_file)
    files = [own]
    if project is not None:
        files.append(_within_budget(project, own)._replace(brought=True))
    if options.config is not None:
        files.append(file_layer(options.config, required=True))
    layers = [layer for layer in files if layer is not None]
    layers.append(env_layer())
    said = {
        ("permissions", "mode", "permission_mode"): options.permission_mode,
        ("agent", "step_limit", "max_turns"): options.max_turns,
        ("sandbox", "network", "network"): "deny" if options.network == "none" else options.network,
    }
    for (table, key, name), value in said.items():
        if value is not None:
            where, _, variable = options.written(name).rpartition(": ")
            layers.append(Layer(where or "command line", {table: {key: value}}, {f"{table}.{key}": variable}))
    return layers


def _within_budget(project: Layer, own: Layer | None) -> Layer:
    """A project may ask for less than its user allows, never for more: what is above stays as the user has it. Nor does
    it say what calls cost, by which the user's budget is held. Raises ConfigError where it does."""
    project = _with_less(project, own, "agent", ("subagents_at_once", "subagent_depth"))
    allowed = own.values.get("budget") if own is not None else None
    if not isinstance(allowed, dict):
        return project
    models = project.values.get("models")
    for name, model in models.items() if isinstance(models, dict) else ():
        if isinstance(model, dict) and "prices" in model:
            raise ConfigError(
                f"{project.place(f'models.{name}.prices')}: a project cannot set prices while you have "
                f"a [budget] of your own; remove models.{name}.prices here."
            )
    return _with_less(project, own, "budget", allowed)


def _with_less(project: Layer, own: Layer | None, table: str, names: Iterable[str]) -> Layer:
    """The project's layer without those limits of a table that are above its user's."""
    asked, allowed = project.values.get(table), own.values.get(table) if own is not None else None
    if not isinstance(asked, dict):
        return project
    limits = allowed if isinstance(allowed, dict) else {}
    kept = {
        name: value
        for name, value in asked.items()
        if not (name in names and _is_number(value) and _is_number(limits.get(name)) and value > limits[name])
    }
    return project._replace(values={**project.values, table: kept})


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def load_settings(options: Options, paths: Paths, project: Layer | None) -> Settings:
    """The validated settings. Raises ConfigError with one line: place, key, what is allowed."""
    from agent_tui.config.files import check_theme
    from agent_tui.config.schema import check

    layers = config_layers(options, paths, project)
    check(layers)
    check_theme(layers, package_themes(), paths.themes)
    _check_rules(layers)
    _check_model_names(layers)
    settings = build_settings(merge(layers))
    for name, given, rules in (
        ("allow", options.allow, settings.permissions.allow),
        ("deny", options.deny, settings.permissions.deny),
    ):
        for index, rule in enumerate(given):
            checked_rules([rule], options.written(name, index))
        rules += given
    if (driver := options.driver) is not None and driver.strict_mcp:
        settings.mcp = {}
    for file in options.mcp_config:
        settings.mcp.update(servers_of(file))
    if driver is not None:
        _take_driver(driver, settings)
    return settings


def _take_driver(driver: DriverOptions, settings: Settings) -> None:
    """Puts into the settings what the driver says and no flag does."""
    settings.permissions.ask += driver.ask
    if driver.tools is not None:
        settings.tools.disabled += [tool for tool in sorted(BUILTIN) if tool not in driver.tools]
    if driver.sandbox:
        settings.sandbox.mode = driver.sandbox
    settings.mcp.update(checked_servers(driver.mcp_servers, "mcp_servers"))
    settings.mcp.update({name: ServerInside(required=True) for name in driver.inside})


def _hooks(options: Options, paths: Paths, trust: FolderTrust, settings: Settings) -> Callable[[], list[Hook]]:
    """Finds the hooks in force: the user's own, and those of the project that were accepted. Where there are none,
    nothing of hooks is imported."""
    own = config_layers(options, paths, None) if settings.hooks else []

    def find() -> list[Hook]:
        found: list[Hook] = []
        if own:
            from agent_tui.tools.hooks import configured_hooks

            found += [hook for layer in own for hook in configured_hooks(layer, plain_line(layer.where), own=True)]
        return [*found, *trust.hooks()]

    return find


def commands_of(own: Settings) -> list[OwnCommand]:
    """The commands of the user's ``own`` configuration that run by themselves."""
    lines = [own.ui.status_command] if own.ui.status_command else []
    lines += [hook.command for hooks in own.hooks.values() for hook in hooks]
    servers = [([one.command, *one.args], one.env) for one in own.mcp.values() if one.command]
    return [*zip(lines, lines, strict=True), *((shlex.join(run), with_environment(env, *run)) for run, env in servers)]


def numbers_of(usage: ContextUsage, steps: Sequence[Step]) -> Metadata:
    """The JSON of ``agent-tui context --json`` as hooks get it: without the single messages."""
    from agent_tui.commands.report import ContextReport
    from agent_tui.commands.report_json import context_json

    numbers = context_json(ContextReport(usage, steps=list(steps)))
    for row in numbers["rows"]:
        for child in row["children"]:
            child["children"] = []
    return numbers


def _brought_rules(options: Options, project: Layer | None) -> list[str]:
    """Returns the rules of the project's configuration, as far as its user did not say the same on the command line."""
    table = project.values.get("permissions", {}) if project is not None else {}
    rules = [rule for which in ("deny", "ask", "allow") for rule in table.get(which) or ()]
    return [rule for rule in rules if rule not in options.allow and rule not in options.deny]


def _settings_of_run(options: Options, paths: Paths, project: Layer | None) -> Settings:
    """The settings as this run uses them: where somebody watches an answer come, it takes as long as they let it."""
    settings = load_settings(options, paths, project)
    if not options.headless:
        settings.agent.answer_timeout = 0.0
    return settings


def _check_rules(layers: Sequence[Layer]) -> None:
    """Every rule of every layer, also of lists that another one replaces. Raises ConfigError naming its place."""
    for layer in layers:
        rules = layer.values.get("permissions") or {}
        for key in ("allow", "ask", "deny", "mcp_read_only"):
            check_all = checked_servers_tools if key == "mcp_read_only" else checked_rules
            dotted = f"permissions.{key}"
            for text in rules.get(key) or ():
                check_all([text], f"{layer.place(dotted, text)}: {layer.name(dotted)}")


def _check_model_names(layers: Sequence[Layer]) -> None:
    """Raises ConfigError, with its place, for the first name that no model can have."""
    from agent_tui.providers.listing import unknown

    models = merge(layers).get("models") or {}
    own = [*models, DEMO]
    for layer in layers:
        names: list[tuple[str, str, str | None, Sequence[str]]] = [
            (f"models.{key}.model", model["model"], models[key].get("api_base"), ())
            for key, model in (layer.values.get("models") or {}).items()
            if model.get("model") not in (None, DEMO)
        ]
        summary = (layer.values.get("context") or {}).get("summary_model")
        for key, name in (("default_model", layer.values.get("default_model")), ("context.summary_model", summary)):
            if name and name not in own:
                names.append((key, name, None, own))
        for key, name, api_base, among in names:
            if (wrong := unknown(name, api_base, among)) is not None:
                raise ConfigError(f"{layer.place(key)}: {layer.name(key)}: {wrong}")


async def make_agent(options: Options, looking: bool = False, folder: Path | None = None) -> Agent:
    """Builds an agent for a ``folder``, else that of the process; it is not started. ``looking``: nothing will be
    stored, so a database that cannot be written will do. Raises AgentError for what the user has to mend."""
    settle_home()  # also where a program uses this one
    paths = user_paths()
    redactor = Redactor()
    start_logging(paths.log_file, redactor)
    cwd = folder or Path.cwd()
    root = project_root(cwd)
    store = _opened(options, paths.database, looking)
    await asyncio.to_thread(remove_left_behind, paths.cache / "output")
    try:
        if not looking or store.folder is not None:
            paths = _with_cache(paths, store.folder)
        return await _assemble(options, paths, cwd, root, store, redactor)
    except BaseException:
        store.close()
        raise


def _opened(options: Options, database: Path, looking: bool) -> Store:
    """The store; other programs that write are waited for longer where no screen stands still meanwhile."""
    if looking:
        from agent_tui.store.reading import open_for_reading

        return open_for_reading(database)
    opening = Store.ephemeral if options.ephemeral else Store.open
    return opening(database, UNSEEN_TIMEOUT, UNSEEN_TIMEOUT) if options.headless else opening(database)


def _with_cache(paths: Paths, temporary: Path | None) -> Paths:
    """The folders, with a cache that can be written: long output and what commands store goes there. Where there is
    none, a run that keeps nothing has it in its ``temporary`` folder; any other raises AgentError."""
    try:
        if os.access(private_dir(paths.cache), os.W_OK | os.X_OK):
            return paths
        why = "not writable"
    except OSError as error:
        why = error.strerror or str(error)
    if temporary is not None:
        return paths._replace(cache=temporary / "cache")
    raise AgentError(
        f"cannot write to {paths.cache}: {why}; check the permissions of the folder, or set AGENT_TUI_HOME to "
        "another one"
    )


async def _assemble(options: Options, paths: Paths, cwd: Path, root: Path, store: Store, redactor: Redactor) -> Agent:
    keep_out_of((root, cwd))
    trust = FolderTrust(root, store.trust, cwd)
    trust.has_servers = options.driver is None or not options.driver.strict_mcp
    own = await asyncio.to_thread(_settings_of_run, options, paths, None)
    if commands := commands_of(own):
        trust.commands = commands
    if options.trust and not trust.is_settled:
        trust.accept()
    project = trust.config()
    settings = own if project is None else await asyncio.to_thread(_settings_of_run, options, paths, project)
    added = [_folder(folder, options.written("add_dirs", at)) for at, folder in enumerate(options.add_dirs)]
    client = ModelClient(log_file=paths.log_file)
    script = os.environ.get("AGENT_TUI_DEMO_SCRIPT")
    demo = DemoProvider(client, Path(script) if script else None)

    keys = KeyStore(paths.data, keyring=not settings.agent.private_file)

    async def key(provider: str) -> str | None:
        found = await keys.get(provider)
        redactor.add(found)
        return found

    for secret in settings_secrets(settings):
        redactor.add(secret)
    catalogue = ModelCatalogue(settings, key)
    notices = await _detect(catalogue, settings, options)
    if options.model is not None:
        catalogue.find(options.model)
    skill_folders = own_skills(paths.config, Path.home())
    if (theirs := strangers_root(cwd)) is not None:
        line = f"The repository {theirs} belongs to another user, so the project is {root}. To use the repository, add"
        notices.append(Notice("info", f"{plain_line(line, 400)} it to git's safe.directory.", "project"))
    foreign = trust.foreign_rules()
    jail = Jail(
        settings.sandbox,
        root,
        paths.cache,
        added=added,
        readable=[paths.cache / "output", *skill_folders],
        hidden=[paths.config, paths.data, paths.state],
        secrecy=Secrecy(
            redactor.known,
            names=[m.api_key_env for m in settings.models.values() if m.api_key_env],
            allow=settings.tools.env_allow,
        ),
    )
    output, temporary = paths.cache / "output", jail.policy().temporary
    permissions = Permissions(
        WorkFolders(root, cwd, added, [output, temporary, *skill_folders], [paths.config, paths.data]),
        GivenRules(
            settings.permissions,
            remembered=[*store.rules.of(root, trust.identity), *foreign.in_force()],
            brought=_brought_rules(options, trust.config()),
            save=lambda rule, which: store.rules.add(root, trust.identity, rule, which),
        ),
        Holding(
            jail.holds,
            jail.sees,
            jail.has_ports,
            jail.tells_hosts_apart,
            settings.sandbox.network,
            temporary,
            trusted=lambda: trust.lets_git_out,
            shows=jail.shows,
            masks=jail.masks,
        ),
        can_ask=options.can_ask,
        remotes=jail.remotes,
        reach=SessionReach(await asyncio.to_thread(ProjectHosts, root)),
    )
    jail.granted, jail.outputs.granted = permissions.grants, permissions.session_folders
    jail.denied = permissions.denied_below
    files = permissions.files
    extensions = Extensions(settings, paths, files, cwd, trust, None, RememberedOffers(store.offers, root))
    notices += extensions.notices()
    parts = AgentParts(
        settings=settings,
        paths=paths,
        root=root,
        cwd=cwd,
        store=store,
        provider=RoutedProvider(demo, client, catalogue.with_key),
        counter=client,
        backend=client,
        catalogue=catalogue,
        workspace=Workspace(
            files,
            cwd,
            (extensions.memory.blocks, extensions.skills.blocks, extensions.mcp.instructions),
            watched=extensions.memory.candidates,
            system=(options.system_prompt or "").strip() or _prompt_file(options, files) or SYSTEM_PROMPT,
            appended=_appended(options),
        ),
        permissions=permissions,
        trust=trust,
        extra_tools=extensions.tools,
        extensions=extensions,
        reload=lambda: _settings_of_run(options, paths, trust.config()),
        added_dirs=added,
        jail=jail,
        model_key=options.model,
        run_budget=options.budget,
        is_chat=options.editor or not options.headless,
        resume=options.resume or None,
        session=options.session,
        continue_newest=options.continue_newest,
        hooks=_hooks(options, paths, trust, settings),
        numbers=numbers_of,
        secrets=redactor,
        notices=notices,
        foreign=foreign,
    )
    agent = Agent(parts)
    client.worker.on_state = lambda state: agent.events.publish(BackendChanged(state))
    return agent


def settings_secrets(settings: Settings) -> list[str]:
    """The keys that the configuration holds or names, of models and of MCP servers."""
    found: list[str] = []
    for model in settings.models.values():
        found.append(os.environ.get(model.api_key_env or "", ""))
        found.append(str(model.extra.get("api_key") or ""))
    for server in settings.mcp.values():
        values = [*server.env.items(), *server.headers.items()]
        found.append(server.client_secret)
        found += [value.removeprefix("Bearer ") for name, value in values if names_value(name, value)]
    return [value for value in map(str.strip, found) if value]


async def _detect(catalogue: ModelCatalogue, settings: Settings, options: Options) -> list[Notice]:
    """Looks for keys and local servers where nothing is configured; at most 300 ms, nothing is blocked."""
    if options.model or settings.default_model or settings.models:
        return []
    from agent_tui.providers.local_servers import detect_models

    found = await detect_models()
    catalogue.add_detected(found.models)
    if not found.models:
        empty = [name for names in KEY_VARIABLES.values() for name in names if name in os.environ]
        line = f"No API key: {', '.join(empty)} {'is' if len(empty) == 1 else 'are'} set, but empty."
        return [Notice("warning", line, "model_problem")] if empty else []
    return [Notice("info", found.reason, "model_detected")]


def _folder(path: Path, flag: str) -> Path:
    resolved = with_home(path).resolve()
    if not resolved.is_dir():
        raise ConfigError(f"{flag} {path}: no such folder.")
    return resolved


def _appended(options: Options) -> list[str]:
    """Returns the texts that the command line adds to the system prompt."""
    return [text for text in ((options.append_system_prompt or "").strip(), *options.instructions) if text]


_PROMPT_FILE = 1024 * 1024
"""Bytes of a system prompt: more than most windows take."""


def _prompt_file(options: Options, files: FileAccess) -> str:
    """The text of ``--system-prompt-file``; empty where there is none. Raises ConfigError."""
    path, flag = options.system_prompt_file, options.written("system_prompt_file")
    if path is None:
        return ""
    try:
        data = files.read_given(path, _PROMPT_FILE)
        text = data.decode("utf-8-sig")
    except BadFile as error:
        raise ConfigError(f"{flag} {path} {error}.") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{flag} {path}: not UTF-8 text.") from None
    if len(data) > _PROMPT_FILE:
        raise ConfigError(f"{flag} {path}: larger than {_PROMPT_FILE // 1024} kB.")
    if not text.strip() or "\0" in text:
        raise ConfigError(f"{flag} {path}: {'not text' if text.strip() else 'empty'}.")
    return text
