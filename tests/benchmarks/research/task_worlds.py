"""Four small tasks on real packages, each as the tool calls that a strong model makes for it."""

# ruff: noqa: E501 - commands stand on one line, as models write them

from __future__ import annotations

from typing import Any

Call = tuple[str, dict[str, Any]]


def bash(command: str, **more: Any) -> Call:
    return "bash", {"command": command, **more}


def read(path: str, **more: Any) -> Call:
    return "read", {"path": path, **more}


def edit(path: str, *pairs: tuple[str, str]) -> Call:
    return "edit", {"path": path, "edits": [{"old_string": old, "new_string": new} for old, new in pairs]}


BUILD = ".venv/bin/python -m build --no-isolation --wheel -o build/wheels . 2>&1 | tail -2 && ls build/wheels"
INSTALL = ".venv/bin/pip install -q --no-index --no-build-isolation --no-deps -e ."

ITSDANGEROUS: list[Call] = [
    bash("git status --short && git --no-pager log -3 --oneline && ls -la"),
    ("grep", {"pattern": "def int_to_bytes|def bytes_to_int", "path": "src"}),
    read("src/itsdangerous/encoding.py"),
    bash("sed -n '25,60p' tests/test_itsdangerous/test_encoding.py; grep -rn int_to_bytes src tests | head -20"),
    bash(".venv/bin/python -m pytest -q tests/test_itsdangerous/test_encoding.py 2>&1 | tail -5"),
    bash("source .venv/bin/activate && pytest -x -q 2>&1 | tail -15"),
    bash(
        "python - <<'EOF'\nimport sys\nsys.path.insert(0, 'src')\nfrom itsdangerous.encoding import int_to_bytes\n"
        "for n in (0, 255, 2**64):\n    try:\n        print(n, int_to_bytes(n))\n"
        "    except Exception as e:\n        print(n, type(e).__name__, e)\nEOF"
    ),
    edit(
        "src/itsdangerous/encoding.py",
        (
            "def int_to_bytes(num: int) -> bytes:\n    return",
            "def int_to_bytes(num: int) -> bytes:\n    if num < 0:\n"
            '        raise ValueError("num must not be negative")\n\n    return',
        ),
    ),
    bash(
        "cat >> tests/test_itsdangerous/test_encoding.py <<'EOF'\n\n\ndef test_int_to_bytes_negative():\n"
        '    with pytest.raises(ValueError, match="negative"):\n        int_to_bytes(-1)\nEOF'
    ),
    bash(".venv/bin/pytest tests/test_itsdangerous -q -k 'encoding or int' --tb=short"),
    bash("cd src && ../.venv/bin/python -c 'import itsdangerous.encoding as e; print(e.__file__, e.int_to_bytes(7))'"),
    bash('for f in src/itsdangerous/*.py; do python3 -m py_compile "$f" && echo "ok $(wc -l < "$f") $f"; done'),
    bash("find src tests -name '*.py' -newer pyproject.toml -exec grep -l 'int_to_bytes' {} + | xargs wc -l"),
    edit(
        "CHANGES.rst",
        (
            "Version 2.2.0\n-------------\n",
            "Version 2.3.0\n-------------\n\nUnreleased\n\n-   ``int_to_bytes`` refuses negative numbers.\n\n\n"
            "Version 2.2.0\n-------------\n",
        ),
    ),
    bash("git diff --stat && git --no-pager diff -- src | head -40"),
    bash(f"{BUILD} && {INSTALL}"),
    bash(
        'PYTHONPATH=src timeout 120 .venv/bin/python -m pytest -q --co 2>/dev/null | tail -2; echo "exit ${PIPESTATUS[0]}"'
    ),
    bash(
        "git add -A && git commit -q -F - <<'EOF'\nRefuse negative numbers in int_to_bytes\n\n"
        "struct.error said nothing of the argument.\nEOF\ngit --no-pager log -1 --stat"
    ),
    bash("git status"),
]

