"""The list of texts for people has what they read, and little else."""

from __future__ import annotations

import pytest

from tests.strings import texts, texts_of

SOURCE = '''
"""What this file is for."""
log = logging.getLogger("agent_tui.worker")
SQL = "SELECT id FROM message"
_SYSTEM_PROMPT = "You are an agent."
KINDS: Literal["turn", "count"]

@command("name", args="[on|off]")
def name(agent):
    """Does what its help says."""

def show(count, path, kind):
    """Only a reader of the code sees this."""
    assert kind, "no kind was given"
    log.warning("cannot read %s at all", path)
    if kind == "of a kind" or path.startswith("a path"):
        raise ConfigError(f"{path}: cannot be read: {error}.")
    Binding("ctrl+x", "go(1)", "Step on")
    notify(f"{plural(count, 'message')} dropped", title="edit")
    names = "read edit write bash".split()
    return f"{count} of {len(path)}" if count else "Nothing yet" + " · try /help"
'''


def test_what_people_read_is_listed_with_its_place() -> None:
    found = sorted(texts_of(SOURCE, "ui/screens/show.py"))
    assert [(text.line, text.text) for text in found if not text.model] == [
        (10, "Does what its help says."),
        (17, "{path}: cannot be read: {error}."),
        (18, "Step on"),
        (19, "edit"),
        (19, "{plural(count, 'message')} dropped"),
        (21, " · try /help"),
        (21, "Nothing yet"),
        (21, "{count} of {len(path)}"),
    ]
    assert [text.text for text in found if text.model] == ["You are an agent."]
    assert {text.room for text in found} == {"ui/screens"}


@pytest.mark.slow
def test_the_list_is_of_the_whole_program() -> None:
    found = texts(["errors", "paths", "cli", "config"])
    assert {text.room for text in found} >= {"cli", "config"}
    assert all(text.line and text.text.strip() for text in found)
