"""Estimates of what cannot be measured: texts, messages, images and files, by the family of the model; and how well the
counts behind them do.

Factors of families are fitted to the vocabularies that packages ship (benchmarks: ``research/vocabulary_facts.py``),
Claude's to a reconstruction from what Anthropic's endpoint counts (ctok 1.3.0, github.com/sanderland/ctok, read
2026-11-22) and to the recordings, which agree. The overheads of messages are medians over recorded provider traffic,
every repository of recordings weighted by the square root of its size (``tests/benchmarks/next_input.py`` scores them).
Where a median rests on one odd repository the value of the neighbouring family stands. Families without enough
recordings use ``unknown``.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from functools import cache, lru_cache
from operator import mul

from agent_tui.models.calibration import (
    CALLS,
    FURTHER,
    MESSAGES,
    RESULTS,
    SCHEMAS,
    USUAL,
    Calibration,
    Content,
    beginning,
    text_content,
)
from agent_tui.models.image_headers import base64_size, decoded
from agent_tui.models.messages import (
    AttachmentPart,
    Message,
    Part,
    ReasoningPart,
    SearchPart,
    SummaryPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from agent_tui.models.requests import ALL_MEDIA, Media, ModelInfo, Target
from agent_tui.models.rows import MESSAGE_ROWS, MessageRowId
from agent_tui.models.search import search_tokens, searches_go_back
from agent_tui.models.steps import FixedPart
from agent_tui.providers.catalog import dialect_of, family_record, sees
from agent_tui.records import dataclass
from agent_tui.text.numbers import largest_remainder, percent, uptime

MESSAGE_DEVIATION, SCHEMA_DEVIATION = 6.0, 0.2
"""Standard deviations of what wraps a message, in tokens, and of the share that tool definitions are off by."""

CALL_DEVIATION = 6.0
"""That of what an output has beside the text of an answer, and beside that of each of its calls, in tokens."""

RESULT_DEVIATION, FURTHER_DEVIATION = 4.0, 12.0
"""That of what wraps a result, and one that follows another, beside what wraps all messages."""


WHOLE = 0.06
"""Standard deviation of all factors together, as a share of them."""


def facts(factors: Sequence[float], deviations: Sequence[float], noise: float = 0.03) -> Calibration:
    """What is known of a vocabulary before any report: factors of ``KINDS`` and their standard deviations. Of what is
    no text there is the family's template, and how sure that is. Tool definitions are counted like most texts."""
    usual = sum(map(mul, factors, USUAL))
    spread = [MESSAGE_DEVIATION, SCHEMA_DEVIATION * usual, *2 * [CALL_DEVIATION], RESULT_DEVIATION, FURTHER_DEVIATION]
    return beginning([*factors, 0.0, usual, *4 * [0.0]], [*deviations, *spread], noise, WHOLE)


_FITTED = (0.03, 0.08, 0.08, 0.05, 0.05, 0.12, 0.25, 0.3, 0.1, 0.06, 0.06, 0.12)
"""Deviations where a vocabulary of the family was published: of its other versions, and of other texts."""
_MIDDLE = (1.01, 1.0, 0.04, 1.0, 0.01, 0.98, 1.15, 1.17, 1.0, 1.0, 1.05, 1.05)
_NOT_FITTED = (0.06, 0.29, 0.37, 0.15, 0.62, 0.23, 0.31, 0.61, 0.17, 0.08, 0.11, 0.3)
"""The median of the published vocabularies, and their deviations from it."""


def _fitted(noise: float, *factors: float) -> Calibration:
    return facts(factors, _FITTED, noise).against(UNSURE)


def _by_recordings(factor: float) -> Calibration:
    """Of a family whose vocabulary nobody publishes only one factor is known, by code and prose; the rest is as in the
    published ones."""
    return facts([factor * middle for middle in _MIDDLE], _NOT_FITTED, 0.035)


