"""Where the answering of a question stands: a state machine that knows no widget. Nobody answers by accident: a lasting
rule takes a step of its own, what was not seen to its end is allowed by the second of two equal answers, and whoever
leaves declines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from agent_tui.models.forms import FormField, defaults, problem_of
from agent_tui.records import dataclass
from agent_tui.say.asks import Ask, AskChoice
from agent_tui.say.rules import ROW, explain_rule
from agent_tui.text.cells import shorten
from agent_tui.text.clean import spelled

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent
    from agent_tui.models.events import RuleOffer
    from agent_tui.models.messages import Metadata

Step: TypeAlias = Literal["words", "edit", "step", "unseen", "stay"]
"""What a choice was that answers nothing yet: ``words`` are to be written or the plan to be edited (``edit``) first,
another ``step`` is to be seen, the same is to be chosen once more as its end was ``unseen``, or something changed in
place (``stay``)."""


@dataclass(slots=True, frozen=True)
class Reply:
    """An answer. ``choice`` is None where somebody left without one."""

    choice: AskChoice | None = None
    text: str = ""
    chosen: tuple[str, ...] = ()
    plan: str = ""
    values: Metadata | None = None
    offer: RuleOffer | None = None

    @property
    def allows(self) -> bool:
        return self.choice is not None and self.choice.role == "yes"


class Answering:
    """The answering of one question, for a face that draws ``rows`` and says what was chosen of them."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self.offer: RuleOffer | None = None
        """The rules that are to be confirmed."""
        self.field: FormField | None = None
        """The field of a form of which a value is to be chosen."""
        self.values: Metadata = defaults(ask.fields)
        self.marked: set[str] = set()
        self.plan = ask.body if ask.kind == "plan" else ""
        self.problem = ""
        """What is wrong, or is to be known of a field."""
        self.at = 0
        """The row to stand on after a step."""
        self.writing: AskChoice | None = None
        """The choice that words are written for."""
        self._warned: AskChoice | None = None
        self._call_seen = True

    @property
    def rows(self) -> Sequence[AskChoice]:
        if self.offer is not None:
            return (
                AskChoice("y", "Yes, and allow this call", "yes", "yes", self.offer),
                AskChoice("n", "No, back to the question", "back", "back"),
            )
        if self.field is not None:
            labels = [spelled(choice.label, line=True) for choice in self.field.choices]
            values = [choice.value for choice in self.field.choices]
            rows = [
                AskChoice(_number(n), label, "value", value=value)
                for n, (label, value) in enumerate(zip(labels, values, strict=True), 1)
            ]
            return [*rows, AskChoice("b", "Back to the form", "back")]
        fields = [
            AskChoice(_number(n), self._field_label(each), "field", field=each)
            for n, each in enumerate(self.ask.fields, 1)
        ]
        return [*fields, *self.ask.choices] if fields else self.ask.choices

    @property
    def title(self) -> str:
        """What is asked in this step."""
        if self.offer is None:
            return self.ask.title
        what = "this rule" if len(self.offer.rules) == 1 else f"these {len(self.offer.rules)} rules"
        return f"Add {what} for this {self.offer.lasts}?"

    @property
    def body(self) -> str:
        """What has to be seen in this step; in that of rules where they will stand, and the call allowed with them."""
        if self.offer is None:
            return self.plan or self.ask.body
        ask = self.ask
        if self.offer.lasts == "project":
            where = "Stored for this project outside its folder, until /permissions removes it."
        else:
            where = "Not stored: it ends with the program, or when /permissions removes it."
        rules = (explain_rule(rule, ask.tool) for rule in self.offer.rules)
        call = spelled(f"{ask.tool} {ask.subject}", line=True)
        return "\n".join([*rules, "", where, shorten(f"Allowed with it: {call}", ROW)])

    @property
    def call_unseen(self) -> bool:
        """Returns whether rules are to be confirmed with a call that was not seen to its end."""
        return self.offer is not None and not self._call_seen

    def mark(self, row: AskChoice) -> str:
        """What stands before a row that can be marked."""
        if row.role == "mark" and self.ask.several:
            return "[x] " if row.value in self.marked else "[ ] "
        if row.role != "value" or self.field is None:
            return ""
        now = self.values.get(self.field.name)
        chosen = row.value in now if isinstance(now, list) else row.value == now
        if self.field.kind == "choices":
            return "[x] " if chosen else "[ ] "
        return "(x) " if chosen else "( ) "

    def choose(self, row: AskChoice, seen: bool = True) -> Reply | Step:
        """A row was chosen, and the end of ``body`` was ``seen`` by then, or not."""
        match row.role:
            case "rule":
                self.offer, self._warned, self._call_seen, self.at = row.offer, None, seen, 0
                return "step"
            case "back":
                self.back()
                return "step" if self.ask.kind == "permission" else "stay"
            case "words":
                self.writing = row
                return "words"
            case "edit":
                return "edit"
            case "mark" if self.ask.several:
                self.marked ^= {row.value}
                return "stay"
            case "mark":
                return Reply(row, chosen=(row.value,))
            case "send":
                return self._marked_reply(row, "") if self.marked else "stay"
            case "field" | "value":
                return self._fill(row)
        if row.role == "yes" and self.ask.kind == "permission":
            if not (seen and self._call_seen) and row != self._warned:
                self._warned = row
                return "unseen"
            return Reply(row, offer=row.offer)
        if self.ask.kind == "server" and row.action == "accept" and self._problem():
            return "stay"
        return Reply(row, plan=self.plan, values=self.values)

    def enter(self, row: AskChoice, seen: bool = True) -> Reply | Step:
        """Enter on a row: of several it sends those that are marked, or the one it stands on."""
        if row.role == "mark" and self.ask.several:
            self.marked = self.marked or {row.value}
            return self._marked_reply(row, "")
        return self.choose(row, seen)

    def toggle(self, row: AskChoice) -> Reply | Step:
        """A blank on a row: what cannot be undone by another one is no matter of it."""
        boolean = row.field is not None and row.field.kind == "boolean"
        markable = row.role == "value" or boolean or (row.role == "mark" and self.ask.several)
        return self.choose(row) if markable else "stay"

    def say(self, text: str) -> Reply | Step:
        """Words were written for the choice that wanted them; none are a way back, but where they are a value."""
        row, text = self.writing, text.strip()
        if row is not None and row.field is not None:
            return self._written(row.field, text)
        if self.ask.kind == "choice":
            return self._marked_reply(row, text) if text or self.marked else "words"
        if self.ask.kind == "stop":
            self.writing = row if text else None
            return Reply(row, text) if text else "stay"
        self.writing = None
        return Reply(row, text, plan=self.plan)

    def edited(self, plan: str) -> bool:
        """The plan was edited; returns whether anything is left of it, else it stays as it was."""
        if plan.strip() and plan != spelled(self.plan):
            self.plan = plan
        return bool(plan.strip())

    def leave(self) -> Reply | None:
        """Escape: a step back where there is one (None), else the question is declined."""
        if self.writing is not None:
            self.writing = None
            return None
        return None if self.back() else Reply(plan=self.plan)

    def back(self) -> bool:
        """From a step to the question; False where it stands there."""
        if self.field is not None:
            self.at, self.field, self.problem = self.ask.fields.index(self.field), None, ""
            return True
        was, self.offer, self._warned, self._call_seen, self.at = self.offer, None, None, True, 0
        return was is not None

    def fill(self, each: FormField, text: str) -> bool:
        """Takes what was written for a field; False where it is none of its values, which ``problem`` says."""
        try:
            self._set(each, each.read(text) if text else None)
        except ValueError as error:
            self.problem = f"{each.title}: {error}"
            return False
        self.problem = ""
        return True

    def _field_label(self, each: FormField) -> str:
        shown = each.shown(self.values.get(each.name)) or "—"
        return spelled(f"{each.title}{' *' if each.required else ''}: {shown}", line=True)

    def _marked_reply(self, row: AskChoice | None, text: str) -> Reply:
        known = (choice.value for choice in self.ask.choices if choice.role == "mark")
        return Reply(row, text, tuple(value for value in known if value in self.marked))

    def _problem(self) -> bool:
        fields = self.ask.fields
        self.problem = problem_of(fields, self.values) or ""
        if self.problem:
            wrong = (n for n, each in enumerate(fields) if problem_of([each], {each.name: self.values.get(each.name)}))
            self.at = next(wrong)
        return bool(self.problem)

    def _fill(self, row: AskChoice) -> Step:
        """A field is to be filled in, or one of its values was chosen; of several it is one more, or one less."""
        if (each := row.field) is not None:
            self.problem, self.at = each.about, self.ask.fields.index(each)
            if each.kind == "boolean":
                self._set(each, not self.values.get(each.name, False))
            elif each.choices:
                now, self.field = self.values.get(each.name), each
                self.at = next((n for n, choice in enumerate(each.choices) if choice.value == now), 0)
            else:
                self.writing = row
                return "words"
            return "stay"
        assert self.field is not None
        if self.field.kind == "choice":
            self._set(self.field, row.value)
            self.back()
            self.at += 1
            return "stay"
        now = self.values.get(self.field.name) or []
        kept = [c.value for c in self.field.choices if (c.value in now) != (c.value == row.value)]
        self._set(self.field, kept or None)
        self.at = next(n for n, choice in enumerate(self.field.choices) if choice.value == row.value)
        return "stay"

    def _written(self, each: FormField, text: str) -> Step:
        if not self.fill(each, text):
            return "words"
        self.writing, self.at = None, self.ask.fields.index(each) + 1
        return "stay"

    def _set(self, each: FormField, value: Any) -> None:
        self.values = {**self.values, each.name: value}
        if value is None:
            del self.values[each.name]


def _number(place: int) -> str:
    return str(place) if place < 10 else ""


async def deliver(agent: Agent, ask: Ask, reply: Reply) -> None:
    """Hands an answer to the agent. Raises AgentError where a stop could not be answered so: it waits for another."""
    if ask.kind == "stop":
        way = reply.choice.way if reply.choice is not None else None
        await agent.stops.answer(ask.id, way.key if way is not None else "", reply.text)
    else:
        deliver_now(agent, ask, reply)


def deliver_now(agent: Agent, ask: Ask, reply: Reply) -> None:
    """The same of all but a stop."""
    choice = reply.choice
    match ask.kind:
        case "permission":
            agent.permissions.answer(ask.id, reply.allows, reply.offer, reply.text)
        case "plan":
            mode = choice.mode if choice is not None else None
            agent.questions.answer_plan(ask.id, mode, reply.plan, reply.text)
        case "choice":
            agent.questions.answer_question(ask.id, reply.chosen, reply.text)
        case "server":
            action = "cancel" if choice is None or choice.action is None else choice.action
            agent.servers.answer(ask.id, action, reply.values or {})
