"""What people do all day works inside: a sandbox that refuses everything would pass every other test."""

# ruff: noqa: E501

from __future__ import annotations

import os
import shutil
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

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
# Programs that talk to themselves: in a network of their own.
LOOPBACK = {
    'py -c \'import socket; s = socket.create_server(("127.0.0.1", 0)); c = socket.create_connection(s.getsockname()); '
    'print("connected")\'': "connected",
    'py -c \'import socket; s = socket.socket(socket.AF_UNIX); s.bind("sock"); s.listen(); '
    'socket.socket(socket.AF_UNIX).connect("sock"); print("connected")\'': "connected",
    "py -c 'import multiprocessing as m; print(m.Pool(2).map(abs, [-1]))'": "[1]",
    "echo x > /tmp/x && cat /tmp/x": "x",
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


@pytest.fixture(scope="module")
def backends(base: Path) -> dict[str, object]:
    return dict(world.available(base))


async def check(base: Path, backend: object, script: str, wanted: str, domain: Domain) -> None:
    if isinstance(backend, str):
        pytest.skip(backend)
    place = world.Place(base / uuid.uuid4().hex)
    place.make(base / "repository")
    for link in ("link-to-outside", "link-to-file"):
        (place.project / link).unlink()
    jail = world.jail_for(backend, place, place.base / "cache")  # type: ignore[arg-type]
    more = {"PYTHON": sys.executable, "PATH": os.environ["PATH"]}
    code, output = await world.run(jail, domain, place, f"set -o pipefail; {script}", more)
    assert wanted in output, output
    assert "ermission denied" not in output and "not permitted" not in output and "Traceback" not in output, output
    assert code >= 0, output


@pytest.mark.parametrize("name", ["bubblewrap", "Landlock"])
@pytest.mark.parametrize(("script", "wanted", "domain"), CASES)
async def test_everyday_commands_work(
    base: Path, backends: dict[str, object], name: str, script: str, wanted: str, domain: Domain
) -> None:
    await check(base, backends[name], script, wanted, domain)


@pytest.mark.parametrize("script", LOOPBACK)
async def test_a_network_of_its_own_serves_itself(base: Path, backends: dict[str, object], script: str) -> None:
    await check(base, backends["bubblewrap"], script, LOOPBACK[script], "work")


@pytest.mark.parametrize("name", ["bubblewrap", "Landlock"])
async def test_the_network_opens_by_setting(base: Path, backends: dict[str, object], name: str) -> None:
    backend = backends[name]
    if isinstance(backend, str):
        pytest.skip(backend)
    place = world.Place(base / uuid.uuid4().hex)
    place.make(base / "repository")
    jail = world.jail_for(backend, place, place.base / "cache", network="allow")  # type: ignore[arg-type]
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
