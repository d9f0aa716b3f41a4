"""What a terminal sends, as text, keys, pastes and reports: the one reader of keys, in front of the screen and of plain
mode. It knows neither.

No byte raises anything here, and what comes out is well formed: whoever acts upon it needs no checks of their own.

* **A paste is text to its end mark** (``CSI 201 ~``), whatever stands in it and however it is cut into reads. A paste
  whose end does not come shows what it holds after ``SILENCE`` seconds and goes on being one; it is over after
  ``LOST`` seconds without a byte, or with Ctrl+C or Esc pressed after a ``SILENCE``. A second end mark that comes
  within ``BURST`` seconds ends the same paste: the first one was part of the text.
* **Several lines at once are a paste**, also without marks: text, a line break and more text within ``BURST`` seconds.
  Nobody types so fast. So text that comes together with a line break waits that long for more; a line break that comes
  alone, as people press Enter, does not wait.
* **A key that is let go is no key**; one that repeats is pressed.
* **Ctrl and Alt mean the key where it is on a Latin keyboard**, where the terminal says so (kitty's base layout key).
* A sequence that does not end in time is dropped; Esc and Alt with a letter are what is left of one that never was.
"""

from __future__ import annotations

import codecs
import os
import re
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

BURST = 0.05
"""Seconds within which text that follows a line break came with it."""
FAST = 0.02
"""Seconds after a letter in which nobody presses Enter: programs that type do."""
ESCAPE_WAIT = 0.1
"""Seconds after which Esc is no beginning of a sequence."""
SEQUENCE_WAIT = 1.0
"""Seconds in which a sequence that has begun must end: connections are slow, and nobody types its beginning."""
SILENCE, LOST = 1.0, 10.0
"""Seconds: see above."""
LONGEST = 1 << 20
"""Characters of an answer at most; the clipboard is one."""


class TypedText(NamedTuple):
    """Letters as they were typed: nothing in them acts."""

    text: str


class KeyPress(NamedTuple):
    """One key that is pressed: a control character, Esc and a character, or a whole sequence. Numbers in it are small
    and say what they should: ``CSI code ; modifiers ; text u``, else as xterm writes them."""

    sequence: str


class PastedText(NamedTuple):
    """Text without control characters, lines ending in ``\\n``."""

    text: str


class TerminalReport(NamedTuple):
    """What the terminal says by itself or answers: the mouse, its focus, its size, a colour. As it came."""

    sequence: str


class _PasteMark(NamedTuple):
    starts: bool


TerminalInput: TypeAlias = TypedText | KeyPress | PastedText | TerminalReport
_Token: TypeAlias = TerminalInput | _PasteMark

START, END = "\x1b[200~", "\x1b[201~"

_CONTROLS = "[\x00-\x08\x0b-\x1f\x7f-\x9f]"
# C1 controls introduce sequences as well. Bytes that are no UTF-8 stand as surrogates, and introduce nothing.
_CSI = "(?:\x1b\\[|\x9b)"
_SS3 = "(?:\x1bO|\x8f)"
_STRING = "(?:\x1b[\\]PX^_]|[\x90\x98\x9d\x9e\x9f])"
_BODY = f"[^\x00-\x1f\x7f\x9c]{{0,{LONGEST}}}+"
_STRING_END = "(?:\x07|\x1b\\\\|\x9c)"
_TOKEN = re.compile(
    "(?P<text>[^\x00-\x1f\x7f-\x9f]++)|(?P<line>\r\n)"
    f"|{_CSI}(?:M(?P<old_mouse>[^\x00-\x1f]{{3}})|(?P<console>\\[[A-E])"
    "|(?P<parameters><[\\d;:-]{0,64}+|[0-?]{0,4096}+)(?P<between>[ -/]{0,8}+)(?P<final>[@-LN-Z\\\\-~]|(?<!\\[)M))"
    f"|{_SS3}(?P<application>[0-9;]{{0,6}}+[@-~])"
    f"|(?P<string>{_STRING}{_BODY}{_STRING_END})"
    "|\x1b(?P<alt>[^\\[O\\]PX^_\x1b\x80-\x9f])"
)
_BEGUN = re.compile(
    f"{_CSI}(?:M[^\x00-\x1f]{{0,2}}+|\\[|<[\\d;:-]{{0,64}}+|[0-?]{{0,4096}}+[ -/]{{0,8}}+)|{_SS3}[0-9;]{{0,6}}+"
    f"|{_STRING}{_BODY}(?:\x1b\\Z)?|\x1b\\Z"
)
"""A sequence as far as it has come."""
_ANSWER_BEGINS = re.compile("(?:\x1b\\]|\x9d)\\d|(?:\x1bP|\x90)[\\d>!+$|]|(?:\x1b_|\x9f)G")
"""Strings that only terminals send. Another one that has no end was Alt with a letter, then letters."""

