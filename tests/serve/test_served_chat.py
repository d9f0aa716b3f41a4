"""The chat behind the page outlives the page, and nothing but a chat comes out of it."""

from __future__ import annotations

import json

import pytest

from agent_tui.serve.chat import ServedChat
from tests.serve.conftest import Watching

pytestmark = pytest.mark.quick


async def test_it_goes_on_without_a_page_and_is_shown_to_the_next(chat: ServedChat) -> None:
    first, second = Watching(), Watching()
    await chat.attach(first, 100, 30)
    await first.sees("told")
    assert first.told == {"columns": 100, "lines": 30, "resume": ""}
    chat.detach(first)
    chat.typed("hello")
    await chat.attach(second, 90, 20)
    await second.sees('meta {"type": "attach", "width": 90, "height": 20}')
    assert "typed hello" not in first.shown and "told" not in second.shown


async def test_another_page_takes_it_over(chat: ServedChat) -> None:
    first, second = Watching(), Watching()
    await chat.attach(first, 80, 24)
    await chat.attach(second, 80, 24)
    assert first.closed and not second.closed
    chat.detach(first)  # as its connection ends now
    chat.resize(70, 20)
    await second.sees('meta {"type": "resize", "width": 70, "height": 20}')
    assert '"blur"' not in second.shown


async def test_after_its_end_a_page_goes_on_with_the_session(chat: ServedChat) -> None:
    first, second = Watching(), Watching()
    await chat.attach(first, 80, 24)
    chat.typed("session ses_1")
    chat.typed("end")
    await first.until(lambda: first.closed)
    assert "The chat has ended" in first.shown and not chat.running
    await chat.attach(second, 80, 24)
    await second.sees("told")
    assert second.told["resume"] == "ses_1"


async def test_why_it_failed_stands_on_the_page_and_is_not_gone_on_with(
    chat: ServedChat, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = Watching(), Watching()
    await chat.attach(first, 80, 24)
    chat.typed("session ses_1")
    chat.typed("fail no theme\x1b]0;evil\x07 is called so")
    await first.until(lambda: first.closed)
    assert "no theme]0;evil is called so" in first.shown
    assert "no theme]0;evil is called so" in capsys.readouterr().err
    await chat.attach(second, 80, 24)
    await second.sees("told")
    assert second.told["resume"] == ""


async def test_only_pages_are_opened_and_no_file_is_handed_out(chat: ServedChat) -> None:
    page = Watching()
    await chat.attach(page, 80, 24)
    for url in ("javascript:alert(1)", "file:///etc/passwd", "data:text/html,x", "https://example.com/a"):
        chat.typed(f"url {url}")
    for odd in ("[]", "null", "{", json.dumps({"type": "deliver_file_start", "key": "k", "path": "/etc/passwd"})):
        chat.typed(f"meta {odd}")
    chat.typed("last")
    await page.sees("typed last")
    assert page.urls == ["https://example.com/a"]


async def test_what_is_no_packet_ends_it_with_a_word(chat: ServedChat) -> None:
    page = Watching()
    await chat.attach(page, 80, 24)
    chat.typed("garbage")
    await page.until(lambda: page.closed)
    assert "The chat has ended" in page.shown
