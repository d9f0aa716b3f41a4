"""An MCP server that asks, on the official SDK: ``python mcp_asking.py [--http SOCKET]``. Its tools say what they were
answered. Those whose name ends with ``_again`` ask as protocol 2026-07-28 has it: in the place of a result."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import warnings
from typing import Any, Literal

import mcp_types as types
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.exceptions import MCPDeprecationWarning, UrlElicitationRequiredError
from mcp_types import CallToolResult, ElicitRequest, EmbeddedResource, InputRequiredResult, ResourceLink
from pydantic import BaseModel, Field

warnings.simplefilter("ignore", MCPDeprecationWarning)
server = MCPServer("asking")
Asking = Context[Any, Any]
PAGE = "https://pay.example.com/start?id=1"


class Trip(BaseModel):
    """Where to?"""

    city: str = Field(description="As it is written there", min_length=2)
    days: int = Field(default=3, ge=1, le=30)
    train: bool = False
    seat: Literal["window", "aisle"] = "window"


@server.tool()
async def plan(ctx: Asking) -> str:
    """Plans a trip."""
    answer = await ctx.elicit("Where do you want to go?", Trip)
    return f"{answer.action} {getattr(answer, 'data', None)}"


@server.tool()
async def pay(ctx: Asking) -> str:
    """Has something paid."""
    return (await ctx.elicit_url("Pay there.", PAGE, "pay-1")).action


@server.tool()
async def needs_page() -> str:
    """Wants a page to be opened first."""
    raise UrlElicitationRequiredError(
        [types.ElicitRequestURLParams(message="Log in there.", url=PAGE, elicitation_id="login-1")]
    )


@server.tool()
async def think(ctx: Asking, text: str) -> str:
    """Asks the model."""
    said = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=text))
    answer = await ctx.session.create_message(
        [said], max_tokens=50, system_prompt="Be short.", related_request_id=ctx.request_id
    )
    return f"{answer.stop_reason}: {getattr(answer.content, 'text', answer.content)}"


@server.tool()
async def where(ctx: Asking) -> str:
    """Says the roots."""
    return json.dumps([str(root.uri) for root in (await ctx.session.list_roots()).roots])


@server.tool()
async def pester(ctx: Asking, times: int) -> str:
    """Asks again and again."""
    answers = [(await ctx.elicit(f"Number {n}?", Trip)).action for n in range(times)]
    return json.dumps({action: answers.count(action) for action in set(answers)})


GO = asyncio.Event()


@server.tool()
async def let_go() -> str:
    """Has the two below go on."""
    GO.set()
    return "gone on"


@server.tool()
async def die_asking(ctx: Asking) -> str:
    """Asks and is gone before there is an answer."""
    asked = asyncio.create_task(ctx.elicit("Still there?", Trip))
    await GO.wait()
    os.kill(os.getpid(), signal.SIGKILL)
    return (await asked).action


@server.tool()
async def give_up_asking(ctx: Asking) -> str:
    """Asks and goes on without an answer."""
    asked = asyncio.create_task(ctx.elicit("Anybody?", Trip))
    await GO.wait()
    asked.cancel()
    return "went on"


@server.tool()
async def plan_again(ctx: Asking) -> str | InputRequiredResult:
    """Plans a trip, asking in the place of a result."""
    if ctx.input_responses and "trip" in ctx.input_responses:
        answer: Any = ctx.input_responses["trip"]
        return f"{answer.action} {answer.content}"
    form = types.ElicitRequestFormParams(
        message="Where do you want to go?", requested_schema=types_of(Trip), mode="form"
    )
    return InputRequiredResult(input_requests={"trip": ElicitRequest(params=form)}, request_state="s1")


@server.tool()
async def never_again(ctx: Asking) -> str | InputRequiredResult:
    """Asks whatever the answers are."""
    page = types.ElicitRequestURLParams(message="Pay there.", url=PAGE)
    return InputRequiredResult(input_requests={"pay": ElicitRequest(params=page)}, request_state="s1")


@server.tool()
async def pay_again(ctx: Asking) -> str | InputRequiredResult:
    """Has something paid, asking in the place of a result."""
    if ctx.input_responses and "pay" in ctx.input_responses:
        answer: Any = ctx.input_responses["pay"]
        return str(answer.action)
    page = types.ElicitRequestURLParams(message="Pay there.", url=PAGE)
    return InputRequiredResult(input_requests={"pay": ElicitRequest(params=page)})


def types_of(model: type[BaseModel]) -> dict[str, Any]:
    schema = model.model_json_schema()
    return {key: schema[key] for key in ("type", "properties", "required")}


@server.tool()
async def found() -> CallToolResult:
    """Answers with a link, something embedded, and a sound."""
    inner = types.TextResourceContents(uri="test://inside", mime_type="text/plain", text="embedded words")
    return CallToolResult(
        content=[
            ResourceLink(type="resource_link", name="report", uri="test://report", description="all of it"),
            EmbeddedResource(type="resource", resource=inner),
            types.AudioContent(type="audio", data="AAAA", mime_type="audio/wav"),
        ]
    )


@server.resource("test://report")
def report() -> str:
    """The report."""
    return "the whole report"


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--http", type=int, help="an inherited socket that listens")
    options = parser.parse_args()
    if options.http is not None:
        uvicorn.run(server.streamable_http_app(), fd=options.http, log_level="error")
    else:
        server.run("stdio")