UNSURE = _by_recordings(1.0)
O200K = facts([1, 1, 0, 1, 0, *[1] * 7], [0.01] * 12, 0.006).against(UNSURE)
CL100K = _fitted(0.015, 1.01, 0.97, 0.0, 0.97, 0.0, 1.37, 1.85, 2.42, 1.02, 1.0, 1.05, 1.45)
CLAUDE = _fitted(0.085, 1.05, 1.49, 0.47, 1.21, -0.26, 1.38, 1.68, 1.86, 0.88, 1.12, 1.26, 1.79)
CLAUDE_4_7 = _fitted(0.105, 1.33, 1.88, 1.69, 1.19, -0.28, 1.37, 1.67, 1.85, 0.92, 1.29, 1.42, 1.78)
DEEPSEEK = _fitted(0.045, 1.02, 1.17, 0.25, 1.25, -0.18, 0.9, 1.19, 1.42, 0.62, 1.04, 0.98, 1.17)
GEMINI = _fitted(0.07, 1.06, 1.49, 0.08, 1.32, 0.75, 0.79, 1.04, 1.03, 0.7, 1.06, 0.91, 1.05)
LLAMA = _fitted(0.015, 1.01, 0.96, 0.0, 0.97, 0.01, 0.98, 1.3, 1.17, 1.03, 1.0, 1.05, 1.02)
MISTRAL = _fitted(0.03, 0.99, 1.06, 0.29, 1.01, 0.98, 1.14, 1.02, 1.07, 0.99, 1.0, 1.08, 0.98)
QWEN = _fitted(0.015, 1.01, 0.97, 0.0, 0.98, 1.0, 0.87, 1.15, 2.24, 1.01, 1.0, 1.05, 1.05)
QWEN_3_5 = _fitted(0.04, 1.03, 0.96, 0.04, 0.96, 0.94, 0.72, 1.0, 1.11, 1.11, 1.14, 1.04, 0.82)
OURS = beginning([1, 1, 0, 1, 0, *[1] * 7, 0, 1, *[0] * 4], [*[0.001] * 12, 2, 0.002, 2, 2, 1, 1], 0.002)
"""Of the demo model, which counts by o200k_base (``providers.demo_script.Witness``): joints of texts may differ."""


@dataclass(slots=True, frozen=True)
class Family:
    """Tokens a model counts = what its vocabulary (``beginning``) makes of the text + the overheads (tokens) of each
    message.

    ``first_result`` and ``further_result`` belong to the first and each further tool result after one answer, ``user``
    to a user message, ``assistant`` to an answer that is not measured, ``call`` to each tool call in such an answer,
    ``tools`` to a request with any tool at all. ``around``: the standard deviation of what a template and a server put
    around a first request: first requests of recorded traffic are off by 440 tokens at the 95th percentile, a
    llama.cpp's by 420. ``char_factor`` scales the character rule (Llama-like vocabularies need about 10 % more tokens,
    code models about 10 % fewer).
    """

    name: str
    beginning: Calibration
    first_result: float
    further_result: float
    user: float
    assistant: float = 4
    call: float = 10
    tools: float = 0
    around: float = 120
    char_factor: float = 1.0
    media: Media = ALL_MEDIA
    """What is sent as it is; in the place of other pictures and files a line."""
    target: Target | None = None  # who gets its own searches


UNKNOWN = Family("unknown", UNSURE, 10, 8, 4)

