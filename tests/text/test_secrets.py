"""One list of what says that a text is secret, and no line for people with a key in it."""

from __future__ import annotations

import ast
import re

import pytest

from agent_tui import terminal_output
from agent_tui.config import ModelConfig, Settings
from agent_tui.config.schema import show_settings
from agent_tui.engine.conversation import title_from
from agent_tui.models.events import Notice
from agent_tui.models.failure import Failure
from agent_tui.models.messages import Message, TextPart
from agent_tui.models.session import SessionInfo
from agent_tui.providers.secrets import MaskedStream, mask
from agent_tui.text.secrets import MASK, holds_secret, names_secret, tells_secret, without_keys
from tests.support.sources import matching

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
    f"aws_secret_access_key = {KEY}",
    f'SECRET_ACCESS_KEY="{KEY}" signing-key: {KEY} webhook_secret={KEY}',
]
A, HEX = "a1B2" * 10, "a1" * 16
FORMS = [
    *(
        f"SG.{A[:22]}.{A}",
        f"shpat_{HEX}",
        f"shpss_{HEX}",
        f"dop_v1_{HEX}{HEX}",
        f"123456789:AAE{A[:32]}",
        f"whsec_{A[:32]}",
    ),
    *(f"bot1234567890:AAE{A[:32]}", "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs", f"lin_api_{A}"),
    *(f"figd_{A}", f"sbp_{HEX}a1b2c3d4", f"AGE-SECRET-KEY-1{'QPZRY9X8' * 7}", f"age-secret-key-1{'qpzry9x8' * 7}"),
    *(f"glptt-{A}", f"xapp-1-{A}", f"dckr_pat_{A}", f"GOCSPX-{A}", f"ntn_{A}", f"hvs.{A}", f"ya29.{A}"),
]
"""Keys as services write them, whole."""
STRINGS = [
    (f"DefaultEndpointsProtocol=https;AccountName=x;AccountKey={A}==;EndpointSuffix=y", "EndpointSuffix=y"),
    (f"Endpoint=sb://x/;SharedAccessKeyName=Root;SharedAccessKey={A}=", "SharedAccessKeyName=Root"),
]
PLAIN = [
    "12:30:00 123456789:short, 1234567890:0123456789012345678901234567890123456789, a.b.c, ship_it_now",
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


@pytest.mark.quick
@pytest.mark.parametrize("said", FIELDS)
def test_nor_do_the_words_of_others(said: str) -> None:
    assert KEY not in without_keys(said)


@pytest.mark.quick
def test_keys_are_known_by_their_forms() -> None:
    for key in FORMS:
        for text in (f"it says: {key}, so", f'{{"x": "{key}"}}', key):
            assert key not in without_keys(text, fields=False) and MASK in without_keys(text, fields=False), key
    for said, rest in STRINGS:
        masked = without_keys(said, fields=False)
        assert A not in masked and rest in masked and f"Key={MASK}" in masked


@pytest.mark.quick
def test_a_beginning_or_an_end_of_a_known_key_is_masked_too() -> None:
    key = "sk-test-000111222333444555666"
    for part in (key, key[:14], key[:12], key[:20], key[-12:], key[-16:], key[1:], key[:-1]):
        assert mask(f"bad key {part}… or '{part}'", [key]) == f"bad key {MASK}… or '{MASK}'"
    for part in (key[:11], key[-11:], "sk-test-"):
        assert mask(part, [key]) == part
    long = "sk-ant-api03-" + A
    assert mask("keys begin with sk-ant-api03- here", [long]) == "keys begin with sk-ant-api03- here"
    assert mask("sk-ant-api03-a", [long]) == MASK
    assert mask("correcthorse", ["correcthorsebatterystaple"]) == "correcthorse", "a word is no key"


@pytest.mark.quick
@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_a_stream_shows_no_rest_of_a_key(size: int) -> None:
    key = "sk-test-000111222333444555666"
    stream, text = MaskedStream([key]), f"a {key} b {key[:14]} c"
    shown = "".join(stream.feed(text[n : n + size]) for n in range(0, len(text), size)) + stream.flush()
    assert shown == f"a {MASK} b {MASK} c"


@pytest.mark.quick
def test_no_key_names_a_session() -> None:
    info = SessionInfo("ses_1", "/p", title=f"use sk-ant-{A}", preview=f"password={KEY}")
    assert info.title == f"use {MASK}" and KEY not in info.preview
    assert title_from(f"{'x' * 50} sk-ant-{A}") == f"{'x' * 50} {MASK}"


@pytest.mark.quick
def test_what_is_set_is_shown_without_keys() -> None:
    extra = {"x-api-key": KEY, "Authorization": "Bearer ${NAME_OF_IT}", "args": ["-x", f"--password={KEY}"]}
    model = ModelConfig("m", api_base="http://bob:hunter2pw@host/v1", api_key_env="MY_API_KEY", extra=extra)
    shown = show_settings(Settings(models={"m": model}))
    assert "hunter2pw" not in shown and f"http://{MASK}@host/v1" in shown and KEY not in shown
    assert '"Bearer ${NAME_OF_IT}"' in shown and '"MY_API_KEY"' in shown


@pytest.mark.quick
@pytest.mark.parametrize("said", PLAIN)
def test_what_is_no_key_is_said(said: str) -> None:
    assert without_keys(said) == said == Notice("info", said).text


@pytest.mark.quick
def test_names_and_values() -> None:
    for name in ("X-Api-Key", "authorization", "DB_PASSWORD", "GITHUB_PAT", "Cookie", "SENTRY_DSN", "clientSecret"):
        assert names_secret(name), name
    for name in ("PATH", "EDITOR_NAME", "COMPASS", "AWS_REGION", "Accept", "SSH_AUTH_SOCK"):
        assert not names_secret(name), name
    for value in (
        "postgres://me:hunter2@db/x",
        f"sk-{KEY}",
        "-Dstore=x --password=hunter2",
        "k: -----BEGIN PRIVATE KEY-----",
    ):
        assert holds_secret(value), value
    for value in ("/opt/hf-transformers-cache/bin:/usr/bin", "http://proxy:3128", "de_DE.UTF-8"):
        assert not holds_secret(value), value


@pytest.mark.parametrize(
    ("settings", "tells"),
    [
        ('[registries.own]\nindex = "https://crates.example"\n', False),
        ("[build]\njobs = 4\n[net]\ngit-fetch-with-cli = true\n# a token lies elsewhere\n", False),
        ('[registries.own]\ntoken = "abc"\n', True),
        ('own = { index = "x", token = "abc" }', True),
        ('[registry]\nglobal-credential-providers = ["cargo:token"]', True),
        ('[credential-alias]\na = ["x"]', True),
        ('[registries."own"]\n"secret-key" = "k3"', True),
        ('[http]\nproxy = "http://me:hunter2@proxy"', True),
        (f'[x]\nvalue = "sk-{KEY}"', True),
        ("token: abc", True),
    ],
)
def test_a_configuration_tells_by_its_names_and_its_values(settings: str, tells: bool) -> None:
    assert tells_secret(settings) is tells


@pytest.mark.parametrize("piece", ["a", "a.", "\n", "a=\n", "[", "a \n"])
def test_a_long_configuration_is_read_at_once(piece: str) -> None:
    assert not tells_secret(piece * (60_000 // len(piece)))


def test_there_is_one_list() -> None:
    """A pattern or a set with the names that keys have is in the one file."""
    found = set[str]()
    for file, source in matching(re.compile(r"(?i)token|secret|passw|ghp")).items():
        if sum(word in source.lower() for word in ("token", "secret", "passw", "ghp")) < 2 or "|" not in source:
            continue
        for node in ast.walk(ast.parse(source)):
            text = node.value.lower() if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
            if (
                "|" in text
                and "\n" not in text
                and sum(word in text for word in ("token", "secret", "passw", "ghp")) >= 2
            ):
                found.add(file)
    assert found == {"text/secrets.py"}


def test_every_export_masks_the_keys_of_the_user() -> None:
    from agent_tui.commands.export import FORMATS, render
    from agent_tui.store.content import SessionContent

    message = Message("msg_1", "assistant", [TextPart(f"the key is {KEY}")])
    info = SessionInfo("ses_1", "/p", head_id="msg_1")
    content = SessionContent({"msg_1": message})
    for form in FORMATS:
        text = render(info, content, form, [KEY])
        assert KEY not in text and MASK in text.replace("\\", ""), form
