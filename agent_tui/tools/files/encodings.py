"""The encoding of a text file, found in its bytes, and the way back: text is written as the file was, byte for byte
where nothing was changed, or not at all.

Many legacy encodings cannot be told from each other for certain. One is only taken when it gives the very bytes back,
so a wrong guess costs what was inserted with accents, never what was there.
"""

from __future__ import annotations

import codecs
import re
import unicodedata

from agent_tui.errors import ToolError
from agent_tui.records import dataclass
from agent_tui.text.charsets import codec_of
from agent_tui.text.clean import count_unreadable

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""The longer of two that begin alike comes first."""

_NAMES = {
    "utf-8": "UTF-8",
    "utf-16-le": "UTF-16 LE",
    "utf-16-be": "UTF-16 BE",
    "utf-32-le": "UTF-32 LE",
    "utf-32-be": "UTF-32 BE",
    "cp1252": "Windows-1252",
    "latin-1": "ISO-8859-1",
    "cp932": "Shift-JIS",
    "euc_jp": "EUC-JP",
    "iso2022_jp": "ISO-2022-JP",
    "gb18030": "GB18030",
    "big5": "Big5",
    "euc_kr": "EUC-KR",
    "cp1251": "Windows-1251",
    "koi8-r": "KOI8-R",
}

_DECLARED = re.compile(rb"(?:coding|encoding|charset)\s*[:=]\s*[\"']?([A-Za-z][\w.-]{1,30})", re.IGNORECASE)
"""What the first lines of a file say of themselves: Python, Emacs, Vim, XML, HTML."""

_CONTROLS = re.compile(rb"[\x00-\x06\x0e-\x1a\x1c-\x1f\x7f]")
_SAMPLE = 200_000
"""Bytes from which a legacy encoding is guessed."""


@dataclass(slots=True, frozen=True)
class Encoding:
    """``codec`` as Python names it, ``mark`` the bytes in front that say it. ``damaged``: UTF-8, but for some bytes."""

    codec: str = "utf-8"
    mark: bytes = b""
    damaged: bool = False

    @property
    def name(self) -> str:
        return _NAMES.get(self.codec, self.codec)

    @property
    def legacy(self) -> bool:
        """True for what is not UTF-8, with a mark or without."""
        return self.codec != "utf-8"

    def decode(self, data: bytes) -> str:
        """The text without the mark. Bytes that are no character of UTF-8 are kept as surrogates."""
        return data[len(self.mark) :].decode(self.codec, "surrogateescape" if self.codec == "utf-8" else "strict")

    def encode(self, text: str, name: str) -> bytes:
        """The bytes of the file ``name``. Raises ToolError where a character has none in this encoding."""
        try:
            return self.mark + text.encode(self.codec, "surrogateescape" if self.codec == "utf-8" else "strict")
        except UnicodeEncodeError as problem:
            char = text[problem.start]
            what = unicodedata.name(char, "").lower()
            line = text.count("\n", 0, problem.start) + 1
            raise ToolError(
                f"{name} is {self.name}, which has no {char!r} (U+{ord(char):04X}{', ' + what if what else ''}; line "
                f"{line}). Nothing was changed. Write it without that, or have the file converted first: iconv -f "
                f"{self.codec.upper()} -t UTF-8."
            ) from None


UTF8 = Encoding()


def has_mark(data: bytes) -> bool:
    """Returns whether a file begins with the mark of another encoding than UTF-8."""
    return any(data.startswith(mark) for mark, codec in _MARKS if codec != "utf-8")


def encoding_of(data: bytes) -> Encoding | None:
    """The encoding of a text file; None for what is no text."""
    for mark, codec in _MARKS:
        if data.startswith(mark):
            found = Encoding(codec, mark)
            return found if codec == "utf-8" or _is_text(data, found) else None
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    else:
        if b"\0" in data:
            return _wide(data)
        return _with_escapes(data) or UTF8
    if b"\0" in data:
        return _wide(data)
    if len(_CONTROLS.findall(data[:_SAMPLE])) * 50 > len(data[:_SAMPLE]):
        return None
    declared = _declared(data)
    if declared is not None:
        return declared
    if _mostly_utf8(data):
        return Encoding(damaged=True)
    for codec in (_guessed(data[:_SAMPLE]), "cp1252", "latin-1"):
        if codec and _gives_back(data, codec):
            if codec != "latin-1" or _plain_latin(data):
                return Encoding(codec)
            break
    # Text all the same, in an encoding that is none of these: what was ASCII can be read and changed.
    return Encoding(damaged=True)


def decoded(data: bytes) -> tuple[str, Encoding] | None:
    """A text file's content and its encoding; None for what is no text."""
    found = encoding_of(data)
    return (found.decode(data), found) if found is not None else None


def _gives_back(data: bytes, codec: str) -> bool:
    try:
        return data.decode(codec).encode(codec) == data
    except (UnicodeError, LookupError):
        return False


