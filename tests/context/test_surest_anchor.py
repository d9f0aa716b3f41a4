"""Parts of the request prefix that come and go: their size is what reports measured, and the next input is built on
what is known best."""

from __future__ import annotations

import random
import re

import pytest

from tests.context.lying_server import Talk, honest, texts
from tests.support.contexts import assert_identities
from tests.support.every import every
from tests.support.forms import one_of

NUMBERS = "\n".join(",".join(str(random.Random(7 * n + m).randint(0, 9_999_999)) for m in range(9)) for n in range(500))
"""A table that vocabularies count in their own ways."""


def talk_with_a_pin(seed: int = 3, factor: float = 1.0) -> Talk:
    """With a server that counts ``factor`` times as much of tables of numbers."""
    talk = Talk(honest, seed, "claude")
    counted = talk.count
    talk.count = lambda text: round(counted(text) * (1.0 if re.search("[^0-9,\\s]", text) else factor))
    return talk


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.2])
def test_after_unpin_the_number_of_before_is_back(factor: float) -> None:
    talk = talk_with_a_pin(factor=factor)
    for _ in range(3):
        talk.turn()
    before, own = talk.usage().total, list(talk.conversation.fixed)
    document = talk.part("documents", NUMBERS)
    talk.conversation.fixed = [*own, document]
    for _ in range(3):
        talk.turn()
        assert_identities(talk.usage())
    pinned = next(r for r in talk.usage().rows if r.id == "documents")
    size = talk.count(NUMBERS)
    assert abs(pinned.tokens - size) < 0.06 * size
    talk.conversation.fixed = own
    after = talk.usage()
    assert_identities(after)
    assert abs(after.total - talk.true()) <= max(after.spread, 60) and after.total > before
    talk.turn()
    assert talk.doubts()[-1] == ""
    talk.conversation.fixed = [*own, document]
    again = talk.usage()
    assert abs(again.total - talk.true()) <= max(again.spread, 60), "it comes back at the size that was measured"


@every("seed", range(4))
@every("factor", [0.4, 2.2])
def test_a_document_that_was_always_there_goes_and_leaves_no_nonsense(factor: float, seed: int) -> None:
    talk = talk_with_a_pin(seed, factor)
    own = list(talk.conversation.fixed)
    talk.conversation.fixed = [*own, talk.part("documents", NUMBERS)]
    for _ in range(3):
        talk.turn()
    talk.conversation.fixed = own
    usage = talk.usage()
    assert_identities(usage)
    assert abs(usage.total - talk.true()) < 0.1 * talk.true(), "what nobody measured is not built on"
    talk.turn()
    talk.turn()
    assert talk.doubts()[-1] == ""


@pytest.mark.parametrize("seed", one_of(range(4)))
def test_whatever_comes_and_goes_the_number_is_within_its_interval(seed: int) -> None:
    talk = Talk(honest, seed, "claude", 5_012 if seed % 2 else 0)
    chance, parts = random.Random(seed), texts(seed + 100)
    pool = [
        talk.part(chance.choice(["tools", "documents"]), "\n".join(next(parts) for _ in range(6))) for _ in range(6)
    ]
    own, inside, errors = list(talk.conversation.fixed), 0, []
    for _ in range(60):
        act = chance.random()
        if act < 0.5:
            chosen = chance.sample(pool, chance.choice([0, 1, 1, 2, 4]))
            talk.conversation.fixed = [*own, *(part for part in pool if part in chosen)]
        elif act < 0.58:
            talk.summarise()
        elif act < 0.66 and talk.conversation.records:
            talk.conversation.records[-1].active = False
        talk.turn()
        exchange, kept, again = talk.exchanges[-1], talk.usage(), talk.usage(anew=True)
        assert (kept.total, [r.tokens for r in kept.rows]) == (again.total, [r.tokens for r in again.rows])
        inside += abs(exchange.usage.total - exchange.true) <= exchange.usage.spread
        errors.append(abs(exchange.usage.total - exchange.true))
    assert inside >= 0.85 * 60, sorted(errors)[-10:]
    assert set(talk.doubts()) <= {"", "doubted"} and talk.doubts().count("doubted") <= 2
