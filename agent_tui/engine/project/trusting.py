"""Whether the project is trusted, as the user was told of it last."""

from __future__ import annotations

from agent_tui.context.trust import FolderTrust


class Trusting:
    """Follows a folder's trust: what changes in the folder ends it, and that is told once."""

    def __init__(self, folder: FolderTrust, trusted: bool) -> None:
        self._folder = folder
        self._trusted = trusted

    @property
    def trusted(self) -> bool:
        return self._trusted

    @property
    def identity(self) -> str:
        """The repository that was there when the folder was first looked at."""
        return self._folder.identity

    def lapsed(self) -> str | None:
        """Looks at the folder; the line for the user when it is no longer as it was trusted."""
        if not self._trusted or self._folder.holds():
            return None
        self._trusted = False
        return self._folder.line()

    def details(self) -> str:
        """What the folder brings along that is new to the user, or differs from what they trusted."""
        return self._folder.details()

    def accept(self, sure: bool) -> str | None:
        """Trusts what was shown; None when that is done, else what the user has to see first."""
        folder = self._folder
        if not sure and folder.state != "never":
            first = folder.line() or "This folder is not trusted."
        elif not folder.accept():
            first = "It changed a moment ago; nothing is trusted yet."
        else:
            self._trusted = True
            return None
        return f"{first}\n{folder.details()}\n/trust yes trusts exactly this."
