"""Lists the private names of Textual that the program uses, says which are gone, and who draws then."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from agent_tui.ui.screen_buffer import ScreenBuffer, can_scroll_regions

if TYPE_CHECKING:
    from textual.geometry import Offset

T = TypeVar("T")


class PrivateName(NamedTuple):
    owner: str
    """The class or module, by its full name."""
    name: str
    use: str
    """What it is used for; without the name there is none of that."""
    draws: bool = False
    """Whether the program's own way of drawing needs it; without the name Textual draws."""


CHANGED, KEY_FIRST, AT_ONCE = "drawing only what changed", "showing a key first", "drawing a frame without a message"

NAMES: tuple[PrivateName, ...] = (
    PrivateName("textual._compositor", "Compositor", CHANGED, True),
    PrivateName("textual._compositor", "CompositorUpdate", CHANGED, True),
    PrivateName("textual._compositor.Compositor", "_dirty_regions", CHANGED, True),
    PrivateName("textual.screen.Screen", "_compositor", CHANGED, True),
    PrivateName("textual.screen.Screen", "_compositor_refresh", KEY_FIRST, True),
    PrivateName("textual.screen.Screen", "_dirty_widgets", KEY_FIRST, True),
    PrivateName("textual.widget.Widget", "_layout_required", KEY_FIRST, True),
    PrivateName("textual.app.App", "_batch_count", KEY_FIRST, True),
    PrivateName("textual.screen.Screen", "_on_timer_update", AT_ONCE, True),
    PrivateName("textual.widget.Widget", "_set_dirty", AT_ONCE, True),
    PrivateName("textual.message_pump.MessagePump", "_dispatch_message", "going on after an error in a handler"),
    PrivateName("textual.app.App", "_handle_exception", "showing an error in a line instead of a traceback"),
    PrivateName("textual.app.App", "_filters", "starting at once in a theme of the terminal's own colours"),
    PrivateName("textual.app.App", "_driver", "the window's title, notifications and pictures"),
    PrivateName("textual.drivers.linux_driver.LinuxDriver", "_file", "ending when the terminal vanishes"),
    PrivateName("textual.drivers.linux_driver", "XTermParser", "hearing what the terminal answers"),
    PrivateName("textual._ansi_sequences", "ANSI_SEQUENCES_KEYS", "telling Alt+Enter from Enter"),
)


def missing(*, drawing: bool = False) -> list[PrivateName]:
    """Returns the names that the installed Textual has not: all, or of those that drawing needs."""
    return [each for each in NAMES if (each.draws or not drawing) and not is_there(each)]


def problem(names: list[PrivateName]) -> str:
    """Returns one line on names that are missing; empty where none is."""
    if not names:
        return ""
    gone = ", ".join(f"{each.owner.removeprefix('textual.')}.{each.name} ({each.use})" for each in names)
    drawn = "drawn in Textual's own way, slower; " if any(each.draws for each in names) else ""
    return f"{drawn}missing: {gone}"


def is_there(each: PrivateName) -> bool:
    """Looks for a name of a module, of a class, or that a class gives its instances."""
    module, _, last = each.owner.rpartition(".")
    try:
        owner = getattr(importlib.import_module(module), last) if last[0].isupper() else None
        owner = owner or importlib.import_module(each.owner)
    except (ImportError, AttributeError):
        return False
    if hasattr(owner, each.name):
        return True
    makers = [vars(base).get("__init__") for base in getattr(owner, "__mro__", ())]
    return any(each.name in maker.__code__.co_names for maker in makers if hasattr(maker, "__code__"))


class Drawing:
    """Says who draws. ``told`` hears it when that is Textual."""

    def __init__(self, told: Callable[[], object]) -> None:
        self.buffer = ScreenBuffer(can_scroll_regions())
        self.problem = problem(missing(drawing=True))
        """Why Textual draws; empty while the program does."""
        self.error: Exception | None = None
        """What failed, where it is not that a name is missing."""
        self.cursor: Offset | None = None
        """Where the cursor was put last."""
        self.told = told
        self.of_widget: Exception | None = None

    def attempt(self, own: Callable[[], T], textual: Callable[[], T]) -> T:
        """Draws in the program's own way; where that fails and Textual's does not, in Textual's from now on. Where both
        fail the fault is a widget's."""
        try:
            return own()
        except Exception as error:
            if error is self.of_widget:
                raise
            try:
                drawn = textual()
            except Exception as widget_error:
                self.of_widget = widget_error
                raise
            self.problem = f"drawn in Textual's own way, slower: {type(error).__name__}: {error}"
            self.error = error
            self.told()
            return drawn
