"""A process that streams answers into a session and says on stdout what is stored, until it is killed.

``python store_child.py DATABASE SESSION``: each line is ``{"id", "status", "texts"}`` of a message, printed after the
write returned; a text is given as its ``mark``, so that the lines are short and the pipe never holds the writer up.
With ``hold`` after it: only takes the lock, says ``held`` and waits for a line on stdin.
``python store_child.py DATABASE PROJECT create N``: makes N sessions with a message each.
"""

from __future__ import annotations

import json
import sys
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from agent_tui.models.messages import Message, ReasoningPart, TextPart, new_id, user_message
from agent_tui.models.steps import Step
from agent_tui.store.store import BUSY_TIMEOUT, Store


def mark(text: str) -> list[int]:
    return [len(text), zlib.crc32(text.encode("utf-8", "surrogatepass"))]


def say(message: Message) -> None:
    texts = [mark(part.text) for part in message.parts if isinstance(part, (TextPart, ReasoningPart))]
    print(json.dumps({"id": message.id, "texts": texts, "status": message.status}), flush=True)


def stream(store: Store, session_id: str) -> None:
    store.locks.take(session_id)
    store.recover(session_id)
    parent = store.sessions.get(session_id).head_id
    while True:
        question = user_message("question \ud800\x00", parent_id=parent)
        store.messages.add(session_id, question)
        say(question)
        draft = Message(new_id("msg"), "assistant", [], "streaming", question.id)
        step = Step(new_id("step"), "turn", "demo", "demo", "demo", "demo", draft.id)
        with store.transaction():
            store.messages.add(session_id, draft)
            store.steps.add(session_id, step)
        say(draft)
        reasoning, text = ReasoningPart("", {"signature": "x"}), TextPart("")
        draft.parts = [reasoning, text]
        for n in range(12):
            (reasoning if n < 4 else text).text += f"chunk {n} " * 50
            store.messages.write(session_id, draft, [0, 1] if n in (0, 4) else [0 if n < 4 else 1])
            say(draft)
        draft.status, step.status = "complete", "complete"
        with store.transaction():
            store.messages.write(session_id, draft, ())
            store.steps.write(session_id, step)
        say(draft)
        parent = draft.id


def create(store: Store, project: str, count: int) -> None:
    for n in range(count):
        info = store.sessions.create(project, "demo")
        store.messages.add(info.id, user_message(f"question {n}"))
        print(info.id, flush=True)


def main() -> None:
    path, subject, *rest = sys.argv[1:]
    with Store.open(Path(path), write_timeout=BUSY_TIMEOUT) as store:
        if rest[:1] == ["create"]:
            create(store, subject, int(rest[1]))
        elif rest[:1] == ["hold"]:
            store.locks.take(subject)
            print("held", flush=True)
            sys.stdin.readline()
        else:
            stream(store, subject)


if __name__ == "__main__":
    main()
