"""The names that models learned with other agents for tools and arguments, and the names used here.

One table of names, and a few lines of code for arguments that mean the same in another shape. A call is put into our
words before anything looks at it: rules about ``bash`` hold for ``shell``, and what is judged is what runs. What would
change the meaning if it were passed over (``append``) is refused; what says nothing about the work (a ``description``)
is passed over; anything else stays as it was said, and the result names it.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agent_tui.errors import ToolError
from agent_tui.models.messages import Metadata
from agent_tui.tools.arguments import read_arguments

MAX_SECONDS = 3_600.0
"""The longest a command may be waited for. What is asked for beyond it was meant in milliseconds."""

_NAMES: Mapping[str, str] = {
    "read": "readfile view viewfile openfile viewimage readmediafile notebookread",
    "write": "writefile createfile create writetofile",
    "edit": "editfile replace strreplace strreplacefile multiedit searchreplace replaceinfile",
    "apply_patch": "patch",
    "list": "ls listdirectory listdir listfiles",
    "glob": "globfiles findfiles filesearch",
    "grep": "grepsearch grepfiles searchfilecontent searchfiles ripgrep",
    "bash": "shell shellcommand localshell localshellcall exec execcommand containerexec runshellcommand runcommand "
    "runterminalcmd runinterminal executecommand executebash terminal",
    "jobs": "bashoutput taskoutput tasklist killshell killbash taskstop",
    "fetch": "webfetch fetchurl",
    "web_search": "googlewebsearch searchweb",
    "todo": "todowrite updateplan writetodos settodolist todolist updatetodolist",
    "subagent": "task agent newtask",
    "ask": "askuserquestion askuser question requestuserinput askfollowupquestion",
    "present_plan": "exitplanmode planexit",
    "recall": "conversationsearch searchconversation searchhistory",
    "context": "",
    "skill": "activateskill",
}
"""What our tools are called elsewhere, in small letters without signs: `TodoWrite` and `todo-write` are one."""

_EDITOR = ("strreplaceeditor", "strreplacebasededittool", "texteditor")
"""One tool of several commands, each of which is a tool here; most of its calls are edits."""

_PATH = "filepath file filename absolutepath notebookpath targetfile"
_FOLDER = "dirpath directory dir targetdirectory folder searchpath"

_ARGUMENTS: Mapping[str, Mapping[str, str]] = {
    "read": {"path": _PATH, "offset": "lineoffset startline", "limit": "nlines"},
    "write": {"path": _PATH, "content": "filetext contents text"},
    "edit": {"path": _PATH, "edits": "edit"},
    "apply_patch": {"input": "patch patchtext diff"},
    "list": {"path": _FOLDER, "depth": "maxdepth"},
    "glob": {"pattern": "globpattern query", "path": _FOLDER},
    "grep": {
        "pattern": "query regex",
        "path": f"{_FOLDER} {_PATH}",
        "glob": "include includepattern filepattern",
        "ignore_case": "i caseinsensitive",
        "files_only": "namesonly fileswithmatches",
        "context": "c",
        "multiline": "",
    },
    "bash": {
        "command": "cmd script",
        "timeout": "",
        "background": "runinbackground isbackground",
        "outside": "dangerouslydisablesandbox withescalatedpermissions",
    },
    "jobs": {"id": "bashid taskid shellid jobid", "wait": "", "stop": ""},
    "fetch": {"url": "uri"},
    "web_search": {"query": "q search searchterm"},
    "todo": {"items": "todos plan tasks todolist"},
    "subagent": {
        "description": "title",
        "prompt": "task instructions message",
        "background": "runinbackground",
        "type": "subagenttype agenttype agent",
    },
    "ask": {"question": "", "choices": "options", "several": "multiselect multiple"},
    "present_plan": {"plan": ""},
    "recall": {"query": "text pattern search", "id": "messageid callid toolcallid", "offset": "start from"},
    "context": {"action": "", "names": "ids name", "text": "note summary", "focus": "instructions"},
    "skill": {"name": "skill skillname"},
}
"""By tool, every argument of ours, and what it is called elsewhere."""

_EDIT_ARGUMENTS: Mapping[str, str] = {
    "old_string": "old oldstr oldtext search",
    "new_string": "new newstr newtext replace",
    "replace_all": "allowmultiple",
}

_ANYWHERE = "description explanation reason justification instruction thought toolsummary"
"""What models say of a call beside it, for people."""

_PASSED_OVER: Mapping[str, str] = {
    "read": "pages shouldreadentirefile mode indentation",
    "list": "ignore offset limit filefilteringoptions",
    "glob": "casesensitive respectgitignore respectgeminiignore includedirs limit",
    "grep": "n linenumber headlimit limit maxmatches maxmatchesperfile totalmaxmatches maxresults outputmode",
    "bash": "login shell tty yieldtimems maxoutputtokens delayms additionalpermissions",
    "jobs": "filter block limit activeonly timeout",
    "fetch": "prompt format timeout maxlength",
    "web_search": "alloweddomains blockeddomains maxresults numresults limit",
    "todo": "merge action",
    "subagent": "model name teamname mode isolation resume timeout",
    "ask": "header questions metadata",
    "present_plan": "allowedprompts",
    "recall": "limit maxresults",
    "skill": "args arguments",
}
"""What says how an answer is given elsewhere, or names what we have none of; the work is the same without it."""

_STATES: Mapping[str, str] = {
    "done": "completed",
    "complete": "completed",
    "inprogress": "in_progress",
    "active": "in_progress",
    "todo": "pending",
    "notstarted": "pending",
    "blocked": "pending",
}

_BY_NAME = {name: own for own, names in _NAMES.items() for name in (own.replace("_", ""), *names.split())}
_BY_NAME |= dict.fromkeys(_EDITOR, "edit")


def own_name(name: str) -> str:
    """Returns the name of a tool here, from the one a model used; the same name where we know no tool like it."""
    return _BY_NAME.get(_plain(name.rpartition(".")[2]), name)


def understood(name: str, arguments: Metadata, cwd: Path) -> tuple[str, Metadata]:
    """A call in our words: the tool's name and its arguments. Raises ToolError for what no tool of ours does."""
    called = _plain(name.rpartition(".")[2])
    if called in _EDITOR:
        called, arguments = _editor(arguments, cwd)
    tool = _BY_NAME.get(called)
    if tool is None:
        return name, arguments
    if tool == "edit" and called == "replaceinfile" and "diff" in arguments:
        return name, arguments
    said = _Said(arguments, called, cwd)
    found = said.by(_ARGUMENTS[tool])
    if tool in _SHAPES:
        tool = _SHAPES[tool](found, said) or tool
    said.take(f"{_ANYWHERE} {_PASSED_OVER.get(tool, '')}")
    # What is empty or off was not asked for.
    return tool, found | {name: value for name, value in said.left.items() if value}


