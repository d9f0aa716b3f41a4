"""The server that counts: every dialect at once, a real vocabulary, Qwen's chat template, a prefix cache, usage.

    python -m tests.benchmarks.league.server --vocabulary qwen --files FOLDER --project FOLDER

runs with the Python that has the vocabularies, prints its port and serves until its input ends. ``POST /league`` takes
``{"summing": true}`` (everything is answered with a summary from now on), ``GET /league`` gives what happened so far.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.benchmarks.league import conversation, reading, telling
from tests.benchmarks.league.reading import Asked
from tests.benchmarks.league.telling import Call, Usage
from tests.benchmarks.league.vocabularies import Count, vocabulary
from tests.support import floor
from tests.support.floor import Act, Read, Run, Todo, Write
from tests.support.loopback import Loopback, Recorded, Reply, json_reply
from tests.support.true_provider.cache import PrefixCache
from tests.support.true_provider.wire import Segment

# Qwen's template: what stands around a message, a call, a result; the beginning of the answer.
A_MESSAGE, A_PROMPT = 5, 3
_CALL = "\n<tool_call>\n{}\n</tool_call>"
_RESULT = "\n<tool_response>\n{}\n</tool_response>"
_TOOLS = """

# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call>"""
CHUNKS_A_SECOND = 50
READERS = ("read", "read_file", "readfile", "view", "view_file", "open_file")
SHELLS = ("exec_command", "bash", "shell", "run_shell_command", "shell_command", "execute", "terminal")
LISTS = (("TodoWrite", "todos", "content"), ("update_plan", "plan", "step"), ("todo", "items", "text"))
"""Tools for a list of what is to do: the name, its argument, and what an item's text is called."""
PATHS = ("file_path", "filePath", "absolute_path", "path", "target_file", "filename", "paths")


@dataclass(slots=True)
class Seen:
    """One request and its answer. ``kind``: ``turn`` of the conversation, ``side`` (titles and such), ``summary``, or
    ``count`` (only counted); ``own`` are the tokens of the part's own message; ``at`` is of ``time.monotonic``;
    ``facts`` are those found in it."""

    number: int
    kind: str
    path: str
    part: str
    step: int
    at: float
    input: int
    own: int = 0
    read: int = 0
    output: int = 0
    facts: list[str] = field(default_factory=list)


