"""Commands that look harmless and are not: none of them runs unasked, whatever the rules."""

from __future__ import annotations

import pytest

from tests.support.every import every
from tests.support.tool_context import Make, bash

pytestmark = pytest.mark.quick

# None of these may run unasked, although each begins like, or contains, something harmless or allowed by a rule.
TRICKS = r"""
git status; rm -rf src
git status && rm -rf src
git status || rm x
git status | sh
git status & rm x
git status\nrm x
git status $(rm x)
git status `rm x`
git status "$(rm x)"
git status > src/a.py
git status >> src/a.py
git status &> src/a.py
git statusx
git status-evil
"git status"
"git status/../evil"
gi\t push
git -c core.fsmonitor=evil status
git -c alias.status='!rm x' status
git -C src status
git --git-dir=src status
git --exec-path=src status
git -p status
git diff --output=src/a.py
git diff --outp=src/a.py
git log --ext-diff
git log --textconv
git grep -O foo
git grep --open-files-in-pager=evil foo
git branch new
git branch -D main
git tag v1
git stash
git remote add x y
git config core.pager evil
git push
FOO=1 git status
PATH=. git status
PATH=.; git status
GIT_EXTERNAL_DIFF=evil git diff
LD_PRELOAD=./x ls
ls() { rm x; }; ls
alias ls=rm
find . -exec rm {} \;
find . -execdir rm {} +
find . -delete
find . -ok rm {} \;
find . -fprintf src/a.py x
find . -fls src/a.py
sed -i s/a/b/ src/a.py
sed -n 'w src/a.py' src/a.py
sed -n '1e rm x' src/a.py
sed s/a/b/e src/a.py
sort -o src/a.py src/a.py
sort -uo src/a.py src/a.py
sort --outp=src/a.py src/a.py
sort --compress-program=evil src/a.py
uniq src/a.py src/b.py
tee src/a.py
echo x | tee src/a.py
xargs rm < src/a.py
echo x | xargs rm
env rm x
env
command rm x
builtin cd /
exec rm x
eval rm x
source src/a.py
. src/a.py
nohup rm x
timeout 5 rm x
sudo ls
awk 'BEGIN{system("rm x")}'
python -c 'import os'
perl -e 1
bash -c 'rm x'
sh src/a.sh
./ls
/tmp/ls
src/ls
rg --pre evil foo
rg --pre=evil foo
tree -o src/a.py
date -s tomorrow
date 010100002030
hostname evil
file -C -m src/a.py
printf -v PATH x
test -v 'a[$(rm x)]'
printenv
ps e
less src/a.py
vi src/a.py
curl http://example.org
wget http://example.org
nc -l 80
cat $SECRETS
cat $(echo src/a.py)
cat `echo src/a.py`
$CMD
$(echo rm) x
for f in *; do cat $f; done
cat {src/a.py,"/etc/hostname"}
cat $'\x2fetc/hostname'
(rm x)
{ rm x; }
! rm x
if true; then rm x; fi
cat <<EOF > src/a.py\nx\nEOF
cat <<EOF | sh\nrm x\nEOF
cat <<EOF\n$(rm x)\nEOF
echo "$\\n(rm x)"
ls 2> src/a.py
ls >| src/a.py
ls <> src/a.py
> src/a.py
cat src/a.py > >(tee src/b.py)
diff <(rm x) src/a.py
wc --files0-from=src/a.py
coproc rm x
trap 'rm x' EXIT
hash -p ./evil ls
enable -f ./evil ls
export PATH=.
ls; :(){ :|:& };:
\x1b]0;ls\x07
ls\u00a0-la
""".strip("\n").splitlines()


def unescaped(command: str) -> str:
    return command.replace("\\n", "\n").replace("\\x1b", "\x1b").replace("\\x07", "\x07").replace("\\u00a0", "\u00a0")


@every("command", TRICKS)
def test_tricks_are_asked_about(make: Make, command: str) -> None:
    permissions = make(allow=["bash(git status*)", "bash(ls*)", "bash(cat *)"])
    assert bash(permissions, unescaped(command)).action == "ask"


@every("command", TRICKS)
def test_tricks_are_refused_in_plan_mode(make: Make, command: str) -> None:
    decision = bash(make("plan", allow=["bash(git status*)", "bash", "edit"]), unescaped(command))
    assert decision.action == "deny"
    assert "plan mode" in decision.message
