"""All texts of the program that a user may read, by room: ``python -m tests.strings [ROOM …] [--model]``.

A list to be read whole. A text is printed with its file and line; ``{…}`` stands for what is put in. What only the
program, its log or the model reads is left out, as far as its place in the code says so; ``--model`` prints what the
model is told instead.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "agent_tui"

FOR_THE_MODEL = re.compile(r"context/prompt\.py|tools/schemas?\.py")
"""Files whose texts the model reads."""
MODEL_CALLS = {"ToolSchema", "OfferedTool", "SystemBlock"}
MODEL_NAMES = re.compile(r"\w*(PROMPT|INSTRUCTION|INTRODUCTION|PREAMBLE|SCHEMA)\w*")
"""What a constant is called that holds a text for the model."""
LOGS = {"debug", "info", "warning", "error", "exception", "critical", "log"}
INTERNAL = {
    "AssertionError",
    "TypeError",
    "ValueError",
    "RuntimeError",
    "KeyError",
    "NotImplementedError",
    "LookupError",
}
"""Errors that are raised at programs, not at people."""
NOT_READ = {
    *("get", "pop", "setdefault", "getattr", "setattr", "hasattr", "delattr", "isinstance", "namedtuple", "TypeVar"),
    *("compile", "match", "fullmatch", "search", "sub", "subn", "findall", "finditer", "split", "rsplit", "strptime"),
    *("startswith", "endswith", "removeprefix", "removesuffix", "strip", "lstrip", "rstrip", "partition", "rpartition"),
    *("replace", "count", "find", "rfind", "index", "encode", "decode", "strftime", "getenv", "import_module"),
    *("execute", "executemany", "executescript", "run", "all", "one", "value", "getLogger", "query_one", "query"),
    *("set_class", "add_class", "remove_class", "has_class", "toggle_class", "dumps", "loads", "glob", "rglob"),
    *(
        "with_suffix",
        "with_name",
        "word_set",
        "joinpath",
        "open",
        "Path",
        "create_subprocess_exec",
        "Popen",
        "post_message",
    ),
}
"""Functions whose texts are names, patterns or commands; sentences that are given to them are printed all the same."""
SHOWN = {"label", "title", "text", "hint", "placeholder", "help", "description", "noun", "nouns", "detail", "reason"}
"""Arguments that are shown even where they are one small word."""
SHOWING = {"Text", "Notice", "Binding", "notify", "Label", "Static", "complain", "tell", "say"}
"""Functions whose first texts are shown."""
SQL = re.compile(
    r"\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|DROP|ALTER|PRAGMA|BEGIN|COMMIT|ROLLBACK|WITH|ATTACH|VACUUM)\b"
)
STYLES = {"DEFAULT_CSS", "CSS", "SQL", "SCHEMA"}
WORD = re.compile(r"[^\W\d_]{2,}")


@dataclass(frozen=True, order=True)
class Found:
    """A text in the code; ``model``: only the model reads it."""

    room: str
    file: str
    line: int
    text: str
    model: bool = False


def room_of(file: str) -> str:
    """``ui/screens`` of ``ui/screens/help.py``, ``cli`` of ``cli/arguments.py``."""
    return file.rpartition("/")[0] or file.removesuffix(".py")


def texts_of(source: str, file: str) -> Iterator[Found]:
    """The texts of one file, in their order."""
    tree = ast.parse(source)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        # A part of an f-string is printed with the whole of it.
        if isinstance(node, ast.JoinedStr) and not isinstance(parents.get(node), ast.FormattedValue):
            text = "".join(_shape(part) for part in node.values)
            words = "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
            joined = True
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if isinstance(parents.get(node), ast.JoinedStr | ast.FormattedValue):
                continue
            text = words = inspect.cleandoc(node.value) if isinstance(parents.get(node), ast.Expr) else node.value
            joined = False
        else:
            continue
        place = _place(node, parents)
        if place == "none" or not _is_read(words, text, place, joined):
            continue
        model = place == "model" or FOR_THE_MODEL.search(file) is not None
        yield Found(room_of(file), file, node.lineno, text, model)


def _shape(part: ast.expr) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    assert isinstance(part, ast.FormattedValue)
    inside = ast.unparse(part.value)
    return f"{{{inside if len(inside) <= 40 else '…'}}}"


def _place(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> str:
    """What the code around a text does with it: ``none`` reads it, the ``model`` does, it is ``shown``, is a ``name``
    unless it looks like words, it is put ``inside`` another text, or (empty) nothing is known."""
    child, found = node, ""
    while (parent := parents.get(child)) is not None:
        match parent:
            case ast.Expr() if child is node:
                # A docstring; that of a command is its help.
                return "shown" if _is_command(parents.get(parent)) else "none"
            case ast.Call():
                name = _called(parent.func)
                if name in MODEL_CALLS:
                    return "model"
                owner = parent.func.value if isinstance(parent.func, ast.Attribute) else None
                if name in LOGS and owner is not None and re.search(r"log(ger)?$", ast.unparse(owner)):
                    return "none"
                if name in INTERNAL and isinstance(parents.get(parent), ast.Raise):
                    return "none"
                if not found and child in parent.args:
                    # The first two of a binding are its key and its action.
                    named = name in NOT_READ or (name == "Binding" and child in parent.args[:2])
                    found = "name" if named else "shown" if name in SHOWING else ""
                if child is parent.func:
                    found = found or "name"
            case ast.Attribute(attr="split" | "splitlines"):
                return "none"
            case ast.FormattedValue():
                found = found or "inside"
            case ast.keyword():
                found = found or ("shown" if parent.arg in SHOWN else "")
            case ast.Dict():
                found = found or ("name" if child in parent.keys else "")
            case ast.Subscript():
                found = found or ("name" if child is parent.slice else "")
            case ast.Compare() | ast.MatchValue():
                found = found or "name"
            case ast.Assert():
                return "none"
            case ast.AnnAssign() if child is parent.annotation:
                return "none"
            case ast.arg():
                return "none"
            case ast.FunctionDef() | ast.AsyncFunctionDef() if child is parent.returns:
                return "none"
            case ast.Assign() | ast.AnnAssign():
                targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
                names = [target.id for target in targets if isinstance(target, ast.Name)]
                if any(name.lstrip("_") in STYLES for name in names):
                    return "none"
                if any(MODEL_NAMES.fullmatch(name) for name in names):
                    return "model"
                return found
            case ast.stmt():
                return found
        child = parent
    return found


def _called(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _is_command(node: ast.AST | None) -> bool:
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    return any(isinstance(found, ast.Call) and _called(found.func) == "command" for found in node.decorator_list)


def _is_read(words: str, text: str, place: str, joined: bool) -> bool:
    """Whether a text looks like one that people read. ``words`` is it without what is put in."""
    bare = words.strip()
    if not WORD.search(words) or SQL.match(words):
        return False
    if place == "shown":
        return True
    if re.search(r"[a-z]{2}[\w'’,;:.!?)…]* +[\w({“‘'\"/+~$<*]", words) or re.search(r"\w+ \{", text):
        # Several words; of what goes to a function of names only sentences.
        return not (_is_code(bare) or (_is_name(bare) and not joined)) and (place != "name" or bare[:1].isupper())
    if place == "name":
        return False
    if joined:
        # "{n} dropped", "by {model}", "… more"
        return bool(re.search(r"(^|[\s·(])[A-Za-z][a-z]+($|[\s·,.:;)])", words))
    return bool(re.fullmatch(r"[A-Z][a-z]+[\w'’ -]*[.:!?…]?", bare)) or ("…" in bare and len(bare) > 3)


def _is_code(text: str) -> bool:
    """Patterns, styles, markup, SQL, names and paths."""
    if re.search(r"= \?|<> |\bAND m?\.?\w|^[a-z_.]+(, [a-z_.]+)+$|\n(import|def) |^\((allow|deny)", text):
        return True
    if re.search(r"\(\?[:P<!=]|\\[dswbSWD]|\]\*|\[\^|^\^|</?\w+[ >]|[{};]\s*$|^[.#&]\w+[ >]|^\$\w", text):
        return not re.search(r"[a-z]{2,} [a-z]{2,} [a-z]{2,}", text)
    return False


def _is_name(text: str) -> bool:
    return bool(re.fullmatch(r"[\w./:*{}=-]+", text))


def texts(rooms: Sequence[str] = (), model: bool = False) -> list[Found]:
    """The texts of the program, or of some rooms, each once a file."""
    found: dict[tuple[str, str], Found] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        file = path.relative_to(PACKAGE).as_posix()
        if rooms and not any(file == f"{room}.py" or file.startswith(f"{room.rstrip('/')}/") for room in rooms):
            continue
        for text in sorted(texts_of(path.read_text("utf-8"), file)):
            if text.model == model:
                found.setdefault((file, text.text), text)
    return sorted(found.values())


def main() -> None:
    parser = argparse.ArgumentParser(description="Lists all texts that a user may read, by room.")
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help="only these: ui, ui/screens, commands, …")
    parser.add_argument("--model", action="store_true", help="what the model is told instead")
    values = parser.parse_args()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    found = texts(values.rooms, values.model)
    for room, here in groupby(found, lambda text: text.room):
        print(f"\n{room}")
        for text in here:
            place = f"{text.file}:{text.line}"
            first, *more = text.text.strip("\n").split("\n")
            print(f"  {place:<44} {first}", *(f"  {'':<44} {line}" for line in more), sep="\n" if more else "")
    print(f"\n{len(found):,} texts")


if __name__ == "__main__":
    main()
