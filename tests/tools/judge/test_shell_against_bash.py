"""What is read out of a command is held against what a real bash does."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from agent_tui.config import PermissionsConfig
from agent_tui.tools.base import Intent
from agent_tui.tools.builtin.bash import environment
from tests.support.tool_context import permissions_of

STARTS = [
    "ls ",
    "echo ",
    "cat a ",
    'echo "',
    "cat <<EOF\n",
    "echo $(ls ",
    "if ls; then ",
    "for f in a",
    "[[ a ",
    "{ ls; ",
]
STARTS += ["timeout 1 ls ", "find . ", "ls | xargs ", "sed -n p a ", "awk 1 a ", "sort a ", "uniq a "]
PIECES = [
    *[
        "ls",
        "echo",
        "cat",
        "a",
        "evil",
        "evil",
        " ",
        " ",
        " ",
        "\t",
        ";",
        "&",
        "|",
        "\n",
        "(",
        ")",
        "$(",
        "`",
        '"',
        "'",
    ],
    *["\\", "\\\n", "<<", "<<<", "EOF", "\nEOF\n", "<<'EOF'\n", "<<EOF\n", "<<-EOF\n", "$", "{", "}", "#", "<(", ">("],
    *["=", "x=", "~", "*", "[", "]", "-", "!", "2>&1", ">/dev/null", "&>", "<a", ",", "%"],
    *[
        "if ",
        "; then ",
        "; else ",
        "; fi",
        "for f in ",
        "; do ",
        "; done",
        "while ",
        "{ ",
        "; }",
        "[[ ",
        " ]]",
        "time ",
    ],
    *["$f", "in ", "&&", "||", "xargs ", "timeout 1 ", "env ", "nice ", "find . -exec ", " {} +", " \\;", "case "],
    *[" in ", " esac", ";; ", "|*)", "x=evil; ", "x=a; ", "$x ", "${x", ":-", ":=", "}", "((", "))", "<<EOF\n$("],
    # What tree-sitter is known to read otherwise, or to leave out.
    *[
        " - <<EOF\n",
        "<<EOF -\n",
        "\\ ",
        '$"',
        "@(",
        "!(",
        "&>>",
        "<>",
        "[ ",
        " ]",
        "a=(",
        "$(<a)",
        "$((1))",
        " 2>",
        "|&",
    ],
    *["[[-f ", "{fd}>", ">& '", "read -r ", "<<< evil; ", 'a"b" ', "ab=ls; ", "$ab "],
    *["printf a%n ", "time x=1 ", "case$x"],
    *["sort ", "uniq ", "sed -n p ", "awk 1 ", "-o ", "w evil", "p;", "{a,", "}", "[^", "[[:", "$'", "coproc "],
]


@pytest.mark.forms(1)
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize("seed", range(4))
def test_what_is_allowed_runs_nothing_else(tmp_path: Path, seed: int) -> None:
    """Random command lines that mention a program ``evil``: those that are allowed unasked are really run, and it must
    not have been started, nor a file made."""
    root, programs = tmp_path / "project", tmp_path / "bin"
    root.mkdir()
    programs.mkdir()
    (root / "a").write_text("x\n")
    (programs / "evil").write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    (programs / "evil").chmod(0o755)
    env = environment()
    env["PATH"] = f"{programs}:{env['PATH']}"
    permissions = permissions_of(root, PermissionsConfig())
    chance = random.Random(seed)
    run = 0
    for _ in range(5_000):
        pieces = [chance.choice(PIECES) for _ in range(chance.randint(2, 12))]
        command = chance.choice(STARTS) + "".join(pieces)
        if "evil" not in command:
            continue
        if permissions.decide("bash", Intent("command", command, command=command)).action != "allow":
            continue
        run += 1
        subprocess.run(
            ["bash", "-c", command], cwd=root, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=30
        )
        assert not (tmp_path / "started").exists(), command
        assert [path.name for path in root.iterdir()] == ["a"] and (root / "a").read_text() == "x\n", command
    assert run > 10