def parsed(name: str, raw: str) -> Metadata:
    """The arguments of a call of ``name``; a patch may stand there as it is. Raises ToolError for no object."""
    return read_call(name, raw)[0]


def read_call(name: str, raw: str) -> tuple[Metadata, str]:
    """The same, and what was wrong with the way they were written."""
    if own_name(name) == "apply_patch" and raw.lstrip().startswith("*** Begin Patch"):
        return {"input": raw}, ""
    return read_arguments(raw)


class _Said:
    """The arguments of a call, taken by any of their names. ``left`` are those that nobody took."""

    def __init__(self, arguments: Metadata, called: str = "", cwd: Path = Path()) -> None:
        self.left = dict(arguments)
        self.called, self.cwd = called, cwd

    def by(self, names: Mapping[str, str]) -> Metadata:
        """Those that are not null by our names; ``names`` has what each is called elsewhere."""
        taken = {own: self.take(f"{_plain(own)} {others}") for own, others in names.items()}
        return {own: value for own, value in taken.items() if value is not None}

    def take(self, names: str) -> Any:
        """The value under the first of ``names`` that is not null; all of them are taken."""
        found = None
        for name in names.split():
            for key in [key for key in self.left if _plain(key) == name]:
                value = self.left.pop(key)
                found = value if found is None else found
        return found


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _yes(value: Any) -> bool:
    return value is True or (isinstance(value, str) and value.strip().lower() in ("true", "1", "yes"))


