"""Each way in which a command may come to a file of the project: what runs counts, what is only looked at does not."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from agent_tui.tools.files.command_words import meanings
from agent_tui.tools.files.named_files import changed_files, fingerprint, named_files
from tests.support.starting import stand_alone

X = "tools/x"
RUN_IT = r"""
bash "$CLAUDE_PROJECT_DIR"/tools/x
"${CLAUDE_PROJECT_DIR:-.}/tools/x"
"$(git rev-parse --show-toplevel)"/tools/x
D=tools; "$D"/x
cd tools && ./x
cd -P tools && ./x
(cd tools && sh x)
sh -c "cd tools; ./x"
PATH="$CLAUDE_PROJECT_DIR/tools:$PATH" x
for n in x y; do bash tools/$n; done
sh tools/{w,x}
sh tools/?
sh 'tools'/"x"
sh tools//../tools/x
"bash" tools/x
bash -o pipefail tools/x
bash --init-file=tools/x -i
BASH_ENV=tools/x bash -c true
LD_PRELOAD=./tools/x git status
bash < tools/x
bash <(cat tools/x)
. <(cat tools/x)
cat tools/x | sh
sh -c 'cat tools/x | sh'
{ cat tools/x; } | sh
if true; then cat tools/x; fi | bash
f() { cat tools/x; }; eval "$(f)"
eval "$(cat tools/x)"
X=$(<tools/x); eval $X
while read l; do eval "$l"; done < tools/x
for l in $(cat tools/x); do $l; done
printf '%s' "$(cat tools/x)" | sh
cat tools/x > /tmp/zz; sh /tmp/zz
cp tools/x /tmp/zz; sh /tmp/zz
echo tools/x | xargs bash
echo "$(bash tools/x)"
env -S "bash tools/x"
env -i sh tools/x
trap 'sh tools/x' EXIT; git status
ruff() { sh tools/x; }; ruff check
case 1 in 1) sh tools/x;; esac
test -f a && exec tools/x
flock /tmp/l tools/x
run-parts tools
make -s -f tools/x lint
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
node -r ./tools/x -e 1
perl -e 'do "./tools/x"'
go run ./cmd
mytool --config tools/x
""".strip().splitlines()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    stand_alone(monkeypatch, tmp_path)
    (tmp_path / "p").mkdir()
    return (tmp_path / "p").resolve()


def put(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def changes(root: Path, line: str | list[str], files: dict[str, str], later: dict[str, str]) -> list[str]:
    put(root, files)
    accepted = fingerprint(named_files(line, root, root), root)
    put(root, later)
    return changed_files(accepted, fingerprint(named_files(line, root, root), root))


@pytest.mark.parametrize("line", RUN_IT)
def test_what_a_line_runs_counts(root: Path, line: str) -> None:
    assert changes(root, line, {X: "one"}, {X: "another"}), line


@pytest.mark.parametrize(
    "name", ["my hooks/run.sh", "tools/a,b.sh", "tools/[id].sh", "tools/prüf.sh", "tools/a=b", "a'b"]
)
def test_names_with_signs_of_the_shell_are_read_as_it_reads_them(root: Path, name: str) -> None:
    assert changes(root, f"bash {shlex.quote(name)}", {name: "one"}, {name: "another"}) == [name]


BY_OTHERS: dict[str, tuple[str, dict[str, str], dict[str, str]]] = {
    "a folder of hooks": ("for f in tools/d/*.sh; do . $f; done", {"tools/d/a.sh": ""}, {"tools/d/b.sh": "1"}),
    "a path for modules": ("PYTHONPATH=src python3 -m m.h", {"src/m/h.py": ""}, {"src/m/h.py": "1"}),
    "sys.path": (
        "python3 a/x.py",
        {"a/x.py": "import os, sys\nsys.path.insert(0, os.path.join('..', 'lib'))\nimport c", "lib/c.py": ""},
        {"lib/c.py": "1"},
    ),
    "a shadow of a module": ("python3 a/x.py", {"a/x.py": "import json"}, {"a/re.py": "1"}),
    "an include": ("make", {"Makefile": "include rules.mk\n", "rules.mk": ""}, {"rules.mk": "1"}),
    "a module of perl": ("perl -Ilib x.pl", {"x.pl": "use A::B;\n", "lib/A/B.pm": ""}, {"lib/A/B.pm": "1"}),
    "an end left out": ("node a/x.js", {"a/x.js": "require('./h')", "a/h.js": ""}, {"a/h": "1"}),
    "main": (
        "node x.js",
        {"x.js": "require('./h')", "h/package.json": '{"main": "lib/m.js"}', "h/lib/m.js": ""},
        {"h/lib/m.js": "1"},
    ),
    "a package": ("node a/x.js", {"a/x.js": "require('g')", "node_modules/g/i.js": ""}, {"node_modules/g/i.js": "12"}),
    "a nearer package": ("node a/x.js", {"a/x.js": "require('g')"}, {"a/node_modules/g/i.js": ""}),
    "npm's alias": ("npm t -s", {"package.json": '{"scripts": {"test": "a"}}'}, {"package.json": "{}"}),
    "npm's shell": ("npm --silent run a", {"package.json": "{}", ".npmrc": ""}, {".npmrc": "script-shell=./x"}),
    "a folder that starts": ("python3 tools", {"tools/__main__.py": ""}, {"tools/__main__.py": "1"}),
    "a text that runs": ("python3 x.py", {"x.py": "exec(open('c.txt').read())", "c.txt": ""}, {"c.txt": "1"}),
    "uv": ("uv run serve", {"pyproject.toml": "", "src/s/a.py": ""}, {"src/s/a.py": "12"}),
    "a module installed to be edited": (
        ".venv/bin/python -m m",
        {".venv/pyvenv.cfg": "", ".venv/bin/python": "", "src/m/__main__.py": ""},
        {"src/m/__main__.py": "12"},
    ),
    "compose": ("docker compose run h", {"compose.yaml": ""}, {"compose.yaml": "1"}),
    "hooks before a commit": ("pre-commit run", {".pre-commit-config.yaml": ""}, {".pre-commit-config.yaml": "1"}),
    "configuration that is code": ("eslint src", {"eslint.config.js": "", "src/a.js": ""}, {"eslint.config.js": "1"}),
}


@pytest.mark.parametrize("how", BY_OTHERS)
def test_what_is_found_by_programs_and_scripts_counts(root: Path, how: str) -> None:
    assert changes(root, *BY_OTHERS[how])


LOOKED_AT: dict[str, dict[str, str]] = {
    "python3 -m py_compile src/a.py": {},
    "ruff check src/a.py && test -f src/a.py && cat src/a.py | grep -n TODO": {},
    'echo "check src/a.py with ruff" > log.txt': {},
    "jq -r .tool_input.file_path | xargs ruff format src/a.py": {},
    'f=$(jq -r .p); case "$f" in src/*.py) ruff check "$f";; esac': {},
    "gofmt -l src/a.py; go vet ./src; cargo fmt --check; eslint src; git diff --stat src/a.py": {},
    "python3 h.py": {"h.py": "import json\nprint('ok')"},
    "python3 hooks/h.py": {"hooks/h.py": "open('log.txt', 'a').write('src')\n"},
    "bash h.sh": {"h.sh": "# don't run src/a.py\nif grep -q x src/a.py; then echo bad >> log.txt; fi\n"},
    "npm run -s lint": {"package.json": '{"scripts": {"lint": "ruff check src/a.py"}}'},
    "make lint": {"Makefile": "lint: src/a.py\n\t@ruff check src/a.py\n"},
}


@pytest.mark.parametrize("line", LOOKED_AT)
def test_what_is_only_looked_at_or_written_does_not_count(root: Path, line: str) -> None:
    files = {"src/a.py": "", "log.txt": "", "app.py": "", **LOOKED_AT[line]}
    assert changes(root, line, files, {"src/a.py": "1", "log.txt": "1", "app.py": "1", "hooks/new.py": ""}) == []


def test_programs_of_which_nobody_can_tell_are_named(root: Path) -> None:
    assert named_files("go test ./... && ruff check; mytool", root, root).unknown == ("go", "mytool")
    assert named_files("git status; python3 -m json.tool", root, root).unknown == ()


@pytest.mark.parametrize(
    ("word", "paths"),
    [
        ("--config=a/b", {"--config=a/b", "--config", "a/b"}),
        ("-Ilib", {"-Ilib", "lib"}),
        ("$X/a", {"a"}),
        ("a/{b,c}", {"a/b", "a/c"}),
        ("a/$n.sh", {"a/*.sh"}),
        ("$X", set()),
        (".", {"."}),
    ],
)
def test_what_a_word_may_mean(word: str, paths: set[str]) -> None:
    assert set(meanings(word)) == paths
