"""The forms of what is known: of a provider, of a family of models, of the language an API speaks.

The records themselves are in the dialects' files and in ``table``; ``catalog`` finds them by name. The algorithms read
the records and name no provider.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from agent_tui.models.image_headers import base64_size
from agent_tui.models.messages import Metadata
from agent_tui.models.requests import ModelSpec, Target
from agent_tui.models.usage import Limits
from agent_tui.records import dataclass
from agent_tui.text.numbers import size

Auth = Literal["bearer", "x-api-key", "api-key", "x-goog-api-key"]
EffortStyle = Literal["effort", "object", "switch", "extra switch", "think", "levels", "grok"]
CallIds = Literal["free", "openai", "plain", "short"]
ToolNames = Literal["plain", "google", "cohere"]
Cache = Literal["markers", "key"]
FamilyThinking = Literal["budget or effort", "budget or level", "levels"]
ImageTokens = Literal["area", "tiles of 768", "tiles of 512"]
Beside = Literal["always", "at the end", "without tools"]
Reach = Literal["all", "messages"]
"""What is lost when a setting changes: everything, or the messages while system prompt and tools stay."""
Version = tuple[int, int]
Retention = tuple[float, float]
"""Share of resent reasoning that the next input contains: inside a tool loop, after a new user message."""

HOUR = 3_600.0
MEBI = 1024 * 1024


class Source(NamedTuple):
    """The source of a fact."""

    page: str
    checked: str
    """The day on which it was last read there, as ``2026-11-21``."""


@dataclass(slots=True, frozen=True)
class Caching:
    """The facts that a provider states of its prompt cache. Only what is documented stands here: where nothing is said
    of how long an entry lives, ``life`` and ``gone`` are None, and nobody may call it expired."""

    keeping: Literal["markers", "ends", "automatic"] = "automatic"
    """Up to the places that a request marks, up to the end of each request, or whatever was sent. Only of the last a
    beginning is found whose end no request had; of the others it costs more to write than to send."""
    minimum: int = 1_024
    """Tokens below which nothing is kept."""
    life: float | None = None
    """Seconds that an entry is kept after its last use, known to the second."""
    gone: float | None = None
    """Seconds after which it is gone for sure, where only that is known."""
    sure: float | None = None
    """Seconds that it is kept for at least, where only that is known."""
    loses: Mapping[str, Reach] = field(default_factory=lambda: MappingProxyType({}))
    """What a changed setting makes useless, by its name in ``models.steps.Sent``; of the others it is not said."""
    zero_unsaid: bool = False
    """No number in the usage means that nothing was read, once the provider has named one."""
    minima: tuple[tuple[re.Pattern[str], int], ...] = ()
    """Other minimums, by the names of models."""
    longer: tuple[re.Pattern[str], float] | None = None
    """Models that may keep entries for longer, and until when those are gone."""
    later_models: re.Pattern[str] | None = None
    """Models that are cached by other rules, which are ``later``."""
    later: Caching | None = None
    source: Source | None = None

    def of(self, model: str) -> Caching:
        """Returns what holds for one model."""
        name = model.lower()
        if self.later is not None and self.later_models is not None and self.later_models.search(name):
            return self.later
        minimum = next((least for pattern, least in self.minima if pattern.search(name)), self.minimum)
        gone = self.longer[1] if self.longer is not None and self.longer[0].search(name) else self.gone
        return replace(self, minimum=minimum, gone=gone)


UNSAID = Caching(minimum=0)
"""Providers that say nothing of a cache, and servers of the user's own: they keep what a slot or free memory holds,
and give it up when another request needs the room."""


@dataclass(slots=True, frozen=True)
class ImageLimits:
    """The limits of one provider on images; None: it says no limit."""

    size: int | None = 5 * MEBI
    """Bytes of one image after base64."""
    side: int | None = 8_000
    """Pixels of its longer side."""
    pixels: int | None = None
    """Pixels of the whole image."""
    count: int | None = 100
    """Images in one request."""
    many: int | None = None
    """With more than so many images in a request the longer side may have ``many_side`` pixels."""
    many_side: int | None = None
    total: int | None = 18_000_000
    """Bytes of all images of a request after base64; where the limit is of the whole request, about a tenth of it is
    left for the rest."""
    types: frozenset[str] = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
    """Media types it reads."""
    source: Source | None = None

    @property
    def best_side(self) -> int | None:
        """The longest side that fits whatever is added later."""
        return least(self.side, self.many_side)

    def problem(self, data: str, media_type: str) -> str | None:
        """Says why one base64 image is not taken, as a part of a sentence; None when it is."""
        if media_type not in self.types:
            return f"{media_type} files are not supported by this model"
        if self.size is not None and len(data) > self.size:
            return f"{size(len(data) * 3 // 4)} is too large for this model"
        found = base64_size(data) if self.side is not None or self.pixels is not None else None
        if found is not None and not self.holds(*found):
            return f"{found[0]:,}×{found[1]:,} pixels are too many for this model"
        return None

    def holds(self, width: int, height: int) -> bool:
        """Says whether an image of this many pixels is taken among few."""
        if self.side is not None and max(width, height) > self.side:
            return False
        return self.pixels is None or width * height <= self.pixels

    def with_(self, other: ImageLimits) -> ImageLimits:
        """Returns the stricter of both in everything."""
        names = ("size", "side", "pixels", "count", "many", "many_side", "total")
        bounds: dict[str, Any] = {name: least(getattr(self, name), getattr(other, name)) for name in names}
        return ImageLimits(**bounds, types=self.types & other.types)


USUAL_IMAGES = ImageLimits()
"""For providers that say nothing: what all of the large ones take."""

OWN_IMAGES = ImageLimits(20_000_000, None, None, None, None, None, None)
"""Programs on the user's own machine, which scale for themselves and name no limits: only what would be a burden to
store and send with every step is kept smaller."""


def least(one: int | None, other: int | None) -> int | None:
    """The smaller of two limits, of which each may be unknown."""
    return min((n for n in (one, other) if n is not None), default=None)


_NOTES = frozenset({"$schema", "$id", "$comment", "default", "examples", "deprecated", "readOnly", "writeOnly"})
"""Keywords that no value has to heed."""
BOUNDS = frozenset(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern"}
    | {"minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains"}
    | {"minProperties", "maxProperties", "propertyNames", "format", "contentEncoding", "contentMediaType"}
)
"""Keywords that only narrow what a type says: without them a schema still lets every value pass that fits it."""
SHAPE = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref", "$defs"}
    | {"definitions", "description", "title"}
)
BUT_BOUNDS = _NOTES | BOUNDS
ONE_OF = MappingProxyType({"oneOf": "anyOf"})


@dataclass(slots=True, frozen=True)
class Subset:
    """The part of JSON Schema that a provider reads. A schema with a keyword neither kept nor dropped does not fit."""

    kept: frozenset[str]
    dropped: frozenset[str] = _NOTES
    """Keywords that are left out; what they ask for is checked here afterwards."""
    renamed: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Keywords that are taken under another name."""
    closed: bool = True
    """Every object has to name its properties and forbid others."""
    closes: bool = False
    """An object that says nothing of others is closed for it."""
    complete: bool = False
    """Every property has to be required."""
    deepest: int = 10
    """Levels of nesting."""


