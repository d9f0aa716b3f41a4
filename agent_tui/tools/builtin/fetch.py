"""fetch: a URL as Markdown."""

from __future__ import annotations

import base64

from agent_tui import __version__
from agent_tui.errors import ToolError
from agent_tui.models.image_headers import image_type
from agent_tui.models.messages import AttachmentPart, Metadata
from agent_tui.models.requests import ToolSchema
from agent_tui.records import dataclass
from agent_tui.text.clean import pictured, printable_line
from agent_tui.text.numbers import plural
from agent_tui.tools.arguments import TEXT, parameters, validate
from agent_tui.tools.base import Intent, ToolContext, ToolOutcome
from agent_tui.tools.children.process import Stop, in_thread
from agent_tui.tools.output import cap
from agent_tui.urls import Url, parse_url

TIMEOUT = 30.0
MAX_REDIRECTS = 5


@dataclass(slots=True)
class FetchArguments:
    url: str


class FetchTool:
    """Redirects within a host are followed; one to another host is told to the model: its next call is judged anew."""

    group = "builtin"
    schema = ToolSchema(
        "fetch",
        "Fetch a URL as Markdown.",
        parameters({"url": TEXT}, "url"),
    )

    def intent(self, arguments: Metadata, context: ToolContext) -> Intent:
        url = parse_url(validate(FetchArguments, arguments, "fetch").url)
        return Intent("network", f"fetch {url.text[:200]}", url=url.text, display={"kind": "text", "text": url.text})

    async def run(self, arguments: Metadata, context: ToolContext) -> ToolOutcome:
        url = parse_url(validate(FetchArguments, arguments, "fetch").url)
        return await in_thread(lambda stop: _fetch(url, context, stop))


def _fetch(url: Url, context: ToolContext, stop: Stop) -> ToolOutcome:
    from agent_tui.tools.builtin.http_get import get

    for _ in range(MAX_REDIRECTS):
        response = get(url, TIMEOUT, stop, f"agent-tui/{__version__}")
        location = response.headers.get("location")
        if response.status not in (301, 302, 303, 307, 308) or not location:
            break
        following = url.joined(location)
        if following.host != url.host or (following.port != url.port and (url.port, following.port) != (80, 443)):
            text = f"{url.text} redirects to {following.text}. Fetch that URL if you want it."
            return ToolOutcome(text, display={"kind": "text", "summary": "redirect"})
        url = following
    else:
        raise ToolError(f"{url.text}: more than {MAX_REDIRECTS} redirects.")
    if response.status >= 400:
        raise ToolError(f"{url.text}: {response.status} {pictured(response.reason)}")
    if image := image_type(response.body[:16]):
        if not response.complete:
            raise ToolError(f"{url.text} is an image of more than 5 MB; it was not fetched.")
        name = url.target.partition("?")[0].rpartition("/")[2] or "image"
        part = AttachmentPart(name, image, data=base64.b64encode(response.body).decode())
        return ToolOutcome(f"{image}, attached.", display={"kind": "text", "summary": image}, attachments=[part])
    from agent_tui.tools.builtin.markdown import read_page

    text = read_page(response.body, url.text, response.headers.get("content-type", "text/plain"))
    if not response.complete:
        text += "\n[the page is larger than 5 MB; the rest was not fetched]"
    capped = cap(context.secrets.mask(pictured(text)), context.config.output_limit, context.spill_dir, "fetch")
    title = printable_line(text.partition("\n")[0].removeprefix("# "), 60) if text.startswith("# ") else ""
    summary = ", ".join([*([title] if title else []), plural(capped.characters, "character")])
    return ToolOutcome(capped.text or "[empty]", display={"kind": "text", "summary": summary} | capped.counted())