FAMILIES: dict[str, Family] = {
    "gpt": Family("gpt", O200K, 7, 6, 7),
    "gpt-4": Family("gpt", CL100K, 7, 6, 7),
    "gpt-5.2": Family("gpt", O200K, 11, 7, 7),
    "gpt-oss": Family("gpt", O200K, 14, 8, 4),
    "claude": Family("claude", CLAUDE, 12, 47, 1, tools=490),
    "claude-4.7": Family("claude", CLAUDE_4_7, 12, 47, 1, tools=490),
    "gemini": Family("gemini", GEMINI, 7, 5, 1),
    "gemini-vertex": Family("gemini", GEMINI, 0, 0, 0),
    "glm": Family("glm", _by_recordings(1.0), 5, 3, 1, tools=110),
    "kimi": Family("kimi", _by_recordings(0.90), 18, 15, 1),
    "deepseek": Family("deepseek", DEEPSEEK, 13, 6, 4, tools=240),
    "mistral": Family("mistral", MISTRAL, 4, 4, 2),
    "grok": Family("grok", _by_recordings(1.0), 10, 4, 11, tools=320),
    "qwen": Family("qwen", QWEN, 13, 3, 7),
    "qwen-3.5": Family("qwen", QWEN_3_5, 13, 3, 7),
    "llama": Family("llama", LLAMA, 8, 8, 4, char_factor=1.1),
    "nova": Family("nova", _by_recordings(1.0), 25, 10, 3),
    "cohere": Family("cohere", _by_recordings(1.0), 40, 20, 5, tools=1_450),
    "demo": Family("demo", OURS, 20, 15, 15, assistant=10, call=5, around=3),
    "unknown": UNKNOWN,
}

_BY_NAME = tuple(
    (key, re.compile(pattern))
    for key, pattern in (
        ("gpt-oss", r"gpt-oss"),
        ("gpt-5.2", r"gpt-(5\.[2-9]|5\.\d\d|[6-9])"),
        ("gpt-4", r"gpt-(4(?![o.]|\d)|3)"),
        ("claude-4.7", r"claude-(opus|sonnet|haiku)-(4[-.][7-9]|[5-9])|claude-(fable|mythos)"),
        ("grok", r"grok"),
        ("qwen-3.5", r"qwen-?3\.[5-9]"),
        ("qwen", r"qwen|qwq"),
        ("llama", r"llama"),
        ("nova", r"nova-"),
        ("cohere", r"command-"),
    )
)
_CODE = re.compile(r"code|coder")
CODE_FACTOR = 0.9


def family_seen(model: ModelInfo, fixed: Iterable[FixedPart] = ()) -> Family:
    """The constants for a model, as far as it takes what it is shown, beside the prefix ``fixed``."""
    searches = model.target if searches_go_back(model.target, fixed) else None
    return replace(family_of(model.target), media=sees(model), target=searches)


@cache
def family_of(target: Target) -> Family:
    """The constants for a target: by model name where the template is finer than the tokenizer's family, else by the
    family, and by who serves it where that one counts otherwise."""
    name = target.model.lower()
    family = next((FAMILIES[key] for key, pattern in _BY_NAME if pattern.search(name)), None)
    if family is None:
        framed = dialect_of(target.provider).framing.get(target.family, target.family)
        family = FAMILIES.get(framed, UNKNOWN)
    return replace(family, char_factor=CODE_FACTOR) if _CODE.search(name) else family


DEFAULT_SIDE = 1_024
"""Side in pixels assumed for an image whose header cannot be read."""

_PAGE = re.compile(rb"/Type\s*/Page(?![s\w])")


def attachment_tokens(part: AttachmentPart, family: str) -> int:
    """Tokens of an attachment sent as data. Rough by nature: providers rescale before they count."""
    data = part.data or ""
    if part.media_type.startswith("image/"):
        width, height = base64_size(data) or (DEFAULT_SIDE, DEFAULT_SIDE)
        return image_tokens(width, height, family)
    return pdf_pages(data) * family_record(family).pdf_page


def image_tokens(width: int, height: int, family: str) -> int:
    """Tokens of an image of this many pixels.

    Claude: width × height / 750 after fitting into 1 568 px a side (at most about 1 600). Gemini: 258 up to 384 px a
    side, else 258 for each tile of 768 px. Others as OpenAI's high detail: fit into 2 048 px, then the shorter side
    to 768 px, 85 + 170 for each tile of 512 px.
    """
    width, height = max(1, width), max(1, height)
    rule = family_record(family).images
    if rule == "area":
        scale = min(1.0, 1_568 / max(width, height))
        return max(1, min(1_600, math.ceil(width * scale * height * scale / 750)))
    if rule == "tiles of 768":
        if max(width, height) <= 384:
            return 258
        return 258 * math.ceil(width / 768) * math.ceil(height / 768)
    scale = min(1.0, 2_048 / max(width, height))
    scale *= min(1.0, 768 / (min(width, height) * scale))
    return 85 + 170 * math.ceil(width * scale / 512) * math.ceil(height * scale / 512)


