"""Choosing a model, and how much it thinks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from rich.cells import cell_len
from rich.style import Style

from agent_tui.context.accounting.lost import lost_text
from agent_tui.engine.model_list import ModelChoice, ModelGroup
from agent_tui.errors import AgentError
from agent_tui.models.requests import ModelInfo
from agent_tui.models.usage import Prices
from agent_tui.providers.catalog import DEMO
from agent_tui.text.cells import fit, shorten, shorten_path
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import money, tokens
from agent_tui.ui.screens.picker import Picker
from agent_tui.ui.theme import Paint, Piece

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent
    from agent_tui.engine.models import EffortChoice


WINDOW, PRICE, CACHED = 9, 18, 9
"""Cells of the columns, where there is room."""
ROOM = 24
"""Cells that a name keeps before a column goes."""
NO_KEY = "no key"
DEMO_WORDS = "DEMO, built in: no key, no network"


class ModelPicker(Picker[ModelGroup | ModelChoice, str]):
    """Answers the chosen model's name. What takes a moment to find arrives while the list is open."""

    TITLE_TEXT = "Model"
    PLACEHOLDER = "search all models, or type a name"
    PREVIEW_LINES = 2
    COLUMNS = True
    HINT = "↑↓ move · Enter choose · Esc close"
    NO_MATCH = "No model matches. You can also type a full name, such as openai/gpt-5."

    def __init__(self, agent: Agent, search: str = "") -> None:
        super().__init__(search)
        self.agent = agent
        self.infos: dict[str, ModelInfo] = {}
        self.lost: dict[str, str] = {}
        self._asked: set[str] = set()
        self._moved_by_user = False
        if agent.models.info is not None:
            self.infos[agent.models.spec.key] = agent.models.info

    def on_mount(self) -> None:
        self.run_worker(self._look(), exit_on_error=False)

    async def _look(self) -> None:
        await self.agent.models.look()
        here = self.current
        self.look_again()
        stay = next((i for i, entry in enumerate(self.shown) if entry == here), None) if self._moved_by_user else None
        self.rows.move_to(self.start_at() if stay is None else stay)
        self._preview()
        for spec in self.agent.models.all():
            await self._describe(spec.key)

    async def _describe(self, name: str) -> None:
        """Asks for the facts of a model; of one that is misconfigured none are known."""
        if name in self.infos or name in self._asked:
            return
        self._asked.add(name)
        try:
            self.infos[name] = await self.agent.models.describe(name)
        except AgentError as error:
            self.lost[name] = str(error)
        self.rows.refresh()
        self._preview()

    def action_rows(self, what: Literal["move", "page"], by: int) -> None:
        self._moved_by_user = True
        super().action_rows(what, by)

    def entries(self, search: str) -> Sequence[ModelGroup | ModelChoice]:
        if search.strip():
            return self.agent.models.list.search(one_line(search, 300))
        entries: list[ModelGroup | ModelChoice] = []
        for group in self.agent.models.list.groups():
            entries += [group, *group.choices]
        return entries

    def start_at(self) -> int:
        """The model in use, unless that is the demo: who opens this list then wants another."""
        current = self.agent.models.spec.key
        if self.searched.strip() or current == DEMO:
            return 0
        return next((i for i, e in enumerate(self.shown) if isinstance(e, ModelChoice) and e.name == current), 0)

    def can_choose(self, entry: ModelGroup | ModelChoice) -> bool:
        return isinstance(entry, ModelChoice)

    def headings(self, width: int, paint: Paint) -> Sequence[Piece]:
        price = fit("$ in / out", PRICE, right=True) + fit("cached", CACHED, right=True)
        return self._columns("  model", "", fit("window", WINDOW, right=True), price, width, paint("muted"))

    def draw(self, entry: ModelGroup | ModelChoice, width: int, paint: Paint, here: bool) -> Sequence[Piece]:
        if isinstance(entry, ModelGroup):
            more = f"{entry.more} more: search {entry.title}" if entry.more else ""
            note = " · ".join(filter(None, (entry.note, more)))
            title = one_line(entry.title, 40)
            return [
                (title, paint("accent", bold=True)),
                (f"  {shorten(note, max(0, width - cell_len(title) - 2))}", paint("muted")),
            ]
        current = entry.name == self.agent.models.spec.key
        info = self.infos.get(entry.name)
        window = info.limits.window if info is not None else entry.window
        prices = info.prices if info is not None else entry.prices
        shown = entry.listed.plain if entry.listed is not None and not self.searched.strip() else entry.name
        name = ("● " if current else "  ") + one_line(shown, 100)
        size = fit(tokens(window, False) if window else "", WINDOW, right=True)
        style = paint("primary" if here else "foreground", bold=here)
        return self._columns(name, self._beside(entry), size, _price(prices), width, style, paint("muted"))

    def _beside(self, entry: ModelChoice) -> str:
        """What stands behind the name: LiteLLM's own, or what is missing."""
        if entry.anyway:
            return "not on the list"
        if self.searched.strip() and self.agent.models.list.key_of(entry.provider) is None:
            return NO_KEY
        if entry.model == DEMO:
            return DEMO_WORDS
        return one_line(entry.model, 100) if entry.model != entry.name else ""

    @staticmethod
    def _columns(
        name: str, beside: str, window: str, price: str, width: int, style: Style, muted: Style | None = None
    ) -> Sequence[Piece]:
        """A row of columns: the price of what is cached goes first where there is no room, then all prices."""
        widest = max(0, width - WINDOW - ROOM)
        price = price if widest >= PRICE + CACHED else price[:PRICE] if widest >= PRICE else ""
        room = max(0, width - len(window) - len(price))
        name = _whole_end(name, room)
        rest = room - cell_len(name)
        return [
            (name, style),
            (fit(f"  {beside}" if beside and rest > SHORTEST else "", rest), muted or style),
            (window + price, style),
        ]

    def width_of(self, entry: ModelGroup | ModelChoice) -> int:
        if isinstance(entry, ModelGroup):
            return 0
        return 2 + cell_len(one_line(entry.name, 100)) + 2 + len(self._beside(entry)) + WINDOW + PRICE + CACHED

    def preview(self, entry: ModelGroup | ModelChoice) -> str:
        if isinstance(entry, ModelGroup):
            return ""
        info = self.infos.get(entry.name)
        if info is None and self.agent.models.list.key_of(entry.provider) is not None:
            self.run_worker(self._describe(entry.name), exit_on_error=False)
        lines = (_facts(entry, info), self._way(entry, info), self.lost.get(entry.name, ""))
        return "\n".join(filter(None, lines))

    def _way(self, entry: ModelChoice, info: ModelInfo | None) -> str:
        """What stands in the way of a model, or is lost by choosing it."""
        if entry.anyway:
            return "Unknown model: it may be new, or mistyped. Enter uses it."
        if info is None and self.agent.models.list.key_of(entry.provider) is None:
            return f"No key for {entry.provider} yet. Enter asks for one."
        if info is not None and entry.name not in self.lost:
            self.lost[entry.name] = lost_text(self.agent.models.lost_by(info), would=True)
        return one_line(info.problem or "", 300) if info is not None else ""

    def chosen(self, entry: ModelGroup | ModelChoice) -> None:
        if isinstance(entry, ModelChoice):
            if entry.anyway:
                self.agent.models.accept(entry.name)
            self.dismiss(entry.name)


