"""One list of what says that a text is secret, and no line for people with a key in it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import agent_tui
from agent_tui import terminal_output
from agent_tui.models.events import Notice
from agent_tui.models.failure import Failure
from agent_tui.models.messages import Message, TextPart
from agent_tui.models.session import SessionInfo
from agent_tui.text.secrets import MASK, holds_secret, names_secret, without_keys

KEY = "Zx9-_qTr5LmN0pWvB3"
SAID = [
    f"https://user:{KEY}@proxy.example:8080 refuses the connection",
    f"fatal: unable to access 'https://{KEY}@github.com/o/r.git/': 403",
    f"GET https://api.example/v1/models?key={KEY}&alt=sse failed",
    f"GET https://api.example/cb?state=x&code={KEY} failed",
    f"GET https://s3.example/x?X-Amz-Signature={KEY}#access_token={KEY}",
    f"Authorization: Bearer {KEY}",
    f"redis://:{KEY}@cache/0",
    f"invalid key sk-{KEY}",
    f"ghp_{KEY} github_pat_{KEY} glpat-{KEY} hf_{KEY} xoxb-{KEY}",
    f"AIza{KEY}{KEY}",
    f"-----BEGIN OPENSSH PRIVATE KEY-----\n{KEY}\n-----END OPENSSH PRIVATE KEY-----",
]
FIELDS = [
    f'{{"x-api-key": "{KEY}"}}',
    f"headers={{'Authorization': 'token {KEY}', 'Cookie': '{KEY}'}}",
    f'{{"access_token":"{KEY}","refresh_token":"{KEY}","id_token":"{KEY}","client_secret":"{KEY}"}}',
    f"proxy-authorization: Basic {KEY}",
    f"password={KEY}",
]
PLAIN = [
    "https://example.com/a@b?q=1 is not found; see https://docs.example/?page=2#key",
    "git@github.com:o/r.git and ssh://git@github.com/o/r",
    "Set OPENAI_API_KEY, or api_key_env of the model. The code is 12345678.",
    "hf-hub is missing; npm-run-all-parallel-tasks failed; monkey=business",
]


@pytest.mark.parametrize("said", SAID)
def test_no_line_repeats_a_key(said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert KEY not in without_keys(said) and MASK in without_keys(said)
    assert KEY not in Notice("error", said).text
    failure = Failure("connection", said, said)
    assert KEY not in failure.message + failure.detail
    terminal_output.complain(said)
    assert KEY not in capsys.readouterr().err


@pytest.mark.parametrize("said", FIELDS)
def test_nor_do_the_words_of_others(said: str) -> None:
    assert KEY not in without_keys(said)


@pytest.mark.parametrize("said", PLAIN)
def test_what_is_no_key_is_said(said: str) -> None:
    assert without_keys(said) == said == Notice("info", said).text


def test_names_and_values() -> None:
    for name in ("X-Api-Key", "authorization", "DB_PASSWORD", "GITHUB_PAT", "Cookie", "SENTRY_DSN", "clientSecret"):
        assert names_secret(name), name
    for name in ("PATH", "EDITOR_NAME", "COMPASS", "AWS_REGION", "Accept", "SSH_AUTH_SOCK"):
        assert not names_secret(name), name
    for value in ("postgres://me:hunter2@db/x", f"sk-{KEY}", "-Dstore=x --password=hunter2"):
        assert holds_secret(value), value
    for value in ("/opt/hf-transformers-cache/bin:/usr/bin", "http://proxy:3128", "de_DE.UTF-8"):
        assert not holds_secret(value), value


def test_there_is_one_list() -> None:
    """A pattern or a set with the names that keys have is in the one file; the exceptions are about other things."""
    exceptions = {
        "text/secrets.py": "the list",
        "tools/sandbox/places.py": "whether a file of Python's may tell something: over-careful, of its content",
    }
    root, found = Path(agent_tui.__file__).parent, set[str]()
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            text = node.value.lower() if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
            if (
                "|" in text
                and "\n" not in text
                and sum(word in text for word in ("token", "secret", "passw", "ghp")) >= 2
            ):
                found.add(path.relative_to(root).as_posix())
    assert found == exceptions.keys()


def test_every_export_masks_the_keys_of_the_user() -> None:
    from agent_tui.commands.export import FORMATS, render
    from agent_tui.store.salvage import Content

    message = Message("msg_1", "assistant", [TextPart(f"the key is {KEY}")])
    info = SessionInfo("ses_1", "/p", head_id="msg_1")
    content = Content({"msg_1": message})
    for form in FORMATS:
        text = render(info, content, form, [KEY])
        assert KEY not in text and MASK in text, form