TABULATE: list[Call] = [
    bash("pwd; ls; git log --oneline -5; git branch --show-current"),
    bash("wc -l tabulate/*.py test/*.py && grep -n '^def _is' tabulate/__init__.py"),
    read("tabulate/__init__.py", offset=950, limit=45),
    read("test/test_internal.py", limit=30),
    ("glob", {"pattern": "test/test_*.py"}),
    bash("source .venv/bin/activate && python -m pytest -q test/test_internal.py && python --version"),
    bash("cd test && python -m pytest -q test_api.py 2>&1 | tail -3"),
    bash(
        "export PYTHONDONTWRITEBYTECODE=1; cd test && ../.venv/bin/python -m pytest -q test_api.py -p no:cacheprovider"
    ),
    bash(
        "set -euo pipefail\ntmp=$(mktemp -d)\nprintf 'a,b\\n1,yes\\n2,no\\n' > \"$tmp/x.csv\"\n"
        '.venv/bin/tabulate -1 -s, -f github "$tmp/x.csv"\nrm -r "$tmp"'
    ),
    bash(".venv/bin/tabulate --help | head -8; .venv/bin/pip list 2>/dev/null | head; .venv/bin/pip --version"),
    edit(
        "tabulate/__init__.py",
        (
            '    >>> _isbool(1)\n    False\n    """',
            '    >>> _isbool(1)\n    False\n    >>> _isbool(b"True")\n    True\n    """',
        ),
        (
            '        isinstance(string, (bytes, str)) and string in ("True", "False")',
            '        isinstance(string, (bytes, str))\n        and string in ("True", "False", b"True", b"False")',
        ),
    ),
    bash(
        ".venv/bin/python -m doctest tabulate/__init__.py 2>&1 | tail -20; .venv/bin/python -m pytest --doctest-modules -q tabulate | tail -3"
    ),
    (
        "write",
        {
            "path": "test/test_isbool.py",
            "content": '"""Booleans as text and bytes."""\n\nimport pytest\n\nimport tabulate as T\n\n\n'
            '@pytest.mark.parametrize("value", [True, "True", b"False"])\ndef test_isbool(value):\n'
            "    assert T._isbool(value)\n",
        },
    ),
    bash(
        "source .venv/bin/activate\npytest test/test_isbool.py test/test_internal.py -v 2>&1 | grep -E 'PASS|FAIL|ERROR|passed|failed' | sort | uniq -c | sort -rn | head"
    ),
    bash("git diff HEAD --name-only; git stash list; git diff | cat"),
    bash("if [[ -f tox.ini ]]; then sed -n '1,20p' tox.ini; fi; test -f Makefile || echo 'no Makefile'"),
    bash(
        "sed -i 's/Booleans as text and bytes/Booleans, also as text and bytes/' test/test_isbool.py && head -1 test/test_isbool.py"
    ),
    bash(
        ".venv/bin/python -m black --check tabulate test 2>&1 || .venv/bin/python -m compileall -q tabulate && echo compiled"
    ),
    bash("time .venv/bin/python -m pytest -q 2>&1 | tail -4"),
    bash(BUILD),
    bash(f"set -e; {INSTALL}; .venv/bin/python -c 'import tabulate; print(tabulate.__version__)'"),
    bash(
        "git add tabulate test/test_isbool.py && git commit -m 'Take booleans as bytes' -m 'They were text before.' && git show --stat HEAD"
    ),
    bash("git rev-parse --short HEAD && git diff HEAD~1 --shortstat && git status --porcelain"),
]

MORE_ITERTOOLS: list[Call] = [
    ("list", {"path": "."}),
    ("grep", {"pattern": "nth_or_last", "path": ".", "glob": "*.{py,pyi,rst}"}),
    read("more_itertools/more.py", offset=280, limit=60),
    bash("cat -n more_itertools/more.pyi | sed -n '180,195p'; awk '/class NthOrLast/,/^$/' tests/test_more.py"),
    bash("cat setup.cfg Makefile tox.ini 2>/dev/null | head -60"),
    bash(".venv/bin/python -m unittest tests.test_more.NthOrLastTests -v"),
    bash(
        "make -n test; which python python3 ruff mypy flake8; .venv/bin/python -m ruff --version || echo 'no ruff here'"
    ),
    bash(
        "export PATH=\"$PWD/.venv/bin:$PATH\" && python -c 'import sys; print(sys.executable)' && python -m pytest -q tests/test_more.py -k 'Nth or First or Last'"
    ),
    edit(
        "more_itertools/more.py",
        (
            '    ``raise ``ValueError``.\n    """\n    return last(islice(iterable, n + 1), default=default)',
            '    ``raise ``ValueError``.\n    """\n    return last(islice(iterable, n + 1), default=default)\n',
        ),
    ),
    edit(
        "more_itertools/more.py",
        (
            "    return last(islice(iterable, n + 1), default=default)\n",
            "    if n < 0:\n        raise ValueError('n must be at least 0')\n"
            "    return last(islice(iterable, n + 1), default=default)\n",
        ),
    ),
    bash(
        "cat > /tmp/patch_tests.py <<'EOF'\nfrom pathlib import Path\np = Path('tests/test_more.py')\ns = p.read_text()\n"
        "old = '''        self.assertRaises(ValueError, lambda: mi.nth_or_last(range(0), 0))\n'''\n"
        "new = old + '''\n    def test_negative(self):\n        with self.assertRaises(ValueError):\n"
        "            mi.nth_or_last(range(3), -1)\n'''\nassert s.count(old) == 1\np.write_text(s.replace(old, new))\nEOF\n"
        ".venv/bin/python /tmp/patch_tests.py && git diff --stat"
    ),
    read("tests/test_more.py", offset=204, limit=22),
    bash(
        "VENV=.venv/bin; $VENV/python -m pytest -q tests/test_more.py -k NthOrLast && $VENV/python -m unittest tests.test_more.NthOrLastTests && echo both ok"
    ),
    bash('while read -r f; do echo "$f: $(git diff --numstat -- "$f" | cut -f1)"; done < <(git diff --name-only)'),
    bash(
        "python3 -c \"import ast,sys; [ast.parse(open(f).read()) for f in sys.argv[1:]]; print('parsed', len(sys.argv)-1)\" more_itertools/*.py"
    ),
    bash(
        "git diff > /tmp/change.diff && wc -l /tmp/change.diff && git stash -q && .venv/bin/python -m pytest -q tests/test_more.py -k NthOrLast | tail -1; git stash pop"
    ),
    bash(f"{INSTALL} && {BUILD}; git status --short"),
    bash(
        "git apply --check -R /tmp/change.diff && echo applies; mkdir -p build && git diff > build/change.diff; rm -rf build"
    ),
    bash(
        "(.venv/bin/python -m http.server 8765 --bind 127.0.0.1 >/dev/null 2>&1 & p=$!; sleep 1; .venv/bin/python -c \"import urllib.request as u; print(u.urlopen('http://127.0.0.1:8765/').status)\"; kill $p)"
    ),
    bash(
        "printf '%s\\n' 'Refuse a negative n in nth_or_last' '' 'islice said something else.' > /tmp/msg && git add -u && git commit -F /tmp/msg && git --no-pager show --stat"
    ),
    bash("git -C . status -sb; git --no-pager log --oneline -n 3"),
]

