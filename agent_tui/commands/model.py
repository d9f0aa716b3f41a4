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
    from agent_tui.engine.model_list import ModelChoice


def _models(agent: Agent) -> Iterable[tuple[str, str]]:
    return ((one.name, one.model if one.model != one.name else "") for one in agent.models.list.usable())


@command("model", args="[name]", choices=_models)
async def model(agent: Agent, args: str) -> CommandResult:
    """Choose a model, or set a key.

    /model openai/gpt-5 takes any name that LiteLLM knows; /model WORDS searches the list.
    """
    if not args or not await agent.models.named(args):
        return OpenScreen("models", args)
    if not agent.turns.busy and await agent.models.missing_key(args) is not None:
        return OpenScreen("key", args)
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
    """Set how much the model thinks."""
    await agent.models.until_described()
    levels = agent.models.levels()
    wanted = args.lower()
    if levels[0].only:
        rest = "nothing is changed" if args else "nothing to choose"
        return Text(f"{levels[0].words}: {rest}.", error=bool(args))
    if not args:
        return OpenScreen("efforts")
    for level in levels:
        for effort in level.names:
            if effort == wanted:
                lost = agent.models.set_effort(effort)
                when = ", from your next message" if agent.turns.busy else ""
                return Text(f"Thinking: {level.told(effort)}{when}. {lost_text(lost)}".rstrip())
    names = ", ".join(level.effort for level in levels)
    return Text(f"No such level: {one_line(args, 40)}. Choose from {names}; now {agent.models.effort}.", error=True)


def _themes(agent: Agent) -> Iterable[tuple[str, str]]:
    folders = (package_themes(), agent.paths.themes)
    names = sorted({path.stem for folder in folders for path in folder.glob("*.toml")})
    return [("auto", "follow the terminal's background"), *((name, "") for name in names)]


@command("theme", args="[name]", choices=_themes)
async def theme(agent: Agent, args: str) -> CommandResult:
    """Change the colours, with a live preview."""
    return OpenScreen("themes", args)


@command("vim", args="[on|off]", choices=lambda agent: [("on", ""), ("off", "")])
async def vim(agent: Agent, args: str) -> CommandResult:
    """Turn vim keys on or off in the prompt.

    `[ui] vim = true` in the configuration turns them on at the start.
    """
    if args not in ("", "on", "off"):
        return Text("Usage: /vim [on|off]", error=True)
    return OpenScreen("vim", args)


def choice_line(choice: ModelChoice, key: str | None) -> str:
    """A model of the list on one line: its name, window, prices per million tokens, and whether there is a key."""
    prices = choice.prices
    cost = ""
    if prices.input is not None and prices.output is not None:
        cost = (
            "free" if prices.free else f"{money(prices.input * 1e6)} in, {money(prices.output * 1e6)} out per million"
        )
        if prices.cache_read is not None and not prices.free:
            cost += f", {money(prices.cache_read * 1e6)} cached"
    facts = (
        f"{tokens(choice.window, False)} window" if choice.window else "",
        cost,
        "not listed, may be mistyped" if choice.anyway else "",
        f"ends on {choice.listed.ends}" if choice.listed is not None and choice.listed.ends else "",
        "no key" if key is None else "",
    )
    name = choice.name if choice.model == choice.name else f"{choice.name} ({choice.model})"
    return f"{one_line(name, 100):<40}  {', '.join(filter(None, facts))}".rstrip()


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
        each = f"{money(prices.input * 1e6)} in, {money(prices.output * 1e6)} out per million"
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