_FUNCTIONAL = re.compile(r"(\d{0,5})(?::\d{0,7}){0,2}(?:;(\d{0,3})(?::(\d?))?(?:;[\d:]{0,64})?)?")
_COLONS = re.compile(r"[\d:]*")
_RELEASED = "3"
_SHIFT, _ALT, _LOCKS = 1, 2, 64 | 128
_CAPS = 64
_STRONG = 4 | 8 | 16 | 32
"""Ctrl, Super, Hyper and Meta."""
_NAMED_CODES = (9, 13, 27, 127)
_FUNCTION_KEYS = range(57344, 63744)
"""Kitty's numbers of keys that write nothing."""


class _Tokens:
    """Characters to tokens. What is not whole yet stays in ``rest``."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self.rest = ""

    def decode(self, data: bytes, final: bool = False) -> None:
        """Adds bytes; each that is no UTF-8 is a surrogate, so that an old mouse's numbers are one character each."""
        self.rest += self._decoder.decode(data, final)

    @property
    def decodes(self) -> bool:
        """True while a character has come in part."""
        return bool(self._decoder.getstate()[0])

    def read(self) -> list[_Token]:
        """Returns the tokens that are whole, as far as the mark that begins a paste."""
        text, at, tokens = self.rest, 0, list[_Token]()
        while at < len(text):
            if (match := _TOKEN.match(text, at)) is not None:
                at = match.end()
                if (token := _token(match)) is not None:
                    tokens.append(token)
                    if token == _PasteMark(True):
                        break
            elif (begun := _BEGUN.match(text, at)) is None:
                tokens += _control(text[at])
                at += 1
            elif begun.end() == len(text):
                break
            else:
                tokens += _given_up(begun[0])
                at = begun.end()
        self.rest = text[at:]
        return tokens

    def give_up(self) -> list[_Token]:
        """Takes what has begun and never ends for what it was."""
        begun, self.rest = self.rest, ""
        return _given_up(begun)


def _given_up(begun: str) -> list[_Token]:
    """The keys that the beginning of a sequence was, if any."""
    if begun == "\x1b" or (len(begun) == 2 and begun[0] == "\x1b"):
        return [KeyPress(begun)]
    if re.match(_STRING, begun) is None or _ANSWER_BEGINS.match(begun) is not None:
        return []
    introducer = 2 if begun[0] == "\x1b" else 1
    keys: list[_Token] = [KeyPress(begun[:2])] if introducer == 2 else []
    letters = _shown(re.sub(_CONTROLS, "", begun[introducer:]))
    return [*keys, *([TypedText(letters)] if letters else [])]


def _control(character: str) -> list[_Token]:
    """A character that begins nothing; of the C1 controls none is a key."""
    return [KeyPress(character)] if character <= "\x1f" or character == "\x7f" else []


def _shown(text: str) -> str:
    """Text in which bytes that are no UTF-8 are seen as such."""
    return text if text.isascii() else re.sub("[\ud800-\udfff]", "\ufffd", text)


def _token(match: re.Match[str]) -> _Token | None:
    """The token; None where it means nothing."""
    kind = match.lastgroup
    match kind:
        case "text":
            return TypedText(_shown(match[0]))
        case "final":
            return _control_sequence(match["parameters"], match["between"], match["final"])
        case "line":
            return KeyPress("\r")
        case "alt":
            return KeyPress(f"\x1b{_shown(match['alt'])}")
        case "application":
            return KeyPress(f"\x1bO{match['application']}")
        case "console":
            return KeyPress(f"\x1b[{match['console']}")
        case _:
            return TerminalReport(match[0])


def _control_sequence(parameters: str, between: str, final: str) -> _Token | None:
    """What a whole CSI sequence means; None where it means nothing."""
    whole = f"\x1b[{parameters}{between}{final}"
    if between or parameters[:1] in ("<", "=", ">", "?"):
        return TerminalReport(whole)
    if final == "u":
        return _unicode_key(parameters)
    if final == "~" and parameters in ("200", "201"):
        return _PasteMark(parameters == "200")
    if final == "~" and parameters.startswith("27;"):
        modifiers, _, code = parameters[3:].partition(";")
        return _unicode_key(f"{code};{modifiers}") if code.isdigit() else None
    if final in "MmIOtcnyxghilpqrs" or (final == "R" and ";" in parameters):
        return TerminalReport(whole)
    return _functional_key(parameters, final)


