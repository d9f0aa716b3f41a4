"""Markdown on the screen: what models write, drawn as it is meant, at any width."""

from __future__ import annotations

from typing import Any

import pytest
from textual.strip import Strip

from agent_tui.models.messages import ReasoningPart, user_message
from agent_tui.ui.transcript import Transcript
from tests.ui.transcripts import Holder, answer, body, screen

pytestmark = pytest.mark.quick


async def drawn(source: str, width: int = 60, height: int = 60) -> list[str]:
    app = Holder()
    async with app.run_test(size=(width, height)) as pilot:
        app.transcript.load([answer(source)])
        await pilot.pause()
        return body(app.transcript)


async def styled(source: str) -> list[Strip]:
    app = Holder()
    async with app.run_test(size=(60, 40)) as pilot:
        app.transcript.load([answer(source)])
        await pilot.pause()
        return [app.transcript.render_line(y) for y in range(40)]


def style_of(strips: list[Strip], text: str) -> Any:
    return next(s.style for strip in strips for s in strip if text in s.text)


async def test_headings_paragraphs_and_breaks() -> None:
    assert await drawn("# One\ntext\nsoft\n\n### Three\nhard  \nbreak") == [
        "  One", "", "  text soft", "", "  Three", "", "  hard", "  break",
    ]  # fmt: skip


async def test_nested_lists_keep_their_shape() -> None:
    source = "- a\n  - b\n    - c\n- d\n\n1. one\n2. two\n   more\n\n- [ ] open\n- [x] done"
    assert await drawn(source) == [
        "  • a", "    ◦ b", "      ▪ c", "  • d", "", "  1. one", "  2. two more", "", "  ☐ open", "  ☑ done",
    ]  # fmt: skip


async def test_a_loose_list_has_gaps_and_items_wrap_under_their_text() -> None:
    lines = await drawn("1. first\n\n2. a long item that has to be wrapped here", width=30)
    assert lines == ["  1. first", "", "  2. a long item that has to", "     be wrapped here"]


async def test_numbers_of_a_list_of_ones_count_up() -> None:
    assert await drawn("3. a\n1. b\n1. c") == ["  3. a", "  4. b", "  5. c"]


async def test_quotes_have_a_bar_on_every_line() -> None:
    lines = await drawn("> a quote that is long enough to be wrapped\n>\n> > inner", width=30)
    assert lines == ["  ▎ a quote that is long", "  ▎ enough to be wrapped", "  ▎", "  ▎ ▎ inner"]


async def test_code_keeps_its_indentation_and_has_a_label() -> None:
    lines = await drawn("```python\ndef f():\n    return 1\n\n\ty = 2\n```")
    assert lines[0].endswith("python · copy")
    assert lines[1:] == ["   def f():", "       return 1", "", "       y = 2"]


async def test_code_is_coloured_and_wrapped_not_cut() -> None:
    strips = await styled("```python\ndef name(): pass  # note\n```")
    assert style_of(strips, "def").color != style_of(strips, "name").color
    lines = await drawn("```\n" + "x" * 50 + "\n```", width=40)
    assert "".join(line.strip() for line in lines[1:]) == "x" * 50


async def test_tables_fit_the_width() -> None:
    source = "| Name | Value |\n|:--|--:|\n| a | 1 |\n| beta | a value that is much too long for one line |"
    for width in (30, 45, 80):
        lines = await drawn(source, width=width)
        assert all(len(line) <= width for line in lines)
        assert lines[0].startswith("  Name │")
        assert "┼" in lines[1]
        assert "much" in " ".join(lines)


async def test_a_table_that_cannot_fit_is_stacked() -> None:
    source = "|a1|b2|c3|d4|e5|\n|-|-|-|-|-|\n|" + "|".join(f"value {k}" for k in range(5)) + "|"
    lines = [line.strip() for line in await drawn(source, width=24)]
    assert "┼" not in "".join(lines)
    assert lines.index("a1") < lines.index("value 0") < lines.index("b2")


async def test_inline_styles() -> None:
    strips = await styled("plain **bold** *slanted* ~~gone~~ `code` ***both***")
    assert style_of(strips, "bold").bold
    assert style_of(strips, "slanted").italic
    assert style_of(strips, "gone").strike
    assert style_of(strips, "code").color != style_of(strips, "plain").color
    assert style_of(strips, "both").bold and style_of(strips, "both").italic


async def test_only_harmless_links_are_links() -> None:
    strips = await styled("[a](https://x.org/1) [b](mailto:me@x.org) [cc](src/app.py) <https://y.org> http://z.org/a.")
    assert style_of(strips, "a").link == "https://x.org/1"
    assert style_of(strips, "b").link == "mailto:me@x.org"
    assert style_of(strips, "cc").link is None
    assert style_of(strips, "https://y.org").link == "https://y.org"
    assert style_of(strips, "http://z.org").link == "http://z.org/a"
    for hostile in ("[x](javascript:alert(1))", "[x](file:///etc/passwd)", "[x](data:text/html,hi)"):
        assert all(s.style is None or s.style.link is None for strip in await styled(hostile) for s in strip)


async def test_reference_links_are_resolved() -> None:
    strips = await styled("see [the guide][g]\n\n- point\n\n[g]: https://x.org/guide")
    assert style_of(strips, "the guide").link == "https://x.org/guide"


async def test_wide_characters_and_right_to_left_text_stay_whole() -> None:
    lines = await drawn("日本語のテキストは折り返しが必要です。\n\nשלום עולם מרחב\n\n👩‍👩‍👧 family 🎉", width=20)
    text = "".join(line.strip() for line in lines)
    assert "日本語のテキストは折り返しが必要です。" in text
    assert "שלום עולם מרחב" in "\n".join(lines)
    assert "👩‍👩‍👧" in text


@pytest.mark.parametrize("width", [8, 20, 60, 200])
async def test_every_construct_at_every_width(width: int) -> None:
    source = (
        "# Head\n\ntext `code` **bold**\n\n- a\n  - b\n    1. c\n       > d\n\n> > > > > deep\n\n```py\nx = 1\n```\n\n"
        "| a | b |\n|---|---|\n| 1 | 日本 |\n\n---\n\n<div>\n\n    indented\n\n![i](https://x.org/i.png)"
    )
    app = Holder()
    async with app.run_test(size=(width, 60)) as pilot:
        app.transcript.load([user_message(source), answer(source, "m", ReasoningPart(source))])
        app.transcript.toggle_reasoning()
        await pilot.pause()
        screen(app.transcript)


async def test_works_without_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = Holder()
    async with app.run_test(size=(60, 20)) as pilot:
        app.transcript.load([user_message("hello"), answer("# Head\n\n**bold**")])
        await pilot.pause()
        assert "▌ hello" in body(app.transcript)[0]
        strips = [app.transcript.render_line(y) for y in range(20)]
        assert style_of(strips, "Head").bold


async def test_a_theme_change_restyles_what_is_shown() -> None:
    app = Holder()
    async with app.run_test(size=(60, 20)) as pilot:
        app.transcript.load([answer("# Head")])
        await pilot.pause()
        before = style_of([app.transcript.render_line(y) for y in range(20)], "Head").color
        app.theme = "gruvbox"
        await pilot.pause()
        after = style_of([app.transcript.render_line(y) for y in range(20)], "Head").color
        assert before != after


def test_the_widget_is_what_the_package_gives() -> None:
    assert Transcript.can_focus