@dataclass(slots=True, frozen=True)
class Schemas:
    """The way in which one provider holds an answer to a schema."""

    when: Beside
    """``always``, in every request, as it holds for the answer alone and tools are called as ever; ``at the end``,
    because no tool is called beside it, only in a request that is for the answer and nothing else, or declares no
    tools; ``without tools``, as it is refused beside them."""
    subset: Subset | None = None
    models: re.Pattern[str] | None = None
    """Those that can, by name; None: all."""
    otherwise: Beside | None = None
    """When the rest of them can."""
    loose: bool = False
    """A schema that does not fit the subset is taken as well, then as advice (``strict`` false)."""
    source: Source | None = None


OWN_SCHEMAS = Schemas(
    "at the end", source=Source("github.com/vllm-project/vllm 39929, github.com/ollama/ollama 8095", "2026-11-21")
)
"""vLLM, llama.cpp, LM Studio and Ollama make a grammar of the schema, which the first token has to keep to already: no
tool would ever be called."""


@dataclass(slots=True, frozen=True)
class ExactCount:
    """An endpoint that counts the input of a request."""

    fields: tuple[str, ...]
    """What it takes of the call's body."""
    path: Callable[[str], str]
    """Its path, from the call's."""
    wrap: Callable[[Metadata, Target], Metadata] = lambda body, target: body
    source: Source | None = None


@dataclass(slots=True, frozen=True)
class WebSearch:
    """A provider's own web search."""

    tool: Mapping[str, Any]
    """How a request declares it."""
    price: float | None = None
    """US dollars of one search; None where the provider's reports say what all of a call cost."""
    tokens: int = 0
    """What it adds to a prompt, roughly, as recorded calls show."""
    api: str = "chat"
    models: re.Pattern[str] | None = None
    """Those that have it beside other tools, by name; None: all."""
    include: tuple[str, ...] = ()
    """What else the answer is asked to have."""
    uncounted: bool = False
    """The provider's exact count refuses a request that declares it."""
    source: Source | None = None


