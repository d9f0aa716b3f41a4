"""The questions of the agent as every face puts them: the answers each can get, and what an answer leads to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len

from agent_tui.models.events import RuleOffer
from agent_tui.records import dataclass
from agent_tui.text.cells import shorten
from agent_tui.text.clean import spelled
from agent_tui.text.numbers import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_tui.models.events import ApprovedMode, PermissionAsked, QuestionAsked

PROJECT_KEYS, SESSION_KEYS = "abc", "stu"
"""The keys of the answers that add rules: of so many one each."""
LONG_PATTERN = 400
"""Cells of a rule that are shown in a row; the step after it shows all of it."""
NAMED, ROW = 2, 70
"""So many rules an answer names, where they fit into so many cells: the row of a screen of 80. Of more it says how many
they are, and the step after it lists them."""
SHORT = 40
"""Cells of a command's beginning beside its rule, which stands there whole."""
LONG = 160
"""Characters; choices of a question that are longer than this stand in its text too, whole."""


@dataclass(slots=True, frozen=True)
class PermissionChoice:
    """An answer to a permission question. ``offer`` are the rules it adds; ``feedback`` asks for words first, and
    ``back`` leads from the rules to the question."""

    key: str
    label: str
    allow: bool = False
    offer: RuleOffer | None = None
    feedback: bool = False
    back: bool = False


@dataclass(slots=True, frozen=True)
class PermissionAnswer:
    """The user's word on a call."""

    allow: bool
    offer: RuleOffer | None = None
    feedback: str = ""


def permission_choices(asked: PermissionAsked, most: int = LONG_PATTERN) -> list[PermissionChoice]:
    """The first answers: once, with rules for all of it, no, no with a word about what to do instead. ``most`` are the
    cells of a rule that is named."""
    keys = {"project": iter(PROJECT_KEYS), "session": iter(SESSION_KEYS)}
    rules = sorted(asked.offers, key=lambda offer: offer.lasts == "session")
    lasting = [
        PermissionChoice(key, _label(offer, asked.tool, most), True, offer)
        for offer in rules
        if (key := next(keys[offer.lasts], ""))
    ]
    return [
        PermissionChoice("y", "Yes, this once", True),
        *lasting,
        PermissionChoice("n", "No"),
        # Only a model can be told what to do instead; the program itself asks about no call.
        *([PermissionChoice("f", "No, and say what to do instead", feedback=True)] if asked.call_id else []),
    ]


class PermissionDialog:
    """Where the answering of one question stands. An answer that adds rules is a step of its own, which shows them
    whole; what was not seen to its end is allowed by the second of two equal answers."""

    def __init__(self, asked: PermissionAsked) -> None:
        self._asked = asked
        self.offer: RuleOffer | None = None
        """The rules that are to be confirmed."""
        self._warned: PermissionChoice | None = None
        self._call_seen = True
        """Whether the call's end was seen when its rules were asked for."""

    @property
    def choices(self) -> Sequence[PermissionChoice]:
        if self.offer is None:
            return permission_choices(self._asked)
        return [
            PermissionChoice("y", "Yes, and allow this call", True, self.offer),
            PermissionChoice("n", "No, back to the question", back=True),
        ]

    @property
    def title(self) -> str:
        """What the second step asks."""
        assert self.offer is not None
        what = "this rule" if len(self.offer.rules) == 1 else f"these {len(self.offer.rules)} rules"
        return f"Add {what} for this {self.offer.lasts}?"

    @property
    def text(self) -> str:
        """What the second step adds, where that will stand, and the call that is allowed with it."""
        assert self.offer is not None
        asked = self._asked
        if self.offer.lasts == "project":
            where = "Stored for this project outside its folder, until /permissions removes it."
        else:
            where = "Not stored: it ends with the program, or when /permissions removes it."
        call = spelled(f"{asked.tool} {asked.summary.removeprefix(f'{asked.tool} ')}", line=True)
        rules = (_explained(rule, asked.tool) for rule in self.offer.rules)
        return "\n".join([*rules, "", where, shorten(f"Allowed with it: {call}", ROW)])

    def choose(self, choice: PermissionChoice, seen: bool) -> PermissionAnswer | None:
        """The answer that a choice is; None where it leads to another step, or where the end of what is asked has to be
        ``seen`` first (``warned``): of the call, and of the rules where there are some."""
        if choice.back:
            self.back()
        elif choice.offer is not None and self.offer is None:
            self.offer, self._warned, self._call_seen = choice.offer, None, seen
        elif choice.allow and not (seen and self._call_seen) and choice != self._warned:
            self._warned = choice
        else:
            return PermissionAnswer(choice.allow, choice.offer)
        return None

    @property
    def call_unseen(self) -> bool:
        """Returns whether rules are to be confirmed with a call that was not seen to its end."""
        return self.offer is not None and not self._call_seen

    def warned(self, choice: PermissionChoice) -> bool:
        """Returns whether a choice has to be made once more, as its end was not seen."""
        return choice == self._warned

    def back(self) -> bool:
        """From the rules to the question; False where it stands there."""
        was, self.offer, self._warned, self._call_seen = self.offer, None, None, True
        return was is not None


