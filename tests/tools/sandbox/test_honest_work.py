"""What people do all day works inside: a sandbox that refuses everything would pass every other test."""

# ruff: noqa: E501

from __future__ import annotations

import os
import shutil
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_tui.tools.sandbox.box import Sandbox
from agent_tui.tools.sandbox.policy import Domain
from tests.support import sandbox_world as world

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="tried on Linux only")

# Script, what its output must hold. Both domains unless it is in WORK.
LOOK = {
    "cat file; ls -la; head -1 folder/inner": "inner",
    "git status --short; git log --oneline; git diff --stat; git branch": "x",
    "git grep -n inner; git show HEAD:file; git blame file": "file",
    "grep -rn inner . | sort | uniq -c | awk '{print $2}'": "inner",
    "find . -name '*.py' -o -name inner | xargs cat": "inner",
    "diff <(echo a) <(echo b)": "> b",
    "cat <<< here; cat << EOF\nthere\nEOF": "there",
    "x=$(mktemp) && echo kept > $x && cat $x": "kept",
    "seq 100000 | sort -S 100k -T $TMPDIR -rn | head -1": "100000",
    "py -c 'import tempfile; f = tempfile.NamedTemporaryFile(); print(\"made\", f.name)'": "made",
    'py -c \'import json, ssl, sqlite3, subprocess; print(subprocess.check_output(["echo", "ran"]).decode())\'': "ran",
    "py -c 'import os; os.fork() or os._exit(0); os.wait(); print(os.cpu_count() > 0)'": "True",
    "py -c 'import socket; a, b = socket.socketpair(); a.send(b\"over\"); print(b.recv(9))'": "over",
    "py -c 'import asyncio; asyncio.run(asyncio.sleep(0)); print(\"slept\")'": "slept",
    "cat /etc/os-release /proc/cpuinfo /proc/self/status | grep -c .; id -un; date; uname; nproc; df . | wc -l": "",
    "ls /usr /etc > /dev/null && echo listed": "listed",
    "echo x > /dev/null; head -c 4 /dev/urandom | wc -c": "4",
    "timeout 5 echo in time; env | grep -c PAGER": "in time",
    "(exit 7); echo code $?": "code 7",
    "sh -c 'trap \"echo trapped\" TERM; kill $$'": "trapped",
    "perl -e 'print \"pearl\"'": "pearl",
    "echo $HOME; cd ~ && pwd": "home",
    "git config user.name; git config core.excludesFile": "Somebody",
    "tar -cf - . | tar -tf - | head -3": "./",
    "exec 3< file; cat <&3": "file",
}
WORK = {
    "echo new > new && cat new && rm new": "new",
    "mkdir -p a/b && mv folder/inner a/b/ && cp -r a c && ln -s c d && cat d/b/inner": "inner",
    "git add -A && git -c user.name=a -c user.email=a@b commit -qm y --allow-empty && git log --oneline | wc -l": "2",
    "git checkout -qb topic && git stash -q 2>/dev/null; git tag v1; git branch": "topic",
    "echo change >> file; git stash -q; git stash pop -q; git checkout -- file; git status --short; git gc -q; git fsck": "",
    "git init -q sub && cd sub && git status --short --branch": "No commits yet",
    "git clone -q . sub && git -C sub log --oneline": "x",
    "touch f; chmod +x file; chmod 600 file; stat -c %a file": "600",
    "touch -d 2001-01-01 file && stat -c %y file": "2001",
    "printf 'all:\\n\\techo built > out\\n' > Makefile; make -s 2>/dev/null || sh -c 'echo built > out'; cat out": "built",
    'py -c \'import sqlite3; c = sqlite3.connect("x.db"); c.execute("create table t(a)"); c.commit(); print("db")\'': "db",
    "py -m venv --without-pip .venv && .venv/bin/python -c 'import sys; print(sys.prefix)'": ".venv",
    ". <(echo 'echo sourced')": "sourced",
    "mkfifo p; (echo through > p &); cat p": "through",
    "py -m compileall -q . && echo compiled": "compiled",
    "sed -i s/file/edited/ file && cat file": "edited",
    "install -m 755 file tool && ls -l tool | cut -c1-10": "-rwxr-xr-x",
    "echo $PIP_CACHE_DIR; mkdir -p $PIP_CACHE_DIR && echo x > $PIP_CACHE_DIR/x && cat $PIP_CACHE_DIR/x": "x",
    "setsid sleep 0.1; nohup true; sleep 0.1 & wait; echo waited": "waited",
    "tar -czf t.tgz folder && tar -xzf t.tgz -C . && gzip -k file && zcat file.gz": "file",
}


def ports(sandbox: Sandbox) -> bool:
    return sandbox.has_ports("own")


def apart(sandbox: Sandbox) -> bool:
    """Whether a command has files and sockets of its own that others have no way to."""
    return sandbox.backend is not None and sandbox.backend.own_tmp