@lru_cache(maxsize=64)
def pdf_pages(data: str) -> int:
    """Pages of a base64 PDF, counted by its page objects; at least 1 (compressed object tables hide them)."""
    return max(1, len(_PAGE.findall(decoded(data))))


ASCII_TOKENS = 0.25
OTHER_TOKENS = 1.3
"""Tokens a character, ASCII and other: the fallback rule of the token-counting document (and of gemini-cli)."""

CLEARED_RAW = 7
INTERRUPTED_RAW = 4
"""o200k_base counts of ``CLEARED_RESULT`` and ``INTERRUPTED_RESULT``."""


def cleared_raw(result: str) -> int:
    """The o200k_base count of ``cleared_text``: three digits are a token, and so is each comma between them."""
    return 16 + 2 * f"{len(result):,}".count(",")


@dataclass(slots=True, frozen=True)
class MessageEstimate:
    """What a message costs without its reasoning, by what is known of the family: ``tokens`` is the sum of ``shares``.

    ``approximate``: not counted yet, the character rule stands in. ``rough``: an image or file is in it. ``exact`` is
    the estimate before it was rounded up; ``media`` is the part of it that is no text; ``content`` what it consists of.
    """

    tokens: int
    shares: tuple[tuple[MessageRowId, int], ...]
    approximate: bool = False
    rough: bool = False
    exact: float = 0.0
    media: float = 0.0
    content: Content = field(default_factory=Content)


def text_of_part(part: Part) -> str:
    """The text of a part that counts as input. Reasoning is not here: the replay rule says whether it costs."""
    match part:
        case TextPart() | SummaryPart() | ToolResultPart():
            return part.text
        case ToolCallPart():
            return f"{part.name} {part.arguments}"
        case AttachmentPart():
            return part.text or ""
        case ReasoningPart() | SearchPart():
            return ""


def message_text_for_count(message: Message) -> str:
    """The text whose o200k_base count is the message's ``raw_tokens``."""
    return "\n".join(t for t in map(text_of_part, message.parts) if t)


def counted_chars(message: Message) -> int:
    """Length of the text that counts, in characters."""
    return sum(len(text_of_part(p)) for p in message.parts)


def char_tokens(text: str) -> float:
    """Tokens by the character rule, unrounded."""
    if text.isascii():
        return len(text) * ASCII_TOKENS
    plain = len(text.encode("ascii", "ignore"))
    return plain * ASCII_TOKENS + (len(text) - plain) * OTHER_TOKENS


def round_up(tokens: float) -> int:
    """The single rounding of an estimate. Raises ValueError for a negative count: that is a bug somewhere."""
    if tokens < 0:
        raise ValueError(f"Invalid token count: {tokens}")
    return math.ceil(tokens - 1e-9)


def estimate_message(message: Message, family: Family, first_result: bool = True) -> MessageEstimate:
    """Returns what the message costs as input of a model of this family, its reasoning left out.

    ``first_result``: for a tool message, whether it is the first result after its answer. Raises ValueError when the
    stored count is negative.
    """
    weights: list[tuple[MessageRowId, float]] = []
    rough_tokens = 0.0
    for part in message.parts:
        if isinstance(part, AttachmentPart) and part.text is None:
            shown = family.media.takes(part)
            tokens = attachment_tokens(part, family.name) if shown else round_up(char_tokens(part.unread))
            rough_tokens += tokens
            weights.append(("attachments", tokens))
        elif isinstance(part, SearchPart):
            rough_tokens += (tokens := search_tokens(part, message.origin, family.target))
            weights.append(("tool_results", tokens))
    texts = [(kind_of(message, p), t) for p in message.parts if (t := text_of_part(p))]
    chars = sum(len(t) for _, t in texts)
    content, approximate = _counted(message.raw_tokens, message.counts, f"message {message.id}"), False
    if content is None:
        content, approximate = _uncounted(sum(char_tokens(t) for _, t in texts) * family.char_factor), bool(texts)
    body = family.beginning.tokens(content)
    weights.extend((kind, body * len(text) / chars) for kind, text in texts)
    overheads = overhead_of(message, family, first_result)
    weights.extend(overheads)
    content.terms[MESSAGES], content.terms[CALLS] = 1.0, float(len(message.tool_calls))
    if message.role == "tool":
        content.terms[RESULTS], content.terms[FURTHER] = 1.0, float(not first_result)
    content.plain += rough_tokens + sum(o for _, o in overheads)
    content.rough += (ROUGH * rough_tokens) ** 2
    exact = family.beginning.tokens(content)
    total = round_up(exact)
    return MessageEstimate(total, spread(total, weights), approximate, bool(rough_tokens), exact, rough_tokens, content)