def _label(offer: RuleOffer, tool: str, most: int) -> str:
    """An offer in words, as an answer to what ``tool`` wants."""
    before, after = ("Always allow", "in this project…") if offer.lasts == "project" else ("Allow", "for this session…")
    words = [_opened(rule, tool, most) for rule in offer.rules]
    what = " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
    label = f"{before} {what} {after}"
    if len(words) > 1 and most <= LONG_PATTERN and (len(words) > NAMED or cell_len(label) > ROW):
        opened = [word for rule, word in zip(offer.rules, words, strict=True) if rule.startswith("network(")]
        if len(opened) == 1 < len(words):
            return f"{before} {opened[0]} and {plural(len(words) - 1, 'rule')} {after}"
        return f"{before} these {len(words)} rules {after}"
    return label


def _explained(rule: str, tool: str) -> str:
    """A rule whole, and what it lets pass in words."""
    return f"{spelled(rule, line=True)}: {_meaning(rule, tool)}"


def _meaning(rule: str, tool: str) -> str:
    what, _, where = rule.removesuffix(")").partition("(")
    words = _opened(rule, tool, LONG_PATTERN)
    if not where:
        return "every call"
    if what in ("bash", "outside"):
        begin = where.removesuffix("*")
        if "*" in begin.replace("\\*", ""):
            held = "commands of this form, with anything for each *"
        elif begin == where or begin.endswith("\\"):
            held = "exactly this command"
        else:
            held = f'commands that begin with "{shorten(spelled(begin.rstrip(), line=True), SHORT)}"'
        return f"{held}, outside the sandbox" if what == "outside" else held
    if what == "network":
        return words if where == "registries" else f"connections to {words}"
    if words != shorten(spelled(rule, line=True), LONG_PATTERN):
        return words
    one = "*" not in where
    return {
        "edit": "changes to this file" if one else "changes to files with such names",
        "read": "reading this file" if one else "reading files with such names",
        "fetch": "fetching from this host" if one else "fetching from such hosts",
        "mcp": "this tool of the MCP server" if one else "such tools of the MCP server",
    }.get(what, f"calls of {what} with these arguments")


def _opened(rule: str, tool: str, most: int) -> str:
    """What a rule lets pass; a command's and a file's as it stands."""
    what, _, where = rule.removesuffix(")").partition("(")
    if what == "network":
        return "package registries" if where == "registries" else shorten(spelled(where, line=True), most)
    if what == "mcp" and "." not in where:
        return f"all tools of the MCP server {shorten(spelled(where, line=True), most)}"
    if not where.endswith("/**") or what not in ("edit", "read"):
        return shorten(spelled(rule, line=True), most)
    folder = where.removesuffix("/**").removeprefix("./")
    verb = "commands to write" if tool == "bash" else "edits" if what == "edit" else "reading"
    if folder in (".", ""):
        return f"all {verb} in the project"
    return f"{verb} in {shorten(spelled(folder, line=True), most)}"


@dataclass(slots=True, frozen=True)
class PlanChoice:
    """An answer to a plan: the mode to carry it out in, or None."""

    key: str
    label: str
    mode: ApprovedMode | None = None
    feedback: bool = False
    edit: bool = False


PLAN_CHOICES = (
    PlanChoice("y", "Yes, and ask before changes", "ask"),
    PlanChoice("e", "Yes, and accept edits", "accept-edits"),
    PlanChoice("a", "Yes, and don't ask again (auto)", "auto"),
    PlanChoice("c", "Edit the plan", edit=True),
    PlanChoice("f", "No, and say what to plan instead", feedback=True),
    PlanChoice("n", "No, end the turn"),
)


def question_text(asked: QuestionAsked) -> str:
    """The question, and the choices that are too long for a row."""
    text = asked.question.strip()
    if any(len(choice) > LONG for choice in asked.choices):
        text += "\n" + "".join(f"\n{n}. {choice}" for n, choice in enumerate(asked.choices, 1))
    return text
