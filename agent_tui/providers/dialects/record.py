"""The form of what is known of a provider."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from agent_tui.providers.dialects import image_limits as takes
from agent_tui.providers.dialects.caching import UNSAID, Caching
from agent_tui.providers.dialects.image_limits import ImageLimits
from agent_tui.providers.dialects.schemas import Schemas

Wire = Literal["chat", "anthropic", "gemini", "cohere", "ollama", "gateway"]
Counting = Literal["messages", "generate", "responses"]
Auth = Literal["bearer", "x-api-key", "api-key", "x-goog-api-key"]
Thinking = Literal["effort", "object", "switch", "extra switch", "think", "levels", "grok"]
CallIds = Literal["any", "plain", "short"]
Cache = Literal["markers", "key"]

Retention = tuple[float, float]
"""Share of resent reasoning that the next input contains: inside a tool loop, after a new user message."""

_NOTHING: Mapping[str, str] = MappingProxyType({})
_AS_USUAL: Mapping[str, Retention] = MappingProxyType({})


@dataclass(slots=True, frozen=True)
class Dialect:
    """How to talk to one provider. ``name`` is LiteLLM's name of it.

    ``wire``: the form of the body where the Responses API is not used; ``gateway``: only LiteLLM knows it.
    ``base``: the provider's own address, None where the user's configuration has to say it. ``host_path``: the path
    that a configured address without one gets. ``base_variables``: environment variables that hold an address.
    ``no_usage_option``: refuses ``stream_options``, usage comes unasked. ``no_tools``: takes no tools.
    ``openai``: serves OpenAI's own models, whose reasoning ones take other fields. ``needs_thoughts``: with thinking
    on, every earlier answer has to have a field for its thoughts. ``deployments``: models are reached under names of
    the user's own (Azure). ``drops``: fields of a message that it refuses. ``counting``: its endpoint for
    exact counts; ``responses`` counts only what goes to the Responses API. ``think_tags``: models of
    the user's own are served, which may write their thoughts into the text.
    ``pins_context``: every request says with which context the model is to be loaded.

    Keys and servers. ``keys``: environment variables with its key, the usual one first. ``local``: a server people run
    themselves, no key needed. ``compatible``: the name only says which language a server speaks.
    ``credentials_elsewhere``: a call looks for credentials on the machine or the network. ``shared_port``: anything may
    listen on its usual port; llama.cpp is known by ``/props``. ``responses_hosts``: ends of the hosts of configured
    addresses that have the Responses API. ``plain_names``: LiteLLM's table has its models under their plain names.
    ``needs_package``: what has to be installed besides.

    Requests. ``thinking``: how effort is said: ``effort`` as OpenAI, ``object`` as a field ``reasoning`` (OpenRouter),
    ``switch`` on or off, ``extra switch`` the same past LiteLLM, ``think`` as Ollama, ``levels`` only for families that
    have them, ``grok`` as xAI; None: not at all. ``call_ids``: ``plain`` are letters, digits, ``_`` and ``-``, up to
    64; ``short`` nine letters and digits. ``raw_arguments``: takes a call's arguments back as they came, JSON or not.
    ``cache``: how its prompt cache is used, for families that have the same. ``merging``: neighbouring assistant
    messages are joined on the way, so an answer can be sent in pieces and keep its order. ``thinking_blocks``: signed
    thoughts go back as blocks. ``named_results``: a tool's result carries its name. ``own_signatures``: thought
    signatures have fields of Google's API, not of its OpenAI-compatible one. ``bare_thoughts``: thoughts among content
    blocks are a text, not a list. ``drops_unfit``: can be asked to drop signed blocks that do not fit instead of
    refusing. ``usage_field``: usage and cost have to be asked for in a field ``usage``. ``thoughts_past_litellm``:
    LiteLLM's conversion loses thoughts among content blocks, its OpenAI one does not. ``schemas``: how it holds an
    answer to a JSON Schema; None: not at all, or nothing is known of it.

    Answers. ``json_lines``: LiteLLM's reader takes bare JSON lines only. ``guessed_reasoning``: it does not say how
    much was reasoning; the number in LiteLLM's chunks is LiteLLM's. ``retains``: where it keeps another share of
    reasoning than usual, by rule of ``catalog.families.RETENTION``. ``framing``: families whose messages it counts
    otherwise, with their name in ``tokens.families``. ``images``: what it takes of images. ``caching``: what it says of
    its prompt cache, for families without a cache rule of their own.
    """

    name: str
    wire: Wire = "chat"
    base: str | None = None
    host_path: str = ""
    base_variables: tuple[str, ...] = ()
    auth: Auth = "bearer"
    headers: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    no_usage_option: bool = False
    no_tools: bool = False
    openai: bool = False
    needs_thoughts: bool = False
    deployments: bool = False
    counting: Counting | None = None
    think_tags: bool = False
    pins_context: bool = False
    drops: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    local: bool = False
    compatible: bool = False
    credentials_elsewhere: bool = False
    shared_port: bool = False
    responses_hosts: tuple[str, ...] = ()
    plain_names: bool = False
    needs_package: str | None = None
    thinking: Thinking | None = None
    call_ids: CallIds = "any"
    raw_arguments: bool = False
    cache: Cache | None = None
    merging: bool = False
    thinking_blocks: bool = False
    named_results: bool = False
    own_signatures: bool = False
    bare_thoughts: bool = False
    drops_unfit: bool = False
    usage_field: bool = False
    thoughts_past_litellm: bool = False
    schemas: Schemas | None = None
    json_lines: bool = False
    guessed_reasoning: bool = False
    retains: Mapping[str, Retention] = field(default_factory=lambda: _AS_USUAL)
    framing: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    images: ImageLimits = takes.USUAL
    caching: Caching = UNSAID

    @property
    def direct(self) -> bool:
        return self.wire != "gateway"

    @property
    def key_name(self) -> str:
        """The environment variable that a user should set; guessed where none is known."""
        return self.keys[0] if self.keys else f"{self.name.upper().replace('-', '_')}_API_KEY"
