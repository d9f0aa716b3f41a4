"""Every failure says in a line what happened, whether what was written is safe, and what can be done next."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from agent_tui.cli.arguments import subparsers_of
from agent_tui.cli.subcommands import build_parser
from agent_tui.commands.registry import load
from agent_tui.models.failure import ARRIVED_KEPT, GO_ON, TEXT_KEPT, FailureKind, Overflow, in_a_shell
from agent_tui.providers.calling import SilenceError
from agent_tui.providers.catalog import Called
from agent_tui.providers.failure_lines import bound_failure, failure
from agent_tui.providers.net import BoundError, RedirectError

HERE = "http://127.0.0.1:9/v1"

pytestmark = pytest.mark.quick

OURS = {"store", "budget", "hook"}
"""Kinds whose lines are written where they happen."""
FORMS = [
    *((kind, "", None) for kind in get_args(FailureKind) if kind not in OURS),
    *(("auth", "insufficient_quota", 402), ("auth", "", 403), ("invalid_request", "No module named 'boto3'", None)),
    *(("connection", "[SSL: CERTIFICATE_VERIFY_FAILED]", None), ("bad_answer", "request was sent to HTTPS", None)),
]


@pytest.mark.parametrize("started", [False, True])
@pytest.mark.parametrize("answering", [False, True])
def test_each_failure_has_a_next_step_that_there_is(started: bool, answering: bool) -> None:
    commands, subcommands = load(), {one.prog.split()[1] for one in subparsers_of(build_parser())}
    for called in (Called("openai"), Called("openai", "http://127.0.0.1:9/v1"), Called("openai", key_env="MY_KEY")):
        for kind, detail, status in FORMS:
            found = failure(kind, called, "m", detail, status, overflow=Overflow(answering=answering), started=started)
            kept = ARRIVED_KEPT if started or kind == "interrupted_stream" else TEXT_KEPT
            what, said, way = found.message.partition(kept)
            assert "\n" not in found.message and what.strip() and said and len(way.split()) > 2, found.message
            assert set(re.findall(r"(?<!\S)/(\w+)", way)) <= commands.keys(), found.message
            assert set(re.findall(r"`agent-tui (\w+)", way)) <= subcommands, found.message
            if started:
                assert not re.search(r"(?i)^ *try again", way), "the message was answered, in part"
            shell = in_a_shell(found.message, found.way)
            assert not re.search(r"(?<!\S)/\w+(?!\S*/)", shell.partition("http")[0]), shell
            assert TEXT_KEPT not in shell and "  " not in shell, shell


def test_a_cut_answer_goes_on() -> None:
    found = failure("interrupted_stream", Called("openai"), "m")
    message = found.message
    assert message == f"The answer of openai was cut off. {ARRIVED_KEPT} {GO_ON}"
    assert in_a_shell(message, found.way).endswith(f"{ARRIVED_KEPT} agent-tui -c -p continue goes on from there.")


def test_words_of_a_provider_stay_as_they_are_in_a_shell() -> None:
    words = f"choose one with /model. {TEXT_KEPT} {GO_ON}"
    found = failure("invalid_request", Called("openai"), "m", words, 400)
    shell = in_a_shell(found.message, found.way)
    assert f": {words}" in shell and shell.endswith(" or choose another model with -m."), shell
    assert found.cause == f"openai refused the request (HTTP 400): {words}"


@pytest.mark.parametrize(
    "error", [BoundError("Too long."), RedirectError(HERE, "http://a.example"), SilenceError("3 s.")]
)
def test_a_bound_that_was_reached_has_a_next_step(error: BoundError) -> None:
    for started in (False, True):
        found = bound_failure(error, Called("openai", HERE), started)
        kept = ARRIVED_KEPT if started else TEXT_KEPT
        assert found.message.partition(f" {kept} ")[2] == (GO_ON if started else error.way)


@pytest.mark.parametrize(
    ("provider", "address", "proxy", "line"),
    [
        (
            "openai",
            None,
            "http://me:secret@proxy.example:81/x",
            "No connection to openai through the proxy http://proxy.example:81.",
        ),
        ("openai", None, "", "No connection to openai."),
        ("xai", None, "http://p", "No connection to xai."),
        ("openai", HERE, "http://proxy.example:81", f"No connection to the server at {HERE}."),
        (
            "openai",
            "http://a.example/v1",
            "http://p",
            "No connection to the server at http://a.example/v1 through the proxy http://p.",
        ),
        ("openai", "https://free.example/v1", "http://p", "No connection to the server at https://free.example/v1."),
    ],
)
def test_the_proxy_that_may_be_down_is_named(
    monkeypatch: pytest.MonkeyPatch, provider: str, address: str | None, proxy: str, line: str
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, proxy)
    monkeypatch.setenv("no_proxy", "free.example,api.x.ai")
    found = failure("connection", Called(provider, address), "m").message
    assert found.startswith(f"{line} ") and "secret" not in found
    assert ("HTTPS_PROXY" in found) == ("through" in line)
