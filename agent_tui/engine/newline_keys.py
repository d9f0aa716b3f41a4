"""Which keys begin a new line on this terminal, and what to set for those that do not."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from agent_tui.engine.tmux import ask_tmux
from agent_tui.records import dataclass

ALWAYS = "Ctrl+J, and \\ before Enter"
CLIENT = "client_termfeatures"
"""What tmux found out about the terminal around it; all else that it is asked for are options."""
WORKS = ""
"""In place of what would have to be set."""


@dataclass(slots=True, frozen=True)
class Known:
    """A terminal: what has to be set for each key, nothing where it works as it is."""

    name: str
    shift: str = WORKS
    alt: str = WORKS


_FULL_SCREEN = "the terminal uses it for full screen"
_OPTION = "set Option as Meta in the terminal's keyboard settings"

BY_PROGRAM: dict[str, Known] = {
    "iTerm.app": Known("iTerm2", alt="set Left Option to Esc+ (Profiles, Keys)"),
    "ghostty": Known("Ghostty"),
    "WezTerm": Known("WezTerm", "set enable_kitty_keyboard = true in wezterm.lua", _FULL_SCREEN),
    "WarpTerminal": Known("Warp"),
    "rio": Known("Rio"),
    "zed": Known("Zed"),
    "vscode": Known(
        "VS Code",
        "from 1.109.5; earlier, bind shift+enter to workbench.action.terminal.sendSequence with \\u001b\\r",
        "works; on macOS set terminal.integrated.macOptionIsMeta",
    ),
    "Apple_Terminal": Known(
        "Terminal.app", "not distinguished from Enter", "check Use Option as Meta Key (Profiles, Keyboard)"
    ),
}
"""By ``TERM_PROGRAM``. Sources: the terminals' own documentation and terminfo.dev."""
BY_TERM: dict[str, Known] = {
    "xterm-kitty": Known("kitty"),
    "xterm-ghostty": BY_PROGRAM["ghostty"],
    "foot": Known("foot"),
    "alacritty": Known("Alacritty", "from 0.13"),
    "rio": BY_PROGRAM["rio"],
    "linux": Known("the Linux console", "not distinguished from Enter"),
}
"""By the beginning of ``TERM``."""
BY_VARIABLE: dict[str, Known] = {
    "KITTY_WINDOW_ID": BY_TERM["xterm-kitty"],
    "WT_SESSION": Known(
        "Windows Terminal", "add an action sendInput with \\n for shift+enter to its settings.json", _FULL_SCREEN
    ),
    "XTERM_VERSION": Known("xterm"),
}
_OTHER = Known("", "only with the kitty keyboard protocol", "works; on macOS set Option as Meta in the terminal")


def new_line_keys(environment: Mapping[str, str], tmux: Callable[[str], str] | None = None) -> list[tuple[str, str]]:
    """(what, detail): which keys work here, and what to set for each that does not. ``tmux`` answers an option of the
    server (empty where it is not known); without it the server that runs is asked."""
    if environment.get("TMUX"):
        known = _tmux(tmux or _option)
    elif environment.get("STY") or environment.get("TERM", "").startswith("screen"):
        known = Known("GNU screen", "not distinguished from Enter")
    else:
        known = _terminal(environment)
    keys = (("Shift+Enter", known.shift), ("Alt+Enter", known.alt))
    works = ", ".join([ALWAYS, *(key for key, setting in keys if setting == WORKS)])
    where = f" (in {known.name})" if known.name else ""
    return [("new line", f"{works}{where}"), *((f"  {key}", setting) for key, setting in keys if setting != WORKS)]


def _terminal(environment: Mapping[str, str]) -> Known:
    found = BY_PROGRAM.get(environment.get("TERM_PROGRAM", ""))
    if found is not None:
        return found
    for name, known in BY_VARIABLE.items():
        if environment.get(name):
            return known
    if environment.get("LC_TERMINAL") == "iTerm2":
        return BY_PROGRAM["iTerm.app"]
    term = environment.get("TERM", "")
    return next((known for begin, known in BY_TERM.items() if term.startswith(begin)), _OTHER)


def _tmux(option: Callable[[str], str]) -> Known:
    """tmux hands the key on where it is asked to, and gets it where the terminal around it has the feature."""
    passes = option("extended-keys")
    if not passes:
        return Known("tmux", "needs tmux 3.2 or newer")
    needs = [] if passes in ("on", "always") else ["set -s extended-keys on"]
    if "extkeys" not in option("terminal-features") + option(CLIENT):
        needs.append("set -as terminal-features '*:extkeys'")
    put = f"add to ~/.tmux.conf: {' and '.join(needs)}; the terminal around tmux must support it, too"
    return Known("tmux", put if needs else "works if the terminal around tmux supports it")


def _option(name: str) -> str:
    if name == CLIENT:
        return ask_tmux("display-message", "-p", f"#{{{CLIENT}}}")
    return ask_tmux("show-options", "-sv", name)
