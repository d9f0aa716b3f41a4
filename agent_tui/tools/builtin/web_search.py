"""web_search: what the configured search endpoint finds."""

from __future__ import annotations

import json
import os
import re
from collections import deque
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from agent_tui import __version__
from agent_tui.config import ToolsConfig
from agent_tui.errors import ToolError
from agent_tui.models.messages import SEARCH_TOOL, Metadata
from agent_tui.models.requests import ToolSchema
from agent_tui.records import dataclass
from agent_tui.text.clean import pictured, printable_line
from agent_tui.text.numbers import plural
from agent_tui.tools.arguments import TEXT, parameters, reject_surrogates, validate
from agent_tui.tools.base import Intent, ToolContext, ToolOutcome
from agent_tui.tools.builtin.fetch import TIMEOUT
from agent_tui.tools.children.process import Stop, in_thread
from agent_tui.tools.output import cap
from agent_tui.urls import Url, parse_url

MOST_RESULTS, LONGEST_QUERY, LONGEST_SNIPPET = 10, 1_000, 600
MOST_VALUES = 20_000
"""Values of an answer that are looked at for the list of results."""
ADDRESSES, TITLES = ("url", "link", "href"), ("title", "name", "t")
SNIPPETS = ("content", "snippet", "description", "text", "body")
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_NAME = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")


def is_endpoint(config: ToolsConfig) -> bool:
    """Returns whether searches go to an address of the user's."""
    return "://" in config.web_search


@dataclass(slots=True)
class WebSearchArguments:
    query: str


class WebSearchTool:
    """Redirects are not followed: the headers may hold a key."""

    group = "builtin"
    schema = ToolSchema(SEARCH_TOOL, "Search the web.", parameters({"query": TEXT}, "query"))

    def intent(self, arguments: Metadata, context: ToolContext) -> Intent:
        query, url = _query(arguments), _url(arguments, context)
        return Intent(
            "network",
            f"{SEARCH_TOOL} {query[:200]}",
            url=url.text,
            display={"kind": "text", "text": f"{query}\n\nto {url.host}"},
        )

    async def run(self, arguments: Metadata, context: ToolContext) -> ToolOutcome:
        url, headers = _url(arguments, context), _headers(context.config.web_search_headers)
        return await in_thread(lambda stop: _search(url, headers, context, stop))


def _query(arguments: Metadata) -> str:
    query = " ".join(validate(WebSearchArguments, arguments, SEARCH_TOOL).query.split())
    reject_surrogates(query, SEARCH_TOOL, "query")
    if not 0 < len(query) <= LONGEST_QUERY:
        raise ToolError(f"{SEARCH_TOOL}: the query must have 1 to {LONGEST_QUERY:,} characters.")
    return query


def _url(arguments: Metadata, context: ToolContext) -> Url:
    return parse_url(context.config.web_search.replace("{query}", quote(_query(arguments), safe="")))


def _headers(configured: Mapping[str, str]) -> dict[str, str]:
    def fill(match: re.Match[str]) -> str:
        if not (value := os.environ.get(match[1])):
            raise ToolError(f"The environment variable {match[1]}, which tools.web_search_headers names, is not set.")
        return value

    filled = {name: _VARIABLE.sub(fill, value) for name, value in configured.items()}
    for name, value in filled.items():
        # The library's own words would repeat the value, which may be a key.
        if not (value.isascii() and value.isprintable() and _NAME.fullmatch(name)):
            raise ToolError(f"tools.web_search_headers: {name!r} or its value has characters that no header may have.")
    return filled


def _search(url: Url, headers: Mapping[str, str], context: ToolContext, stop: Stop) -> ToolOutcome:
    from agent_tui.tools.builtin.http_get import get

    response = get(url, TIMEOUT, stop, f"agent-tui/{__version__}", {"Accept": "application/json", **headers})
    if response.status != 200:
        raise ToolError(f"The search at {url.host} failed: {response.status} {pictured(response.reason)}")
    try:
        answer = json.loads(response.body)
    except (ValueError, RecursionError):
        raise ToolError(f"The search at {url.host} failed: what it answers is no JSON.") from None
    found = results(answer)
    if found is None:
        raise ToolError(f"The search at {url.host} failed: its answer has no list of results.")
    text = "\n\n".join(filter(None, map(_shown, found[:MOST_RESULTS])))
    capped = cap(context.secrets.mask(text), context.config.output_limit, context.spill_dir, SEARCH_TOOL)
    summary = plural(min(len(found), MOST_RESULTS), "result")
    return ToolOutcome(capped.text or "[no results]", display={"kind": "text", "summary": summary} | capped.counted())


def results(answer: Any) -> list[dict[str, Any]] | None:
    """The list of results in an answer, wherever it is: the first one whose entries have addresses, else one that is
    called so and has none. None where there is no such list."""
    empty: list[dict[str, Any]] | None = None
    waiting, seen = deque([("", answer)]), 0
    while waiting and seen < MOST_VALUES:
        (name, value), seen = waiting.popleft(), seen + 1
        if isinstance(value, dict):
            waiting.extend((str(key), entry) for key, entry in value.items())
        elif isinstance(value, list):
            found = [entry for entry in value if isinstance(entry, dict) and _first(entry, ADDRESSES)]
            if found:
                return found
            if not value and name in ("results", "data", "items"):
                empty = []
            waiting.extend(("", entry) for entry in value[:MOST_RESULTS])
    return empty


def _first(entry: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next((value for name in names if isinstance(value := entry.get(name), str) and value.strip()), "")


def _shown(entry: Mapping[str, Any]) -> str:
    title, snippet = (_plain(_first(entry, names)) for names in (TITLES, SNIPPETS))
    address = printable_line(_first(entry, ADDRESSES), 2_000)
    return "\n".join(filter(None, [title[:200], address, snippet[:LONGEST_SNIPPET]]))


def _plain(text: str) -> str:
    """Without the tags with which some mark the words that were found."""
    import html  # most runs search nothing

    return pictured(" ".join(html.unescape(_TAG.sub("", text[: 4 * LONGEST_SNIPPET])).split()))
