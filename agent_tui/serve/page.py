"""The page: a terminal that fills it, and a line when it has lost its chat. All it loads is on this server."""

from __future__ import annotations

import html
from importlib.resources import files
from pathlib import Path

ASSETS = {
    "xterm.css": "css/xterm.css",
    "textual.js": "js/textual.js",
    "mono.ttf": "fonts/RobotoMono-VariableFont_wght.ttf",
    "mono-italic.ttf": "fonts/RobotoMono-Italic-VariableFont_wght.ttf",
}
"""By the name in the page: where it lies among the files of textual-serve."""

TYPES = {".css": "text/css", ".js": "text/javascript", ".ttf": "font/ttf"}

FONT_SIZE = 16

_BEGIN = """\
// The terminal measures its letters once, so they are there before it is; keys go to it once it is connected, for it
// tells its chat of that, and again whenever the window is come back to.
const connected = () => document.body.classList.contains("-loaded");
const focus = () => connected() && document.querySelector(".xterm-helper-textarea")?.focus();
const open_terminal = window.onload;
window.onload = async (event) => {
  const letters = ["", "bold ", "italic "].map((kind) => document.fonts.load(kind + "16px 'Roboto Mono'"));
  await Promise.allSettled(letters);
  const watching = { attributes: true, attributeFilter: ["class"] };
  new MutationObserver((_, seen) => connected() && (seen.disconnect(), focus())).observe(document.body, watching);
  open_terminal(event);
};
addEventListener("focus", focus);
// Pasting is the browser's: its clipboard is that of the machine the page is looked at on. The terminal would send the
// key, and what lies in the clipboard of the server's machine would be pasted.
addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "v") {
    event.stopImmediatePropagation();
  }
}, true);
"""

_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="static/xterm.css">
<script src="static/textual.js"></script>
<script src="static/begin.js"></script>
<style>
@font-face {{ font-family: "Roboto Mono"; src: url("static/mono.ttf"); font-weight: 100 700; }}
@font-face {{ font-family: "Roboto Mono"; src: url("static/mono-italic.ttf"); font-weight: 100 700;
  font-style: italic; }}
html, body {{ height: 100%; margin: 0; background: #0f1318; overflow: hidden; }}
#terminal {{ height: 100%; }}
.xterm-viewport {{ scrollbar-width: none; }}
#lost {{ display: none; position: fixed; inset: auto 0 0 0; padding: .75rem 1rem; background: #1f2630; color: #d5dae1;
  font: 15px/1.4 system-ui, sans-serif; z-index: 10; }}
#lost a {{ color: #74b3ff; }}
body.-closed #lost {{ display: block; }}
</style>
</head>
<body>
<div id="terminal" class="textual-terminal" data-session-websocket-url="{socket}" data-font-size="{size}"></div>
<div id="lost" role="status">This page has lost its chat: it ended, was opened in another page, or the server
was stopped. Nothing is lost. <a href="">Reload</a></div>
<noscript>This page needs JavaScript.</noscript>
</body>
</html>
"""


def page(title: str, socket: str) -> str:
    """The page as HTML; ``socket`` is the address of its connection."""
    return _PAGE.format(title=html.escape(title), socket=html.escape(socket), size=FONT_SIZE)


def asset(name: str) -> tuple[bytes, str] | None:
    """A file of the page by its name, with its type; None for every other name."""
    if name == "begin.js":
        return _BEGIN.encode(), TYPES[".js"]
    place = ASSETS.get(name)
    if place is None:
        return None
    return files("textual_serve").joinpath("static", *place.split("/")).read_bytes(), TYPES[Path(name).suffix]
