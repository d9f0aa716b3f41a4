"""Messages gathered into the children of the ``messages`` row, each with its cost and how that is known."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from agent_tui.context.accounting.given.coverage import covered
from agent_tui.models.context import ContextRow
from agent_tui.models.rows import MESSAGE_ROWS, MessageRowId


@dataclass(slots=True)
class Tally:
    """The rows of the messages ``[start, end)`` of a view by kind, and their sums. ``estimated`` is the part of a kind
    that is estimate: in a measured group of one kind only the split is, not the sum. ``cached`` is what the provider
    read from its cache; None where that is not known. ``text`` and ``given`` are the uncorrected estimates of what is
    text and of what is not, kept only for what is not measured."""

    start: int = 0
    end: int = 0
    rows: dict[MessageRowId, list[ContextRow]] = field(default_factory=dict)
    tokens: dict[MessageRowId, int] = field(default_factory=dict)
    estimated: dict[MessageRowId, int] = field(default_factory=dict)
    cached: dict[MessageRowId, int | None] = field(default_factory=dict)
    approximate: set[MessageRowId] = field(default_factory=set)
    values: dict[str, tuple[int, str]] = field(default_factory=dict)
    total: int = 0
    text: float = 0.0
    given: float = 0.0
    misfit: int = 0
    """Measured less shown, where what was measured between two steps is less than the messages can have cost."""

    def copy(self) -> Tally:
        return Tally(
            self.start,
            self.end,
            {kind: list(rows) for kind, rows in self.rows.items()},
            dict(self.tokens),
            dict(self.estimated),
            dict(self.cached),
            set(self.approximate),
            dict(self.values),
            self.total,
            self.text,
            self.given,
            self.misfit,
        )

    def absorb(self, tokens: int) -> int:
        """Take ``tokens`` from the rows whose size is least sure: reasoning first, the newest first. Returns how many
        of them could not be taken. Rows are replaced, never changed: other tallies share them."""
        for kind in sorted(self.rows, key=lambda k: (k != "reasoning", -self.tokens[k])):
            rows = self.rows[kind]
            for number in range(len(rows) - 1, -1, -1):
                if not tokens:
                    return 0
                row = rows[number]
                take = min(tokens, row.tokens)
                if not take:
                    continue
                left = row.tokens - take
                read = None if row.cached_tokens is None else min(row.cached_tokens, left)
                rows[number] = replace(
                    row,
                    tokens=left,
                    estimated_tokens=left,
                    basis="estimated",
                    cached_tokens=read,
                    cached=covered(left, read),
                )
                self.tokens[kind] -= take
                self.estimated[kind] = min(self.tokens[kind], self.estimated[kind] + take)
                known = self.cached[kind]
                if known is not None and row.cached_tokens is not None and read is not None:
                    self.cached[kind] = known - row.cached_tokens + read
                self.total -= take
                tokens -= take
        return tokens

    def add(self, kind: MessageRowId, row: ContextRow, estimated: int) -> None:
        self.rows.setdefault(kind, []).append(row)
        self.tokens[kind] = self.tokens.get(kind, 0) + row.tokens
        self.estimated[kind] = self.estimated.get(kind, 0) + estimated
        self._add_cached(kind, row.cached_tokens)
        self.total += row.tokens
        if row.approximate:
            self.approximate.add(kind)

    def join(self, other: Tally) -> None:
        """Take over the rows of messages further on."""
        for kind, rows in other.rows.items():
            self.rows.setdefault(kind, []).extend(rows)
            self.tokens[kind] = self.tokens.get(kind, 0) + other.tokens[kind]
            self.estimated[kind] = self.estimated.get(kind, 0) + other.estimated[kind]
            self._add_cached(kind, other.cached[kind])
        self.approximate |= other.approximate
        self.total += other.total
        self.misfit += other.misfit
        self.end = other.end

    def _add_cached(self, kind: MessageRowId, tokens: int | None) -> None:
        known = self.cached.get(kind, 0)
        self.cached[kind] = None if tokens is None or known is None else known + tokens

    def kind_rows(self) -> list[ContextRow]:
        """The children of ``messages``: one row a kind, its messages below it in their order."""
        rows: list[ContextRow] = []
        for kind, named in MESSAGE_ROWS.items():
            children = self.rows.get(kind)
            if not children:
                continue
            tokens, estimated = self.tokens[kind], min(self.estimated[kind], self.tokens[kind])
            rows.append(
                ContextRow(
                    id=kind,
                    label=named.label,
                    tokens=tokens,
                    basis="estimated" if estimated == tokens and tokens else "derived",
                    estimated_tokens=estimated,
                    children=children,
                    cached=covered(tokens, self.cached[kind]),
                    cached_tokens=self.cached[kind],
                    approximate=kind in self.approximate,
                )
            )
        return rows
