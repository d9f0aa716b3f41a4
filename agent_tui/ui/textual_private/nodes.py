"""Apps and widgets: their errors, their first theme, their keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from textual.app import App
from textual.message_pump import MessagePump
from textual.widget import Widget

if TYPE_CHECKING:
    from textual.binding import Binding
    from textual.message import Message


class SurvivesHandlers(MessagePump):
    """A node of which ``survives`` decides whether it goes on with its next message when a handler has failed."""

    async def _dispatch_message(self, message: Message) -> None:
        try:
            await super()._dispatch_message(message)
        except Exception as error:
            if not self.survives(error):
                raise

    def survives(self, error: Exception) -> bool:
        """Takes care of the error; False leaves it to Textual."""
        return False


class AnswersErrors(App[int]):
    """An app that is asked what to do with an error that nobody caught."""

    def _handle_exception(self, error: Exception) -> None:
        self.uncaught(error)

    def uncaught(self, error: Exception) -> None:
        """Takes care of the error; what is raised here ends the program."""
        super()._handle_exception(error)


def wear_first(app: App[Any], theme: str) -> None:
    """Starts with a registered theme; setting it later would style everything twice."""
    app.set_reactive(App.theme, theme)
    app.stylesheet.set_variables(app.get_css_variables())
    app._refresh_truecolor_filter(app.ansi_theme)
    if app.no_color and app.native_ansi_color:
        from textual.filter import Monochrome, NoColor

        app._filters[:] = [NoColor() if isinstance(each, Monochrome) else each for each in app._filters]


def bindings_of(widget: Widget, key: str) -> Iterator[Binding]:
    """The widget's own bindings for a key, as the user bound it."""
    for node, bindings in widget.screen._modal_binding_chain:
        if node is widget:
            yield from bindings.key_to_bindings.get(key, ())
            return
