"""What MCP servers offered when they were last seen, by project."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agent_tui.store.tables.base import Tables
from agent_tui.store.tables.rows import encode


class OfferTables(Tables):
    def keep_offer(self, folder: str | Path, server: str, identity: str, offer: str) -> None:
        """Keeps an offer (ASCII JSON) in place of what that server of the folder offered before. ``identity`` is its
        configuration's."""
        key = (encode(str(folder)), encode(server))
        row = (identity, offer)
        if self._db.one("SELECT identity, offer FROM mcp_offer WHERE folder = ? AND server = ?", key) == row:
            return
        with self._db.writing():
            self._db.run(
                "INSERT INTO mcp_offer (folder, server, identity, offer) VALUES (?, ?, ?, ?) "
                "ON CONFLICT DO UPDATE SET identity = excluded.identity, offer = excluded.offer",
                (*key, *row),
            )

    def offer(self, folder: str | Path, server: str, identity: str) -> Any:
        """The JSON of what a server of the folder offered last; None where that is not known of this ``identity``.
        Raises StoreError."""
        row = self._db.one(
            "SELECT offer FROM mcp_offer WHERE folder = ? AND server = ? AND identity = ?",
            (encode(str(folder)), encode(server), identity),
        )
        with self._decoding("the offer of an MCP server"):
            return None if row is None else json.loads(row[0])