def _functional_key(parameters: str, final: str) -> KeyPress | None:
    """An arrow, ``F5`` and the like."""
    match = _FUNCTIONAL.fullmatch(parameters)
    if match is None or match[3] == _RELEASED:
        return None
    number, modifiers = match[1], (int(match[2] or 1) - 1) & ~_LOCKS
    if int(match[2] or 1) > 256:
        return None
    if modifiers > 0:
        return KeyPress(f"\x1b[{int(number or 1)};{modifiers + 1}{final}")
    return KeyPress(f"\x1b[{'' if number in ('', '1') and final != '~' else number}{final}")


def _unicode_key(parameters: str) -> KeyPress | None:
    """A key of kitty's protocol, ``code:shifted:base ; modifiers:event ; text``, as it is meant."""
    codes, modified, written, *_ = [*parameters.split(";"), "", "", ""]
    if any(_COLONS.fullmatch(part) is None for part in (codes, modified, written)) or len(parameters) > 4000:
        return None
    numbers = [_number(code) for code in codes.split(":")] + [0, 0]
    code, shifted, base = numbers[:3]
    modifier, _, event = modified.partition(":")
    held = max(0, _number(modifier) - 1)
    if held > 255 or event.split(":")[0] == _RELEASED:
        return None
    text = "".join(chr(letter) for letter in map(_number, written.split(":")) if _writes(letter))
    if held & _STRONG or (held & _ALT and not text):
        text = ""
        if code > 127 and code not in _FUNCTION_KEYS and ord(" ") < base < 127:
            code = base
        if 64 < code < 91:
            code += 32
    elif not text and _writes(code):
        text = _written(code, shifted, held)
    if not (code in _NAMED_CODES or code in _FUNCTION_KEYS or _writes(code) or text):
        return None
    held &= ~_LOCKS
    modifier = f"{held + 1}" if held or text else ""
    return KeyPress(f"\x1b[{code}{f';{modifier}' if modifier else ''}{text and ';' + _coded(text)}u")


def _written(code: int, shifted: int, held: int) -> str:
    """What a key writes whose terminal does not say it."""
    if held & _SHIFT and _writes(shifted):
        return chr(shifted)
    letter = chr(code)
    return letter.upper() if bool(held & _SHIFT) != bool(held & _CAPS) and len(letter.upper()) == 1 else letter


def _coded(text: str) -> str:
    return ":".join(str(ord(letter)) for letter in text)


def _number(digits: str) -> int:
    return int(digits) if digits and len(digits) <= 7 else 0


def _writes(code: int) -> bool:
    """Returns whether a number is that of a character that can be written."""
    return (
        32 <= code <= 0x10FFFF and not 127 <= code < 160 and not 0xD800 <= code < 0xE000 and code not in _FUNCTION_KEYS
    )


_ESCAPES = (
    "\x1b\\[[0-?]*[ -/]*[@-~]"
    f"|\x1b[\\]PX^_][^\x07\x1b\n\x9c]{{0,4096}}{_STRING_END}"
    "|\x1b[ -/]*[0-~]"
    "|\x9b[0-?]*[ -/]*[@-~]"
)
_CUT_ESCAPE = re.compile("\x1b(?:\\[[0-?]{0,64}[ -/]{0,8})?\\Z")


