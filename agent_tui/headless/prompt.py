"""The message of a run without a screen, made of what was typed, piped in and attached; and whether a model is there to
get it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from agent_tui.commands import registry
from agent_tui.engine.agent import Agent
from agent_tui.engine.models.choices import DEMO
from agent_tui.errors import ConfigError
from agent_tui.models.messages import AttachmentPart
from agent_tui.options import Options


def pictures(paths: Sequence[Path], cwd: Path, written: Callable[[str, int], str]) -> list[AttachmentPart]:
    """The files of ``--image``; ``written`` says how the user named each. Raises ConfigError for what is no picture."""
    if not paths:
        return []
    from agent_tui.commands.mentions import attachment

    found: list[AttachmentPart] = []
    for index, path in enumerate(paths):
        flag = written("images", index)
        whole = path.expanduser()
        try:
            part = attachment(whole if whole.is_absolute() else cwd / whole, cwd)
        except (OSError, ValueError) as error:
            raise ConfigError(f"{flag} {path}: {getattr(error, 'strerror', None) or error}.") from None
        if not part.media_type.startswith("image/"):
            raise ConfigError(f"{flag} {path}: not an image (PNG, JPEG, GIF or WebP).")
        found.append(part)
    return found


async def expanded(agent: Agent, typed: str, piped: str) -> str:
    """The text to send. A line that looks like a command is one, or a mistake."""
    prompt = "\n\n".join(part for part in (typed, piped) if part)
    if not prompt.startswith("/"):
        return prompt
    name, args = registry.split(prompt)
    for own in agent.project.user_commands():
        if own.name == name:
            text = own.expand(args)
            return text if isinstance(text, str) else await text
    if registry.find(name) is not None:
        raise ConfigError(f"/{name} is a command of the chat; -p sends a message.")
    if registry.is_command(typed or piped, agent):
        close = registry.nearest(name, agent)
        hint = f" Did you mean {', '.join('/' + n for n in close)}?" if close else ""
        raise ConfigError(f"Unknown command /{name}.{hint} With a space before it, it is sent as it stands.")
    return prompt


def need_model(agent: Agent, options: Options) -> None:
    """Raises ConfigError where the demo model would answer without having been asked for: a script that lost its key
    must not go on with made-up text."""
    settings = agent.settings
    named = options.model is not None or settings.default_model is not None or DEMO in settings.models
    if agent.models.spec.model == DEMO and not named:
        raise ConfigError(
            "No model is configured. Set a provider's key (ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, …) or "
            f"name a model in {agent.paths.config_file} (agent-tui config init writes an example); -m demo tries the "
            "demo model."
        )
