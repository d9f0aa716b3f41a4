"""The models that this version knows by name, from LiteLLM's table: for choosing one, and for telling a name that was
mistyped. Providers have new models every day, so a name that is not here may well exist; a provider may not."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from functools import cache
from typing import Any

from agent_tui.models.usage import Prices
from agent_tui.providers.catalog import DIALECTS, dialect_of, has_record, model_family, split_model, variable_base
from agent_tui.providers.dialects.shared import finite, integer
from agent_tui.providers.litellm_files import PROVIDERS_FILE, data_file, each_model, model_entry, place
from agent_tui.records import dataclass
from agent_tui.text.clean import one_line
from agent_tui.text.search import match

DATED = re.compile(r"(?:[-@]\d{4}-\d{2}-\d{2}|[-@]\d{8}|[-@]\d{4}|-latest|:[a-z0-9.\-]+|-v\d+:\d+)$", re.IGNORECASE)
"""What a name has behind that of the model: a day, a tag."""
_PART = re.compile(r"_(?:chat|converse)$|-[\w-]+[-_]models$")
"""What the table puts behind a provider's name for a part of what it serves."""
_MODES = frozenset({"chat", "responses"})
_SPECIAL = re.compile(
    r"gemma|learnlm|labs-|audio|realtime|search|transcri|image|vision-preview|guard|embed|moderat|robotics|lyria|computer-use|research|"
    r"-tts|^ft:|container|customtools|cyber|daybreak|omni|exp(?:erimental)?-|-exp$|-beta|multi-agent|preview-\d"
)
"""Models made for something else than this program does, and trials: they are found by searching."""
_NUMBER = re.compile(r"(?<!\d)(\d{1,2})(?:[.-](\d{1,2})(?![\dbk]))?(?![\dbk])")
SHARED_WINDOWS = frozenset({128_000, 400_000, 1_050_000})
"""Context windows of OpenAI's GPT-5 and later models (platform.openai.com/docs/models). The table's
``max_input_tokens`` is sometimes the window and sometimes the window less the 128k output."""

SPLIT_WINDOW = re.compile(r"(?:^|[/.-])(?:gpt-[5-9]|gpt-chat-latest|chat-latest|codex)")
_SPLIT_OUTPUT = 128_000

_OF_A_LINE = 2
"""As many versions of a model come first."""
_SAYS = 3
"""Letters and digits of a name that may be like another."""
_ALIKE = 0.7
"""How much of two names is the same (difflib's ratio) where one is meant by the other."""


@dataclass(slots=True, frozen=True)
class ListedModel:
    """A model as the table has it. ``name`` is LiteLLM's, with the provider; prices are dollars a token, None is not
    known; ``ends`` is the day on which its provider takes it away, ``YYYY-MM-DD``, or empty."""

    name: str
    provider: str
    most_in: int | None
    most_out: int | None
    input: float | None
    output: float | None
    cached: float | None
    tools: bool
    ends: str

    @property
    def plain(self) -> str:
        """The name without the provider."""
        return self.name.partition("/")[2]

    @property
    def window(self) -> int | None:
        """Tokens of the whole context; None is not known."""
        split = self.most_in is not None and SPLIT_WINDOW.search(self.plain.lower()) is not None
        return split_window(self.most_in, self.most_out)[0] if split and self.most_in is not None else self.most_in

    @property
    def prices(self) -> Prices:
        return Prices(self.input, self.output, cache_read=self.cached)

    def ended(self, today: date) -> bool:
        return bool(self.ends) and self.ends <= today.isoformat()


def split_window(most_in: int, most_out: int | None) -> tuple[int, int | None]:
    """Window and largest input of a GPT-5-like model from the table's two numbers, either of which may be meant."""
    if most_out is not None and most_in + most_out in SHARED_WINDOWS:
        return most_in + most_out, most_in
    if most_in in SHARED_WINDOWS and most_in > 128_000:
        return most_in, most_in - _SPLIT_OUTPUT
    return most_in, None


def listed_models() -> Mapping[str, ListedModel]:
    """The models that chat, by LiteLLM's name. Blocks: the first time it reads a file of 3 MB. Empty where this version
    of LiteLLM has the table elsewhere."""
    return _read()[0]


