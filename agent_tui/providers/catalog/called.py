"""Who is called, in the words of errors: a provider by its name, a server of the user's own by its address."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from agent_tui.models.requests import ModelSpec
from agent_tui.providers.dialects import dialect_of
from agent_tui.text.clean import printable


@dataclass(slots=True, frozen=True)
class Called:
    """``address`` is the configured one, if any, and ``key_env`` the configured variable of the key."""

    provider: str
    address: str | None = None
    key_env: str | None = None

    @property
    def own(self) -> bool:
        """Whether the provider's name only says which language a server at a configured address speaks."""
        dialect = dialect_of(self.provider)
        if not dialect.compatible or not self.address:
            return False
        usual = dialect.base
        return usual is None or _host(usual) != _host(self.address)

    @property
    def name(self) -> str:
        return f"the server at {shown_origin(self.address)}" if self.own and self.address else self.provider

    @property
    def first(self) -> str:
        """The name where a sentence begins with it. Providers' names are written as they are configured."""
        return self.name[:1].upper() + self.name[1:] if self.own else self.name

    @property
    def place(self) -> str:
        """The name with all of the configured address, which may be what is wrong."""
        if not self.address:
            return self.provider
        shown = shown_address(self.address)
        return f"the server at {shown}" if self.own else f"{self.provider} at {shown}"

    @property
    def first_place(self) -> str:
        return self.place[:1].upper() + self.place[1:] if self.own else self.place

    @property
    def give_key(self) -> str:
        """What to do about a key that is refused."""
        if self.key_env:
            return f"Check the key in {self.key_env}."
        if self.own:
            return "Check the key: name the variable that holds it in api_key_env of the model."
        return f"Check the key: set {dialect_of(self.provider).key_name} or run `agent-tui auth set {self.provider}`."


def missing_key_line(spec: ModelSpec, provider: str, variable: str) -> str:
    """The one line for a missing key, naming the ways to give it. ``variable`` is the one that was looked for."""
    called = Called(provider, spec.api_base, spec.api_key_env)
    if spec.api_key_env and called.own:
        # No word of the keyring: what is stored there for the provider's name is meant for the provider itself.
        return f"No API key for {called.name}: set {variable}, which api_key_env of the model names."
    if called.own:
        return f"No API key for {called.name}: set {variable}, or name the variable that holds it in api_key_env."
    return f"No API key for {provider}: set {variable}, or run `agent-tui auth set {provider}`."


def shown_address(url: str) -> str:
    """A server's address without user, password, query and fragment."""
    return _shown(url, whole=True)


def shown_origin(url: str) -> str:
    """Scheme, host and port of a server's address."""
    return _shown(url, whole=False)


def _shown(url: str, whole: bool) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return "the address in api_base"
    path = parts.path if whole else ""
    shown = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], path, "", ""))
    return printable(shown)


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
