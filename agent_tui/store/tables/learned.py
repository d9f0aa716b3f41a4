"""Limits that servers told by refusing a request: they outlive the session in which they were learned."""

from __future__ import annotations

from agent_tui.models.usage import LearnedLimit
from agent_tui.store.tables.base import Tables
from agent_tui.store.tables.rows import decode, encode
from agent_tui.text.numbers import plural

_COLUMNS = "max_window, max_input, max_output, believed, configured_window, configured_output, learned_at, text"


def forgotten_text(count: int) -> str:
    """What is said after so many models' learned limits were forgotten."""
    return f"Forgot the learned limits of {plural(count, 'model')}." if count else "No limits were learned."


class LearnedTables(Tables):
    def learned_limit(self, model: str, server: str) -> LearnedLimit | None:
        """What was learned of a model (LiteLLM's name) at a server (its address, or empty); None when nothing was."""
        row = self._db.one(
            f"SELECT {_COLUMNS} FROM learned_limit WHERE model = ? AND server = ?", (encode(model), encode(server))
        )
        if row is None:
            return None
        with self._decoding("a learned limit"):
            window, max_input, max_output, believed, configured_window, configured_output, at, text = row
            return LearnedLimit(
                model,
                server,
                window,
                max_input,
                max_output,
                believed,
                configured_window,
                configured_output,
                at,
                decode(text),
            )

    def put_learned_limit(self, limit: LearnedLimit) -> None:
        """Keeps what was learned, in place of what was known of the same model and server."""
        values = (
            limit.window,
            limit.max_input,
            limit.max_output,
            limit.believed,
            limit.configured_window,
            limit.configured_output,
            limit.learned_at,
        )
        with self._db.writing():
            self._db.run(
                f"INSERT OR REPLACE INTO learned_limit (model, server, {_COLUMNS}) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (encode(limit.model), encode(limit.server), *values, encode(limit.text)),
            )

    def learned_limits(self) -> list[LearnedLimit]:
        """Everything learned, by model and server."""
        rows = self._db.all("SELECT model, server FROM learned_limit ORDER BY model, server")
        with self._decoding("a learned limit"):
            names = [(decode(model), decode(server)) for model, server in rows]
        return [found for name in names if (found := self.learned_limit(*name)) is not None]

    def forget_learned_limit(self, model: str, server: str) -> None:
        with self._db.writing():
            self._db.run("DELETE FROM learned_limit WHERE model = ? AND server = ?", (encode(model), encode(server)))

    def forget_learned_limits(self) -> int:
        """Forgets all of them; how many there were."""
        with self._db.writing():
            return self._db.run("DELETE FROM learned_limit").rowcount