def pasted_text(text: str) -> str:
    """Text that was pasted as it may stand in a prompt: without sequences and control characters, but for tabs and
    line breaks, each of which is ``\\n``."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\x1b" in text or "\x9b" in text:
        text = re.sub(_ESCAPES, "", text)
    return _shown(re.sub(_CONTROLS, "", text))


_PRESSED_TO_END = re.compile(rb"\x03|\x1b|\x1b\[27(?:;1?)?u|\x1b\[(?:99|\d{1,5}:\d{0,5}:99)(?::\d*)*;5u")
"""Ctrl+C or Esc and nothing else."""
_BREAKS = "\r\n"


class TerminalReader:
    """Reads what a terminal sends. Bytes go in with ``feed``; where ``wait`` says so, ``tick`` has to be called after
    that time; both return what is known by then. ``escape_wait`` may be changed at any time."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.escape_wait = ESCAPE_WAIT
        self._tokens = _Tokens()
        self._came = self.clock()
        """When the last byte came."""
        self._lettered = float("-inf")
        """When the last letter was handed on."""
        self._pasted: list[str] | None = None
        """Of a paste whose end has not come."""
        self._tail = ""
        """What may be the beginning of its end."""
        self._held: list[_Token] = []
        """Text with a line break, which is a paste if more follows; and what came with it."""
        self._lines: list[str] | None = None
        """Of a paste without marks."""
        self._since = 0.0
        """When the last came of what is in one of these two."""

    @property
    def wait(self) -> float | None:
        """Seconds from now after which ``tick`` is to be called; None where nothing waits."""
        due = self._due
        return max(0.0, due - self.clock()) if due is not None else None

    @property
    def _due(self) -> float | None:
        if self._pasted is not None:
            return self._came + (SILENCE if any(self._pasted) else LOST)
        if self._held or self._lines is not None:
            return self._since + BURST
        if self._tokens.rest:
            return self._came + (self.escape_wait if len(self._tokens.rest) < 3 else SEQUENCE_WAIT)
        return self._came + SEQUENCE_WAIT if self._tokens.decodes else None

    def feed(self, data: bytes) -> list[TerminalInput]:
        """Takes bytes and returns what they mean, as far as they can be understood by themselves."""
        found = self.tick()
        if self._pasted is not None and self.clock() - self._came >= SILENCE and _PRESSED_TO_END.fullmatch(data):
            found += self._end_paste()
        self._came = self.clock()
        self._tokens.decode(data)
        return found + self._read()

    def tick(self) -> list[TerminalInput]:
        """Returns what is known because nothing more has come."""
        due = self._due
        if due is None or due > self.clock():
            return []
        if self._pasted is not None:
            return self._end_paste() if self.clock() - self._came >= LOST else self._show_paste()
        if self._lines is not None or self._held:
            return self._end_burst()
        if self._tokens.rest:
            return self._released(self._tokens.give_up())
        self._tokens.decode(b"", final=True)
        return self._read()

    def flush(self) -> list[TerminalInput]:
        """Returns all that was held back: nothing more is waited for."""
        found = self._end_paste() if self._pasted is not None else self._end_burst()
        self._tokens.decode(b"", final=True)
        found += self._read()
        if self._pasted is not None:
            found += self._end_paste()
        return [*found, *self._end_burst(), *self._released(self._tokens.give_up())]

    # Pastes with marks

    def _read(self) -> list[TerminalInput]:
        found: list[TerminalInput] = []
        while self._pasted is None or self._reads_end(found):
            tokens = self._tokens.read()
            begins = tokens[-1:] == [_PasteMark(True)]
            found += self._grouped(tokens[:-1] if begins else tokens)
            if not begins:
                break
            self._pasted = []
        return found

    def _reads_end(self, found: list[TerminalInput]) -> bool:
        """Takes what there is of a paste; returns whether its end has come."""
        assert self._pasted is not None
        text, self._tokens.rest, self._tail = self._tail + self._tokens.rest, "", ""
        before, end, after = text.partition(END)
        if end:
            whole, self._pasted = "".join([*self._pasted, before]), None
            self._tokens.rest = after
            found += self._grouped([PastedText(pasted_text(whole))])
            return True
        cut = next((size for size in range(len(END) - 1, 0, -1) if text.endswith(END[:size])), 0)
        self._pasted.append(text[: len(text) - cut])
        self._tail = text[len(text) - cut :]
        return False

    def _show_paste(self) -> list[TerminalInput]:
        """What there is of a paste, which goes on."""
        text = "".join(self._pasted or ())
        match = _CUT_ESCAPE.search(text)
        at = match.start() if match is not None else len(text)
        self._pasted, self._tail = [], text[at:] + self._tail
        return _paste_of(text[:at])

    def _end_paste(self) -> list[TerminalInput]:
        whole = "".join([*(self._pasted or ()), self._tail])
        self._pasted, self._tail = None, ""
        return _paste_of(whole)

    # Pastes without

    def _grouped(self, tokens: list[_Token]) -> list[TerminalInput]:
        """Returns tokens as they are, or those that came at once as a paste."""
        if self._lines is not None:
            return self._more_lines(tokens)
        pending, self._held = [*self._held, *tokens], []
        if _PasteMark(False) in pending:
            pending = _to_last_end(pending)
        first = next((n for n, token in enumerate(pending) if _is_text(token)), len(pending))
        texts = [n for n, token in enumerate(pending) if isinstance(token, TypedText)]
        breaks = [n for n, token in enumerate(pending) if _is_break(token)]
        if breaks and texts and breaks[0] < texts[-1]:
            self._lines = []
            return [*self._released(pending[:first]), *self._more_lines(pending[first:])]
        if (self._came - self._lettered < FAST or first < min(breaks, default=0)) and _ends_in_break(pending, breaks):
            return self._released(pending[:first]) + self._hold(pending[first:], tokens)
        if pending and isinstance(pending[-1], PastedText):
            return self._released(pending[:-1]) + self._hold(pending[-1:], tokens)
        return self._released(pending)

    def _hold(self, held: list[_Token], fresh: list[_Token]) -> list[TerminalInput]:
        """Waits for more, from the last that is no report of the terminal's."""
        self._held = held
        if not all(isinstance(token, TerminalReport) for token in fresh):
            self._since = self._came
        return []

    def _more_lines(self, tokens: Iterable[_Token]) -> list[TerminalInput]:
        """A paste without marks goes on: keys in it are no keys, and the mouse is not there."""
        found: list[TerminalInput] = []
        assert self._lines is not None
        for token in tokens:
            if isinstance(token, TypedText | PastedText):
                self._lines.append(token.text)
            elif isinstance(token, KeyPress) and token.sequence in ("\r", "\n", "\t"):
                self._lines.append(token.sequence)
            elif isinstance(token, TerminalReport):
                found += [] if _is_mouse(token) else [token]
                continue
            self._since = self._came
        return found

    def _end_burst(self) -> list[TerminalInput]:
        if self._lines is not None:
            text, self._lines = "".join(self._lines), None
            return _paste_of(text)
        held, self._held = self._held, []
        return self._released(held)

    def _released(self, tokens: Iterable[_Token]) -> list[TerminalInput]:
        found: list[TerminalInput] = []
        for token in tokens:
            if isinstance(token, TypedText):
                self._lettered = self._came
            if not isinstance(token, _PasteMark) and token != PastedText(""):
                found.append(token)
        return found