def _editor(arguments: Metadata, cwd: Path) -> tuple[str, Metadata]:
    said = _Said(arguments)
    command, insert = said.take("command"), said.take("insertline inserttext")
    if command == "view":
        path = said.left.get("path")
        is_folder = isinstance(path, str) and "\0" not in path and (cwd / path).is_dir()
        return ("list" if is_folder else "read"), said.left
    if command == "create":
        return "write", said.left
    if command == "str_replace":
        return "edit", {"new_str": "", **said.left}
    what = "insert" if insert is not None else str(command)[:40]
    raise ToolError(f"There is no {what!r} here: read shows a file, write creates it, edit replaces text in it.")


def _read(found: Metadata, said: _Said) -> None:
    last, span = _number(said.take("endline")), said.take("viewrange")
    if isinstance(span, list) and len(span) == 2 and all(isinstance(n, int) for n in span):
        found["offset"], last = span[0], (span[1] if span[1] > 0 else None)
    first = _number(found.get("offset", 1))
    if last is not None and first is not None and last >= first and "limit" not in found:
        found["limit"] = int(last - max(first, 1)) + 1


def _write(found: Metadata, said: _Said) -> None:
    if (mode := said.take("mode")) not in (None, "overwrite", "w", "write", "create"):
        raise ToolError(f"write: there is no mode {str(mode)[:40]!r}. It writes whole files; use edit to append.")


def _edit(found: Metadata, said: _Said) -> None:
    entries = found.get("edits")
    if isinstance(entries, dict):
        entries = [entries]
    if isinstance(entries, list) and entries:
        found["edits"] = [_one_edit(entry) for entry in entries]
    else:
        flat = _one_edit(said.left)
        if {"old_string", "new_string"} <= set(flat):
            found.pop("edits", None)
            said.left = flat
            for name in ("old_string", "new_string", "replace_all"):
                if name in said.left:
                    found[name] = said.left.pop(name)


def _one_edit(entry: Any) -> Any:
    if not isinstance(entry, dict):
        return entry
    said = _Said(entry)
    return said.by(_EDIT_ARGUMENTS) | said.left


def _grep(found: Metadata, said: _Said) -> None:
    around = [_number(value) for value in (said.take("a after aftercontext"), said.take("b before beforecontext"))]
    if numbers := [number for number in around if number is not None]:
        found.setdefault("context", int(max(numbers)))
    if said.take("outputmode") == "files_with_matches":
        found.setdefault("files_only", True)
    if said.take("casesensitive") is False:
        found.setdefault("ignore_case", True)


def _bash(found: Metadata, said: _Said) -> str | None:
    command = found.get("command")
    if isinstance(command, list) and command and all(isinstance(word, str) for word in command):
        command = _of_words(command)
    if not isinstance(command, str):
        return None
    folder = said.take("workdir workingdirectory cwd dirpath directory")
    folder = folder.strip() if isinstance(folder, str) else ""
    if (patch := _patch_in(command)) is not None:
        below = f"{folder}/{patch[0]}" if folder and not patch[0].startswith(("/", "~")) else patch[0]
        found.clear()
        found["input"] = _beneath(below, patch[1])
        return "apply_patch"
    if folder and folder not in (".", "./", str(said.cwd)):
        several = any(sign in command for sign in ";&|#\n")
        command = f"cd {shlex.quote(folder)} && " + (f"{{\n{command}\n}}" if several else command)
    found["command"] = command
    if said.take("sandboxpermissions") == "require_escalated":
        found["outside"] = True
    milliseconds = _number(said.take("timeoutms"))
    if milliseconds is not None:
        found.setdefault("timeout", milliseconds / 1000)
    elif (seconds := _number(found.get("timeout"))) is not None and seconds > MAX_SECONDS:
        found["timeout"] = seconds / 1000
        if _yes(found.get("background")):
            del found["timeout"]  # elsewhere it ends no command in the background
    return None


