"""A change of git's settings is said for what it is."""

from __future__ import annotations

import shlex

import pytest

from agent_tui.tools.judge.programs import changes_settings
from tests.support.commands import World, held, judged
from tests.support.every import every

pytestmark = pytest.mark.quick

ALSO = "in a file that also says what git starts outside the sandbox"
PROGRAMS = "by which git starts programs in this repository, outside the sandbox and with all your rights"
ONCE = "(for one commit alone: git -c user.email=… commit)"


@every(
    ("command", "words"),
    [
        ("config user.email a@b", f"sets who commits are by in this repository {ONCE}"),
        ("config --global user.email a@b", f"sets who commits are by in all your repositories {ONCE}"),
        ("config set --global user.email a@b", f"sets who commits are by in all your repositories {ONCE}"),
        ("-C src config user.email a@b", f"sets who commits are by in this repository {ONCE}"),
        ("config --unset user.name", "takes away who commits are by in this repository"),
        ("config unset user.name", "takes away who commits are by in this repository"),
        ("config alias.st '!rm -rf x'", f"sets alias.st, {PROGRAMS}"),
        ("config core.hooksPath hooks", f"sets core.hooksPath, {PROGRAMS}"),
        ("config core.fsmonitor ./x", f"sets core.fsmonitor, {PROGRAMS}"),
        ("config --replace-all core.sshCommand ./x", f"sets core.sshCommand, {PROGRAMS}"),
        ("config credential.helper '!x'", f"sets credential.helper, {PROGRAMS}"),
        ("config filter.lfs.smudge x", f"sets filter.lfs.smudge, {PROGRAMS}"),
        ("config diff.x.textconv y", f"sets diff.x.textconv, {PROGRAMS}"),
        ("config include.path ../x", "sets include.path: a file whose settings git then follows in this repository, "
         "and they can start programs"),
        ("config url.x.insteadOf y", "sets url.x.insteadOf: where git fetches from and pushes to in this repository"),
        ("config --file=.gitmodules submodule.a.url b", "sets submodule.a.url: where git fetches from and pushes to in "
         ".gitmodules"),
        ("config http.sslVerify false", "sets http.sslVerify, by which git checks less, or tells more, in this "
         "repository"),
        ("config pull.rebase true", f"sets pull.rebase in this repository, {ALSO}"),
        ("config --edit --global", f"changes settings in all your repositories, {ALSO}"),
        ("remote add o https://x.example", "adds a remote: where git fetches from and pushes to"),
        ("config user.email", ""),
        ("config get user.email", ""),
        ("config --get-regexp user", ""),
        ("config --type bool core.bare", ""),
        ("config --global --list", ""),
        ("commit -m config", ""),
    ],
)  # fmt: skip
def test_what_a_change_comes_to(command: str, words: str) -> None:
    assert changes_settings(["git", *shlex.split(command)]) == words


def test_the_question_and_the_refusal_say_it(world: World) -> None:
    for mode in ("ask", "auto", "accept-edits"):
        decision = held(world, "git config user.email a@b", mode)
        assert decision.action == "ask" and decision.domain == "free"
        assert decision.reason.startswith(f"git config sets who commits are by in this repository {ONCE}")
    refused = judged(world, "git config core.hooksPath x", "auto", can_ask=False)
    assert refused.action == "deny" and f"git config sets core.hooksPath, {PROGRAMS}" in refused.message