@dataclass(slots=True, frozen=True)
class Wire:
    """The language of an API."""

    body: Callable[[Any], Metadata]
    """Makes the body of a streaming call, of an ``OutgoingRequest``."""
    url: Callable[[str, ModelSpec, Target, Dialect], tuple[str, str | None]]
    """Path and query of a streaming call, from the path of the configured address; None: the query stays."""
    stream: type[Any]
    """Reads the answer; a ``StreamReader``."""
    chooses_none: bool = False
    """Takes ``tool_choice`` "none"."""
    output_config: bool = False
    """A schema of the answer has its place in ``output_config``."""
    output: int | None = None
    """Tokens asked for where nothing says how many: a request without a number is refused."""
    count: ExactCount | None = None
    limits: tuple[str, ...] = ()
    """Its names for the most tokens of an answer beside OpenAI's, nested ones with dots."""


@dataclass(slots=True, frozen=True)
class Dialect:
    """The facts known of one provider."""

    name: str
    """LiteLLM's name of it."""
    wire: Wire | None = None
    """How it is spoken to where the Responses API is not used; None: only LiteLLM can."""
    base: str | None = None
    """Its own address; None where the user's configuration has to say it."""
    host_path: str = ""
    """The path that a configured address without one gets."""
    base_variables: tuple[str, ...] = ()
    """Environment variables that hold an address."""
    auth: Auth = "bearer"
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    counts: bool = False
    """Has the endpoint for exact counts of its wire."""
    search: WebSearch | None = None

    keys: tuple[str, ...] = ()
    """Environment variables with its key, the usual one first."""
    key_begins: tuple[str, ...] = ()
    """How its keys begin, where that tells them from all others'."""
    default_model: str | None = None
    """A capable model, for a user of whom only the key is known."""
    title: str | None = None
    """The name of a server that is looked for on its usual port."""
    local: bool = False
    """A server people run themselves, no key needed."""
    batches: bool = True
    """It answers several requests at once: one beside a turn does not hold that up."""
    compatible: bool = False
    """The name only says which language a server speaks."""
    credentials_elsewhere: bool = False
    """A call looks for credentials on the machine or the network."""
    shared_port: bool = False
    """Anything may listen on its usual port; llama.cpp is known by ``/props``."""
    responses_hosts: tuple[str, ...] = ()
    """Ends of the hosts of configured addresses that have the Responses API."""
    plain_names: bool = False
    """LiteLLM's table has its models under their plain names."""
    needs_package: str | None = None
    """What has to be installed besides."""

    openai: bool = False
    """Serves OpenAI's own models, whose reasoning ones take other fields."""
    deployments: bool = False
    """Models are reached under names of the user's own (Azure)."""
    no_usage_option: bool = False
    """Refuses ``stream_options``; usage comes unasked."""
    usage_field: bool = False
    """Usage and cost have to be asked for in a field ``usage``."""
    no_tools: bool = False
    """Takes no tools."""
    no_files: bool = False
    """Takes no PDF files: a content block of that type is refused."""
    pins_context: bool = False
    """Every request says with which context the model is to be loaded."""
    thinking: EffortStyle | None = None
    """How effort is said: ``effort`` as OpenAI, ``object`` as a field ``reasoning`` (OpenRouter), ``switch`` on or off,
    ``extra switch`` the same past LiteLLM, ``think`` as Ollama, ``levels`` only for families that have them, ``grok``
    as xAI; None: not at all."""
    needs_thoughts: bool = False
    """With thinking on, every earlier answer has to have a field for its thoughts."""
    drops: tuple[str, ...] = ()
    """Fields of a message that it refuses."""
    call_ids: CallIds = "free"
    """The ids of calls that it takes: see ``conversation.ID_FORMS``."""
    tool_names: ToolNames = "plain"
    """The names of tools that it takes: see ``conversation.NAME_FORMS``."""
    cache: Cache | None = None
    """How its prompt cache is used, for families that have the same."""
    merging: bool = False
    """Neighbouring assistant messages are joined on the way, so an answer can be sent in pieces and keep its order."""
    thinking_blocks: bool = False
    """Signed thoughts go back as blocks."""
    named_results: bool = False
    """A tool's result carries its name."""
    own_signatures: bool = False
    """Thought signatures have fields of Google's API, not of its OpenAI-compatible one."""
    bare_thoughts: bool = False
    """Thoughts among content blocks are a text, not a list."""
    drops_unfit: bool = False
    """Can be asked to drop signed blocks that do not fit instead of refusing."""
    thoughts_past_litellm: bool = False
    """LiteLLM's conversion loses thoughts among content blocks, its OpenAI one does not."""
    schemas: Schemas | None = None
    """How it holds an answer to a JSON Schema; None: not at all, or nothing is known of it."""

    think_tags: bool = False
    """Models of the user's own are served, which may write their thoughts into the text."""
    guessed_reasoning: bool = False
    """It does not say how much was reasoning; the number in LiteLLM's chunks is LiteLLM's."""
    retains: Mapping[str, Retention] = field(default_factory=lambda: MappingProxyType({}))
    """Where it keeps another share of reasoning than usual, by the name of the ``RetentionRule``."""
    framing: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Families whose messages it counts otherwise, with their name in ``tokens.families``."""
    images: ImageLimits = USUAL_IMAGES
    """What it takes of images."""
    caching: Caching = UNSAID
    """What it says of its prompt cache, for families without a cache rule of their own."""
    limits: tuple[str, ...] = ()
    """As in ``Wire``, of a provider without one."""

    @property
    def key_name(self) -> str:
        """The environment variable that a user should set; guessed where none is known."""
        return self.keys[0] if self.keys else variable(self.name, "KEY")


def variable(name: str, what: Literal["KEY", "BASE"]) -> str:
    """The environment variable of a provider that has its name: letters, digits and underscores, as shells take it."""
    return f"{name.upper().replace('-', '_')}_API_{what}"


@dataclass(slots=True, frozen=True)
class ModelFamily:
    """The facts known of a family of models, wherever it is served. Tokenizer constants are in ``tokens.families``."""

    name: str
    pattern: re.Pattern[str] | None = None
    """Finds it in the lower-case name of a model."""
    maker: str | None = None
    """The provider of a name without one."""
    version: Callable[[str], tuple[str, Version] | None] = lambda model: None
    """Reads kind and version from a model's name."""
    thinking: FamilyThinking | None = None
    """How it is asked to think where the provider has no way of its own; ``levels``: by effort, also where other models
    have a switch."""
    thinks_from: Version | None = None
    """From this version on models think when asked to."""
    adapts_from: Version | None = None
    """From this version on models decide themselves how long to think, and take no budget."""
    binds_from: Version | None = None
    """From this version on models bind a signature to everything before it."""
    loops_whole: bool = False
    """Models that do not adapt think in a tool loop only where its first answer began so."""
    signed_blocks: bool = False
    """Thoughts are only taken back signed, and only while thinking is on."""
    thought_signatures: bool = False
    """Thoughts are never shown whole; a signature, on any part of the answer, stands for them."""
    think_tags: bool = True
    """Where False, tags in their text are meant."""
    alternates: bool = False
    """Chat templates refuse two user messages in a row ("conversation roles must alternate"), and one that follows a
    tool's result ("Unexpected role 'user' after role 'tool'": github.com/zed-industries/zed 37021, read 2026-11-23)."""
    named_results: bool = False
    """A tool's result carries its name."""
    call_ids: CallIds | None = None
    """The ids of calls that its models take wherever they are served; None: any that the provider takes."""
    properties: re.Pattern[str] | None = None
    """What a property in a tool's schema may be called; None: anything."""
    cache: Cache | None = None
    """How its cache is used where the provider can."""
    caching: Caching | None = None
    """What is said of its cache wherever places can be marked in it."""
    output: int | None = None
    """Tokens asked for where nothing says how many, for an API that insists."""
    assumed: Mapping[str, Limits] = field(default_factory=lambda: MappingProxyType({}))
    """What all models have at least whose names hold a word, for those that no table lists."""
    images: ImageTokens = "tiles of 512"
    """The rule for the tokens of an image."""
    pdf_page: int = 2_250
    """Tokens of a page; the middle of what is documented (1 500 to 3 000) for those that say nothing."""
    image_limits: ImageLimits | None = None
    """What its models take of images wherever they are served, where that is less than a provider takes."""
    patches: re.Pattern[str] | None = None
    """Those of its models that are trained to change files by patches ("V4A")."""
    source: Source | None = None


@dataclass(slots=True, frozen=True)
class RetentionRule:
    """A rule on what becomes of resent reasoning where all conditions hold."""

    name: str
    retention: Retention
    family: str | None = None
    model: re.Pattern[str] | None = None
    api: str | None = None
    since: Mapping[str, Version] | None = None
    """The version from which on, by the model's kind (``""``: any other)."""