MARKUPSAFE: list[Call] = [
    bash("git log --oneline -3; ls; cat pyproject.toml | head -40; cat setup.py | head -60"),
    ("grep", {"pattern": "escape_silent", "path": "."}),
    read("src/markupsafe/__init__.py", offset=40, limit=30),
    bash("sed -n '170,190p' tests/test_markupsafe.py; cat tests/conftest.py; wc -l src/markupsafe/*"),
    bash(".venv/bin/python -m pytest -q 2>&1 | tail -6"),
    bash(
        "gcc --version | head -1 && .venv/bin/python setup.py -q build_ext --inplace 2>&1 | tail -3; ls src/markupsafe"
    ),
    bash(".venv/bin/python -c 'from markupsafe import _speedups; print(_speedups.__file__)'"),
    edit(
        "src/markupsafe/__init__.py",
        (
            "def escape_silent(s: t.Any | None, /) -> Markup:\n",
            'def escape_silent(s: t.Any | None, /, default: str = "") -> Markup:\n',
        ),
        (
            "        return Markup()\n\n    return escape(s)\n",
            "        return escape(default)\n\n    return escape(s)\n",
        ),
    ),
    bash(
        "python3 - <<'EOF'\nfrom pathlib import Path\np = Path('tests/test_markupsafe.py')\ns = p.read_text()\n"
        'old = \'    assert escape_silent("<foo>") == Markup("&lt;foo&gt;")\\n\'\nassert s.count(old) == 1\n'
        'p.write_text(s.replace(old, old + \'    assert escape_silent(None, "<n>") == Markup("&lt;n&gt;")\\n\'))\nEOF\n'
        "git diff --stat"
    ),
    bash(".venv/bin/pytest -q tests/test_markupsafe.py -k silent && .venv/bin/python -m pytest -q -x 2>&1 | tail -3"),
    bash(
        "for m in _native _speedups; do .venv/bin/python -c \"import markupsafe.$m as m; print(m._escape_inner('<a>'))\"; done"
    ),
    bash(
        "touch src/markupsafe/_speedups.c && rm -rf build && .venv/bin/python setup.py build_ext --inplace 2>&1 | grep -c gcc"
    ),
    bash(BUILD),
    bash(f"{INSTALL} && .venv/bin/pip list 2>/dev/null | grep -i markupsafe"),
    bash(
        "python3 -m venv --without-pip build/fresh && unzip -q -o build/wheels/*.whl -d build/fresh/lib && "
        "PYTHONPATH=build/fresh/lib build/fresh/bin/python -c 'import markupsafe; print(markupsafe.escape_silent(None, \"n\"))'"
    ),
    bash(
        "diff <(git show HEAD:src/markupsafe/__init__.py) src/markupsafe/__init__.py | head; git --no-pager diff --stat"
    ),
    bash("git add -A && git commit -q -m 'Let escape_silent take a default' && git --no-pager show --stat HEAD"),
    bash("git status --short && git log --oneline -2"),
]

TASKS = {"itsdangerous": ITSDANGEROUS, "tabulate": TABULATE, "more-itertools": MORE_ITERTOOLS, "markupsafe": MARKUPSAFE}
