"""What terminals send, and what no terminal would: random sequences of all kinds, whole, damaged and cut anywhere."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

NUMBERS = ("", "0", "1", "2", "3", "5", "9", "13", "27", "32", "97", "99", "127", "155", "229", "1089", "8364", "55296")
LARGE = ("57343", "57399", "57441", "57454", "63743", "65535", "1114111", "1114112", "999999", "2147483648", "9" * 30)
FINALS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ@[]^_`abcdefghijklmnopqrstuvwxyz{|}~"
LETTERS = ("a", "é", "с", "漢", "😀", "\u0301", "\u202e", "\x85", "\x9b", "\x9d", "\x90", "\u2028", "\ufeff", "\uffff")
POOL = 10_000
"""Sequences that are made at once and used in many places."""
START, END = b"\x1b[200~", b"\x1b[201~"


class Sequences:
    """A source of them that gives the same for a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._pool: list[bytes] = []
        self._left = 0
        self._kinds: list[Callable[[], str | bytes]] = [
            self._kitty,
            self._kitty,
            self._other_keys,
            self._functional,
            self._mouse,
            self._answer,
            self._report,
            self._size,
            self._any_control,
            self._text,
            self._bytes,
            self._paste,
            self._escape,
        ]

    def one(self) -> bytes:
        """One sequence, damaged now and then."""
        made = self.random.choice(self._kinds)()
        data = made.encode("utf-8", "surrogatepass") if isinstance(made, str) else made
        return self.damaged(data) if self.random.random() < 0.3 else data

    def damaged(self, data: bytes) -> bytes:
        pick, at = self.random.randrange(5), self.random.randrange(len(data) + 1)
        match pick:
            case 0:
                return data[:at]
            case 1:
                return data[:at] + data[at + 1 :]
            case 2:
                return data[:at] + bytes([self.random.randrange(256)]) + data[at:]
            case 3:
                return data[:at] + bytes([self.random.randrange(256)]) + data[at + 1 :]
            case _:
                return data[at:] + data[:at]

    def several(self, count: int) -> bytes:
        """So many of the last that were made, now and then damaged."""
        if self._left <= 0:
            self._left = 20 * POOL
            self._pool = [self.one() for _ in range(POOL)]
        self._left -= count
        data = b"".join(self.random.choices(self._pool, k=count))
        return self.damaged(data) if self.random.random() < 0.5 else data

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """The same bytes, cut anywhere."""
        while data:
            size = 1 + int(self.random.random() ** 4 * len(data)) if self.random.random() < 0.3 else len(data)
            yield data[:size]
            data = data[size:]

    def _number(self) -> str:
        pick = self.random.random()
        if pick < 0.7:
            return self.random.choice(NUMBERS)
        return self.random.choice(LARGE) if pick < 0.97 else f"-{self.random.randrange(100)}"

    def _numbers(self, most: int, between: str) -> str:
        return between.join(self._number() for _ in range(self.random.randrange(1, most)))

    def _kitty(self) -> str:
        fields = [self._numbers(5, ":"), f"{self.random.randrange(300)}:{self.random.randrange(5)}"]
        fields.append(self._numbers(6, ":"))
        return f"\x1b[{';'.join(fields[: self.random.randrange(1, 4)])}{self.random.choice('uuuu~ABHP')}"

    def _other_keys(self) -> str:
        return f"\x1b[27;{self._number()};{self._number()}~"

    def _functional(self) -> str:
        introducer = self.random.choice(("\x1b[", "\x1bO", "\x1b[1;", "\x1b[[", "\x9b"))
        return f"{introducer}{self._numbers(4, ';')}{self.random.choice('~ABCDEFHPQRSZu^$@')}"

    def _mouse(self) -> str | bytes:
        pick = self.random.randrange(4)
        if pick == 0:
            return b"\x1b[M" + self.random.randbytes(self.random.choice((3, 3, 3, 1, 0)))
        if pick == 1:
            return f"\x1b[M{chr(32 + self.random.randrange(99))}{chr(32 + self.random.randrange(2000))}!"
        numbers = ";".join(self._number() for _ in range(self.random.choice((3, 3, 3, 2, 4))))
        return f"\x1b[{'<' if pick == 2 else ''}{numbers}{self.random.choice('Mm')}"

    def _answer(self) -> str:
        begin = self.random.choice(
            ("]10;rgb:", "]11;rgb:ffff/", "]52;c;", "]4;1;", "P1+r", "P>|XTerm(", "P1$r", "_Gi=31;", "^", "X")
        )
        body = "".join(
            self.random.choice("0123456789abcdef/;=+OK ") for _ in range(self.random.choice((0, 5, 20, 400)))
        )
        return f"\x1b{begin}{body}" + self.random.choice(("\x07", "\x1b\\", "\x9c", "", "\r"))

    def _report(self) -> str:
        kind = self.random.choice(("I", "O", f"{self._numbers(3, ';')}R", f"?{self._numbers(5, ';')}c", "?1u", "0n"))
        return f"\x1b[{kind}" if self.random.random() < 0.7 else f"\x1b[?{self._number()};{self._number()}$y"

    def _size(self) -> str:
        return f"\x1b[48;{';'.join(self._number() for _ in range(self.random.choice((4, 4, 4, 3, 5))))}t"

    def _any_control(self) -> str:
        between = self.random.choice(("", "", "", "$", " ", '"', "!?"))
        prefix = self.random.choice(("", "", "?", ">", "=", "<"))
        return f"\x1b[{prefix}{self._numbers(6, ';')}{between}{self.random.choice(FINALS)}"

    def _text(self) -> str:
        return "".join(self.random.choices((*LETTERS, "b", " ", "\r", "\n", "\t", "\r\n"), k=self.random.randrange(8)))

    def _bytes(self) -> bytes:
        return self.random.randbytes(self.random.randrange(1, 12))

    def _paste(self) -> bytes:
        inside = b"".join(self.one_inside() for _ in range(self.random.randrange(4)))
        return START + inside + self.random.choice((*(END,) * 10, b"", END + b"\r"))

    def one_inside(self) -> bytes:
        """Something in a paste: no paste, so that it comes to an end, and no end mark."""
        made = self.random.choice(self._kinds[:11])()
        data = made.encode("utf-8", "surrogatepass") if isinstance(made, str) else made
        return self.damaged(data).replace(END, b"")

    def _escape(self) -> str:
        after = self.random.choice(("", "a", "[", "O", "]", "P", "\r", "\x7f", "é"))
        return "\x1b" * self.random.randrange(1, 4) + after