ROUGH = 0.15
"""Standard deviation of what is not counted (pictures, files, texts by the character rule), as a share of it."""


def _counted(tokens: int | None, counts: Sequence[int] | None, of: str) -> Content | None:
    """What a counted text consists of; None where it was not counted yet. Raises ValueError for a negative count: that
    is a bug somewhere."""
    if tokens is None:
        return None
    if tokens < 0:
        raise ValueError(f"Invalid token count: {tokens} for {of}")
    return text_content(counts, tokens)


def _uncounted(tokens: float) -> Content:
    return Content(plain=tokens, rough=(ROUGH * tokens) ** 2)


def overhead_of(message: Message, family: Family, first_result: bool) -> list[tuple[MessageRowId, float]]:
    """Returns what the chat template adds around the message, by kind."""
    if message.role == "tool":
        return [("tool_results", family.first_result if first_result else family.further_result)]
    if message.role == "user":
        kind: MessageRowId = "summary" if any(isinstance(p, SummaryPart) for p in message.parts) else "user"
        return [(kind, family.user)]
    added: list[tuple[MessageRowId, float]] = [("assistant", family.assistant)]
    calls = len(message.tool_calls)
    if calls:
        added.append(("tool_calls", family.call * calls))
    return added


def kind_of(message: Message, part: Part) -> MessageRowId:
    """The child of ``messages`` a part is shown under."""
    match part:
        case TextPart():
            return "assistant" if message.role == "assistant" else "user"
        case ReasoningPart():
            return "reasoning"
        case ToolCallPart():
            return "tool_calls"
        case ToolResultPart() | SearchPart():
            return "tool_results"
        case AttachmentPart():
            return "hooks" if part.is_hook else "attachments"
        case SummaryPart():
            return "pinned" if part.pinned else "summary"


def estimate_fixed(part: FixedPart, family: Family) -> tuple[Content, bool]:
    """What a part of the request prefix consists of, and whether the character rule had to stand in."""
    if part.deferred_tokens is not None:
        return Content(), False
    content = _counted(part.raw_tokens, part.counts, part.label)
    if content is None:
        plain = part.chars if part.ascii_chars is None else part.ascii_chars
        tokens = (plain * ASCII_TOKENS + (part.chars - plain) * OTHER_TOKENS) * family.char_factor
        return _uncounted(tokens), part.chars > 0
    if part.row == "tools":
        # Providers write definitions in their own way: what they are made of says less than how long they are.
        content = Content(plain=part.added or 0, squares=content.squares, rough=(ROUGH * (part.added or 0)) ** 2)
        content.terms[SCHEMAS] = float(part.raw_tokens or 0)
    return content, False


def spread(total: int, weights: Iterable[tuple[MessageRowId, float]]) -> tuple[tuple[MessageRowId, int], ...]:
    """``total`` split over the kinds in proportion, summing exactly to it."""
    sums: dict[MessageRowId, float] = {}
    for kind, weight in weights:
        sums[kind] = sums.get(kind, 0.0) + weight
    if len(sums) == 1:
        return ((next(iter(sums)), total),)
    kinds = [k for k in MESSAGE_ROWS if k in sums]
    return tuple(zip(kinds, largest_remainder(total, [sums[k] for k in kinds]), strict=True))


