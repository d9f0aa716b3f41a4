"""How long a provider asks to wait, and whether it wants to be asked again: as its headers and the body of its refusal
say."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import datetime

_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_UNIT = (
    r"(?:ms(?![a-z])|msecs?\b|milliseconds?\b|[uµμ]s(?![a-z])|ns(?![a-z])|s(?![a-z])|secs?\b|seconds?\b|"
    r"m(?![a-z])|mins?\b|minutes?\b|h(?![a-z])|hrs?\b|hours?\b|d(?![a-z])|days?\b)"
)
_ONE = rf"\d{{1,12}}(?:\.\d{{1,12}})?\s{{0,2}}{_UNIT}"
_AMOUNT = re.compile(rf"(\d{{1,12}}(?:\.\d{{1,12}})?)\s{{0,2}}({_UNIT})", re.IGNORECASE)
_SPAN = rf"{_ONE}(?:,?\s{{0,2}}(?:and\s)?{_ONE}){{0,5}}"
_EPOCH, _EPOCH_MS = 1e9, 1e12
"""Numbers from which on they are no seconds to wait but a moment, in seconds or milliseconds since the epoch."""

_QUOTE = r"\\{0,3}[\"']"
_FIELD = re.compile(
    # Google's RetryInfo (google.rpc), whose duration is "17s", or {"seconds": 17}.
    rf"\bretry_?delay{_QUOTE}?\s{{0,2}}:?\s{{0,2}}(?:{_QUOTE}(?P<delay>{_SPAN})|\{{\s{{0,9}}{_QUOTE}?seconds{_QUOTE}?\s{{0,2}}:\s{{0,2}}"
    r"(?P<whole>\d{1,9}))|"
    # What proxies put into their errors.
    rf"\bretry[-_]?after(?P<unit>[-_]?(?:ms|milliseconds|s|secs?|seconds))?{_QUOTE}?\s{{0,2}}:\s{{0,2}}{_QUOTE}?"
    rf"(?P<number>\d{{1,9}}(?:\.\d{{1,9}})?)(?P<own>\s{{0,2}}{_UNIT})?",
    re.IGNORECASE,
)
_WORDS = re.compile(
    rf"(?:\b(?:try|retry|request|repeat|send)\b[^.\n]{{0,40}}?\b(?:in|after)|\bwait(?:ing)?(?:\sfor)?(?:\sat\sleast)?|"
    rf"\bresets?\s(?:in|after))\s{{1,2}}(?:about\s)?(?P<span>{_SPAN})",
    re.IGNORECASE,
)
_LOOKED_AT = 20_000
"""Characters of a body that are looked at."""


def seconds_of(value: str, now: float) -> float | None:
    """Seconds from ``now`` that a header's value says: ``7``, ``6m0s``, ``120ms``, a moment since the epoch, or a date
    in either form of the web; None for anything else."""
    text = value.strip()
    try:
        number = float(text)
    except ValueError:
        span = _span(text) if re.fullmatch(_SPAN, text, re.IGNORECASE) else None
        return span if span is not None else _date(text, now)
    if not math.isfinite(number):
        return None
    if number >= _EPOCH:
        number = (number / 1_000 if number >= _EPOCH_MS else number) - now
    return max(0.0, number)


def _span(text: str) -> float:
    return sum(float(number) * _UNITS[_unit(unit)] for number, unit in _AMOUNT.findall(text))


def _unit(name: str) -> str:
    name = name.lower().replace("µ", "u").replace("μ", "u")
    if name in _UNITS:
        return name
    return "ms" if name.startswith(("ms", "milli")) else name[0]


def _date(text: str, now: float) -> float | None:
    try:
        when = datetime.fromisoformat(text)
        moment = when.timestamp() if when.tzinfo is not None else None
    except (ValueError, OverflowError):
        from email.utils import parsedate_to_datetime  # few answers have a date

        try:
            moment = parsedate_to_datetime(text).timestamp()
        except (ValueError, TypeError, IndexError, OverflowError):
            moment = None
    return None if moment is None else max(0.0, moment - now)


def lowered(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers by their names in small letters, without what LiteLLM puts before those of a provider."""
    lower = {str(k).lower(): str(v) for k, v in headers.items()}
    return lower | {k.removeprefix("llm_provider-"): v for k, v in lower.items() if k.startswith("llm_provider-")}


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds to wait as response headers say: ``retry-after-ms``, or ``Retry-After`` in seconds or as a date."""
    lower = lowered(headers)
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        if (found := seconds_of(lower.get(name, ""), now)) is not None:
            return found * unit
    return None


def reset_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds until there is room again, as a refusal for the rate of requests says it beside its limits:
    ``x-ratelimit-reset-requests``, ``anthropic-ratelimit-tokens-reset`` and their like. Of what there is still some
    left of (``-remaining-``) nothing is waited for."""
    lower = lowered(headers)
    rest = {_kind(name): value for name, value in lower.items() if "ratelimit" in name and "remaining" in name}
    waits = [
        seconds
        for name, value in lower.items()
        if "ratelimit" in name and "reset" in name and not _left(rest.get(_kind(name)))
        if (seconds := seconds_of(value, now)) is not None
    ]
    return max(waits, default=None)


def _kind(name: str) -> str:
    """What a header of limits is about: requests, tokens, …"""
    return "-".join(word for word in name.split("-") if word not in ("reset", "remaining", "after"))


def _left(value: str | None) -> bool:
    try:
        return value is not None and float(value) > 0
    except ValueError:
        return False


def said_wait(text: str) -> float | None:
    """Seconds to wait as the words of a refusal say: ``retryDelay: "17s"``, "Please try again in 1m2.5s"."""
    text = text[:_LOOKED_AT]
    for found in _FIELD.finditer(text):
        if found["delay"]:
            return _span(found["delay"])
        if found["whole"]:
            return float(found["whole"])
        unit = _unit((found["own"] or found["unit"] or "s").strip("-_ "))
        return float(found["number"]) * _UNITS[unit]
    spoken = _WORDS.search(text)
    return _span(spoken["span"]) if spoken is not None else None


def wants_retry(headers: Mapping[str, str]) -> bool | None:
    """Returns whether the server says that the request may be made again (``x-should-retry``); None where it does not
    say."""
    return {"true": True, "false": False}.get(lowered(headers).get("x-should-retry", "").strip().lower())
