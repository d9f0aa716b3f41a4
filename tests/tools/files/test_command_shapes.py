"""Each way in which a command may come to a file of the project: what runs counts, what is only looked at does not."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent_tui.tools.files.command_words import meanings, words_of
from agent_tui.tools.files.fingerprints import changed_files, fingerprint
from agent_tui.tools.files.named_files import named_files, with_environment
from tests.support.starting import stand_alone

X = "tools/x"
RUN_IT = r"""
bash "$CLAUDE_PROJECT_DIR"/tools/x
"${CLAUDE_PROJECT_DIR:-.}/tools/x"
"$(git rev-parse --show-toplevel)"/tools/x
H=$CLAUDE_PROJECT_DIR/tools; $H/x
X=tools; Y=$X/x; sh $Y
cd tools && ./x
cd -P tools && ./x
cd a; cd ../tools; sh x
sh -c "cd tools; ./x"
PATH="$CLAUDE_PROJECT_DIR/tools:$PATH" x
export PATH=$PWD/tools:$PATH; x
sh $'tools/x'
for n in x y; do bash tools/$n; done
for f in tools/*; do . $f; done
sh tools/{w,x}
sh tools/?
sh 'tools'/"x"
tools\/x
"bash" tools/x
bash -o pipefail tools/x
bash --init-file=tools/x -i
bash -lc 'source tools/x'
sh -c 'exec "$0" "$@"' tools/x
BASH_ENV=tools/x bash -c true
LD_PRELOAD=./tools/x git status
GIT_SSH_COMMAND="sh tools/x" git fetch
bash < tools/x
bash <(cat tools/x)
cat tools/x | sh
sh -c 'cat tools/x | sh'
bash -c "$(cat tools/x)"
{ cat tools/x; } | sh
if true; then cat tools/x; fi | bash
f() { cat tools/x; }; eval "$(f)"
X=$(<tools/x); eval $X
while read l; do eval "$l"; done < tools/x
for l in $(cat tools/x); do $l; done
printf '%s' "$(cat tools/x)" | sh
cp tools/x /tmp/zz; sh /tmp/zz
echo tools/x | xargs bash
echo "$(bash tools/x)"
true `tools/x`
diff <(tools/x) /dev/null
env -S "bash tools/x"
env -i sh tools/x
sudo -u me tools/x
timeout 10 nice -n 5 tools/x
trap 'sh tools/x' EXIT; git status
ruff() { sh tools/x; }; ruff check
case $1 in a) sh tools/x;; esac
if command -v jq; then tools/x; fi
test -f a && exec tools/x
jq . | tools/x 2>&1 | tail -5
flock /tmp/l tools/x
make -s -f tools/x lint
make SHELL=tools/x
awk -f tools/x /dev/null
awk 'BEGIN{system("sh tools/x")}'
sed -n '1e sh tools/x' a
find . -name a -exec sh tools/x {} \;
git -c alias.x="!sh tools/x" x
git -c core.pager=tools/x log
git submodule foreach 'sh tools/x'
python3 -W ignore tools/x
python3 - < tools/x
python3 -c "exec(open('tools/x').read())"
uv run python tools/x
node -r ./tools/x -e 1
perl -e 'do "./tools/x"'
eslint -c tools/x src
mytool --config tools/x
""".strip().splitlines()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    stand_alone(monkeypatch, tmp_path)
    (tmp_path / "p").mkdir()
    return (tmp_path / "p").resolve()


def put(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def changes(root: Path, line: str | list[str], files: Mapping[str, str], later: Mapping[str, str]) -> list[str]:
    put(root, files)
    accepted = fingerprint(named_files(line, root, root), root)
    put(root, later)
    return changed_files(accepted, fingerprint(named_files(line, root, root), root))


@pytest.mark.parametrize("line", [*RUN_IT, "bash <<E\nsh tools/x\nE"])
def test_what_a_line_runs_counts(root: Path, line: str) -> None:
    assert X in changes(root, line, {X: "one", "a/b": ""}, {X: "another"})


@pytest.mark.parametrize(
    "name", ["my hooks/run.sh", "tools/a,b.sh", "tools/[id].sh", "tools/prüf.sh", "tools/a=b", "a'b", "notes.md"]
)
def test_names_with_signs_of_the_shell_are_read_as_it_reads_them(root: Path, name: str) -> None:
    assert changes(root, f"bash {shlex.quote(name)}", {name: "one"}, {name: "another"}) == [name]


SCRIPTS = '{"scripts": {"pretest": "sh a.sh", "test": "npm run b", "b": "sh b.sh", "start": "node src/s.js"}}'
BY_OTHERS: dict[str, tuple[str | list[str], dict[str, str], dict[str, str]]] = {
    "a folder of hooks": ("for f in tools/d/*.sh; do . $f; done", {"tools/d/a.sh": ""}, {"tools/d/b.sh": "1"}),
    "a folder beside": (
        "bash h/a.sh",
        {"h/a.sh": 'for f in "$(dirname "$0")"/d/*; do . "$f"; done', "h/d/1": ""},
        {"h/d/2": "1"},
    ),
    "a library of a library": ("bash a.sh", {"a.sh": ". ./b", "b": ". ./c", "c": ""}, {"c": "1"}),
    "a folder that is asked for": (
        "bash h/a.sh",
        {"h/a.sh": 'D=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)\nbash "$D/c"', "h/c": ""},
        {"h/c": "1"},
    ),
    "a path for modules": ("PYTHONPATH=src python3 -m m.h", {"src/m/h.py": ""}, {"src/m/h.py": "1"}),
    "a server's path for modules": (
        with_environment({"no-shell-has-this": "1", "PYTHONPATH": "src"}, "python3", "-m", "srv"),
        {"src/srv.py": ""},
        {"src/srv.py": "1"},
    ),
    "sys.path": (
        "python3 a/x.py",
        {"a/x.py": "import os, sys\nsys.path.insert(0, os.path.join('..', 'lib'))\nimport c", "lib/c.py": ""},
        {"lib/c.py": "1"},
    ),
    "a shadow in a path for modules": ("PYTHONPATH=src python3 -m m", {"src/m.py": ""}, {"src/json.py": "1"}),
    "a module beside": ("python3 a/x.py", {"a/x.py": "import json"}, {"a/re.py": "1"}),
    "Python in a shell": ("bash a.sh", {"a.sh": "python3 - <<'E'\nimport d\nE\n", "d.py": ""}, {"d.py": "1"}),
    "a folder that starts": ("python3 tools", {"tools/__main__.py": ""}, {"tools/__main__.py": "1"}),
    "a text that runs": ("python3 x.py", {"x.py": "exec(open('c.txt').read())", "c.txt": ""}, {"c.txt": "1"}),
    "a script in pieces": (
        "python3 h/a.py",
        {"h/a.py": "import subprocess\nsubprocess.run(['sh', join(ROOT, 'tools', 'x')])", "tools/x": ""},
        {"tools/x": "1"},
    ),
    "a script of an f-string": (
        "python3 h/a.py",
        {"h/a.py": "import subprocess\nsubprocess.run([f'{root}/tools/x'])", "tools/x": ""},
        {"tools/x": "1"},
    ),
    "a line in a script": (
        "node h.js",
        {"h.js": "execSync('sh tools/x')", "tools/x": ""},
        {"tools/x": "1"},
    ),
    "a configuration": ("proxy --config s.json", {"s.json": '{"run": "t/x.sh"}', "t/x.sh": ""}, {"t/x.sh": "1"}),
    "a script of uv": ("uv run --with mcp srv.py", {"srv.py": ""}, {"srv.py": "1"}),
    "a script of uv in a folder": ("uv --directory d run srv.py", {"d/srv.py": ""}, {"d/srv.py": "1"}),
    "an include": ("make", {"Makefile": "include rules.mk\n", "rules.mk": ""}, {"rules.mk": "1"}),
    "what a rule needs": ("make a", {"Makefile": "a: b\n\techo\nb:\n\tsh x\n", "x": ""}, {"x": "1"}),
    "the first rule": ("make -C sub", {"sub/Makefile": "all:\n\tsh x\n", "sub/x": ""}, {"sub/x": "1"}),
    "a module of perl": ("perl -Ilib x.pl", {"x.pl": "use A::B;\n", "lib/A/B.pm": ""}, {"lib/A/B.pm": "1"}),
    "an end left out": ("node a/x.js", {"a/x.js": "require('./h')", "a/h.js": ""}, {"a/h": "1"}),
    "main": (
        "node x.js",
        {"x.js": "require('./h')", "h/package.json": '{"main": "lib/m.js"}', "h/lib/m.js": ""},
        {"h/lib/m.js": "1"},
    ),
    "a package": ("node a/x.js", {"a/x.js": "require('g')", "node_modules/g/i.js": ""}, {"node_modules/g/i.js": "12"}),
    "a nearer package": ("node a/x.js", {"a/x.js": "require('g')"}, {"a/node_modules/g/i.js": ""}),
    "a program of npm": (
        "npm run -s b",
        {"package.json": '{"scripts": {"b": "guard"}}', "node_modules/.bin/guard": ""},
        {"node_modules/.bin/guard": "1"},
    ),
    "npm's alias": ("npm t -s", {"package.json": SCRIPTS, "a.sh": ""}, {"a.sh": "1"}),
    "a script of a script": ("npm t -s", {"package.json": SCRIPTS, "b.sh": ""}, {"b.sh": "1"}),
    "another script later": (
        "npm run c; sh y.sh",
        {"y.sh": "npm run b", "package.json": SCRIPTS, "b.sh": ""},
        {"b.sh": "1"},
    ),
    "npm's shell": ("npm --silent run a", {"package.json": "{}", ".npmrc": ""}, {".npmrc": "script-shell=./x"}),
    "hooks before a commit": ("pre-commit run", {".pre-commit-config.yaml": ""}, {".pre-commit-config.yaml": "1"}),
}


@pytest.mark.parametrize("how", BY_OTHERS)
def test_what_is_found_by_programs_and_scripts_counts(root: Path, how: str) -> None:
    line, files, later = BY_OTHERS[how]
    assert changes(root, line, files, later)


GUARD = """#!/usr/bin/env python3
'''Keeps README.md as it is.'''
import json, subprocess, sys
path = json.load(sys.stdin)["tool_input"]["file_path"]
if any(one in path for one in (".env", "package-lock.json", ".git/")):
    sys.exit(2)
subprocess.run(["ruff", "check", path])
with open(".claude/log.txt", "a") as file:
    file.write(path)
"""
SHELL_GUARD = """#!/bin/bash
file=$(jq -r '.tool_input.file_path // empty')
# don't touch src/app.py
case "$file" in
  src/*.py) ruff check --fix "$file" ;;
  *) [[ "$file" == *.js ]] && biome check "$file" ;;
esac
grep -q TODO README.md && echo "$(cat VERSION)" >&2
git diff --stat -- src/ AGENTS.md
echo "$(date) $file" >> .claude/log.txt
"""
PROJECT = {
    "package.json": '{"main": "src/index.js", "scripts": {"test": "jest", "lint": "a src", "start": "node src/s.js"}}',
    "Makefile": "test:\n\tpytest -q\nlint: src/app.py\n\truff check src/app.py\nrun:\n\tpython3 src/app.py\n",
    ".claude/guard.py": GUARD,
    ".claude/guard.sh": SHELL_GUARD,
    "mcp/server.py": "import json\n",
    "build/index.js": "require('./lib')\n",
    "build/lib.js": "",
}
EVERY_DAY = {
    **dict.fromkeys(["README.md", "AGENTS.md", "docs/guide.md", "VERSION", ".env", "data.db", ".claude/log.txt"], "1"),
    **dict.fromkeys(["src/app.py", "src/util.py", "src/pkg/__init__.py", "src/index.js", "src/s.js", "main.py"], "1"),
    **dict.fromkeys(["tests/test_app.py", "conftest.py", "pyproject.toml", "tsconfig.json", "src/json.py"], "1"),
    "package.json": PROJECT["package.json"].replace("}}", '}, "dependencies": {"left-pad": "1"}}'),
    "Makefile": PROJECT["Makefile"] + "new:\n\techo\n",
}
HONEST: dict[str, list[str]] = {
    'ruff check "$(jq -r .tool_input.file_path)"': [],
    'jq -r .tool_input.file_path | { read f; ruff format "$f"; }': [],
    "jq -r .tool_input.file_path | xargs -r ruff check --fix src/app.py": [],
    'f=$(jq -r .p); [[ "$f" == *.py ]] && ruff check "$f"; exit 0': [],
    'bash -c \'f=$(jq -r .p); case "$f" in src/*.py) ruff check "$f";; esac\'': [],
    "prettier --write $FILE": [],
    "npx prettier --write src/index.js": [],
    "black --check src/app.py && mypy src/app.py || true": [],
    "python3 -m py_compile src/app.py": [],
    "python3 -m ruff format src/app.py": [],
    "gofmt -l src; cargo fmt; go vet ./...": [],
    "npx tsc --noEmit -p tsconfig.json": [],
    "pytest -q": [],
    "python -m pytest -q tests": [],
    "uv run pytest -q": ["pyproject.toml"],
    "npm test": ["package.json"],
    "npm run --silent lint": ["package.json"],
    "make -s test": ["Makefile"],
    "make lint": ["Makefile"],
    "notify-send 'done with src/app.py'; say done": [],
    "cat >> .claude/log.txt": [],
    'echo "$(date): $(jq -r .prompt)" >> .claude/log.txt': [],
    "git status --short | head; git diff --stat HEAD; cat README.md AGENTS.md": [],
    "curl -s -X POST -d @- https://example.com": [],
    "python3 -c \"import json,sys; sys.exit(2 if '.env' in json.load(sys.stdin)['p'] else 0)\"": [],
    'python3 "$CLAUDE_PROJECT_DIR"/.claude/guard.py': [],
    "bash .claude/guard.sh": [],
    "npx -y @modelcontextprotocol/server-filesystem .": [],
    "uvx mcp-server-sqlite --db-path data.db": [],
    "python3 -m mcp_server_fetch": [],
    "python3 mcp/server.py": [],
    "node build/index.js": [],
    "{0}/own/bin/python -m srv --root .": [],
    "node {0}/own/server.js": [],
    "docker run -i --rm -v .:/w mcp/git": [],
}
"""What people start, and which of the changes that are made all day are asked about: where the file is what runs."""
ELSEWHERE = "f('**/*.js'); glob('*.md'); g('./src/index.js', 'AGENTS.md'); import './src/s.js'; exec('*')\n" * 900


