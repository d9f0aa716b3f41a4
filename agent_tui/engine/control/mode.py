"""The permission mode, and what it means where no sandbox holds."""

from __future__ import annotations

from agent_tui.config import PermissionMode
from agent_tui.engine.state.binding import Bindings
from agent_tui.engine.state.hub import Hub
from agent_tui.models.events import Notice, SessionChanged
from agent_tui.tools.permissions.permissions import Permissions
from agent_tui.tools.sandbox.jail import Jail
from agent_tui.tools.sandbox.policy import Domain, domain_for


class ModeControl:
    """Reads and changes the mode that the permissions judge by."""

    def __init__(self, hub: Hub, bindings: Bindings, permissions: Permissions, jail: Jail | None) -> None:
        self._hub = hub
        self._bindings = bindings
        self._permissions = permissions
        self._jail = jail

    @property
    def now(self) -> PermissionMode:
        return self._permissions.mode

    def domain(self) -> Domain:
        """What commands are held to that run without a question and of which nothing else is said. What a rule allows
        in ``ask`` is meant to work."""
        return "work" if self.now == "ask" else domain_for(self.now)

    def set(self, mode: PermissionMode) -> None:
        """Changes the permission mode, at once."""
        self._permissions.change_mode(mode)
        self._hub.publish(SessionChanged(self._bindings.current.conversation.info))
        self.tell_reach()

    def tell_reach(self) -> None:
        """Says what the mode means: of ``bypass`` at once, of ``auto`` where no sandbox holds, once that is known."""
        if self.now == "bypass":
            from agent_tui.tools.sandbox.words import BYPASS

            self._hub.publish(Notice("warning", BYPASS, "unheld"))
        elif self.now == "auto" and self._jail is not None:
            self._hub.spawn(self._tell_unheld(self._jail), "sandbox")

    async def _tell_unheld(self, jail: Jail) -> None:
        from agent_tui.tools.sandbox.words import unheld

        line = unheld(self.now, await jail.ready())
        if line:
            self._hub.publish(Notice("warning", line, "unheld"))