GOOD_HIT_RATE, LOW_HIT_RATE = 85.0, 70.0
MANY_RECALCULATIONS = 20
LARGE_MESSAGE = 5_000
"""Thresholds of the token-counting document: percent, percent, per session, tokens."""

ENOUGH = 100
"""Look-ups before which nothing is said of what they mean: the first messages of every session are unique."""


@dataclass(slots=True)
class TokenCounterMetrics:
    """Counts since the start or the last reset. Tokens are o200k_base counts, before any family's factor."""

    clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    hits: int = 0
    misses: int = 0
    recalculations: int = 0
    total_tokens: int = 0
    largest_message: int = 0
    started: float = 0.0

    def __post_init__(self) -> None:
        self.started = self.clock()

    def hit(self, count: int = 1) -> None:
        """So many stored counts were used. Raises ValueError for a negative number."""
        if count < 0:
            raise ValueError(f"Invalid number of hits: {count}")
        self.hits += count

    def miss(self, tokens: int) -> None:
        """A message had to be counted; it has ``tokens``. Raises ValueError for a negative number."""
        if tokens < 0:
            raise ValueError(f"Invalid token count: {tokens}")
        self.misses += 1
        self.total_tokens += tokens
        self.largest_message = max(self.largest_message, tokens)

    def recalculation(self) -> None:
        """The whole conversation was gone through again: after a compaction, a rewind, a model change."""
        self.recalculations += 1

    def reset(self) -> None:
        self.hits = self.misses = self.recalculations = self.total_tokens = self.largest_message = 0
        self.started = self.clock()

    @property
    def hit_rate(self) -> float | None:
        """Percent of look-ups that were answered from what was stored; None before the first."""
        looked = self.hits + self.misses
        return 100 * self.hits / looked if looked else None

    @property
    def mean(self) -> float | None:
        """Tokens a message, on average; None before the first."""
        return self.total_tokens / self.misses if self.misses else None

    @property
    def uptime(self) -> float:
        """Seconds since the start or the last reset."""
        return self.clock() - self.started


def health_hints(metrics: TokenCounterMetrics) -> list[str]:
    """Returns what the numbers mean, one line each; empty before enough was counted to say it."""
    rate = metrics.hit_rate
    if rate is None or metrics.hits + metrics.misses < ENOUGH:
        return []
    hints: list[str] = []
    if rate > GOOD_HIT_RATE:
        hints.append(f"Good: hit rate over {percent(GOOD_HIT_RATE, 0)}.")
    elif rate < LOW_HIT_RATE:
        hints.append(f"Needs attention: hit rate under {percent(LOW_HIT_RATE, 0)} (too many unique messages).")
    if metrics.recalculations > MANY_RECALCULATIONS:
        hints.append(f"Needs attention: over {MANY_RECALCULATIONS} recalculations (too much compaction).")
    if metrics.largest_message > LARGE_MESSAGE:
        hints.append(f"Needs attention: largest message over {LARGE_MESSAGE:,} tokens.")
    return hints


def format_metrics(metrics: TokenCounterMetrics) -> str:
    """The text of ``/context stats``."""
    rate, mean = metrics.hit_rate, metrics.mean
    lines = [
        "Token Counter Metrics:",
        f"  Cache Hit Rate: {'–' if rate is None else percent(rate, tight=True)}",
        f"  Cache Hits: {metrics.hits}",
        f"  Cache Misses: {metrics.misses}",
        f"  Recalculations: {metrics.recalculations}",
        f"  Total Tokens Counted: {metrics.total_tokens}",
        f"  Largest Message: {metrics.largest_message} tokens",
        f"  Avg Tokens/Message: {'–' if mean is None else round(mean)}",
        f"  Uptime: {uptime(metrics.uptime)}",
    ]
    return "\n".join([*lines, *(f"  {hint}" for hint in health_hints(metrics))])
