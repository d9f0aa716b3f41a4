"""What is said of a request before it costs: one place for status line, hint, notices and ``/context``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_tui.text.numbers import clock_time, money, tokens, whole_percent

if TYPE_CHECKING:
    from agent_tui.models.cache import CacheOutlook, ColdRequest


def outlook_words(outlook: CacheOutlook | None) -> str:
    """What is to be known at a glance: what will be paid anew, or until when nothing will; empty where neither is."""
    if outlook is None:
        return ""
    if outlook.cold is not None:
        return price_words(outlook.cold)
    return until_words(outlook.until) if outlook.until is not None else ""


def price_words(cold: ColdRequest) -> str:
    """``cold: ~$1.51 instead of ~$0.15``; in tokens where no price says more."""
    return f"{_name(cold)}: {_price(cold)}"


def _why_and_price(cold: ColdRequest) -> str:
    """``cold (idle for 6 min): ~$1.51 instead of ~$0.15``: why comes first, for the price is in the status line too,
    and the end is what gets cut off."""
    return f"{_name(cold)} ({cold.what}): {_price(cold)}"


def _name(cold: ColdRequest) -> str:
    return "cold" if cold.whole else "partly cold"


def _price(cold: ColdRequest) -> str:
    if not cold.usd or cold.warm_usd is None:
        return f"{tokens(cold.tokens, approximate=True)} not from the cache"
    return f"~{money(cold.usd)} instead of ~{money(cold.warm_usd)}"


def short_words(cold: ColdRequest) -> str:
    """``cold ~$1.51``, for where there is little room."""
    return f"cold ~{money(cold.usd)}" if cold.usd else f"cold {tokens(cold.tokens, approximate=True)}"


def cold_words(cold: ColdRequest) -> str:
    """The whole of it: what is expected, at which price, and why."""
    return f"Next input: expected {_why_and_price(cold)}"


def until_words(until: float) -> str:
    """Until when the cache is kept, as a time of the day: it stays true while nothing is drawn."""
    return f"cached until {clock_time(until)}"


def expected_words(outlook: CacheOutlook, total: int) -> str:
    """What the next request, of ``total`` tokens, is expected to cost and to find, or to pay anew and why."""
    if outlook.cold is not None:
        return f"next input: expected {_why_and_price(outlook.cold)}"
    until = f" until {clock_time(outlook.until)}" if outlook.until is not None else ""
    cost = f"~{money(outlook.usd)}, " if outlook.usd else ""
    return f"next input: expected {cost}{whole_percent(outlook.read, total)} cached{until}"
