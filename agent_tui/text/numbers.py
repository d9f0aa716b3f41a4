"""Numbers for people: one way each to write tokens, money, percentages, times and counts, and to make parts add up.

What is not known is written ``?``, never as 0.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Protocol


def tokens(count: int | None, approximate: bool, *, full: bool = False) -> str:
    """A token count: ``950``, ``84.2k``, ``1.2M``; ``full``: ``84,200``; ``?`` when unknown. Whoever prints one says
    whether it is an estimate (``approximate``, then ``~`` stands in front) or was counted, reported or set."""
    if count is None:
        return "?"
    mark = "~" if approximate else ""
    if full:
        return mark + grouped(count)
    size = abs(count)
    if size < 1_000:
        return f"{mark}{count}"
    value, unit = (count / 1_000, "k") if size < 999_950 else (count / 1_000_000, "M")
    return f"{mark}{value:.1f}".removesuffix(".0") + unit


def interval(count: int, spread: int, approximate: bool, *, full: bool = False) -> str:
    """A count of tokens and by how much it may differ from the truth: ``45.2k ± 0.9k``, ``full``: ``45,200 ± 900``;
    without that where it would be rounded to nothing. ``~`` stands only before what is a guess: ``approximate``, and
    nobody knows by how much."""
    if full or abs(count) < 1_000:
        return f"{grouped(count)} ± {grouped(spread)}" if spread else tokens(count, approximate, full=full)
    size, unit = (1_000, "k") if abs(count) < 999_950 else (1_000_000, "M")
    around = tokens(spread, False) if spread >= size else f"{spread / size:.1f}".removesuffix(".0") + unit
    if around == f"0{unit}":
        return tokens(count, approximate and not spread)
    return f"{tokens(count, False)} ± {around}"


class UncertainTotal(Protocol):
    """A number of tokens that knows how sure it is."""

    @property
    def total(self) -> int: ...
    @property
    def spread(self) -> int: ...
    @property
    def approximate(self) -> bool: ...


def total_text(of: UncertainTotal, *, full: bool = False) -> str:
    """Returns the total as all faces write it: ``interval``."""
    return interval(of.total, of.spread, of.approximate, full=full)


def grouped(number: int) -> str:
    """A whole number in full, its thousands apart: ``84,200``, ``−120``."""
    return f"{number:,}".replace("-", "−")


def plural(count: int, noun: str, nouns: str = "") -> str:
    """A count with its noun: ``1 message``, ``1,204 messages``; ``nouns`` where that is not the noun with an ``s``."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def lines_in(text: str) -> int:
    """Returns the number of lines of a text, as people count: a newline at its end begins no other one; none where it
    is empty."""
    return text.count("\n") + (not text.endswith("\n")) if text else 0


class Dollars(Protocol):
    """A sum of money of which a part may not be known: ``unpriced`` says how many calls have no price."""

    @property
    def known(self) -> float: ...
    @property
    def unpriced(self) -> int: ...


def money(amount: float | Dollars | None, places: int | None = None) -> str:
    """Dollars: ``$0.42``; below a cent with four digits after the point, ``<$0.0001`` where those are none; ``$0`` for
    nothing, ``$?`` when no price is known, ``≥ $0.0087`` when a part is not: rounded down, with one digit more where
    the same sum rounded would be higher. ``places`` fixes the digits after the point, for amounts below each other."""
    if amount is None:
        return "$?"
    if isinstance(amount, (int, float)):
        return _dollars(amount, places)
    if not amount.unpriced:
        return _dollars(amount.known, places)
    digits = _digits(amount.known) if places is None else places
    least = rounded_down(amount.known, digits)
    if least < float(f"{amount.known:.{digits}f}"):
        # $0.0081 and then ≥ $0.0080 would read as an amount that fell: ≥ $0.00808 is the same one, and no more than
        # is known.
        digits += 1
        least = rounded_down(amount.known, digits)
    return f"≥ ${least:,.{digits}f}" if least > 0 else "$?"


def rounded_down(amount: float, digits: int) -> float:
    """The amount to so many digits after the point and no more than it is, but for a millionth of the last of them:
    that is what adding floats may have lost."""
    scale = 10.0**digits
    return math.floor(amount * scale + 1e-6) / scale


def _dollars(amount: float, places: int | None) -> str:
    # What four digits round up to a cent is one: $0.0100 beside $0.01 would read as another amount.
    digits = places if places is not None else _digits(round(amount, 4))
    least = 10**-digits if places is not None else 0.0001
    if amount == 0:
        return "$0"
    return f"${amount:,.{digits}f}" if amount >= least else f"<${least:.{digits}f}"


def _digits(amount: float) -> int:
    return 2 if amount >= 0.01 else 4


def percent(value: float | None, digits: int = 1, *, signed: bool = False, tight: bool = False) -> str:
    """A percentage (42.1 is 42.1 %) to ``digits`` after the point; ``signed`` with ``+`` or ``−``; ``tight`` without
    the blank, where there is no room or a log's form is fixed. What is smaller than the last digit is ``<0.1 %``."""
    if value is None:
        return "?"
    unit = "%" if tight else " %"
    rounded = round(value, digits) + 0.0  # no "-0.0"
    if value and not rounded:
        return f"<{10**-digits:.{digits}f}{unit}"
    return (f"{rounded:+.{digits}f}".replace("-", "−") if signed else f"{rounded:.{digits}f}") + unit


def factor(value: float) -> str:
    """A ratio of two numbers: ``1.02``."""
    return f"{value:.2f}"


