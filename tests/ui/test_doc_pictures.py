"""The pictures in docs/ show the screens of today. ``python -m tests.pictures`` draws them anew."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import DEFAULT_TERMINAL_THEME
from textual.strip import Strip

from tests.pictures import FOLDER, LARGEST, PICTURES, REAL, RENEW, SIZE, TITLES, looked_at, words
from tests.support.svg import Colors, drawing, words_of

SVG = "{http://www.w3.org/2000/svg}"


def stored(name: str) -> str:
    file = FOLDER / f"{name}.svg"
    return file.read_text("utf-8") if file.exists() else ""


@pytest.mark.forms(2)
@pytest.mark.parametrize("name", PICTURES)
async def test_a_picture_is_as_new_as_its_screen(name: str) -> None:
    assert words_of(stored(name)) == await looked_at(name, words), f"it is older than the screen: {RENEW} {name}"


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
async def test_a_picture_of_the_real_agent_has_the_words_of_its_screen(name: str) -> None:
    """What is counted there differs a little by the machine, and so do bars."""

    def plain(text: str) -> list[str]:
        return re.findall(r"[a-z]{2,}", text)

    assert plain(words_of(stored(name))) == plain(await looked_at(name, words)), f"it is older: {RENEW} {name}"


def test_pictures_are_small_whole_and_ask_the_network_for_nothing() -> None:
    assert {file.name for file in FOLDER.iterdir()} == {f"{name}.svg" for name in TITLES}
    for name, title in TITLES.items():
        svg = stored(name)
        ElementTree.fromstring(svg)
        assert len(svg.encode()) < LARGEST and f"<title>{title}</title>" in svg
        assert len(words_of(svg).split("\n")) == SIZE[1]
        assert re.findall(r"https?://[^\s<\"]+", re.sub(r"<desc>.*?</desc>", "", svg, flags=re.DOTALL)) == [
            "http://www.w3.org/2000/svg"
        ]
        assert not re.search(r"@import|@font-face|url\(|<script|<image|href", svg.split("</desc>")[1])


def test_a_picture_holds_hostile_text_as_text() -> None:
    typed = "</desc><script>x</script> &amp; ]]> 日本 ▁█ ─ end"

    svg = drawing([Strip([Segment(typed, Style(color="red"))])], Colors(DEFAULT_TERMINAL_THEME), "<b>title</b>")
    assert words_of(svg) == typed and "<script" not in svg and "<b>" not in svg
    root = ElementTree.fromstring(svg)
    drawn = "".join(element.text or "" for element in root.iter(f"{SVG}text"))
    assert drawn == re.sub("[ ▁█─]", "", typed)
    assert len(list(root.iter(f"{SVG}rect"))) == 4  # the frame, and what is drawn
