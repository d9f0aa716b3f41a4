"""Images become part of a session in a size that its model takes, wherever they come from."""

from __future__ import annotations

import base64
import io
import struct
from pathlib import Path

import pytest
from PIL import Image

from agent_tui.models.events import Notice
from agent_tui.models.image_headers import base64_size
from agent_tui.models.messages import AttachmentPart, Message
from agent_tui.models.requests import ModelSpec
from agent_tui.providers.catalog import images_of, resolve_target
from tests.support.agents import parts_for, running

pytestmark = pytest.mark.quick

SCRIPT = """
[[step]]
tool_calls = [
  { name = "read", arguments = { path = "large.png" } },
  { name = "read", arguments = { path = "bomb.png" } },
  { name = "read", arguments = { path = "small.png" } },
]
[[step]]
text = "done"
"""


def png(width: int, height: int) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (width, height), "navy").save(out, "PNG")
    return out.getvalue()


def bomb() -> bytes:
    small = bytearray(png(10, 10))
    small[16:24] = struct.pack(">II", 60_000, 60_000)
    return bytes(small)


def images(messages: list[Message]) -> list[AttachmentPart]:
    return [p for m in messages for p in m.parts if isinstance(p, AttachmentPart) and p.media_type.startswith("image/")]


async def test_what_tools_return_is_scaled_before_it_is_stored(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "large.png").write_bytes(png(9_000, 90))
    (project / "bomb.png").write_bytes(bomb())
    (project / "small.png").write_bytes(png(20, 10))
    parts = parts_for(tmp_path / "home", project, script=SCRIPT, can_ask=False)
    async with running(parts) as (agent, _):
        agent.turns.submit("look")
        await agent.turns.join()
        large, small = images(agent.conversation.path)
        assert base64_size(large.data or "") == (4_096, 41)
        assert base64.b64decode(small.data or "") == png(20, 10)
        first, second, third = [m.tool_result for m in agent.conversation.path if m.tool_result is not None]
        assert "[large.png scaled from 9000×90 to 4096×41 for this model]" in first.text
        assert "scaled from 9000×90" in str(first.display)
        assert "[not attached: bomb.png: 60000×60000 pixels" in second.text
        assert "scaled" not in third.text


async def test_what_users_attach_is_scaled_for_the_model_in_use(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    parts = parts_for(tmp_path / "home", project, script=SCRIPT, can_ask=False)
    given = [AttachmentPart("a.png", "image/png", data=base64.b64encode(png(9_000, 90)).decode())]
    async with running(parts) as (agent, _):
        kept, scaled, refused = await agent.project.fit_images(given)
        assert (len(kept), scaled, refused) == (1, ["a.png scaled from 9000×90 to 4096×41 for this model"], [])
        assert await agent.project.fit_images(kept) == (kept, [], [])


@pytest.mark.parametrize("count", [1, 2])
async def test_a_switch_says_which_images_are_told_in_a_line(tmp_path: Path, count: int) -> None:
    project = tmp_path / "project"
    project.mkdir()
    target = resolve_target(ModelSpec("m", "xai/grok-4"))
    assert "image/webp" not in images_of(target).types
    given = [AttachmentPart("a.webp", "image/webp", data="UklGRgAAAABXRUJQ")] * count
    parts = parts_for(tmp_path / "home", project, script='[[step]]\ntext = "done"\n', can_ask=False)
    async with running(parts) as (agent, recorder):
        agent.turns.submit("look", given)
        await agent.turns.join()
        await agent.models.switch("xai/grok-4")
        lines = [n.text for n in recorder.of(Notice) if n.code == "images"]
        what = "1 image" if count == 1 else "2 images"
        assert lines == [f"This session has {what} that xai/grok-4 cannot take; lines replace them."]
