"""Which encodings a page is read in: those of pages, and none of Python's other codecs."""

from __future__ import annotations

import codecs

import pytest

from agent_tui.text.charsets import codec_of, decoded_page
from tests.support.every import every

pytestmark = pytest.mark.quick

PAGES = {
    "shift_jis": "日本語",
    "Shift-JIS": "日本語",
    "windows-1251": "Привет",
    "KOI8-R": "Привет",
    "gb2312": "简体",
    "gb18030": "简体",
    "big5": "繁體",
    "euc-kr": "한국어",
    "iso-2022-jp": "日本語",
    "ISO-8859-2": "Příliš",
    "iso_8859-1": "café",
    "latin1": "café",
    "macintosh": "café",
    "utf8": "☃",
    "UTF-16": "☃ snow",
}

OTHERS = (
    "unicode_escape raw_unicode_escape idna punycode utf-7 utf_7 zlib bz2 hex base64 rot13 uu quopri mbcs oem "
    "undefined utf-8-sig utf-32 cp65001 hz nonsense charmap string_escape palmos ../x"
)


@every("name", PAGES)
def test_pages_are_read_in_what_they_name(name: str) -> None:
    codec = codec_of(name)
    assert codec is not None
    body = PAGES[name].encode(codec)
    for said in (f"text/plain; charset={name}", f'text/plain;charset="{name}"; x', f"text/plain; CHARSET = '{name}'"):
        assert decoded_page(body, said) == PAGES[name]
    assert decoded_page(b"<meta charset=windows-1251>" + "да".encode("cp1251"), "text/html").endswith("да")
    assert decoded_page("\ufeffда".encode("utf-16"), "text/html; charset=windows-1251").endswith("да")


@pytest.mark.parametrize("name", OTHERS.split())
def test_no_other_codec_is_looked_for(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(codecs, "lookup", asked.append)
    assert codec_of(name) is None
    for said in (f"text/html; charset={name}", "text/html"):
        body = f"<meta charset={name}>\\u0041 +ADw- é".encode()
        assert decoded_page(body, said) == body.decode()
    assert asked == []


def test_every_codec_of_the_list_is_one_of_text() -> None:
    names = ["utf-8", "l1", "iso-8859-9", "tis-620", *(f"iso-8859-{n}" for n in range(1, 17) if n != 12)]
    names += [
        "x-cp1250",
        "cp866",
        "windows-1258",
        "koi8-u",
        "x-mac-cyrillic",
        "gbk",
        "x-sjis",
        "euc-jp",
        "ks_c_5601-1987",
    ]
    for name in names:
        codec = codec_of(name)
        assert codec is not None and "plain".encode(codec).decode(codec) == "plain", name
