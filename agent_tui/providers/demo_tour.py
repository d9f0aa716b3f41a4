"""What the demo model shows: a tour in four stops, and the same things when it is asked for one of them.

Everything follows from the conversation: which stop comes next from the headings of earlier answers, how far a stop is
from the tool results since the user's message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from agent_tui.models.messages import Message, SummaryPart, ToolResultPart
from agent_tui.models.requests import Reckoned
from agent_tui.providers.demo_script import ScriptedAnswer
from agent_tui.text.clean import cut

TOUR = re.compile(r"(?:(?:please )?(?:take|start|give me|show me) (?:the|a) )?tour", re.I)
NEXT = re.compile(r"next|next stop|continue", re.I)
ASK = re.compile(r"ask me (?:something|a question|anything)|ask me", re.I)
THINK = re.compile(r"think(?: hard| about it)?", re.I)
FILL = re.compile(r"fill (?:the|your) (?:context )?window", re.I)
EDIT = re.compile(r"(?:edit|change|write|create) (?:the file )?`?@?((?:[\w.-]+/)*[\w-]+\.[A-Za-z0-9]{1,8})`?", re.I)
HEADING = re.compile(r"^## (\d) of 4 · ", re.M)
CHAPTER = re.compile(r"^### Chapter (\d+)$", re.M)
LISTED = re.compile(r"^[\w-]+\.(?:md|py|toml|txt|json|js|ts|go|rs)$", re.M)

NOTE = "demo-note.md"
DRAFT = "# A note of the demo model\n\nStatus: draft\n\nThis file may be deleted.\n"
LAST, MOST_CHAPTERS = 4, 20
NEXT_LINE = "\n**Then type `next`.**"
FAST = 90
"""Characters in a piece of what is only written to fill the window."""


def on_tour(
    question: str, messages: Sequence[Message], offered: set[str], reckoned: Reckoned | None
) -> ScriptedAnswer | None:
    """The answer where the question is for something that can be shown; ``messages`` is the conversation."""
    since = max((i for i, m in enumerate(messages) if m.role == "user"), default=-1) + 1
    asked, after = question.strip().strip(".!?").strip(), messages[since:]
    stop = _stop(asked, messages[: since - 1] if since else ())
    if stop == 1:
        return _look(after, offered)
    if stop == 2:
        there = any(NOTE in result.text for result in _results(messages[:since]))
        return _change(NOTE, after, offered, "2 of 4 · You approve every change", NEXT_LINE, new=not there)
    if stop == 3 or ASK.fullmatch(asked) or THINK.fullmatch(asked):
        return _ask(after, offered, on=stop == 3)
    if stop == LAST or FILL.fullmatch(asked):
        return _fill(messages, after, offered, reckoned, on=stop == LAST)
    if stop > LAST:
        return ScriptedAnswer(
            "The tour is over.", "That was the tour. `take the tour` starts it again; `/model` chooses a real model."
        )
    if (named := EDIT.fullmatch(asked)) is not None:
        return _change(named[1], after, offered, f"Changes to `{named[1]}`", "", new=False)
    return None


def _stop(asked: str, before: Sequence[Message]) -> int:
    """The stop of the tour that is asked for; 0 for none."""
    if TOUR.fullmatch(asked):
        return 1
    if not NEXT.fullmatch(asked):
        return 0
    shown = [found[-1] for m in before if m.role == "assistant" and (found := HEADING.findall(m.text))]
    # A compaction takes the headings away, and comes at the last stop.
    return int(shown[-1]) + 1 if shown else LAST if _summarised(before) else 1


def _summarised(messages: Sequence[Message]) -> str:
    """What compactions made of earlier messages; empty without one."""
    return "\n".join(part.text for m in messages for part in m.parts if isinstance(part, SummaryPart))


def _results(after: Sequence[Message]) -> list[ToolResultPart]:
    return [result for m in after if (result := m.tool_result) is not None]


def _first_line(text: str) -> str:
    return " ".join(text.partition("\n")[0].replace("`", "'").split())[:200]


def _look(after: Sequence[Message], offered: set[str]) -> ScriptedAnswer:
    results = _results(after)
    if not results and "list" in offered:
        return ScriptedAnswer(
            "The user wants the tour. I start with what I can see from here: the folder.",
            "Welcome! Let me look around first.\n\n",
            [("list", json.dumps({"path": "."}))],
        )
    found = LISTED.search(results[0].text) if len(results) == 1 and not results[0].is_error else None
    if found and "read" in offered:
        return ScriptedAnswer(f"I read `{found[0]}` next.", "", [("read", json.dumps({"path": found[0]}))])
    seen = f" and `{results[1].name}`" if len(results) > 1 else ""
    return ScriptedAnswer(
        "I have looked around. Now I explain what the user saw and what to try.",
        f"## 1 of 4 · Tools are real\n\nI called `list`{seen}, and the results are now in my context window. "
        "Only the text you read here comes from a script; tools, files, permissions and numbers are what a real model "
        "gets.\n\nType `/context`: it lists everything I am sent, counted to the token, and what each message cost. "
        "The same total stands in the line below the prompt and follows what you type.\n" + NEXT_LINE,
    )


def _change(
    path: str, after: Sequence[Message], offered: set[str], heading: str, end: str, *, new: bool
) -> ScriptedAnswer:
    """Writes the file where it is ``new``, or else missing; then a small edit."""
    results = _results(after)
    names = [result.name for result in results]
    last = results[-1] if results else None
    if not {"read", "write", "edit"} <= offered:
        return ScriptedAnswer(
            "I have no tools that change files.", f"## {heading}\n\nI can't change files here.\n{end}"
        )
    if last is None:
        if new:
            return _write(path, "I write a small note that can be deleted later. The user is asked first.")
        return ScriptedAnswer(f"I read `{path}` before I change it.", "", [("read", json.dumps({"path": path}))])
    if names == ["write"] and last.is_error and "read" in last.text:
        return ScriptedAnswer(
            "The file exists already, so I read it first.", "", [("read", json.dumps({"path": path}))]
        )
    if last.name == "read" and last.is_error:
        return _write(path, "The file does not exist yet, so I create it.")
    if last.name == "read" or (last.name == "write" and not last.is_error and path == NOTE):
        text = "\n".join(re.findall(r"^ *\d+\t(.*)$", last.text, re.M)) if last.name == "read" else DRAFT
        if edit := _edit_of(path, text):
            return ScriptedAnswer("Now a small edit, so that the user sees a diff.", "", [("edit", json.dumps(edit))])
    done = [result.name for result in results if not result.is_error and result.name in ("write", "edit")]
    said = (
        f"You were asked before anything was written, and saw each change as a diff: "
        f"{' and '.join(f'`{n}`' for n in done)} changed `{path}`. `/rewind` puts files back together with the "
        "conversation, `/permissions` shows what needs your permission, and Shift+Tab changes that."
        if done
        else f"`{path}` is unchanged. A real model gets the same answer: “{_first_line(last.text)}”"
    )
    return ScriptedAnswer("The files are done. I sum up what happened.", f"## {heading}\n\n{said}\n{end}")


def _write(path: str, why: str) -> ScriptedAnswer:
    return ScriptedAnswer(why, "", [("write", json.dumps({"path": path, "content": DRAFT}))])


def _edit_of(path: str, text: str) -> dict[str, object] | None:
    """Arguments of an edit that shows something and breaks nothing; None where the text has no line to hold on to."""
    lines = text.split("\n")
    if path == NOTE and "Status: draft" in lines:
        return {"path": path, "edits": [{"old_string": "Status: draft", "new_string": "Status: seen by a person"}]}
    mark = {"py": "# ", "sh": "# ", "toml": "# ", "yaml": "# ", "yml": "# ", "js": "// ", "ts": "// ", "go": "// "}
    added = mark.get(path.rpartition(".")[2], "") + "The demo model was here."
    line = next((one for one in reversed(lines) if one.strip() and text.count(one) == 1), None)
    return (line and {"path": path, "edits": [{"old_string": line, "new_string": f"{line}\n{added}"}]}) or None


def _ask(after: Sequence[Message], offered: set[str], *, on: bool) -> ScriptedAnswer:
    results = _results(after)
    if not results and "ask" in offered:
        question = {
            "question": "What do you want most from a long session?",
            "choices": ["It remembers what I said", "It stays cheap", "I see what is going on"],
        }
        return ScriptedAnswer(
            "The user wants to see how I think and ask. A question is worth it where the answer changes what I do, "
            "so I ask for what matters most to them, and answer to that. What I think here is stored as it is written, "
            "with the signature that a provider would put on it, and goes back to me with the answer.",
            "",
            [("ask", json.dumps(question))],
        )
    answers = {
        "remembers": "A compaction keeps your instructions word for word, and `/pin` keeps whatever you choose.",
        "cheap": "`/usage` says what each turn cost and why the provider's cache was missed; `/budget` sets a limit.",
        "see": "`/context`, the line below the prompt and `/doctor` say what is going on, with the reason.",
    }
    chosen = next((text for word, text in answers.items() if results and word in results[0].text), "")
    head = "## 3 of 4 · Reasoning is kept\n\n" if on else ""
    return ScriptedAnswer(
        "The user has answered. I know why I asked: my thoughts from before are still with me.",
        f"{head}{chosen}{' ' if chosen else ''}\n\nMy reasoning is in the line above; Ctrl+T opens it. Providers sign "
        "what a model thinks, and a model that does not get it back forgets why it did what it did. Here it is stored "
        "whole, sent back as long as the provider accepts it and counted in its own row of `/context`, and you are "
        f"warned before anything would lose it.\n{NEXT_LINE if on else ''}",
    )


def _fill(
    messages: Sequence[Message],
    after: Sequence[Message],
    offered: set[str],
    reckoned: Reckoned | None,
    *,
    on: bool,
) -> ScriptedAnswer:
    seen = [int(number) for m in after if m.role == "assistant" for number in CHAPTER.findall(m.text)]
    headings = any(HEADING.search(m.text) for m in messages if m.role == "assistant")
    summary = _summarised(messages)
    chapter = max(seen, default=0) + 1
    begun = bool(_results(after)) or (on and bool(summary) and not headings)
    compacted = seen[0] > 1 if seen else begun
    room = reckoned is None or reckoned.limit is None or reckoned.limit < 200_000
    if not compacted and room and chapter <= MOST_CHAPTERS and "todo" in offered:
        items = [
            {"text": f"Chapter {n}", "status": "completed" if n <= chapter else "pending"}
            for n in range(max(1, chapter - 3), chapter + 3)
        ]
        return ScriptedAnswer(
            "The window is not full yet. One more chapter.",
            chapter_text(chapter),
            [("todo", json.dumps({"items": items}))],
            chunk=FAST,
        )
    if compacted:
        kept = " The summary replaced the chapters." if "hapter" in summary else ""
        said = (
            f"My window of 16,000 tokens was full, so a real compaction made room while I worked.{kept} Open its "
            "line above to see what went, what stayed and the summary. Nothing is lost: `/compact undo` brings it "
            "back, and `/context` shows what it saved."
        )
    else:
        said = "This window is too large to fill here; run `/compact` to see the same."
    return ScriptedAnswer(
        "The window was filled and compacted. That is the last stop.",
        f"## 4 of 4 · Compaction\n\n{said}\n\nThat was the tour. `/model` lists real models and takes your key; "
        "`/help` has the rest.",
    )


def chapter_text(number: int) -> str:
    """About 1 200 tokens."""
    lines = [f"### Chapter {number}\n"]
    for i in range(26):
        topic, verb = TOPICS[(number * 3 + i * 5) % len(TOPICS)], VERBS[(number + i) % len(VERBS)]
        lines.append(
            f"{i + 1}. **{topic}**: the session {verb} it step by step; nothing is thrown away, so item {i + 1} of "
            f"chapter {number} can be looked up again later, also after a restart."
        )
    return cut("\n".join(lines), 6_000) + "\n\n"


TOPICS = ("the prompt", "a tool result", "the summary", "an anchor", "the window", "reasoning", "a step", "the cache")
VERBS = ("records", "measures", "keeps", "counts", "compares", "shows")
