"""The pages that users read are written in plain words and the field's; words of our own stand in docs/glossary.md.

A word is plain when the vocabulary of o200k has it as one token, whole or without its ending: what is coined is never
in it. Compounds are plain words joined to a new one, so each is listed. What was coined of plain words and withdrawn
must not come back, neither on the pages nor in what the program says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from agent_tui.providers.counting import encoding
from agent_tui.tools.word_sets import word_set
from tests.strings import texts
from tests.support.every import every

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    *(ROOT / name for name in ("README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", "config.example.toml")),
    *sorted((ROOT / "docs").glob("*.md")),
]

NAMES = word_set(
    """
    anthropic bedrock bubblewrap codex cohere cyrillic dashscope deepseek direnv emacs ghostty gitlab grok groq
    husky konsole landlock litellm macos minimax mintty mistral mlterm moonshot mypy ollama openai opencode
    openrouter perplexity pipx posix pydantic pypi qwen ripgrep searxng seatbelt sglang systemd tavily tmux vllm
    wezterm wsl xai xterm
    """
)
"""Programs, companies, standards."""
FIELD = word_set(
    """
    backslash changelog compaction dataclass keyring loopback mcp pgdn pgup pkce readme redirection scrollback
    seccomp signalled sixel sse stdio subagent subcommand submodule subreaper symlink wordmark worktree
    """
)
"""Terms of the field that are no plain words."""
PLAIN = word_set(
    """
    garbled generalise maintainer mislead redrawn reworded rewound summarise trickle unpinned unreleased untried
    """
)
"""English, though rare."""
COMPOUNDS = word_set(
    """
    agent-tui block-wise break-out built-in gpt-oss half-written here-document look-alike o-series
    openai-compatible read-only set-user-id sign-in stream-json textual-serve throw-away two-core well-known
    """
)
"""Compounds that people use elsewhere, too."""
WITHDRAWN = {
    "truth league": "agents compared",
    "proof line": "the rows add up to the total",
    "the judge": "commands are parsed",
    "sandbox domain": "level",
    "waits no more": "is closed",
    "goes by that name": "use the command",
    "held back of": "reserved",
    "known better": "measured",
    "ways on:": "to continue",
    "too soon to be an answer": "typed too early",
    "nothing answers that": "no such",
    "by itself alone": "only",
    "begun again": "started again",
    "cannot be lent": "cannot open",
    "for the ear": "for screen readers",
    "as it stands there": "exactly",
    "what is marked": "the marked messages",
    "what is queued": "queued messages",
}
"""Phrases of our own that were read as riddles, and what is said instead."""
ENDINGS = (
    *(("s", ""), ("es", ""), ("ies", "y"), ("ed", ""), ("ed", "e"), ("ing", ""), ("ing", "e"), ("ly", "")),
    *(("er", ""), ("er", "e"), ("able", ""), ("able", "e")),
)


def prose(text: str, name: str) -> str:
    """What of a page is read as sentences: no code, addresses or tables of measurements."""
    if name.endswith(".toml"):
        # A key that is only an example is no sentence.
        said = "\n".join(line[1:] for line in text.splitlines() if re.match(r"# (?!\S+ = |\[)", line))
        return re.sub(r'"[^"]*"|`[^`]*`', " ", said)
    if name == "CHANGELOG.md":
        text = re.split(r"^## \[\d", text, flags=re.MULTILINE)[0]
    text = re.sub(r"<!-- measured: begin[\s\S]*?measured: end -->", "", text)
    text = re.sub(r"^```[\s\S]*?^```", "", text, flags=re.MULTILINE)
    return re.sub(r"`[^`]*`|\]\([^)]*\)|https?://\S+|<[^>]*>", " ", text)


@cache
def is_plain(word: str) -> bool:
    stems = [word, *(word.removesuffix(end) + more for end, more in ENDINGS if word.endswith(end))]
    if any(stem in known for stem in stems for known in (NAMES, FIELD, PLAIN)):
        return True
    return any(len(encoding().encode_ordinary(f" {form}")) == 1 for stem in stems for form in (stem, stem.capitalize()))


def coined(text: str) -> Iterator[str]:
    """The words of a text that are neither plain nor the field's."""
    for word in re.findall(r"(?<![\w/.@~$-])[A-Za-z]+(?:-[a-z]+)+", text):
        if not any(word.lower().removesuffix(end) in COMPOUNDS for end in ("", "s")):
            yield word
    for word in re.findall(r"(?<![\w/.@~$-])[A-Za-z]{3,}(?![\w/.-]*[\w/])", text):
        if not is_plain(word.lower()):
            yield word


def test_coined_words_are_found() -> None:
    assert list(coined("The flimmer of an anti-turn: one must unyank it.")) == ["anti-turn", "flimmer", "unyank"]
    assert list(coined("Symlinks, tokenizers and compactions are read-only in `agent-tui`.")) == []
    assert "ledgerize" not in prose("`ledgerize` [a](ledgerize.md)\n```\nledgerize\n```\n", "a.md")
    assert prose('# Said.\n# key = "x"\nkey = 1\n', "config.example.toml") == " Said."


@every("page", PAGES)
def test_pages_are_written_in_plain_words(page: Path) -> None:
    text = page.read_text("utf-8")
    ours = set(re.findall(r"^\| ([\w ,]+) \| [^|]+ \|$", (ROOT / "docs/glossary.md").read_text("utf-8"), re.MULTILINE))
    strange = {word.lower() for word in coined(prose(text, page.name))}
    assert strange - {part for entry in ours for part in re.split(r"[ ,]+", entry)} == set()


@every("page", PAGES)
def test_withdrawn_words_do_not_come_back_on_pages(page: Path) -> None:
    text = " ".join(prose(page.read_text("utf-8"), page.name).lower().split())
    assert {phrase: instead for phrase, instead in WITHDRAWN.items() if re.search(rf"\b{phrase}", text)} == {}


def test_withdrawn_words_do_not_come_back_in_the_program() -> None:
    found = {
        f"{text.file}:{text.line}": instead
        for text in texts()
        for phrase, instead in WITHDRAWN.items()
        if re.search(rf"\b{phrase}", re.sub(r"\{[^}]*\}", "", text.text.lower()))
    }
    assert found == {}