SHORTEST = 8
"""Cells of what stands beside a name, below which it says nothing."""


def _whole_end(name: str, room: int) -> str:
    """A model's name in its room: the beginning, which may be a region, and the end tell it from others, so what is
    left out stands between them."""
    provider, slash, plain = name.partition("/")
    kept = room - cell_len(provider) - 1
    if not slash or kept <= SHORTEST:
        return shorten(name, room)
    # Regions are the first word of a name: us.anthropic.claude-…
    region = plain.partition(".")[0]
    head = f"{region}." if region != plain and len(region) < SHORTEST and cell_len(plain) > kept else ""
    return f"{provider}/{head}{shorten_path(plain.removeprefix(head), kept - len(head))}"


def _facts(entry: ModelChoice, info: ModelInfo | None) -> str:
    listed = entry.listed
    facts = [one_line(entry.model, 100)] if entry.model != DEMO else []
    if info is not None:
        limits = info.limits
        facts += [
            f"{tokens(limits.window, False)} window ({limits.origin})" if limits.window else "unknown window",
            f"{tokens(limits.max_input, False)} input" if limits.max_input else "",
            f"{tokens(limits.max_output, False)} output" if limits.max_output else "",
            "thinks" if info.reasoning else "",
            "sees images" if info.images else "",
        ]
    elif listed is not None and listed.most_out:
        facts.append(f"{tokens(listed.most_out, False)} output")
    if listed is not None and listed.ends:
        today = time.strftime("%Y-%m-%d")
        facts.append(f"its provider {'retires' if str(listed.ends) > today else 'retired'} it on {listed.ends}")
    return " · ".join(filter(None, facts))


def _price(prices: Prices) -> str:
    """Dollars per million tokens in the width of the columns; blank where they are not known."""
    if prices.input is None or prices.output is None:
        return " " * (PRICE + CACHED)
    if prices.free:
        return fit("free", PRICE, right=True) + " " * CACHED
    cached = money(prices.cache_read * 1e6) if prices.cache_read is not None else ""
    each = f"{money(prices.input * 1e6)} / {money(prices.output * 1e6)}"
    return fit(each, PRICE, right=True) + fit(cached, CACHED, right=True)


NAME_WIDTH = 8


class EffortPicker(Picker["EffortChoice", str]):
    TITLE_TEXT = "Thinking"
    PLACEHOLDER = "off, low, medium or high"

    def __init__(self, agent: Agent) -> None:
        super().__init__()
        self.choices = agent.models.levels()

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

    def chosen(self, entry: EffortChoice) -> None:
        self.dismiss(entry.effort)
