"""Choosing a model, and how much it thinks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len

from agent_tui.context.accounting.lost import lost_text
from agent_tui.context.cache_forecast import cold_words
from agent_tui.models.requests import ModelInfo, ModelSpec
from agent_tui.text.cells import fit
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import money, tokens
from agent_tui.text.search import match
from agent_tui.ui.screens.picker import Picker
from agent_tui.ui.theme import Paint, Piece

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent
    from agent_tui.engine.models import EffortChoice


KEY, WINDOW, PRICE = 26, 9, 18
"""Cells of the columns, where there is room."""
DEMO = "DEMO, built in: no key, no network"


class ModelPicker(Picker[ModelSpec, str]):
    """Answers the chosen model's key. What is known of each arrives while the list is open."""

    TITLE_TEXT = "Model"
    PLACEHOLDER = "search, or type any LiteLLM name"
    PREVIEW_LINES = 2
    HINT = "Enter choose · window · $ per million tokens in/out · Esc close"

    def __init__(self, agent: Agent, search: str = "") -> None:
        super().__init__(search)
        self.agent = agent
        self.infos: dict[str, ModelInfo] = {}
        self.lost: dict[str, str] = {}
        self._key = min(KEY, max((cell_len(one_line(spec.key, 60)) for spec in agent.models.all()), default=KEY) + 1)
        if agent.models.info is not None:
            self.infos[agent.models.spec.key] = agent.models.info

    def on_mount(self) -> None:
        self.run_worker(self._describe(), exit_on_error=False)

    async def _describe(self) -> None:
        for spec in self.agent.models.all():
            if spec.key not in self.infos:
                self.infos[spec.key] = await self.agent.models.describe(spec.key)
                self.rows.refresh()
                self._preview()

    def entries(self, search: str) -> Sequence[ModelSpec]:
        specs = {f"{s.key} {s.model}": s for s in self.agent.models.all()}
        found = [specs[name] for name in match(search, list(specs))] if search else list(specs.values())
        if "/" in search and all(s.key != search and s.model != search for s in found):
            found.append(ModelSpec(search.strip(), search.strip()))
        return found

    def start_at(self) -> int:
        return next((i for i, s in enumerate(self.shown) if s.key == self.agent.models.spec.key), 0)

    def draw(self, entry: ModelSpec, width: int, paint: Paint, here: bool) -> Sequence[Piece]:
        current = entry.key == self.agent.models.spec.key
        info = self.infos.get(entry.key)
        window = tokens(info.limits.window, False) if info and info.limits.window else "unknown" if info else ""
        price = _price(info) if info is not None else ""
        key_width = min(self._key, max(10, width // 3))
        tail = fit(window, WINDOW, right=True) + fit(price, PRICE if width > 56 else 0, right=True)
        model = DEMO if entry.model == "demo" else one_line(entry.model, 100) if entry.model != entry.key else ""
        return [
            ("● " if current else "  ", paint("accent")),
            (fit(one_line(entry.key, 60), key_width), paint("primary" if here else "foreground", bold=here)),
            (" " + fit(model, max(0, width - key_width - len(tail) - 3)), paint("muted")),
            (tail, paint("foreground")),
        ]

    def width_of(self, entry: ModelSpec) -> int:
        return 2 + self._key + 1 + max(cell_len(one_line(entry.model, 100)), cell_len(DEMO)) + 1 + WINDOW + PRICE

    def preview(self, entry: ModelSpec) -> str:
        info = self.infos.get(entry.key)
        if info is None:
            return ""
        limits = info.limits
        facts = (
            f"window {tokens(limits.window, False)} ({limits.origin})" if limits.window else "unknown window",
            f"input at most {tokens(limits.max_input, False)}" if limits.max_input else "",
            f"output at most {tokens(limits.max_output, False)}" if limits.max_output else "",
            "thinks" if info.reasoning else "",
            "sees images" if info.images else "",
        )
        if entry.key not in self.lost:
            self.lost[entry.key] = lost_text(self.agent.models.lost_by(info), would=True)
        lines = (" · ".join(filter(None, facts)), one_line(info.problem or "", 300), self.lost[entry.key])
        return "\n".join(filter(None, lines))

    def chosen(self, entry: ModelSpec) -> None:
        self.dismiss(entry.key)


def _price(info: ModelInfo) -> str:
    prices = info.prices
    if prices.input is None or prices.output is None:
        return ""
    if prices.free:
        return "free"
    return f"{money(prices.input * 1e6)} / {money(prices.output * 1e6)}"


NAME_WIDTH = 8


class EffortPicker(Picker["EffortChoice", str]):
    TITLE_TEXT = "Thinking"
    PLACEHOLDER = "off, low, medium or high"
    PREVIEW_LINES = 2

    def __init__(self, agent: Agent) -> None:
        super().__init__()
        self.choices = agent.models.efforts()

    def entries(self, search: str) -> Sequence[EffortChoice]:
        return [choice for choice in self.choices if search.strip().lower() in choice.effort]

    def start_at(self) -> int:
        return next((i for i, choice in enumerate(self.shown) if choice.current), 0)

    def draw(self, entry: EffortChoice, width: int, paint: Paint, here: bool) -> Sequence[Piece]:
        return [
            ("● " if entry.current else "  ", paint("accent")),
            (fit(entry.effort, NAME_WIDTH), paint("primary" if here else "foreground", bold=here)),
            (fit(entry.words, max(0, width - NAME_WIDTH - 2)), paint("muted")),
        ]

    def width_of(self, entry: EffortChoice) -> int:
        return 2 + NAME_WIDTH + cell_len(entry.words)

    def preview(self, entry: EffortChoice) -> str:
        if entry.current:
            return "In force."
        lines = [f"{cold_words(entry.cold)}."] if entry.cold is not None else []
        lines += [text] if (text := lost_text(entry.lost, would=True)) else []
        return "\n".join(lines) or "Nothing is lost and nothing paid anew by the change."

    def chosen(self, entry: EffortChoice) -> None:
        self.dismiss(entry.effort)