def _paste_of(text: str) -> list[TerminalInput]:
    text = pasted_text(text)
    return [PastedText(text)] if text else []


def _is_break(token: _Token) -> bool:
    return isinstance(token, KeyPress) and token.sequence in ("\r", "\n")


def _is_text(token: _Token) -> bool:
    """Returns whether a token may be the first of a paste without marks, or one with."""
    return isinstance(token, TypedText | PastedText) or (
        isinstance(token, KeyPress) and token.sequence in ("\r", "\n", "\t")
    )


def _is_mouse(token: TerminalReport) -> bool:
    return token.sequence[-1] in "Mm" or token.sequence[2:3] == "M"


def _ends_in_break(tokens: list[_Token], breaks: list[int]) -> bool:
    """Returns whether nothing that acts follows the first line break but others."""
    return bool(breaks) and all(isinstance(token, TerminalReport) or _is_break(token) for token in tokens[breaks[0] :])


def _to_last_end(tokens: list[_Token]) -> list[_Token]:
    """The tokens with all as one paste that stands before an end mark that ends nothing."""
    end = max(n for n, token in enumerate(tokens) if token == _PasteMark(False))
    begin = next((n for n, token in enumerate(tokens[:end]) if _is_text(token)), end)
    text = "".join(
        token.text if isinstance(token, TypedText | PastedText) else token.sequence
        for token in tokens[begin:end]
        if isinstance(token, TypedText | PastedText | KeyPress)
    )
    return [*tokens[:begin], PastedText(pasted_text(text)), *tokens[end + 1 :]]


def typed_so_far(terminal: int) -> bytes:
    """Returns the bytes that were typed and can be read at once, those of a line that is not finished included. Raises
    OSError and ``termios.error``."""
    import termios  # not where there is none

    before = termios.tcgetattr(terminal)
    at_once = [*before[:3], before[3] & ~termios.ICANON, *before[4:6], [*before[6]]]
    at_once[6][termios.VMIN], at_once[6][termios.VTIME] = 0, 0
    data = b""
    try:
        termios.tcsetattr(terminal, termios.TCSANOW, at_once)
        while piece := os.read(terminal, 1 << 16):
            data += piece
    finally:
        termios.tcsetattr(terminal, termios.TCSANOW, before)
    return data