@pytest.mark.parametrize("line", HONEST)
def test_what_is_only_looked_at_or_written_is_not_asked_about(root: Path, line: str) -> None:
    put(root.parent / "own", {"server.js": ELSEWHERE, "bin/python": ""})
    before = {**dict.fromkeys(EVERY_DAY, ""), **PROJECT}
    del before["src/json.py"]
    assert changes(root, line.replace("{0}", str(root.parent)), before, EVERY_DAY) == HONEST[line]


def test_of_what_lies_elsewhere_whole_paths_to_code_count(root: Path) -> None:
    put(root, {"src/a.js": "", "b.md": ""})
    put(root.parent / "own", {"server.js": f"run('{root}/src/a.js'); run('{root}/b.md'); run('src/a.js')"})
    assert named_files(f"node {root.parent}/own/server.js", root, root).files == (f"{root}/src/a.js",)


def test_a_script_that_lies_elsewhere_finds_its_modules(root: Path) -> None:
    put(root.parent / "own", {"server.py": "import helper"})
    assert named_files(f"python3 {root.parent}/own/server.py", root, root).imports
    assert not named_files("python3 -m json.tool; ruff check a.py", root, root).imports


def test_patterns_of_more_than_can_be_looked_up_are_a_problem(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever makes many files must not hide one from the look."""
    monkeypatch.setattr("agent_tui.tools.files.named_files._MOST_LOOKED_UP", 100)
    put(root, {"d/x.sh": "", **{f"d/{number}": "" for number in range(200)}})
    assert "patterns" in named_files("for f in d/*.sh; do . $f; done", root, root).problem


SIGNS = [
    "\0",
    '"',
    "'",
    "$",
    "(",
    ")",
    "`",
    "\\",
    "{",
    "a,b}",
    "*",
    "[",
    "\n",
    "|",
    "<",
    ">",
    "~",
    "/",
    "for",
    "python",
    " ",
]


@pytest.mark.slow
def test_nothing_that_is_written_is_too_much(root: Path) -> None:
    put(root, {"a": ""})
    for number in range(len(SIGNS) ** 2):
        first, second = SIGNS[number // len(SIGNS)], SIGNS[number % len(SIGNS)]
        for line in (first + second, f"sh {first}x{second}/a", f"python3 -c '{first}{second}' {second}$X{first}a"):
            assert named_files(line, root, root).problem == ""


def test_signs_of_a_pattern_in_code_are_no_pattern(root: Path) -> None:
    put(root, {"h.py": "".join(f"a = '[a-z]*{number}?/x*'\n" for number in range(2_000))})
    assert named_files("python3 h.py", root, root).files == (f"{root}/h.py",)


def test_a_text_that_was_read_is_read_again_once_it_changed(root: Path) -> None:
    put(root, {"a.sh": ". ./b", "b": "", "c": ""})
    assert {path.rpartition("/")[2] for path in named_files("sh a.sh", root, root).files} == {"a.sh", "b"}
    put(root, {"a.sh": ". ./c"})
    assert {path.rpartition("/")[2] for path in named_files("sh a.sh", root, root).files} == {"a.sh", "c"}


@pytest.mark.parametrize(
    ("word", "paths"),
    [
        ("--config=a/b", {"--config=a/b", "--config", "a/b"}),
        ("-Ilib", {"-Ilib", "lib"}),
        ("a/{b,c}{d,e}", {"a/bd", "a/be", "a/cd", "a/ce"}),
        ("{a,b}/{a,b}", {"a/a", "a/b", "b/a", "b/b"}),
        ("x/" + "{a,b}" * 7, {"x/*"}),
        ("{,}" * 300, {"*"}),
        ("a,b:c", {"a,b:c", "a", "b", "c"}),
    ],
)
def test_what_a_word_may_mean(word: str, paths: set[str]) -> None:
    assert set(meanings(word)) == paths


@pytest.mark.forms(15)
@pytest.mark.parametrize("language", ["shell", "python", ""])
@pytest.mark.parametrize("piece", ["a", "${", "$(", "`", "('", "{a,"])
def test_a_long_text_of_anybodys_is_read_at_once(piece: str, language: str) -> None:
    words = words_of(piece * (30_000 // len(piece)) + "\n'x/y.sh'\n", language)
    assert len(words.words) < 5_000


def test_names_without_quotes_are_found_in_a_configuration() -> None:
    text = "run: ./a.sh\nend. of/ .hidden a/b..\nplain " + "A" * 100_000
    named = {word for _, word, _ in words_of(text, "").words}
    assert named == {"./a.sh", ".hidden", "a/b.."}


def test_of_more_than_can_be_looked_at_nothing_more_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from agent_tui.tools.files import named_files as module

    read: list[str] = []

    def noted(path: str, most: int) -> tuple[str, tuple[int, ...]]:
        read.append(path)
        return "", ()

    monkeypatch.setattr(module, "_read", noted)
    for number in range(200):
        with (tmp_path / f"f{number}.sh").open("wb") as file:
            file.truncate(1_000_000)
    assert "more than 32 MB" in named_files("for f in *; do . $f; done", tmp_path, tmp_path).problem
    assert len(read) < 50


@pytest.mark.slow
def test_what_is_beyond_the_limit_of_calls_in_a_line_leaves_its_other_words() -> None:
    words = words_of("tools/x " + "`a`" * 20_000, "shell")
    assert "tools/x" in {word for _, word, _ in words.words}
