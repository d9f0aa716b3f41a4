"""iTerm2's protocol for pictures (iterm2.com/documentation-images.html), which WezTerm and mintty know as well."""

from __future__ import annotations

import base64

from agent_tui.text.clean import one_line


def showing(name: str, image: bytes, columns: int, rows: int) -> str:
    """The sequence that draws an image file over so many cells from the cursor on, in its own shape; the cursor stays.
    The name can hold nothing that ends it: it goes as base64."""
    called = base64.b64encode(one_line(name, 100).encode()).decode()
    keys = f"name={called};size={len(image)};width={columns};height={rows};preserveAspectRatio=1;inline=1"
    return f"\x1b]1337;File={keys};doNotMoveCursor=1:{base64.b64encode(image).decode()}\x07"
