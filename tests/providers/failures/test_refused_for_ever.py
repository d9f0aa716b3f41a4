"""What a server refuses in a conversation is refused again with every message that follows: it is sent otherwise, told
to the user, and the session goes on."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from agent_tui.models.failure import Failure
from agent_tui.models.messages import AttachmentPart
from agent_tui.providers.client import ModelClient
from agent_tui.providers.refusals import refuses_media
from tests.providers import responses_stream as responses
from tests.support import anthropic_stream as anthropic
from tests.support.agents import say
from tests.support.end_to_end import Product, calls, model
from tests.support.every import every
from tests.support.forms import one_of
from tests.support.loopback import Loopback, Reply, chat_chunk, chat_stream, json_reply, sse

pytestmark = pytest.mark.asyncio(loop_scope="session")

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
CHAT = "/v1/chat/completions"

UNSEEING: list[tuple[str, str, int, Any]] = [
    # name, who says it, status, body
    (
        "openai/local",
        "llama.cpp",
        500,
        {
            "error": {
                "code": 500,
                "message": "image input is not supported - hint: if this is unexpected, you may need to provide "
                "the mmproj",
                "type": "server_error",
            }
        },
    ),
    (
        "openai/local",
        "OpenRouter",
        404,
        {"error": {"message": "No endpoints found that support image input", "code": 404}},
    ),
    (
        "openai/local",
        "DeepSeek",
        400,
        {
            "error": {
                "message": "Failed to deserialize the JSON body into the target type: messages[1]: unknown variant "
                "`image_url`, expected `text` at line 1 column 998",
                "type": "invalid_request_error",
            }
        },
    ),
    (
        "openai/local",
        "vLLM",
        400,
        {"object": "error", "message": "qwen3 is not a multimodal model", "type": "BadRequestError", "code": 400},
    ),
    ("openai/local", "Ollama", 400, {"error": {"message": "this model does not support image input"}}),
    (
        "openai/local",
        "Groq",
        400,
        {
            "error": {
                "message": "'messages.1' : for 'role:user' the following must be satisfied[('messages.1.content' : "
                "one of the following must be satisfied[('messages.1.content' : content must be a string)]",
                "type": "invalid_request_error",
            }
        },
    ),
    (
        "anthropic/glm-5.2",
        "Ollama as Anthropic",
        400,
        {
            "type": "error",
            "error": {"type": "invalid_request_error", "message": "this model does not support image input"},
        },
    ),
    (
        "openai/responses/local",
        "vLLM's Responses",
        400,
        {
            "error": {
                "message": "local is not a multimodal model",
                "type": "BadRequestError",
                "param": None,
                "code": 400,
            }
        },
    ),
    (
        "gemini/gemma-3-1b-it",
        "Google",
        400,
        {
            "error": {
                "code": 400,
                "message": "Image input modality is not enabled for models/gemma-3-1b-it",
                "status": "INVALID_ARGUMENT",
            }
        },
    ),
]
PATHS = {"anthropic": ("/v1/messages", ""), "gemini": ("*", ""), "openai/responses": ("/v1/responses", "/v1")}


def fine(name: str) -> Reply:
    if name.startswith("gemini"):
        usage = {"promptTokenCount": 10, "candidatesTokenCount": 1, "totalTokenCount": 11}
        candidate = {"content": {"role": "model", "parts": [{"text": "Fine."}]}, "finishReason": "STOP", "index": 0}
        return Reply(sse([{"candidates": [candidate], "usageMetadata": usage}]))
    if name.startswith("openai/responses"):
        said = responses.answer(responses.message("msg_1", "Fine."))
    elif name.startswith("anthropic"):
        said = anthropic.answer(anthropic.text("Fine."))
    else:
        return Reply(chat_stream(["Fine."]))
    return said if isinstance(said, Reply) else Reply(said)


def path_of(name: str) -> tuple[str, str]:
    return next((path for start, path in PATHS.items() if name.startswith(start)), (CHAT, "/v1"))


def shown(body: Any) -> bool:
    text = json.dumps(body)
    return base64.b64encode(PNG).decode() in text


@pytest.mark.slow
@pytest.mark.parametrize(("name", "who", "status", "body"), one_of(UNSEEING, 3), ids=[row[1] for row in UNSEEING])
async def test_a_picture_that_a_server_does_not_take_is_told_in_words_from_then_on(
    name: str, who: str, status: int, body: Any, worker: ModelClient, tmp_path: Path, server: Loopback
) -> None:
    picture = tmp_path / "shot.png"
    picture.write_bytes(PNG)
    path, prefix = path_of(name)
    server.serve(path, json_reply(body, status=status), *[fine(name)] * 3)
    product = Product(tmp_path / "home", worker, {"m": model(name, server, prefix, context_window=64_000)})
    summary = await product.run("look", images=[picture])
    assert (product.code, summary["text"]) == (0, "Fine.")
    (told,) = [note["text"] for note in summary["notices"] if note["code"] == "media_refused"]
    assert "shot.png" in told and "Remembered" in told
    await product.run("and now?")
    sent = [call.json for call in calls(server)]
    assert [shown(one) for one in sent] == [True, False, False], "another process knows it, too"
    assert "shot.png (image/png) cannot be read by this model" in json.dumps(sent[-1])


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        "Could not process image",
        "At most 1 image(s) may be provided in one prompt.",
        "A maximum of 100 PDF pages may be provided.",
        "Invalid image_url: the image could not be fetched",
    ],
)
async def test_a_picture_that_is_wrong_is_left_out_and_others_may_be_right(
    words: str, worker: ModelClient, tmp_path: Path, server: Loopback
) -> None:
    picture = tmp_path / "shot.png"
    picture.write_bytes(PNG)
    bad = {"type": "error", "error": {"type": "invalid_request_error", "message": words}}
    server.serve("/v1/messages", json_reply(bad, status=400), *[fine("anthropic")] * 3)
    product = Product(tmp_path / "home", worker, {"m": model("anthropic/claude-sonnet-4-6", server)})
    assert (await product.run("look", images=[picture]))["text"] == "Fine."
    await product.run("hello", images=[picture], fresh=True)
    assert [shown(call.json) for call in calls(server)] == [True, False, True], "nothing was learned of the model"


@pytest.mark.slow
@pytest.mark.parametrize("again", [400, 200])
async def test_what_a_server_takes_is_remembered_only_once_it_took_the_request_without_pictures(
    again: int, worker: ModelClient, tmp_path: Path, server: Loopback
) -> None:
    """Another thing may be wrong with the request, of which the refusal only seems to name the picture."""
    picture = tmp_path / "shot.png"
    picture.write_bytes(PNG)
    refusal = json_reply({"error": {"message": "image input is not supported"}}, status=400)
    second = fine("openai") if again == 200 else json_reply({"error": {"message": "temperature"}}, status=400)
    server.serve(CHAT, refusal, second, *[fine("openai")] * 2)
    product = Product(tmp_path / "home", worker, {"m": model("openai/local", server, "/v1")})
    told = [note["code"] for note in (await product.run("look", images=[picture]))["notices"]]
    assert ("media_refused" in told) == (again == 200)
    await product.run("look", images=[picture], fresh=True)
    assert [shown(call.json) for call in calls(server)] == [True, False, again != 200]


@pytest.mark.slow
async def test_a_picture_that_the_model_has_read_is_told_in_words_and_counted_so(
    worker: ModelClient, tmp_path: Path, server: Loopback
) -> None:
    refusal = json_reply({"error": {"message": "this model does not support image input"}}, status=400)
    function = {"name": "read", "arguments": json.dumps({"path": "shot.png"})}
    call = {"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]}
    read = Reply(sse([chat_chunk(call), chat_chunk({}, "tool_calls")]))
    server.serve(CHAT, read, refusal, *[fine("openai")] * 3)
    models = {"m": model("openai/local", server, "/v1", context_window=64_000)}
    product = Product(tmp_path / "home", worker, models, step_limit=9)
    project = tmp_path / "home" / "project"
    project.mkdir(parents=True)
    (project / "shot.png").write_bytes(PNG)
    assert (await product.run("look"))["text"] == "Fine."
    assert (await product.run("and now?"))["text"] == "Fine."
    sent = [json.dumps(call.json) for call in calls(server)]
    assert ["image_url" in one for one in sent] == [False, True, False, False]
    assert "shot.png (image/png) cannot be read by this model" in sent[-1]


@every(
    ("words", "kind"),
    [
        ("The image format webp is not supported", "these"),
        ("This model does not support images larger than 8000 pixels", "these"),
        ("Image URLs are not supported, send base64", "these"),
        ("Unsupported image type: image/bmp", "these"),
        ("files are not supported in tools of this type", "these"),
        ("temperature is not supported. See the file docs.md", ""),
        ("this model does not support image input", "any"),
        ("PDF files are not supported by this model", "any"),
    ],
)
async def test_only_what_says_that_nothing_can_be_shown_says_so(words: str, kind: str) -> None:
    assert refuses_media(Failure("invalid_request", words, status=400)) == kind


PDF = base64.b64encode(b"%PDF-1.4 " + b"1 0 obj << /Type /Page >> endobj " * 40).decode()


@pytest.mark.forms(2)
@pytest.mark.parametrize(
    ("words", "with_picture", "sees"),
    [
        ("PDF files are not supported by this model", False, True),
        ("Unsupported chat content part type: 'file'. Supported types: text, image_url", False, True),
        ("PDF files are not supported by this model", True, True),
        ("Only text content is supported: multimodal input is not supported", True, False),
    ],
)
async def test_a_server_that_takes_no_files_is_still_shown_pictures(
    words: str, with_picture: bool, sees: bool, worker: ModelClient, tmp_path: Path, server: Loopback
) -> None:
    picture = tmp_path / "shot.png"
    picture.write_bytes(PNG)
    refusal = json_reply({"error": {"message": words}}, status=400)
    server.serve(CHAT, refusal, *[fine("openai")] * 3)
    product = Product(tmp_path / "home", worker, {"m": model("openai/local", server, "/v1")})
    agent = product.agent()
    await agent.start()
    shots = (AttachmentPart("shot.png", "image/png", data=base64.b64encode(PNG).decode()),) if with_picture else ()
    try:
        await say(agent, "read", (AttachmentPart("a.pdf", "application/pdf", data=PDF), *shots))
    finally:
        await agent.close()
    product.session = agent.conversation.info.id
    await product.run("look", images=[picture])
    first, again, later = (json.dumps(call.json) for call in calls(server))
    assert [PDF in one for one in (first, again, later)] == [True, False, False], "another process knows it, too"
    assert (shown(json.loads(again)), shown(json.loads(later))) == (with_picture and sees, sees)
    assert "a.pdf (application/pdf) cannot be read by this model" in later


async def test_a_refusal_for_anything_else_is_told_and_the_picture_stays(
    worker: ModelClient, tmp_path: Path, server: Loopback
) -> None:
    picture = tmp_path / "shot.png"
    picture.write_bytes(PNG)
    server.serve(CHAT, json_reply({"error": {"message": "temperature: must be below 2"}}, status=400))
    product = Product(tmp_path / "home", worker, {"m": model("openai/local", server, "/v1")})
    await product.run("look", images=[picture])
    assert (product.code, len(calls(server))) == (1, 1)


MALFORMED: list[tuple[str, Reply]] = [
    (
        "Groq, in the stream",
        Reply(
            sse(
                [
                    {
                        "error": {
                            "message": "Failed to call a function. Please adjust your prompt. See 'failed_generation'"
                            " for more details.",
                            "type": "invalid_request_error",
                            "code": "tool_use_failed",
                            "failed_generation": "<function=list>{path: .}</function>",
                            "status_code": 400,
                        }
                    }
                ]
            )
        ),
    ),
    (
        "Groq, before it",
        json_reply(
            {
                "error": {
                    "message": "Failed to call a function. Please adjust your prompt.",
                    "type": "invalid_request_error",
                    "code": "tool_use_failed",
                    "failed_generation": "<function=list>{path: .}</function>",
                }
            },
            status=400,
        ),
    ),
    (
        "llama.cpp",
        json_reply(
            {
                "error": {
                    "code": 500,
                    "message": "Failed to parse tool call arguments as JSON: [json.exception.parse_error.101] parse "
                    "error at line 1, column 74: syntax error while parsing value",
                    "type": "server_error",
                }
            },
            status=500,
        ),
    ),
    (
        "Ollama",
        json_reply(
            {
                "error": {
                    "message": "error parsing tool call: raw='ls -R', err=invalid character 'l' looking for beginning "
                    "of value",
                    "type": "api_error",
                }
            },
            status=500,
        ),
    ),
    (
        "in the middle",
        Reply(
            sse(
                [
                    chat_chunk({"content": "Let me look."}),
                    {
                        "error": {
                            "code": 500,
                            "message": "Failed to parse input at pos 12: <tool_call>",
                            "type": "server_error",
                        }
                    },
                ]
            )
        ),
    ),
]


@pytest.mark.forms(1)
@pytest.mark.parametrize(("who", "refusal"), one_of(MALFORMED, 2), ids=[row[0] for row in MALFORMED])
async def test_a_call_that_the_server_cannot_read_is_told_to_the_model_and_the_turn_goes_on(
    who: str, refusal: Reply, worker: ModelClient, tmp_path: Path, server: Loopback
) -> None:
    server.serve(CHAT, refusal, fine("chat"), fine("chat"))
    product = Product(
        tmp_path, worker, {"m": model("openai/local", server, "/v1", context_window=32_000)}, step_limit=9
    )
    summary = await product.run("look")
    assert (product.code, summary["text"]) == (0, "Fine.")
    assert [note["code"] for note in summary["notices"]].count("malformed_call") == 1
    first, second = (call.json["messages"] for call in calls(server))
    assert "could not be read" in json.dumps(second[len(first) - 1 :])
    assert (await product.run("and now?"))["text"] == "Fine.", "the conversation stays one that can be sent"


async def test_a_model_that_writes_nothing_else_is_stopped_and_the_session_goes_on(
    worker: ModelClient, tmp_path: Path, server: Loopback
) -> None:
    server.serve(CHAT, *[MALFORMED[1][1]] * 4, fine("chat"))
    product = Product(tmp_path, worker, {"m": model("openai/local", server, "/v1")}, step_limit=9)
    summary = await product.run("look")
    assert (product.code, summary["stop_reason"], len(calls(server))) == (1, "error", 4)
    assert (await product.run("again"))["text"] == "Fine."
