"""The README and the pages of docs/ say what the program does, and their links lead somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from agent_tui.cli.arguments import SUBCOMMANDS, build_parser
from agent_tui.commands.registry import PARTS, load
from agent_tui.models.events import StopReason
from agent_tui.providers.catalog import DIALECTS
from agent_tui.tools.registry import builtin_tools
from agent_tui.ui.screens.help import KEY_HELP
from tests.support.every import every

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text("utf-8")
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


def page(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text("utf-8")


def command_table() -> str:
    known, lines = load(), []
    for part, names in PARTS.items():
        lines += [f"## {part}", "", "| command | |", "|---|---|"]
        for command in (known[name] for name in names):
            also = "".join(f", `/{alias}`" for alias in command.aliases)
            lines.append(f"| {_code(command.usage)}{also} | {command.summary} |")
        lines.append("")
    return "\n".join(lines)


def key_table() -> str:
    lines = ["| key | |", "|---|---|"]
    return "\n".join([*lines, *(f"| {key.keys} | {key.what} |" for key in KEY_HELP)]) + "\n"


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")


def test_commands_are_those_of_the_registry() -> None:
    assert command_table() in page("commands")


def test_keys_are_those_of_help() -> None:
    assert key_table() in page("keys")


def test_flags_and_subcommands_are_all_there() -> None:
    usage = page("command-line")
    flags = [flag for action in build_parser()._actions for flag in action.option_strings]
    unknown = {"-h", "--help", "--version", "--print"}
    assert [flag for flag in flags if flag not in unknown and flag not in usage] == []
    assert [name for name in SUBCOMMANDS if f"agent-tui {name}" not in usage] == []


def test_stop_reasons_are_all_there() -> None:
    line = re.search(r"Stop reasons: `([a-z_ ]+)`", page("scripts"))
    assert line is not None
    assert set(line[1].split()) == set(get_args(StopReason))


def test_tools_are_all_there() -> None:
    line = re.search(r"The model has ([a-z_, ]+);", page("tools"))
    assert line is not None
    assert "`apply_patch` in the place of `edit`" in page("tools")
    named = {*re.split(r", | and ", line[1]), "apply_patch"}
    assert named == {tool.schema.name for tool in builtin_tools()}


def test_providers_that_are_called_directly_are_all_there() -> None:
    line = re.search(r"Called directly, without LiteLLM: ([a-z_`,\s]+)\.", page("providers"))
    assert line is not None
    assert set(re.findall(r"`(\w+)`", line[1])) == {
        name for name, record in DIALECTS.items() if record.wire is not None
    }


def anchors(markdown: str) -> set[str]:
    """Where links to headings of a page lead, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", markdown, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(file: Path) -> Iterator[str]:
    text = re.sub(r"```.*?```", "", file.read_text("utf-8"), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r"(?:src|href)=\"([^\"]+)\"", text)
    for link in links:
        if re.match(r"https?:|mailto:", link):
            continue
        path, _, anchor = link.partition("#")
        target = file.parent / path if path else file
        if not target.exists() or (anchor and anchor not in anchors(target.read_text("utf-8"))):
            yield link


@every("file", PAGES)
def test_links_lead_somewhere(file: Path) -> None:
    assert list(broken_links(file)) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("# A heading: its name\n\n```\n# no heading\n```\n")
    links = (
        "there.md",
        "there.md#a-heading-its-name",
        "#here",
        "gone.md",
        "there.md#no-heading",
        "https://example.org",
    )
    (tmp_path / "page.md").write_text("## Here\n" + "".join(f"[x]({link}) " for link in links) + '<img src="p.svg">')
    assert list(broken_links(tmp_path / "page.md")) == ["gone.md", "there.md#no-heading", "p.svg"]


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_files_that_developers_are_told_of_exist(name: str) -> None:
    named = set(re.findall(r"`([\w.-]+/[\w./-]*)`", (ROOT / name).read_text("utf-8")))
    assert named
    assert [path for path in named if not any((folder / path).exists() for folder in (ROOT, ROOT / "agent_tui"))] == []
    there = {file.name for folder in ("agent_tui", "tests") for file in (ROOT / folder).rglob("*.py")}
    assert set(re.findall(r"`(\w+\.py)`", (ROOT / name).read_text("utf-8"))) <= there


def test_every_page_is_in_the_index() -> None:
    linked = set(re.findall(r"\]\(([\w-]+\.md)\)", page("README")))
    assert linked == {file.name for file in PAGES if file.parent != ROOT} - {"README.md"}


def test_the_readme_is_short_and_begins_with_what_a_newcomer_needs() -> None:
    lines = README.splitlines()
    assert len(lines) <= 200 and max(map(len, lines)) <= 160
    first = "\n".join(lines[:40])
    assert "pip install -e" in first and "-m pytest" in first and "your own key" in first


def test_pages_are_read_in_three_minutes() -> None:
    """Tables and examples are looked things up in, and not read."""
    long = {}
    for file in PAGES:
        prose = re.sub(r"```[\s\S]*?```|^\|.*$", "", file.read_text("utf-8"), flags=re.MULTILINE)
        if file.name not in ("ARCHITECTURE.md", "CHANGELOG.md") and len(prose.split()) > 700:
            long[file.name] = len(prose.split())
    assert long == {}


def test_the_glossary_is_short() -> None:
    words = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", page("glossary"), re.MULTILINE)[1:]
    assert 0 < len(words) <= 25 and len(set(words)) == len(words)


def test_entries_of_the_changelog_are_short() -> None:
    """A line or two, which somebody who uses the program understands."""
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    entries = re.findall(r"^- .*(?:\n  .*)*", text, re.MULTILINE)
    assert entries and [entry for entry in entries if len(entry) > 300] == []


def test_benchmarks_named_exist() -> None:
    named = re.findall(r"tests/benchmarks/[\w/]+\.py", page("measurements"))
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []
