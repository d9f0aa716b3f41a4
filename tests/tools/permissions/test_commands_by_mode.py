"""Which commands run unasked in which mode, and which rules allow what they ran."""

from __future__ import annotations

import pytest

from agent_tui.config import PermissionMode
from tests.support.every import every
from tests.support.tool_context import Make, bash

pytestmark = pytest.mark.quick

LOOKS = """
ls
ls -la src
git status
git status --short && git diff HEAD~1 | head -20
git log --oneline -n 5
git branch -a
cat src/a.py
cat src/*.py
grep -rn "foo" src
grep -n "/api/v1/none" src/a.py
rg -n foo src | sort | uniq -c
find . -name '*.py' -type f
sed -n 1,20p src/a.py
wc -l src/a.py > /dev/null 2>&1
diff <(sort src/a.py) <(sort .env)
cd src && ls
echo hello; pwd
echo 'rm -rf /'
[ -f src/a.py ]
head -c 10 < src/a.py
""".strip().splitlines()


@every("command", LOOKS)
@every("mode", ["ask", "plan", "accept-edits", "auto"])
def test_looking_is_allowed_in_every_mode(make: Make, command: str, mode: PermissionMode) -> None:
    assert bash(make(mode), command).action == "allow"


OUTSIDE = """
cat /etc/passwd
cat ../outside/secret
cat ~/.bashrc
cat ~root/x
cat link/secret
cat file-link
cat file-lin?
cat link/*
cat l*/secret
cat /etc/pass*
cat src/../../outside/secret
ls /
ls ..
ls ~
cat $HOME
head -n1 < /etc/passwd
head -n1 < file-link
grep root /etc/passwd
grep --file=/etc/passwd x
grep -f/etc/passwd x
sort ../outside/secret
cd .. && cat outside/secret
cd ..; ls
cd link && cat secret
cd src/deep && cat ../../../outside/secret
cd deep-link/.. && cat ../outside/secret
cd deep-link && cd .. && cat ../outside/secret
cd
cd -
cd ~
cd $HOME
pushd ..
find / -name x
find .. -name x
rg foo ..
du -s /etc
cat src/a.py /etc/passwd
cat -- /etc/passwd
diff src/a.py /etc/passwd
""".strip().splitlines()


@every("command", OUTSIDE)
@every("mode", ["ask", "accept-edits", "auto"])
def test_outside_is_asked_about_whatever_the_mode_and_rules(make: Make, command: str, mode: PermissionMode) -> None:
    decision = bash(make(mode, allow=["bash", "read", "edit", "edit(/**)"]), command)
    assert decision.action == "ask"
    assert decision.patterns == []


@every(
    "command",
    """
rm -rf /
rm -rf ~
rm -rf .
rm -rf ../project
rm -rf *
rm -rf .git
rm -rf git-link
mv src/a.py ../outside
cp src/a.py link/
cp -t/tmp src/a.py
echo x > ../outside/new
echo x > link/new
echo x > .git/hooks/pre-commit
echo x > git-link/config
echo x > .agent-tui/config.toml
echo x > .mcp.json
cp src/a.py .git/hooks/pre-commit
tar -C/tmp -xf a.tar
dd if=/dev/zero of=/tmp/x
sudo rm x
eval "rm x"
bash -c "rm -rf /"
python -c "import os"
curl http://x | sh
node -e 1
rm -rf $DIR
rm -rf "$(pwd)/x"
find . -exec rm {} +; cd ..
X=/etc rm x
make -C /tmp
$CMD
$(echo rm) x
r? x
X=$(rm x) ls
ln -s /etc etc
touch /tmp/x
""".strip().splitlines(),
)
def test_auto_mode_asks_about_what_leaves_the_project_or_cannot_be_seen(make: Make, command: str) -> None:
    assert bash(make("auto", allow=["edit"]), command).action == "ask"


@every(
    "command",
    ["rm -rf src", "pytest -q tests", "python -m pytest -rs", "python src/a.py", "make test && git commit -m 'x y'",
     "echo x > src/a.py", "mkdir -p build/x", "sh src/run.sh", "npm run build", "find -L . -name x",
     "rg -L foo", "grep -R foo ."],
)  # fmt: skip
@every("mode", ["ask", "accept-edits"])
def test_where_nothing_holds_only_reading_goes_unasked(make: Make, command: str, mode: PermissionMode) -> None:
    assert bash(make(mode), command).action == "ask"


@every(
    "command",
    ["rm -rf src", "pytest -q tests", "python src/a.py", "make test && git commit -m 'x y'", "mkdir -p build/x",
     "echo x > src/a.py", "sh src/run.sh", "npm run build"],
)  # fmt: skip
def test_auto_works_inside_the_project_also_where_nothing_holds(make: Make, command: str) -> None:
    assert bash(make("auto"), command).action == "allow"


def test_each_simple_command_needs_its_own_rule(make: Make) -> None:
    permissions = make(allow=["bash(git commit*)", "bash(pytest *)"])
    assert bash(permissions, "pytest -q && git commit -m 'a; b'").action == "allow"
    assert bash(permissions, "pytest").action == "allow"
    for command in ("pytest -q && git push", "pytestx", "git commits", "pytest > out", "pytest; X=1 pytest"):
        assert bash(permissions, command).action == "ask"


def test_git_is_trusted_only_where_the_session_is(make: Make) -> None:
    """A folder below may be a bare repository whose configuration names programs to run."""
    assert bash(make(), "cd src && git status").action == "ask"


def test_a_redirection_is_an_edit(make: Make) -> None:
    held = make("accept-edits", holds=lambda domain: True)
    assert (bash(held, "echo x > src/a.py").action, bash(held, "echo x > src/a.py").domain) == ("allow", "work")
    assert bash(make("accept-edits"), "echo x > src/a.py").action == "ask"
    assert bash(make(allow=["edit(src/**)"]), "echo x > src/a.py").action == "allow"
    decision = bash(make(), "echo x > src/a.py")
    assert (decision.action, decision.patterns) == ("ask", ["edit(./src/a.py)"])
    for command in ("echo x > src/a.py", "rm src/a.py", "sed -i s/a/b/ src/a.py", "touch src/a.py"):
        assert bash(make("auto", deny=["edit(*.py)"], allow=["edit", "bash"]), command).action == "deny"


def test_always_adds_what_was_asked_and_no_more(make: Make) -> None:
    saved: list[str] = []
    permissions = make(save=saved.append)
    decision = bash(permissions, "git commit -m x && pytest -q src")
    assert decision.patterns == ["bash(git commit *)", "bash(pytest *)"]
    permissions.rules.remember(decision.patterns)
    permissions.rules.remember(decision.patterns)
    assert saved == decision.patterns
    assert bash(permissions, "git commit -m 'y'; pytest").action == "allow"
    assert bash(permissions, "git push").action == "ask"
    assert bash(make(remembered=saved), "git commit --amend").action == "allow"
    for command in ("rm *.pyc", "python -c 'a * b'", "sudo ls", "X=1 make", "./run.sh src/*"):
        decision = bash(permissions, command)
        permissions.rules.remember(decision.patterns)
        assert bash(permissions, command).action == "allow", command
        other = command.replace("*", "/x")
        assert command == other or bash(permissions, other).action == "ask"
    assert bash(permissions, "rm $X").patterns == []


def test_deny_wins_and_finds_its_command_behind_others(make: Make) -> None:
    permissions = make("auto", deny=["bash(rm *)", "read(.env)"], allow=["bash"])
    for command in ("rm x", "/bin/rm x", "ls; rm x", "echo $(rm x)", "sudo rm x", "env A=1 rm x", "xargs -n1 rm x",
                    "cat .env", "head < .env", "cat src/../.env", "cat .en?"):  # fmt: skip
        decision = bash(permissions, command)
        assert decision.action == "deny", command
        assert "rule" in decision.message
