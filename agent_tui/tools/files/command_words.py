"""Splits a text of a shell, or of another language, into the words that may be files which it runs, and knows which
files programs run by themselves and which they only look at.

Nothing is certain here: of a text that is not understood more words count, not fewer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from typing import Literal

from agent_tui.errors import ToolError
from agent_tui.records import dataclass
from agent_tui.tools.files.walk import expand_braces
from agent_tui.tools.word_sets import word_set

Role = Literal["runs", "given", "names", "looks", "module", "library", "goes"]
"""What a text does with a word: it runs the file; gives it to a program that may run it; names it; gives it to one
that looks at it; imports what has the name; has modules or programs found in the folder; or goes there."""


@dataclass(slots=True, frozen=True)
class Language:
    """How a language finds a module: ``imports`` are the names in a text, in which ``separator`` stands for a slash,
    and of whose files one of ``ends`` is left out. Folders that a text with ``libraries`` names are looked through."""

    programs: str
    ends: tuple[str, ...]
    imports: str = r"(?!)"
    separator: str = "/"
    libraries: str = r"(?!)"


LANGUAGES = {
    "": Language("", ()),  # a configuration, or a program on PATH
    "make": Language("", (".mk", ".make")),
    "shell": Language("sh bash dash zsh ksh fish ash", (".sh", ".bash", ".zsh", ".fish", ".envrc")),
    "python": Language(
        "python pypy py",
        (".py", ".pyw", ".pyc", ".so"),
        r"(?:^[ \t]*|;[ \t]*)(?:from|import)[ \t]+([\w., \t]+)",
        ".",
        r"\bsys\.path\b|\baddsitedir\b",
    ),
    "node": Language(
        "node nodejs deno bun tsx ts-node",
        (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx"),
        r"\b(?:require|import|from)\b[\s(]*[\"'`]([^\"'`\n]+)",
    ),
    "perl": Language("perl", (".pl", ".pm"), r"^[ \t]*(?:use|require)[ \t]+([\w:]+)", "::", r"\buse lib\b|@INC\b"),
    "ruby": Language("ruby", (".rb",), r"\b(?:require|require_relative|load)\b[ (]*[\"']([^\"'\n]+)"),
    "lua": Language("lua luajit", (".lua",), r"\brequire\b[ (]*[\"']([\w.]+)", "."),
    "php": Language("php", (".php",)),
}
INTERPRETERS = {name: language for language, of in LANGUAGES.items() for name in of.programs.split()}
CODE_ENDS = {end: language for language, of in LANGUAGES.items() for end in of.ends}

FINDS = {
    "make": "GNUmakefile makefile Makefile",
    **dict.fromkeys(word_set("npm pnpm yarn bun"), "package.json .npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs bunfig.toml"),
    **dict.fromkeys(word_set("npx bunx"), ".npmrc bunfig.toml node_modules/.bin/"),
    **dict.fromkeys(word_set("uv poetry pdm pipenv hatch"), "pyproject.toml uv.toml poetry.toml Pipfile .venv/bin/"),
    "just": "justfile Justfile .justfile",
    "pre-commit": ".pre-commit-config.yaml",
}
"""Files in which a program finds what it runs, and folders of programs, where it starts and above."""

_WRAPPERS = word_set(
    "sudo env xargs command builtin exec nice nohup time timeout setsid trap npx bunx uvx uv poetry pdm pipenv hatch"
)
_KEYWORDS = word_set(
    "if then elif else fi do done while until esac { } ! function export declare typeset readonly local"
)
_LOOKS = {
    **dict.fromkeys(
        word_set(
            "echo printf true false : test [ [[ exit return sleep date pwd ls stat file wc du df basename dirname "
            "realpath readlink touch mkdir rmdir rm chmod kill which type id uname set unset shift read wait cat "
            "head tail tac nl cut tr uniq column comm diff cmp md5sum sha256sum base64 grep egrep fgrep jq yq say "
            "notify-send osascript terminal-notifier ruff black isort pyflakes pycodestyle pydocstyle bandit gofmt "
            "goimports rustfmt shellcheck shfmt hadolint actionlint yamllint taplo typos clang-format py_compile "
            "compileall json.tool"
        ),
        r"(?!)",
    ),
    **dict.fromkeys(
        word_set("eslint stylelint prettier biome tsc markdownlint mypy pyright pylint flake8 rubocop"),
        r"(?:^|\s)-[cr]\b|--[\w-]*(?:config|plugin|load|require|rule|rc)",
    ),
    "awk": r"(?:^|\s)-[fil]|--(?:file|include|load)|system|getline|\|",
    "sed": r"(?:^|\s)-\w*f|--file|(?:^|[\d$/;\s])e\s",
    "find": r"-exec|-ok",
    "sort": r"--compress",
    "rg": r"--pre\b",
    "curl": r"(?:^|\s)(?:-K|--config)",
    "git": r"!|(?:^|\s)(?:-c|-x|--exec|--config-env|--upload-pack|bisect|submodule|filter-branch)\b",
}
"""Programs that only look at the files that they are given, or write them, unless this is found in their arguments."""
_RUNS_ALL = word_set("pytest unittest tox nox coverage")

_INNER = r"[^()]*+"
for _ in range(3):  # calls in calls
    _INNER = rf"(?:\\.|'[^']*+'|\"(?:\\.|\$\({_INNER}\)|[^\"\\])*+\"|\({_INNER}\)|[^()'\"\\]++){{0,200}}+"
_CALL = rf"\$\({_INNER}\)|`[^`]*+`"
_HELD = rf"{_CALL}|\$\{{[^}}]{{0,500}}+\}}"
_DOUBLE = rf"\"((?:\\.|\$\({_INNER}\)|[^\"\\])*+)\""
_TOKEN = re.compile(
    r"(?<![^\s;&|()])\#[^\n]*+|(?P<sign>[<>]\(|\d*(?:<<<|<<-?|[<>]+[&|]?)|&>+|[;&|]+|[()\n])"
    rf"|(?P<word>(?:\\.|'[^']*+'|{_DOUBLE}|{_HELD}|[^\s;&|()<>'\"`\\$]++|\$)++)",
    re.DOTALL,
)
_QUOTED = re.compile(rf"\\(.)|\$?'([^']*+)'|\$?{_DOUBLE}|({_HELD})", re.DOTALL)
_CALLED = re.compile(rf"\$\(({_INNER})\)|`([^`]*+)`", re.DOTALL)
_KNOWN = re.compile(r"\$\{(\w+)(?::?[-=]([^}]*))?\}|\$(\w+)")
_VARIABLE = re.compile(rf"{_HELD}|\$\w+|\$[@*#?!$-]", re.DOTALL)
_BEHIND_WRAPPER = re.compile(r"-.*|[\d.]+[smhd]?|\{\}|run|exec|tool", re.DOTALL)
_EVALUATES = re.compile(
    r"\b(?:exec\w*|eval|compile|run_path|run_module|Function|subprocess|system|[pP]open|spawn\w*)\b|\bdo\s*[\"'(]|\bvm\."
)
_WRITTEN = re.compile(
    r"\b(?:open\(\s*(?:\"[^\"\n]*\"|'[^'\n]*')\s*,\s*(?:mode\s*=\s*)?[\"'][wax]"
    r"|(?:append|write)File(?:Sync)?\(\s*(?:\"[^\"\n]*\"|'[^'\n]*'))"
)
_STRING = re.compile(r"\"((?:[^\"\\\n]|\\.)*+)\"|'((?:[^'\\\n]|\\.)*+)'|`([^`\n]*+)`")
_RULE = re.compile(r"^([^\s:=#][^:=\n]*):(?!=)([^\n]*)((?:\n(?:\t[^\n]*)?)*)", re.MULTILINE)
_ASSIGNED = re.compile(r"(\w+)\+?=(.*)", re.DOTALL)
_SEVERAL = re.compile(r"[\s(;]")
_MOST_DEPTH, _MOST_WORDS, _MOST_SIGNS = 6, 2_500, 6_000


@dataclass(slots=True)
class TextWords:
    """What a text names: ``words`` are what becomes of each, the word, and the language that its file is read as. The
    text ``evaluates`` what it looks at; Python ``starts`` where the text does; ``imports``: it needs what is there."""

    words: dict[tuple[Role, str, str], None] = field(default_factory=dict)
    programs: set[str] = field(default_factory=set)
    assigned: dict[str, str] = field(default_factory=dict)
    evaluates: bool = False
    starts: bool = False
    imports: bool = False

    def add(self, role: Role, words: Iterable[str], language: str = "shell") -> None:
        if len(self.words) < _MOST_WORDS:
            self.words.update(dict.fromkeys((role, word, language) for word in words if len(word) < 1_000))


@lru_cache(1_024)
def words_of(text: str, language: str) -> TextWords:
    """The words of a text that is written in a language; empty: not known, such as a configuration."""
    found, text = TextWords(), text.replace("\0", " ")
    if language in ("shell", "make"):
        _Shell(found).read(re.sub(r"(?m)^[\t@+-]+", "", text.replace("\\\n", " ")))
        _find_imports(found, text, "python" if found.starts else "")  # of a here-document
    else:
        _read_code(found, text, language)
    return found


def rules_of(text: str, scripts: Mapping[str, object]) -> tuple[str, dict[str, tuple[str, str]]]:
    """What a Makefile says to all, and by their names its rules, or the ``scripts`` of a package: what each needs, and
    its lines."""
    if scripts:
        return "", {name: (str(line), str(line)) for name, line in scripts.items()}
    rules = {name: (needs + lines, lines) for names, needs, lines in _RULE.findall(text) for name in names.split()}
    return _RULE.sub("", text), rules


def _find_imports(found: TextWords, text: str, language: str) -> None:
    for name in re.findall(LANGUAGES[language].imports, text, re.MULTILINE):
        names = re.split(r"[,\s]+", name.partition(" import ")[0]) if language == "python" else [name]
        found.add("module", (one for one in names if one.strip(".")), language)


def _read_code(found: TextWords, text: str, language: str) -> None:
    of = LANGUAGES[language]
    found.evaluates = found.evaluates or _EVALUATES.search(text) is not None
    _find_imports(found, text, language)
    text = _WRITTEN.sub(" ", text)
    strings = ["".join(groups) for groups in _STRING.findall(text)]
    if not language:  # it names files without quotes, too
        strings += (word for word in re.findall(r"[\w./~@%+-]++", text) if "." in word[:-1] or "/" in word[:-1])
    strings = [re.sub(r"\$?\{[\w.!\[\]()'\"]*\}|%s", "${?}", word) for word in strings]
    found.add("library", strings if re.search(of.libraries, text) else ())
    found.add("goes", (word for word in strings if re.fullmatch(r"[\w./-]+", word)))
    found.add("names", strings, language)
    for word in strings if found.evaluates else ():
        if " " in word and _program(word.partition(" ")[0]) in INTERPRETERS:
            _Shell(found).read(word)


class _Shell:
    """Reads a text of a shell into ``found``."""

    def __init__(self, found: TextWords) -> None:
        self._found, self._signs = found, 0

    def read(self, text: str, depth: int = 0) -> None:
        words, inputs, target, open_ = list[str](), list[str](), "", 0
        for match in _TOKEN.finditer(text + "\n"):
            self._signs += 1
            if self._signs > _MOST_SIGNS:
                return
            sign, word = match["sign"] or "", match["word"]
            if word is not None:
                if not target:
                    words.append(word)
                elif ">" not in target and not target.endswith("<<"):
                    inputs.append(word)
                target = ""
            elif sign.strip("<>&|-0123456789") == "" and ("<" in sign or ">" in sign):
                target = sign
            elif sign:
                open_ += ("(" in sign) - (sign == ")")
                if open_ >= 0:  # else it was a pattern of ``case``
                    self._command(words, inputs, depth)
                words, inputs, target, open_ = [], [], "", max(open_, 0)

    def _command(self, raw: Sequence[str], inputs: Sequence[str], depth: int) -> None:
        found = self._found
        for word in (*raw, *inputs) if depth < _MOST_DEPTH else ():
            for call in _CALLED.finditer(word) if "$(" in word or "`" in word else ():
                if self._signs > _MOST_SIGNS:
                    break
                self.read(call[1] or call[2] or "", depth + 1)
        words, wrapped = [*map(unquote, raw)], False
        for at, word in enumerate(words):
            option, _, value = word.partition("=")
            if option in ("-C", "--directory", "--prefix", "--cwd", "--project"):
                found.add("goes", [value or "".join(words[at + 1 : at + 2])])
        for at, word in enumerate(words):
            name, assigned = _program(word), _ASSIGNED.fullmatch(word) if "=" in word else None
            if word in ("for", "select", "case"):
                found.add("runs", words[at + 3 :])
                return
            if name in _WRAPPERS:
                found.programs.add(name)
                wrapped = True
            elif assigned:
                found.assigned.setdefault(assigned[1], assigned[2])
                found.add("given", [assigned[2]])
                self._nested(assigned[2], "shell", depth)
                if re.fullmatch(r"\w*PATH|PERL5?LIB|RUBYLIB", assigned[1]):
                    found.add("library", assigned[2].split(":"))
            elif word not in _KEYWORDS and not (wrapped and _BEHIND_WRAPPER.fullmatch(word)):
                self._call(word, [*words[at + 1 :], *map(unquote, inputs)], depth)
                return
        found.add("given", map(unquote, inputs))

    def _call(self, program: str, arguments: list[str], depth: int) -> None:
        found, name = self._found, _program(program)
        found.add("runs", [program], "")
        if (end := re.search(r"\.\w+$", program)) and end[0] in CODE_ENDS:  # ``uv run x.py``
            found.add("given", [program], CODE_ENDS[end[0]])
        if INTERPRETERS.get(name) == "python" and "-m" in arguments[:-1]:
            at = arguments.index("-m") + 1
            name, arguments = arguments[at], arguments[at + 1 :]
            runs_all = name in _RUNS_ALL
            found.starts, found.imports = found.starts or not runs_all, found.imports or runs_all
            found.add("module", [name], "python")
        language = INTERPRETERS.get(name, "")
        found.programs.add(name)
        # What runs is known only when it runs: then what other commands look at may be it.
        found.evaluates = found.evaluates or name == "eval" or _VARIABLE.fullmatch(program) is not None
        self._nested(program, "shell", depth)
        for at, word in enumerate(arguments):
            if language and word.startswith("-I"):
                found.add("library", [word[2:] or "".join(arguments[at + 1 : at + 2])])
        if name in _LOOKS and not re.search(_LOOKS[name], " ".join(arguments)):
            found.add("looks", arguments)
            return
        if name in ("cd", "pushd"):
            found.add("goes", arguments)
            return
        if language or name in ("eval", "source", ".", "include", "-include"):
            operand = next((word for word in arguments if not word.startswith("-")), None)
            if operand is None or "-s" in arguments or _VARIABLE.fullmatch(operand):
                found.evaluates = True
            found.starts = found.starts or (language == "python" and (operand is None or "-c" in arguments))
            language = language or "shell"
            found.add("runs", [operand] if operand else [], language)
        found.add("given", arguments, language)
        for word in arguments:
            self._nested(re.sub(r"^[\w.-]*=?!", "", word), language or "shell", depth)

    def _nested(self, text: str, language: str, depth: int) -> None:
        """Reads a word that may be a text of a language itself."""
        if _VARIABLE.fullmatch(text) or not _SEVERAL.search(text):
            return
        if language != "shell":
            _read_code(self._found, text, language)
        elif depth < _MOST_DEPTH:
            self.read(text, depth + 1)


@lru_cache(4_096)
def _program(word: str) -> str:
    """The name under which a program is known, without its folder and version."""
    name = word.rpartition("/")[2]
    return re.sub(r"(?<=[a-z])[\d.]+$", "", name) or name


def unquote(word: str) -> str:
    """A word of a shell without its quotes."""
    if word.isalnum():
        return word
    return _QUOTED.sub(lambda m: m[1] or m[2] or re.sub(r"\\([\"$`\\])", r"\1", m[3] or "") or m[4] or "", word)


@lru_cache(4_096)
def meanings(word: str) -> tuple[str, ...]:
    """What a word may be as a path: whole, in an option or a list, with its braces expanded."""
    try:
        whole = expand_braces(word)
    except ToolError:  # there are many of them: any file may be one
        whole = [re.sub(r"\{.*\}", "*", word)]
    parts = [part for one in whole for part in (one, *re.split(r"[=:,;]", one), one.lstrip("@"))]
    parts += [one[2:] for one in whole if re.match(r"-\w[^-]", one)]
    return tuple(dict.fromkeys(part for part in parts if part and "\n" not in part))


def substituted(word: str, values: Mapping[str, str], depth: int = 0) -> str:
    """A word with the variables whose values are known; any other is ``\\0``."""

    def value(match: re.Match[str]) -> str:
        known = values.get(match[1] or match[3], match[2])
        return match[0] if known is None or depth > 4 else substituted(known, values, depth + 1)

    return _VARIABLE.sub("\0", _KNOWN.sub(value, word)) if "$" in word or "`" in word else word
