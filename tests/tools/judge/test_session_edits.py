"""Commands that only edit files, after all edits were allowed for the session."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_tui.models.events import RuleOffer
from tests.support.every import every
from tests.support.tool_context import Make, bash, make_project, maker

pytestmark = pytest.mark.quick

EDITS = [
    "sed -i s/a/b/ src/a.py",
    "sed -i 's/a/b/g; /x/d' src/a.py src/b.py",
    "sed -i -e 's|a|b|' -e '3,5d' src/a.py",
    "sed -Ei '/^x$/,$s/(a)/\\1/gI' src/a.py",
    "sed --in-place 's#a#b#' src/a.py",
    "sed -i '1i import os' src/a.py",
    "perl -pi -e 's/a/b/g' src/a.py",
    "perl -i -pe 's/(a)/$1x/' src/a.py",
    "perl -0pi -e 's/a\\n/b/;' src/a.py",
    "echo x > src/a.py",
    "echo x >> new.txt",
    "cat src/a.py | tee src/b.py",
    "tee -a src/a.py < src/b.py",
    "cat > src/a.py <<'E'\nx\nE",
    "cd src && sed -i s/a/b/ a.py",
    "timeout 5 sed -i s/a/b/ src/a.py && grep -n b src/a.py",
]
MORE = [
    "sed -i 's/a/touch x/e' src/a.py",
    "sed -i 's/a/b/w out' src/a.py",
    "sed -i '1e touch x' src/a.py",
    "sed -i 'w .git/config' src/a.py",
    "sed -i 's/a/b/;e touch x' src/a.py",
    "sed -i.bak s/a/b/ src/a.py",
    "sed -ie s/a/b/ src/a.py",
    "sed -i -f script src/a.py",
    "sed -i s/a/b/ ../outside/secret",
    "sed -i s/a/b/ .git/config",
    "sed -i s/a/b/ .github/workflows/x.yml",
    "sed -i s/a/b/ link/x",
    "sed -i s/a/b/ src/a.py && rm -rf src",
    "sed -i s/a/b/ $FILE",
    "sed -i s/a/b/ *",
    "find . | xargs sed -i s/a/b/",
    "X=1 sed -i s/a/b/ src/a.py",
    "perl -pi -e 's/a/system(1)/e' src/a.py",
    "perl -pi -e 'system(1)' src/a.py",
    "perl -pi -e 's/a/@{[system 1]}/' src/a.py",
    "perl -pi -e 's/(?{system 1})/b/' src/a.py",
    "perl -pi -e 's/a/${\\ system 1}/' src/a.py",
    "perl -pie 's/a/b/' src/a.py",
    "perl -Mevil -pi -e 's/a/b/' src/a.py",
    "echo x > .git/hooks/pre-commit",
    "echo x > ../outside/secret",
    "echo x > src/deep/a",
    "tee --output-error src/a.py",
    "sed -i s/a/b/ twin",
    "sudo sed -i s/a/b/ src/a.py",
    "./sed -i s/a/b/ src/a.py",
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = make_project(tmp_path)
    for name in ("a.py", "b.py"):
        (root / "src" / name).write_text("a\n")
    (root / "plain").write_text("a\n")
    os.link(root / "plain", root / "twin")
    return root


@every("command", [*EDITS, *MORE])
def test_only_edits_are_edits(root: Path, command: str) -> None:
    make: Make = maker(root)
    permissions = make(holds=lambda domain: True, ask=["edit(src/deep/**)"])
    before = bash(permissions, command)
    assert before.action == "ask" or before.if_stopped is not None, "nothing is allowed for the session yet"
    permissions.accept(RuleOffer(("edit(./**)",), "session"))
    found = bash(permissions, command)
    if command in EDITS:
        assert (found.action, found.domain, found.if_stopped) == ("allow", "work", None), found
    else:
        assert found.action == "ask" or (found.domain == "look" and found.if_stopped is not None), found
    unheld = make(ask=["edit(src/deep/**)"])
    unheld.accept(RuleOffer(("edit(./**)",), "session"))
    assert bash(unheld, command).action == "ask", "nothing holds it to that"