def _is_text(data: bytes, encoding: Encoding) -> bool:
    body = data[len(encoding.mark) :]
    if not _gives_back(body, encoding.codec):
        return False
    begin = body.decode(encoding.codec)[:4_000]
    return count_unreadable(begin, "\t\n\r\f\v\x1b\b") * 20 <= len(begin)


def _wide(data: bytes) -> Encoding | None:
    """UTF-16 and UTF-32 without a mark: text in letters of Europe is every second byte, or three of four, zero."""
    sample = data[:4_000]
    for codec, width, letter in (("utf-32-le", 4, 0), ("utf-32-be", 4, 3), ("utf-16-le", 2, 0), ("utf-16-be", 2, 1)):
        if len(data) % width or len(data) < 2 * width:
            continue
        units = len(sample) // width
        high = 1 - letter if width == 2 else 2 - letter // 3
        zeros = sum(sample[at + high] == 0 for at in range(0, units * width, width))
        full = sum(sample[at + letter] != 0 for at in range(0, units * width, width))
        if zeros * 10 >= units * 6 and full * 10 >= units * 9 and _is_text(data, Encoding(codec)):
            return Encoding(codec)
    return None


def _with_escapes(data: bytes) -> Encoding | None:
    """Japanese text in seven bits."""
    if (b"\x1b$B" in data or b"\x1b$@" in data) and _gives_back(data, "iso2022_jp"):
        return Encoding("iso2022_jp")
    return None


def _declared(data: bytes) -> Encoding | None:
    if (found := _DECLARED.search(data[:1_000])) is None:
        return None
    codec = codec_of(found[1].decode("ascii"))
    return Encoding(codec) if codec and codec != "utf-8" and _gives_back(data, codec) else None


def _mostly_utf8(data: bytes) -> bool:
    """Returns whether more of what is not ASCII is UTF-8 than is not."""
    text = data.decode("utf-8", "surrogateescape")
    wrong = sum("\udc80" <= char <= "\udcff" for char in text)
    right = sum(char > "\x7f" for char in text) - wrong
    return right > wrong


def _guessed(data: bytes) -> str:
    """The encoding whose letters the bytes would spell as people do; empty where none stands out."""
    high = [byte for byte in data if byte >= 0x80]
    # The letters of Europe are the upper quarter of the bytes; those of the East are anywhere in the upper half.
    if sum(byte < 0xC0 for byte in high) * 20 < len(high):
        return _cyrillic(data)
    best, most = "", 0.0
    for codec in ("cp932", "euc_jp", "gb18030", "big5", "euc_kr"):
        text = data.decode(codec, "ignore")
        if len(text.encode(codec, "ignore")) < len(data) - 4:
            continue
        letters = [char for char in text if char > "\x7f"]
        # Every letter takes two bytes: single ones are accents of Europe.
        if letters and len(letters) * 2 <= len(high) * 1.7:
            share = sum(map(_weight, letters)) / len(letters)
            if codec in ("gb18030", "big5", "euc_kr"):
                share = sum(_is_common(char, codec) for char in letters) / len(letters)
            if codec == "euc_kr":
                # Its syllables are where the more common half of the Chinese characters is: it is all or nothing.
                share = 2.0 if share > 0.95 else 0.0
            if share > most:
                best, most = codec, share
    if most >= 0.7:
        return best
    return _cyrillic(data)


def _weight(char: str) -> float:
    """How surely a character is Japanese: kana and its punctuation are, Chinese characters may be."""
    if "\u3041" <= char <= "\u30fe" or char in "、。「」・！？（）":
        return 1.2
    return 0.8 if "\u4e00" <= char <= "\u9fff" and _lead(char, "euc_jp") < 0xD0 else 0.0


def _is_common(char: str, codec: str) -> bool:
    if codec == "euc_kr":
        return "\uac00" <= char <= "\ud7a3"
    if char in "，。、！？：；（）「」“”":
        return True
    if not "\u4e00" <= char <= "\u9fff":
        return False
    lead = _lead(char, "gb2312" if codec == "gb18030" else "big5")
    return 0xB0 <= lead <= 0xD7 if codec == "gb18030" else 0xA4 <= lead <= 0xC6


def _lead(char: str, codec: str) -> int:
    """The first byte of a character: in these encodings the common ones come first."""
    try:
        return char.encode(codec)[0]
    except UnicodeError:
        return 0xFF


def _cyrillic(data: bytes) -> str:
    """Words of nothing but letters above the accents: small ones lie in different places."""
    words = [word for word in re.findall(rb"[A-Za-z\x80-\xff]{3,}", data) if any(byte >= 0x80 for byte in word)]
    whole = [word for word in words if all(byte >= 0xA8 for byte in word)]
    if not words or len(whole) * 10 < len(words) * 6:
        return ""
    tails = b"".join(word[1:] for word in whole)
    return "cp1251" if sum(byte >= 0xE0 for byte in tails) * 2 >= len(tails) else "koi8-r"


def _plain_latin(data: bytes) -> bool:
    """Returns whether bytes may be ISO-8859-1, which takes any: few of them are controls then."""
    controls = sum(0x80 <= byte < 0xA0 for byte in data)
    return controls * 10 <= sum(byte >= 0x80 for byte in data)