def _of_words(words: list[str]) -> str:
    """A program with its arguments as a command; of a shell that is given one, the command itself."""
    if len(words) == 3 and words[0].rpartition("/")[2] in ("bash", "sh", "zsh") and words[1] in ("-c", "-lc", "-cl"):
        return words[2]
    return shlex.join(words)


_HEREDOC = re.compile(
    r"\s*(?:cd\s+(?P<cd>'[^']*'|\"[^\"$`\\]*\"|[\w./~-]+)\s*(?:&&|;)\s*)?(?:apply_patch|applypatch)\s*"
    r"<<-?\s*(?P<quote>['\"]?)(?P<end>\w+)(?P=quote)[ \t]*\n(?P<patch>.*?)\n[ \t]*(?P=end)\s*",
    re.DOTALL,
)


def _patch_in(command: str) -> tuple[str, str] | None:
    """The folder and the patch of a command that is nothing but ``apply_patch`` with a patch."""
    if match := _HEREDOC.fullmatch(command):
        return (match["cd"] or "").strip("'\""), match["patch"]
    if re.match(r"\s*(apply_patch|applypatch)\s+['\"]", command):
        try:
            words = shlex.split(command)
        except ValueError:
            return None
        if len(words) == 2 and words[1].lstrip().startswith("*** Begin Patch"):
            return "", words[1]
    return None


def _beneath(folder: str, patch: str) -> str:
    """A patch whose paths are those seen from ``folder``."""
    if folder in ("", "/", ".", "./"):
        return patch
    mark = r"^(\*\*\* (?:Add File|Update File|Delete File|Move to): *)(?![/~])"
    return re.sub(mark, lambda match: f"{match[1]}{folder.rstrip('/')}/", patch, flags=re.MULTILINE)


def _jobs(found: Metadata, said: _Said) -> None:
    if said.called in ("killshell", "killbash", "taskstop"):
        found["stop"] = True


def _todo(found: Metadata, said: _Said) -> None:
    items = found.get("items")
    if isinstance(items, list):
        found["items"] = [todo for item in items if (todo := _one_todo(item)) is not None]


def _one_todo(item: Any) -> Any:
    """An entry of the list; None for one that was given up."""
    if isinstance(item, str) and not item.lstrip().startswith("{"):
        return {"text": item}
    if not isinstance(item, dict):
        return item
    said = _Said(item)
    text, state = said.take("text content step title task description name"), said.take("status state")
    if isinstance(state, str):
        if _plain(state) in ("cancelled", "canceled", "deleted"):
            return None
        state = _STATES.get(_plain(state), state)
    said.take("id priority activeform notes owner")
    found: Metadata = {} if text is None else {"text": text}
    return (found if state is None else {**found, "status": state}) | said.left


def _subagent(found: Metadata, said: _Said) -> None:
    if found.get("background") is False:
        del found["background"]
    prompt = found.get("prompt")
    if "description" not in found and isinstance(prompt, str):
        found["description"] = " ".join(prompt.split()[:6])
    elif "prompt" not in found and isinstance(found.get("description"), str):
        found["prompt"] = found["description"]


def _ask(found: Metadata, said: _Said) -> None:
    questions = said.left.get("questions")
    if isinstance(questions, list) and "question" not in found:
        if len(questions) != 1 or not isinstance(questions[0], dict):
            raise ToolError("ask: one question per call; call it again for the next.")
        found.update(_Said(questions[0]).by(_ARGUMENTS["ask"]))
    choices = found.get("choices")
    if isinstance(choices, list):
        found["choices"] = [
            _Said(one).take("label value title text") if isinstance(one, dict) else one for one in choices
        ]


_SHAPES: Mapping[str, Callable[[Metadata, _Said], str | None]] = {
    "read": _read, "write": _write, "edit": _edit, "grep": _grep, "bash": _bash, "jobs": _jobs,
    "todo": _todo, "subagent": _subagent, "ask": _ask,
}  # fmt: skip
"""By tool, what puts arguments of another shape into ours; it answers the tool that is meant where that is another."""