class Counting(Loopback):
    """Serves Anthropic's Messages, OpenAI's chat and Responses, and Gemini."""

    def __init__(self, count: Count, project: Path, keep: Path | None) -> None:
        self.seen: list[Seen] = []
        self.summing = False
        self.seconds = 8.0
        self._count, self._project, self._keep = count, project, keep
        self._here = threading.local()
        self._caches = {explicit: PrefixCache(explicit) for explicit in (True, False)}
        self._busy = threading.Lock()
        super().__init__()

    def record(self, request: Recorded) -> None:
        self._here.request = request

    def next_reply(self, path: str, method: str = "POST") -> Reply:
        request: Recorded = self._here.request
        if path == "/league":
            return self._controlled(request)
        if method != "POST":
            return self._listed(path)
        dialect = next((one for one in DIALECTS if one.path in path), None)
        if dialect is None:
            return json_reply({"error": {"message": "not found", "type": "not_found_error"}}, 404)
        body = request.json
        if dialect.name == "gemini":
            body["stream"] = "stream" in path
            body["model"] = path.rpartition("/")[2].partition(":")[0]
        with self._busy:
            return self._answered(dialect, body, request)

    def _controlled(self, request: Recorded) -> Reply:
        if request.body:
            for name, value in request.json.items():
                setattr(self, name, value)
        return json_reply([asdict(seen) for seen in self.seen])

    def _listed(self, path: str) -> Reply:
        if path.endswith("/models"):
            return json_reply({"object": "list", "data": [{"id": "league-model", "object": "model", "created": 1}]})
        return json_reply({"error": {"message": "not found", "type": "not_found_error"}}, 404)

    def _answered(self, dialect: Dialect, body: dict[str, Any], request: Recorded) -> Reply:
        asked = dialect.read(body)
        asked.stream, asked.model = bool(body.get("stream")), str(body.get("model"))
        segments = list(self._segments(asked))
        total = sum(segment.tokens for segment in segments)
        part, step, own = _place(asked)
        counting = "count" in request.path or request.path.endswith("input_tokens")
        kind = "count" if counting else "summary" if self.summing else "turn" if own else "side"
        seen = Seen(len(self.seen), kind, request.path, part, step, request.at, total)
        seen.own = self._own(asked, part)
        everything = "\n".join(piece.text for piece in asked.pieces if piece.kind != "tools")
        seen.facts = [fact.found for fact in conversation.FACTS if fact.found in everything]
        if part in conversation.FLOOR:
            seen.facts = [fact.found for fact in floor.FACTS if fact.stands_in(everything)]
        self.seen.append(seen)
        if self._keep is not None:
            (self._keep / f"{seen.number:03}-{kind}.json").write_bytes(request.body)
        if counting:
            return json_reply({"input_tokens": total, "totalTokens": total, "object": "response.input_tokens"})
        text, call = self._scripted(asked, seen)
        seen.read, written = self._caches[dialect.explicit].use(segments)
        seen.output = self._count(text) + 1 + (self._count(_CALL.format(_written(call))) if call else 0)
        usage = Usage(total, seen.output, seen.read, written)
        slow = part.startswith("stream-") and kind == "turn"
        if not asked.stream:
            return json_reply(dialect.whole(asked.model, text, call, usage))
        events = dialect.stream(asked.model, _paced(text, self.seconds) if slow else _pieces(text), call, usage)
        return Reply(events, headers={"request-id": f"req_{seen.number}"})

    def _own(self, asked: Asked, part: str) -> int:
        """Tokens of a part's message, and of its frame where it has one to itself."""
        if not part:
            return 0
        text = conversation.message(part)
        alone = any(piece.text.strip() == text for piece in asked.pieces)
        return self._count(text) + (A_MESSAGE if alone else 0)

    def _segments(self, asked: Asked) -> Iterator[Segment]:
        """The prompt in tokens: Qwen's template around the texts of a request."""
        before = ""
        if asked.tools:
            yield Segment("tools", "tools", self._count(_TOOLS), block=False)
        for piece in asked.pieces:
            group = {"call": "assistant", "tools": "system"}.get(piece.kind, piece.kind)
            text = piece.text
            if piece.kind in ("call", "result"):
                text = (_CALL if piece.kind == "call" else _RESULT).format(text)
            around = A_MESSAGE if group != before else 1
            before = group
            yield Segment(piece.kind, f"{group} {text}", self._count(text) + around, piece.marked)
        yield Segment("frame", str(len(asked.pieces)), A_PROMPT, block=False)

    def _scripted(self, asked: Asked, seen: Seen) -> tuple[str, Call | None]:
        if seen.kind == "summary":
            asks = [piece.text for piece in asked.pieces if piece.kind == "user"][-1:]
            # Where there are tools the system prompt is the agent's usual one and says nothing of summaries.
            return conversation.summary("\n".join(asks if asked.tools else [asked.texts("system"), *asks])), None
        if seen.kind == "side":
            return "Bookkeeping", None
        acts = conversation.acts(seen.part)
        if seen.step < len(acts):
            return "", self._acting(asked.tools, acts[seen.step])
        return conversation.answer(seen.part), None

    def _acting(self, tools: dict[str, dict[str, Any]], act: Act) -> Call | None:
        """A call by the tools there are. Who has no list reads instead, who has nothing that writes has a shell."""
        match act:
            case Run(command):
                return self._running(tools, command)
            case Write(path, text):
                if "Write" in tools:
                    return Call("Write", {"file_path": str(self._project / path), "content": text})
                if "write" in tools:
                    return Call("write", {"path": path, "content": text})
                return self._running(tools, f"mkdir -p $(dirname {path}) && cat > {path} <<'END'\n{text}END")
            case Todo(items, done):
                states = ["completed" if n < done else "pending" for n in range(len(items))]
                for tool, whole, item in LISTS:
                    if tool in tools:
                        listed = [{item: text, "status": state} for text, state in zip(items, states, strict=True)]
                        more = {"activeForm": "Working"} if tool == "TodoWrite" else {}
                        return Call(tool, {whole: [one | more for one in listed]})
                return self._reading(tools, "ledger.py")
            case Read(path):
                return self._reading(tools, path)
        return None

    def _reading(self, tools: dict[str, dict[str, Any]], file: str) -> Call | None:
        """A call that reads a file; the file as the agent's user would name it."""
        path = str(self._project / file)
        plain = {name.lower(): name for name in tools}
        for name in (plain[one] for one in READERS if one in plain):
            fields = tools[name].get("properties") or {}
            for key in (key for key in PATHS if key in fields):
                return Call(name, {key: [path] if fields[key].get("type") == "array" else path})
        return self._running(tools, f"cat {path}")

    def _running(self, tools: dict[str, dict[str, Any]], command: str) -> Call | None:
        plain = {name.lower(): name for name in tools}
        for name in (plain[one] for one in SHELLS if one in plain):
            fields = tools[name].get("properties") or {}
            key = next(key for key in ("cmd", "command") if key in fields)
            words: Any = ["sh", "-c", command] if fields[key].get("type") == "array" else command
            more: dict[str, Any] = {"max_output_tokens": 20_000} if "max_output_tokens" in fields else {}
            more |= {"description": "Runs it"} if "description" in fields else {}
            return Call(name, {key: words, **more})
        return None