@cache
def _read() -> tuple[Mapping[str, ListedModel], frozenset[str]]:
    """The models that chat, and the providers of any."""
    found: dict[str, ListedModel] = {}
    providers: set[str] = set()
    for key, values in each_model():
        if not isinstance(told := values.get("litellm_provider"), str):
            continue
        provider = _PART.sub("", told)
        providers.add(provider)
        if values.get("mode") not in _MODES or ("/" not in key and not provider):
            continue
        name = _with_provider(key, provider)
        model = _listed(name, provider, values)
        # Some stand there with their provider and without.
        if name not in found or key == name:
            found[name] = model
    return found, frozenset(providers)


def _with_provider(key: str, provider: str) -> str:
    return key if key.startswith(f"{provider}/") else f"{provider}/{key}"


def _is_listed(name: str) -> bool:
    """Returns whether ``listed_models`` has a name, without reading them all."""
    for key in (name, name.partition("/")[2]):
        found = model_entry(key)
        if found is not None and found.get("mode") in _MODES and isinstance(told := found.get("litellm_provider"), str):
            provider = _PART.sub("", told)
            if provider and _with_provider(key, provider) == name:
                return True
    return False


def _listed(name: str, provider: str, values: Mapping[str, Any]) -> ListedModel:
    ends = values.get("deprecation_date")
    return ListedModel(
        name,
        provider,
        integer(values.get("max_input_tokens")) or None,
        integer(values.get("max_output_tokens")) or None,
        finite(values.get("input_cost_per_token")),
        finite(values.get("output_cost_per_token")),
        finite(values.get("cache_read_input_token_cost")),
        values.get("supports_function_calling") is True,
        ends if isinstance(ends, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", ends) else "",
    )


def is_provider(name: str) -> bool:
    """Returns whether a provider has a record here or is known to LiteLLM; enough to spot a misspelt one. True where
    this version of LiteLLM does not say which it knows."""
    named = _named_providers()
    return has_record(name) or not named or name in named or name in _read()[1]


@cache
def _named_providers() -> frozenset[str]:
    endpoints = data_file(PROVIDERS_FILE).get("providers")
    folder = place("llms")
    others = data_file("llms/openai_like/providers.json")
    code = [path.name for path in folder.iterdir()] if folder is not None else []
    return frozenset([*(endpoints if isinstance(endpoints, dict) else ()), *others, *code])


def full_name(name: str) -> str | None:
    """Returns the name with its provider of a model that is named without; None where the list has none."""
    listed = listed_models()
    usual = next((full for provider in WELL_KNOWN if (full := f"{provider}/{name}") in listed), None)
    return usual or next((full for full, model in listed.items() if model.plain == name), None)


# What to show

WELL_KNOWN: Sequence[str] = tuple(name for name, dialect in DIALECTS.items() if dialect.default_model is not None)
"""The providers that most people have a key of."""


def newest(listed: Mapping[str, ListedModel], provider: str, today: date) -> list[ListedModel]:
    """A provider's models on the list, those of its own making first and the newest of each; none that is gone, made
    for something else, or another name for one of the others."""
    models = {model.plain: model for model in listed.values() if model.provider == provider}
    usual: dict[str, ListedModel] = {}
    for name, model in models.items():
        plain = DATED.sub("", name)
        fit = model.tools and not model.ended(today) and not _SPECIAL.search(name)
        if fit and (name == plain or plain not in models):
            usual.setdefault(plain.replace(".", "-").removesuffix("-0"), model)
    family = model_family(dialect_of(provider).default_model or "")
    found = sorted(usual.values(), key=lambda m: (model_family(m.plain) == family, _version(m.plain)), reverse=True)
    lines = Counter[str]()
    late = [model for model in found if _later(lines, _line(model.plain))]
    return [*(model for model in found if model not in late), *late]


def _later(lines: Counter[str], line: str) -> bool:
    """Counts a model of a line of them; True from the third on."""
    lines[line] += 1
    return lines[line] > _OF_A_LINE


def _version(name: str) -> float:
    """``5.1`` of ``claude-opus-5-1``; 0 where the name has none."""
    found = _NUMBER.search(DATED.sub("", name.rpartition("/")[2]))
    return 0.0 if found is None else float(f"{found[1]}.{found[2] or 0}")


def _line(name: str) -> str:
    """What the versions of a model have in common: ``claudeopus``."""
    return re.sub(r"[\d._-]", "", name)


# Names that are wrong


def unlisted(name: str, api_base: str | None) -> bool:
    """Returns whether the list should have a model of that name and does not: not where the user's own server, or own
    names for models, are meant, or the list has none of that provider."""
    provider, _, plain = name.partition("/")
    dialect = dialect_of(provider)
    own = api_base is not None or variable_base(dialect) is not None or dialect.deployments or "arn:" in plain
    if own or dialect.local or (dialect.compatible and dialect.base is None) or _is_listed(name):
        return False
    models = [model.plain for model in listed_models().values() if model.provider == provider]
    bare = split_model(name)[1]
    same = (bare, DATED.sub("", bare))
    return bool(models) and not any(
        other in same or other.endswith((f"/{bare}", f".{bare}")) or DATED.sub("", other) in same for other in models
    )


def nearest(name: str, among: Sequence[str] = (), most: int = 3) -> list[str]:
    """Names like a wrong one, of those there are (``among``) and of the list; best first."""
    name = name.strip()
    provider, slash, plain = name.partition("/")
    if slash and is_provider(provider):
        return _like(plain, {**{n: n for n in among}, **_plain_names([provider])}, most)
    if slash:
        meant = difflib.get_close_matches(provider.lower(), DIALECTS, 1, _ALIKE)
        if not meant:
            return nearest(plain, among, most)
        full = f"{meant[0]}/{plain}"
        return nearest(full, among, most) or [full] if unlisted(full, None) else [full]
    return _like(name, {**{n: n for n in among}, **_plain_names(WELL_KNOWN)}, most)


def _plain_names(providers: Iterable[str]) -> dict[str, str]:
    """The names of providers' models without and with the provider; the first of them has a name that several have."""
    today = date.today()
    found: dict[str, str] = {}
    for provider in providers:
        for model in newest(listed_models(), provider, today):
            found.setdefault(model.plain, model.name)
    return found


def _like(name: str, known: Mapping[str, str], most: int) -> list[str]:
    if sum(char.isalnum() for char in name) < _SAYS:
        return []
    words = name.lower().split()
    named = match(name, list(known), letters=False)
    found = named or difflib.get_close_matches(name.lower(), known, most, _ALIKE) or _by_words(words, known)
    return [*dict.fromkeys(known[one] for one in found)][:most]


def _by_words(words: Sequence[str], known: Iterable[str]) -> list[str]:
    """The names with words like those that were typed: ``claude-sonnet-5`` for ``sonet``."""
    vocabulary = {word for name in known for word in re.findall("[a-z]{3,}", name)}
    meant = [near[0] for word in words if (near := difflib.get_close_matches(word, vocabulary, 1, _ALIKE))]
    return match(" ".join(meant), list(known)) if len(meant) == len(words) else []


def unknown(name: str, api_base: str | None = None, among: Sequence[str] = ()) -> str | None:
    """Why no model can have a name, in one line with what may be meant, of ``among`` or the list; None where one can.
    A server of the user's own may have models of any name."""
    provider, slash, _ = name.partition("/")
    if is_provider(provider) if slash else (api_base or full_name(name)):
        return None
    what = f"provider {_shown(provider)} in model {_shown(name)}" if slash else f"model {_shown(name)}"
    usual = f"{'use one that LiteLLM knows' if slash else 'write it with its provider'}, as in openai/gpt-5"
    return f"Unknown {what}{_meant(name, among) or f': {usual}.'}"


def unknown_provider(name: str) -> str | None:
    """Why no provider can have a name, in one line with what may be meant; None where one has."""
    if is_provider(name):
        return None
    meant = difflib.get_close_matches(name.lower(), DIALECTS, 1, _ALIKE)
    return f"Unknown provider {_shown(name)}" + (f". Did you mean {meant[0]}?" if meant else ": use one LiteLLM knows.")


def doubt(name: str, api_base: str | None = None) -> str | None:
    """What to tell of a model that may well exist, but is not on the list; None where its name is right."""
    if not unlisted(name, api_base):
        return None
    return f"{_shown(name)} is not a model that this version knows{_meant(name) or '.'}"


def _meant(name: str, among: Sequence[str] = ()) -> str:
    near = nearest(name, among)
    return f". Did you mean {' or '.join([', '.join(near[:-1]), near[-1]] if near[1:] else near)}?" if near else ""


def _shown(name: str) -> str:
    return repr(one_line(name, 100))