# Programs that talk to themselves: what they print, and which sandboxes let them.
ALONE: dict[str, tuple[str, Callable[[Sandbox], bool]]] = {
    'py -c \'import socket; s = socket.create_server(("127.0.0.1", 0)); c = socket.create_connection(s.getsockname()); '
    'print("connected")\'': ("connected", ports),
    'py -c \'import socket; s = socket.socket(socket.AF_UNIX); s.bind("sock"); s.listen(); '
    'socket.socket(socket.AF_UNIX).connect("sock"); print("connected")\'': ("connected", apart),
    "py -c 'import multiprocessing as m; print(m.Pool(2).map(abs, [-1]))'": ("[1]", apart),
    "echo x > /tmp/x && cat /tmp/x": ("x\n", apart),
    "echo x > /dev/shm/x && cat /dev/shm/x": ("x\n", apart),
    'py -c \'import pty; pty.spawn(["sh", "-c", "test -t 0 && tty"])\'': ("/dev/pts/", apart),
    "script -qec 'test -t 1 && tty' /dev/null": ("/dev/pts/", apart),
    """node -e 'const s = require("net").createServer(c => c.end("over")); s.listen(require("os").tmpdir() + "/p", '"""
    """'() => require("net").connect(s.address()).on("data", d => { console.log(`${d}`); s.close() }))'""": (
        "over\n",
        apart,
    ),
}

CASES = [(s, w, d) for s, w in LOOK.items() for d in ("look", "work")] + [(s, w, "work") for s, w in WORK.items()]


@pytest.fixture(scope="module")
def base() -> Iterator[Path]:
    base = Path("/var/tmp") / f"agent-tui-test-{uuid.uuid4().hex[:8]}"
    base.mkdir()
    try:
        world.make_home(base / "home")
        world.make_repository(base / "repository")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HOME", str(base / "home"))
            yield base
    finally:
        shutil.rmtree(base, ignore_errors=True)


async def said(base: Path, sandbox: Sandbox, script: str, domain: Domain) -> tuple[int, str]:
    """What a script prints in a project of its own, with its exit code."""
    place = world.Place(base / uuid.uuid4().hex)
    place.make(base / "repository")
    for link in ("link-to-outside", "link-to-file"):
        (place.project / link).unlink()
    jail = world.jail_for(sandbox, place, place.base / "cache")
    more = {"PYTHON": sys.executable, "PATH": os.environ["PATH"]}
    return await world.run(jail, domain, place, f"set -o pipefail; {script}", more)


@pytest.mark.slow
@pytest.mark.parametrize(("script", "wanted", "domain"), CASES)
async def test_everyday_commands_work(base: Path, sandbox: Sandbox, script: str, wanted: str, domain: Domain) -> None:
    code, output = await said(base, sandbox, script, domain)
    assert wanted in output, output
    assert "ermission denied" not in output and "not permitted" not in output and "Traceback" not in output, output
    assert code >= 0, output


@pytest.mark.slow
async def test_a_program_talks_to_itself_where_nobody_else_could_hear_it(base: Path, sandbox: Sandbox) -> None:
    """Where a means cannot keep others from it, the command is refused it and nobody claims otherwise."""
    here = [s for s in ALONE if (program := s.split()[0]) in ("py", "echo") or shutil.which(program) is not None]
    mark = uuid.uuid4().hex
    # Each in a shell of its own, one after the other: what one of them prints stands behind the mark.
    _, output = await said(base, sandbox, "\n".join(f"echo {mark}; (\n{script}\n)" for script in here), "work")
    parts = output.split(f"{mark}\n")[1:]
    assert len(parts) == len(here)
    wrong = [s for s, part in zip(here, parts, strict=True) if (ALONE[s][0] in part) is not ALONE[s][1](sandbox)]
    assert wrong == [], output


async def test_the_network_opens_by_setting(base: Path, sandbox: Sandbox) -> None:
    place = world.Place(base / uuid.uuid4().hex)
    place.make(base / "repository")
    jail = world.jail_for(sandbox, place, place.base / "cache", network="allow")
    short = Path("/tmp") / uuid.uuid4().hex[:8]
    short.mkdir()
    reach = "py -c 'import socket, sys; socket.create_connection((\"127.0.0.1\", int(sys.argv[1])))' $PORT; "
    hidden = "py -c 'import socket, sys; socket.socket(1).connect(sys.argv[1].replace(\"@\", chr(0)))' "
    try:
        with world.listening(short) as ears:
            more = {"PYTHON": sys.executable, "PORT": str(ears.tcp)}
            await world.run(jail, "work", place, f"{reach}{hidden}{ears.unix}; {hidden}@{ears.abstract}", more)
            assert ears.heard == ["tcp"]
            await world.run(jail, "look", place, reach, more)
            assert ears.heard == ["tcp"]
    finally:
        shutil.rmtree(short)