@dataclass(frozen=True, slots=True)
class Dialect:
    name: str
    path: str
    explicit: bool
    read: Callable[[dict[str, Any]], Asked]
    stream: Callable[[str, Iterable[str], Call | None, Usage], Iterator[bytes]]
    whole: Callable[[str, str, Call | None, Usage], dict[str, Any]]


def _responses_whole(model: str, text: str, call: Call | None, usage: Usage) -> dict[str, Any]:
    last = list(telling.responses(model, [text], call, usage))[-1]
    found: dict[str, Any] = json.loads(last.partition(b"data: ")[2])["response"]
    return found


DIALECTS = (
    Dialect("anthropic", "/messages", True, reading.anthropic, telling.anthropic, telling.anthropic_whole),
    Dialect("chat", "/chat/completions", False, reading.chat, telling.chat, telling.chat_whole),
    Dialect("responses", "/responses", False, reading.responses, telling.responses, _responses_whole),
    Dialect("gemini", "/models/", False, reading.gemini, telling.gemini, telling.gemini_whole),
)


def _place(asked: Asked) -> tuple[str, int, bool]:
    """The part of the conversation that a request belongs to, the tool results since it was asked, and whether it asks
    for the turn's next answer (agents ask other things about the same conversation)."""
    at, part = -1, ""
    for n, piece in enumerate(asked.pieces):
        if piece.kind == "user" and (found := conversation.MARK.findall(piece.text)):
            at, part = n, found[-1]
    if at < 0:
        return "", 0, False
    since = asked.pieces[at + 1 :]
    step = sum(piece.kind == "result" for piece in since)
    answered = [n for n, piece in enumerate(since) if piece.kind in ("assistant", "call")]
    results = [n for n, piece in enumerate(since) if piece.kind == "result"]
    newest = not answered or (bool(results) and results[-1] > answered[-1])
    return part, step, bool(asked.tools) and newest


def _written(call: Call) -> str:
    return reading.call_text(call.name, call.arguments)


def _pieces(text: str) -> Iterator[str]:
    half = len(text) // 2
    yield from filter(None, (text[:half], text[half:]))


def _paced(text: str, seconds: float) -> Iterator[str]:
    """An answer of fifty chunks a second, of which the first comes at once."""
    yield f"{conversation.FIRST_WORD} "
    begun, words = time.monotonic(), conversation.STREAMED
    for n in range(int(seconds * CHUNKS_A_SECOND)):
        time.sleep(max(0.0, begun + n / CHUNKS_A_SECOND - time.monotonic()))
        yield words[n % len(words)] + (".\n\n" if n % 40 == 39 else " ")
    yield f"\n\n{text}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vocabulary", default="qwen")
    parser.add_argument("--files", type=Path, required=True, help="LiteLLM's folder of tokenizers")
    parser.add_argument("--project", type=Path, required=True)
    parser.add_argument("--keep", type=Path, help="a folder for the requests as they came")
    options = parser.parse_args()
    with Counting(vocabulary(options.vocabulary, options.files), options.project, options.keep) as server:
        print(server.port, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
