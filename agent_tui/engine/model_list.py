"""What there is to choose from: the user's own models, those of providers with a key, of servers on this machine, and
of the providers most people have a key of. One source for the dialog, the lines and the shell."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date

from agent_tui.errors import AgentError
from agent_tui.models.requests import ModelSpec
from agent_tui.models.usage import Prices
from agent_tui.providers.catalog import DEMO, dialect_of, key_variable, resolve_target
from agent_tui.providers.listing import WELL_KNOWN, ListedModel, listed_models, nearest, newest, unknown, unlisted
from agent_tui.records import dataclass
from agent_tui.text.search import match

log = logging.getLogger(__name__)

WITH_KEY, WITHOUT_KEY = 10, 4
"""Models of a provider that are shown before anything is searched for."""
MOST_FOUND = 300
_SIGNS = re.compile(r"[-._]")


@dataclass(slots=True, frozen=True)
class ModelChoice:
    """A model to choose. ``name`` is what ``/model`` takes, ``spec`` is that of a model of the user's own or of a
    server nearby, ``listed`` what the list says of any other."""

    name: str
    model: str
    provider: str
    spec: ModelSpec | None = None
    listed: ListedModel | None = None
    anyway: bool = False
    """The list does not have it: it may be new, or mistyped."""

    @property
    def window(self) -> int | None:
        return self.listed.window if self.listed is not None else None

    @property
    def prices(self) -> Prices:
        return self.listed.prices if self.listed is not None else Prices()


@dataclass(slots=True, frozen=True)
class ModelGroup:
    """Models that stand together; ``note`` says where their key is. ``more`` others are found by searching. Those that
    are not ``ready`` lack a key."""

    title: str
    note: str
    choices: Sequence[ModelChoice]
    more: int = 0
    ready: bool = True


class ModelList:
    """``own`` gives the configured models, ``near`` those of servers on this machine, and ``given`` says for which
    providers a key was given while the program ran. ``current`` is the model in use, which no list may have. What takes
    a moment is found by ``look``: until then there are the user's own models."""

    def __init__(
        self,
        own: Callable[[], Iterable[ModelSpec]],
        near: Callable[[], Iterable[ModelSpec]],
        given: Callable[[str], bool],
        *,
        listed: Callable[[], Mapping[str, ListedModel]] = listed_models,
        kept: Callable[[], Awaitable[Mapping[str, str]]],
        today: Callable[[], date] = date.today,
        current: Callable[[], ModelSpec | None] = lambda: None,
    ) -> None:
        self._own, self._near, self._given = own, near, given
        self._find_listed, self._find_kept, self._today = listed, kept, today
        self._current = current
        self._kept: Mapping[str, str] = {}
        self._first: dict[str, list[ListedModel]] = {name: [] for name in WELL_KNOWN}
        self._later: list[ListedModel] = []

    async def look(self) -> None:
        """Reads the list, and finds out for which providers keys are kept; at most a few seconds."""
        self._kept, (self._first, self._later) = await asyncio.gather(self._places(), asyncio.to_thread(self._read))

    async def _places(self) -> Mapping[str, str]:
        try:
            return await self._find_kept()
        except AgentError as error:
            log.info("Not known for whom there are keys: %s", error)
            return {}

    def _read(self) -> tuple[dict[str, list[ListedModel]], list[ListedModel]]:
        """The models of each provider that are shown first, and all others."""
        today = self._today()
        of: dict[str, dict[str, ListedModel]] = {name: {} for name in WELL_KNOWN}
        for name, model in self._find_listed().items():
            of.setdefault(model.provider, {})[name] = model
        first = {provider: newest(models, provider, today) for provider, models in of.items()}
        shown = {model.name for models in first.values() for model in models}
        later = [model for models in of.values() for model in models.values() if model.name not in shown]
        return first, sorted(later, key=lambda model: model.ended(today))

    def key_of(self, provider: str) -> str | None:
        """Where a provider's key is; empty where it needs none or looks for it elsewhere, None where there is none."""
        dialect = dialect_of(provider)
        if provider == DEMO or dialect.local or not dialect.keys:
            return ""
        if self._given(provider):
            return "key given in this session"
        if (variable := key_variable(provider)) is not None:
            return f"key in {variable}"
        return f"key in {self._kept[provider]}" if provider in self._kept else None

    def groups(self) -> list[ModelGroup]:
        """The models to choose from before anything is searched for."""
        own, near = self._choices(self._own()), self._choices(self._near())
        groups = [ModelGroup("In use", "", self._unlisted()), ModelGroup("Configured", "", own)]
        keyed = [provider for provider in self._first if self.key_of(provider)]
        groups += [self._of(provider, WITH_KEY) for provider in keyed]
        for title in dict.fromkeys(map(_server, near)):
            groups.append(ModelGroup(title, "on this machine", [one for one in near if _server(one) == title]))
        groups += [self._of(provider, WITHOUT_KEY) for provider in WELL_KNOWN if provider not in keyed]
        if all(choice.name != DEMO for choice in own):
            groups.append(ModelGroup("Demo", "", self._choices([ModelSpec(DEMO, DEMO)])))
        return [group for group in groups if group.choices]

    def usable(self) -> list[ModelChoice]:
        """The models of groups that lack no key."""
        return [choice for group in self.groups() if group.ready for choice in group.choices]

    def search(self, words: str) -> list[ModelChoice]:
        """The models that match, best first; of equals the user's own, then those with a key, and what is gone last. A
        whole name that the list does not have is the last of them."""
        typed = words.strip()
        if not typed:
            return [choice for group in self.groups() for choice in group.choices]
        choices: dict[str, ModelChoice] = {}
        for one in self._all():
            choices.setdefault(f"{one.name} {one.model}" if one.model != one.name else one.name, one)
        found = [choices[name] for name in _matching(typed, list(choices))]
        if "/" in typed and " " not in typed and all(typed not in (one.name, one.model) for one in found):
            if not any(typed in one.name for one in found):
                found = [choices[name] for name in nearest(typed, [*choices]) if name in choices]
            if unknown(typed) is None:
                provider = typed.partition("/")[0]
                found.append(ModelChoice(typed, typed, provider, anyway=unlisted(typed, None)))
        return found

    def _all(self) -> Iterator[ModelChoice]:
        """All there are: those that can be called at once before those that lack a key."""
        own, near = self._choices(self._own()), self._choices(self._near())
        ready = [model for provider, models in self._first.items() if self.key_of(provider) for model in models]
        lack = [model for provider, models in self._first.items() if not self.key_of(provider) for model in models]
        yield from own
        for model in ready:
            yield _choice(model)
        yield from near
        yield from self._unlisted()
        for model in (*lack, *self._later):
            yield _choice(model)
        yield from self._choices([ModelSpec(DEMO, DEMO)])

    def _unlisted(self) -> list[ModelChoice]:
        """The model in use where nothing else has it: its name was typed."""
        spec = self._current()
        listed = (model.name for models in (*self._first.values(), self._later) for model in models)
        known = {DEMO, *(one.key for one in (*self._own(), *self._near())), *listed}
        return [] if spec is None or spec.key in known else self._choices([spec])

    @staticmethod
    def _choices(specs: Iterable[ModelSpec]) -> list[ModelChoice]:
        return [ModelChoice(spec.key, spec.model, resolve_target(spec).provider, spec) for spec in specs]

    def _of(self, provider: str, most: int) -> ModelGroup:
        models = self._first.get(provider, [])
        choices = [_choice(model) for model in models[:most]]
        usual = dialect_of(provider).default_model
        if not choices and usual is not None:
            name = f"{provider}/{usual}"
            choices = [ModelChoice(name, name, provider)]
        key, more = self.key_of(provider), max(0, len(models) - most)
        return ModelGroup(provider, "no key yet" if key is None else key, choices, more, key is not None)


def _matching(typed: str, names: Sequence[str]) -> Sequence[str]:
    """The names that match, best first: those that are what was typed, whoever offers them; then as ``match`` says.
    People leave the signs between a name and its number out: ``gpt5`` finds ``gpt-5``."""
    found = match(typed, names, MOST_FOUND, letters=False)
    if not found:
        typed = _SIGNS.sub("", typed)
        bare = {_SIGNS.sub("", name): name for name in reversed(names)}
        found = [bare[name] for name in match(typed, [*reversed(bare)], MOST_FOUND)]
    return sorted(found, key=lambda name: _SIGNS.sub("", name.rpartition("/")[2]) != _SIGNS.sub("", typed.lower()))


def _server(choice: ModelChoice) -> str:
    return dialect_of(choice.provider).title or "Local server"


def _choice(model: ListedModel) -> ModelChoice:
    return ModelChoice(model.name, model.name, model.provider, listed=model)
