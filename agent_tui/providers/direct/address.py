"""Where a direct call goes: the configured address, an environment variable's, or the provider's own."""

from __future__ import annotations

import os
import re
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from agent_tui.models.requests import ModelSpec, Target
from agent_tui.providers.catalog.called import shown_address
from agent_tui.providers.dialects import Dialect
from agent_tui.providers.net.addresses import is_loopback, near_url, variable_base

AZURE_API_VERSION = "2025-02-01-preview"
"""Version of Azure's deployment addresses where neither ``extra.api_version`` nor ``AZURE_API_VERSION`` says one."""

VERSION = re.compile(r"/v\d+$")
_AZURE_V1 = re.compile(r"/openai/v1(?:/responses|/chat/completions)?$")
AZURE_PATH = re.compile(r"(?:/openai)?(?:/v1)?(?:/responses|/chat/completions)?$")


class NoAddressError(Exception):
    """There is no address, or none that can be called. The message is for the user."""


def url_of(spec: ModelSpec, target: Target, dialect: Dialect) -> str:
    """The URL of a streaming call. Raises NoAddressError."""
    root = _root(spec, dialect)
    parts = urlsplit(root)
    path = parts.path
    match dialect.wire:
        case "anthropic":
            path = path.removesuffix("/v1/messages").removesuffix("/v1") + "/v1/messages"
        case "gemini":
            path = (path.partition("/models")[0] or dialect.host_path) + f"/models/{quote(target.model)}"
            return urlunsplit(parts._replace(path=f"{path}:streamGenerateContent", query="alt=sse"))
        case "cohere":
            path = path if path.endswith("/chat") else f"{path if VERSION.search(path) else path + '/v2'}/chat"
        case "ollama":
            path = path.removesuffix("/chat").removesuffix("/api").removesuffix("/v1") + "/api/chat"
        case _ if dialect.deployments:
            return _azure(parts.scheme, parts.netloc, path, spec, target)
        case _:
            path = path.removesuffix("/chat/completions").removesuffix("/responses") or dialect.host_path
            path += "/responses" if target.api == "responses" else "/chat/completions"
    return urlunsplit(parts._replace(path=path))


def _root(spec: ModelSpec, dialect: Dialect) -> str:
    configured = spec.api_base or variable_base(dialect)
    root = (configured or dialect.base or "").strip()
    if not root:
        raise NoAddressError(
            f"{dialect.name} has no address of its own: set api_base of the model"
            + (f", or {dialect.base_variables[0]}." if dialect.base_variables else ".")
        )
    if "://" not in root and (dialect.local or is_loopback(f"http://{root}")):
        root = near_url(root, dialect)
    if not _is_http(root):
        where = "api_base of the model" if spec.api_base else " or ".join(dialect.base_variables)
        shown = shown_address(root)
        raise NoAddressError(f"{where} is no address of an API: {shown!r}. Write it as https://HOST/PATH or http://….")
    return root.rstrip("/")


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return known and not re.search(r"[\s\x00-\x1f\x7f]", url)


def _azure(scheme: str, netloc: str, path: str, spec: ModelSpec, target: Target) -> str:
    """Azure's v1 API where it is asked for, else the address of a deployment, whose name is the model's."""
    configured = spec.extra.get("api_version") or os.environ.get("AZURE_API_VERSION")
    version = str(configured) if configured else ""
    bare = AZURE_PATH.sub("", path)
    if target.api == "responses":
        path, query = f"{bare}/openai/v1/responses", {"api-version": "preview"} if version == "preview" else {}
    elif version in ("v1", "latest", "preview") or _AZURE_V1.search(path):
        path, query = f"{bare}/openai/v1/chat/completions", {"api-version": "preview"} if version == "preview" else {}
    else:
        path = f"{bare}/openai/deployments/{quote(target.model)}/chat/completions"
        query = {"api-version": version or AZURE_API_VERSION}
    return urlunsplit((scheme, netloc, path, urlencode(query), ""))