def share(tenths: int | None, some: bool = False) -> str:
    """A share in tenths of a percent (``tenths_of``, ``largest_remainder``): ``42.1 %``, ``−0.6 %``; empty for None.
    ``some``: it is not nothing, so where no tenth is left of it that is said: ``<0.1 %``."""
    if tenths is None:
        return ""
    return "<0.1 %" if some and not tenths else percent(tenths / 10).replace("-", "−")


def share_in(part: int, whole: int, approximate: bool = False) -> str:
    """Returns the share of ``whole`` (> 0) that ``part`` is, in percent: ``42.1 %``, ``<0.1 %``; ``~42.1 %`` where that
    is an estimate."""
    text = share(tenths_of(part, whole), part > 0)
    return text if not approximate or text.startswith("<") else f"~{text}"


def whole_percent(part: int, whole: int) -> str:
    """Returns the share of ``whole`` (> 0) that ``part`` is, in whole percent: ``81 %``; 0 and 100 only where it is
    nothing or all, else ``<1 %`` and ``>99 %``."""
    value = (200 * part + whole) // (2 * whole)
    if part <= 0 or part == whole or 0 < value < 100 or part > whole:
        return percent(value, 0)
    return "<1 %" if not value else ">99 %"


def tenths_of(part: int, whole: int) -> int:
    """Returns the share of ``whole`` (> 0) that ``part`` is, in tenths of a percent, halves rounded up. In whole
    numbers, so that everyone who shows it shows the same digit."""
    return (2_000 * part + whole) // (2 * whole)


def largest_remainder(total: int, weights: Sequence[float]) -> list[int]:
    """Whole numbers in proportion to ``weights`` that sum exactly to ``total`` (Hamilton's method; ties go to the
    first). Weights that are all zero share evenly. Raises ValueError for negative numbers."""
    if total < 0 or any(w < 0 for w in weights):
        raise ValueError(f"Invalid token count: cannot spread {total}")
    if len(weights) < 2:
        return [total] * len(weights)
    whole = sum(weights)
    if whole <= 0:
        weights, whole = [1.0] * len(weights), float(len(weights))
    if len(weights) == 2:
        exact_first = total * (weights[0] / whole)
        first = min(total, int(exact_first + 0.5))
        return [first, total - first]
    exact = [total * (w / whole) for w in weights]
    floors = [int(x) for x in exact]
    missing = total - sum(floors)
    order = sorted(range(len(weights)), key=lambda i: floors[i] - exact[i])
    for i in range(abs(missing)):
        floors[order[i % len(order)]] += 1 if missing > 0 else -1
    return floors


def size(count: int) -> str:
    """Bytes for people, three digits: ``950 bytes``, ``262 kB``, ``1.5 MB``; a kB is 1,000 bytes."""
    if count < 1_000:
        return plural(count, "byte")
    if count < 999_500:
        return f"{count / 1_000:.3g} kB"
    return f"{count / 1_000_000:,.3g} MB" if count < 999_500_000 else f"{count / 1_000_000:,.0f} MB"


def duration(seconds: float | None) -> str:
    """Seconds for people: ``<0.1 s``, ``0.4 s``, ``1.2 s``, ``2 s``, ``2 min``, ``2 min 5 s``, ``1 h 2 min``; tenths
    only below five seconds, where they tell something."""
    if seconds is None:
        return "?"
    if seconds and not round(seconds, 1):
        return "<0.1 s"
    if round(seconds, 1) < 5:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3_600:
        larger, smaller = f"{whole // 60} min", f"{whole % 60} s"
    else:
        larger, smaller = f"{whole // 3_600} h", f"{whole // 60 % 60} min"
    return larger if smaller.startswith("0 ") else f"{larger} {smaller}"


def clock_time(then: float) -> str:
    """The time of the day of a time (seconds since the epoch), here: ``14:05``."""
    return time.strftime("%H:%M", time.localtime(then))


def uptime(seconds: float) -> str:
    """``45m 23s``, with hours in front when there are any: the form of the counter's statistics."""
    whole = max(0, int(seconds))
    hours, minutes, rest = whole // 3_600, whole // 60 % 60, whole % 60
    return f"{hours}h {minutes}m {rest}s" if hours else f"{minutes}m {rest}s"


def age(then: float, now: float | None = None) -> str:
    """Returns how long ago a time (seconds since the epoch) was: ``now``, ``5 min``, ``3 h``, ``2 d``, ``4 w``, ``1
    y``."""
    seconds = max(0.0, (time.time() if now is None else now) - then)
    for limit, unit_size, unit in ((60, 1, ""), (3600, 60, "min"), (86_400, 3600, "h"), (1_209_600, 86_400, "d")):
        if seconds < limit:
            return f"{int(seconds // unit_size)} {unit}" if unit else "now"
    days = int(seconds // 86_400)
    return f"{days // 7} w" if days < 365 else f"{days // 365} y"


def lines_changed(added: int, removed: int) -> str:
    """Lines of a diff: ``+3 −1``."""
    return f"+{added:,} −{removed:,}"


def signed(number: int) -> str:
    """A difference with its sign: ``+1,204``, ``−87``, ``±0``."""
    return "±0" if not number else f"{number:+,}".replace("-", "−")


def clock(then: float, now: float | None = None) -> str:
    """A time (seconds since the epoch) on the user's clock: ``14:03``, with the day before it where that is not the day
    of ``now``."""
    today = time.localtime(time.time() if now is None else now)
    at = time.localtime(then)
    return time.strftime("%H:%M" if at[:3] == today[:3] else "%Y-%m-%d %H:%M", at)
