"""Commands about the model, thinking, looks and configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_tui.commands.registry import CommandResult, OpenScreen, Text, command
from agent_tui.context.accounting.lost import lost_text
from agent_tui.models.requests import ModelInfo
from agent_tui.paths import package_themes
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import money, tokens

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_tui.engine.agent import Agent


def _models(agent: Agent) -> Iterable[tuple[str, str]]:
    return ((spec.key, spec.model if spec.model != spec.key else "") for spec in agent.models.all())


@command("model", args="[name]", choices=_models)
async def model(agent: Agent, args: str) -> CommandResult:
    """Chooses the model; any LiteLLM name works, e.g. /model openai/gpt-5."""
    if not args:
        return OpenScreen("models")
    info, lost = await agent.models.switch(args)
    if info.problem:
        return Text(f"Model is now {info.spec.key}. {info.problem} {lost_text(lost)}".rstrip(), error=True)
    origin = f", {info.limits.origin}" if info.limits.source == "learned" else ""
    window = f"{tokens(info.limits.window, False)} window{origin}" if info.limits.window else "unknown window"
    return Text(f"Model is now {info.spec.key} ({window}). {lost_text(lost)}".rstrip())


def _efforts(agent: Agent) -> Iterable[tuple[str, str]]:
    return (
        (level.effort, "current" if level.current else level.words) for level in agent.models.levels() if not level.only
    )


@command("thinking", args="[off|low|medium|high]", choices=_efforts)
async def thinking(agent: Agent, args: str) -> CommandResult:
    """Sets how much the model thinks; alone it shows the levels and what a change costs."""
    await agent.models.until_described()
    levels = agent.models.levels()
    wanted = args.lower()
    if levels[0].only:
        rest = "nothing is changed" if args else "there is nothing to choose"
        return Text(f"{levels[0].words}: {rest}.", error=bool(args))
    if not args:
        return OpenScreen("efforts")
    for level in levels:
        for effort in level.names:
            if effort == wanted:
                lost = agent.models.set_effort(effort)
                when = ", from your next message on" if agent.turns.busy else ""
                return Text(f"Thinking: {level.told(effort)}{when}. {lost_text(lost)}".rstrip())
    names = ", ".join(level.effort for level in levels)
    return Text(f"Thinking is {agent.models.effort}. Choices: {names}.", error=True)


def _themes(agent: Agent) -> Iterable[tuple[str, str]]:
    folders = (package_themes(), agent.paths.themes)
    names = sorted({path.stem for folder in folders for path in folder.glob("*.toml")})
    return [("auto", "as the terminal's background is"), *((name, "") for name in names)]


@command("theme", args="[name]", choices=_themes)
async def theme(agent: Agent, args: str) -> CommandResult:
    """Changes the colours, with a live preview."""
    return OpenScreen("themes", args)


@command("vim", args="[on|off]", choices=lambda agent: [("on", ""), ("off", "")])
async def vim(agent: Agent, args: str) -> CommandResult:
    """Switches vim's keys on the prompt; `[ui] vim = true` has them from the start."""
    if args not in ("", "on", "off"):
        return Text("/vim takes on, off or nothing.", error=True)
    return OpenScreen("vim", args)


@command("config")
async def config(agent: Agent, args: str) -> CommandResult:
    """Shows where the configuration is read from."""
    project = agent.root / ".agent-tui" / "config.toml"
    files = [("user", agent.paths.config_file), ("project", project)]
    lines = [f"{name:<8} {path}{'' if path.exists() else '  (not there)'}" for name, path in files]
    if project.exists() and not agent.project.trusted:
        lines[-1] += "  (ignored until /trust)"
    lines += [
        f"{'themes':<8} {agent.paths.themes}",
        f"{'data':<8} {agent.paths.database}",
        f"{'log':<8} {agent.paths.log_file}",
        "Flags win over AGENT_TUI_* variables, those over the project file, that over the user file.",
    ]
    return Text("\n".join(lines))


def model_line(info: ModelInfo) -> str:
    """A model on one line: its name, window, prices per million tokens, and what stands in its way."""
    spec, limits, prices = info.spec, info.limits, info.prices
    name = spec.key if spec.model in (spec.key, "") else f"{spec.key} ({spec.model})"
    window = f"{tokens(limits.window, False)} window ({limits.origin})" if limits.window else "unknown window"
    facts = [window]
    if limits.max_output:
        learned = f" ({limits.output_origin})" if limits.output_origin else ""
        facts.append(f"{tokens(limits.max_output, False)} output{learned}")
    if prices.input is not None and prices.output is not None:
        each = f"{money(prices.input * 1e6)} in, {money(prices.output * 1e6)} out a million"
        facts.append("free" if prices.free else each)
        for tier in prices.tiers:
            if tier.rates.input is not None and tier.rates.output is not None and not prices.free:
                longer = f"{money(tier.rates.input * 1e6)} in, {money(tier.rates.output * 1e6)} out"
                facts.append(f"above {tokens(tier.above, False)} {longer}")
    else:
        facts.append("price unknown")
    if info.problem:
        facts.append(one_line(info.problem, 300))
    return f"{one_line(name, 100):<40}  {', '.join(facts)}"
