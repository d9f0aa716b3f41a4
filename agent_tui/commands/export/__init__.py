"""A session as a file: JSON for programs, Markdown and one HTML page for people."""

from __future__ import annotations

from collections.abc import Collection

from agent_tui.errors import StoreError
from agent_tui.models.session import SessionInfo
from agent_tui.providers.secrets import configured_secrets, each_text, mask
from agent_tui.store.content import SessionContent

FORMATS = ("json", "md", "html")


def render(info: SessionInfo, content: SessionContent, form: str, keys: Collection[str] = ()) -> str:
    """A stored session as text in one of ``FORMATS``. Raises ``StoreError`` for any other. None of the ``keys`` is in
    it, nor those of the environment; what is made for people has nothing that looks like one either."""
    if form == "json":
        from agent_tui.store.export_data import export_session, to_json

        known = {*keys, *configured_secrets()}
        return to_json(each_text(export_session(info, content), lambda text: mask(text, known))) + "\n"
    if form == "md":
        from agent_tui.commands.export.markdown import to_markdown

        return to_markdown(info, content, keys)
    if form == "html":
        from agent_tui.commands.export.page import to_html

        return to_html(info, content, keys)
    raise StoreError(f"unknown export format {form!r}: one of {', '.join(FORMATS)}")
