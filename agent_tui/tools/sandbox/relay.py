"""Stands, inside the sandbox, where git looks for what talks to a remote, and asks the program outside for it.

Standard library only, run by itself in an isolated interpreter: as ``git push``, as the helper for http and https, as
ssh, and as ``git-upload-pack`` of a folder that is not there inside; outside, between what asks and git's own helper
for the web (``gate``). A request is a file with what is asked and the
descriptors to answer to, sent over a socket that the line was started with; the answer comes in frames of a kind, a
length and that many bytes.
"""

import json
import os
import socket
import struct
import subprocess
import sys
import tempfile

OUT, ERR, RESULT, END = 1, 2, 3, 0
FRAME = struct.Struct(">BI")
CHUNK = 1 << 16


def main() -> None:
    role, git, words = sys.argv[1], sys.argv[2], sys.argv[3:]
    roles = {"push": _push, "web": _web, "ssh": _ssh, "local": _local, "gate": _gate}
    try:
        code = roles[role](git, words)
    except OSError as error:
        _tell(f"the way out of the sandbox failed: {error}")
        code = 128
    except KeyboardInterrupt:
        code = 130
    sys.stdout.flush()
    os._exit(code)


def _tell(text: str) -> None:
    os.write(2, f"{text}\n".encode("utf-8", "surrogateescape"))


# The four places it stands in


def _push(git: str, words: "list[str]") -> int:
    """``git push``: outside, if it is one that was allowed; else as git itself would."""
    argv, cwd = ["git", *words], os.getcwd()  # noqa: PTH109
    while words[:1] == ["-C"] and len(words) > 1:
        os.chdir(words[1])
        words = words[2:]
    asked = {"kind": "push", "argv": argv, "folder": os.getcwd(), **_repository(git)}  # noqa: PTH109
    result, code = _asked(asked, ())
    if "refused" in result:
        _tell(result["refused"])
        os.chdir(cwd)
        os.execv(git, argv)
    changed = result.get("references", [])
    if changed:
        zeros = "0" * len(changed[0][1] or changed[0][2])
        lines = "".join(f"update {name}\0{new or zeros}\0{old or zeros}\0" for name, old, new in changed)
        update = [git, "update-ref", "-z", "--stdin", "-m", "update by push"]
        subprocess.run(update, input=lines.encode("utf-8", "surrogateescape"), check=False)
    hook = _said(git, "rev-parse", "--git-path", "hooks/pre-push")
    if hook and os.access(hook, os.X_OK):
        _tell("Skipped the pre-push hook: the push runs outside the sandbox, so it starts nothing from the repository.")
    return code


def _repository(git: str) -> "dict[str, object]":
    head = _said(git, "symbolic-ref", "-q", "HEAD")
    found: dict[str, str] = {}
    for line in _said(git, "for-each-ref", "--format=%(objectname) %(refname) %(symref)").splitlines():
        at, name, link = [*line.split(" "), "", ""][:3]
        if not link:
            found[name] = at
    try:
        with open(_said(git, "rev-parse", "--git-path", "shallow"), encoding="ascii") as file:  # noqa: PTH123
            shallow = file.read().split()
    except (OSError, ValueError):
        shallow = []
    sha256 = _said(git, "rev-parse", "--show-object-format") == "sha256"
    at = f"ref: {head}" if head else _said(git, "rev-parse", "-q", "--verify", "HEAD")
    return {"head": at, "references": found, "shallow": shallow, "sha256": sha256}


def _said(git: str, *words: str) -> str:
    done = subprocess.run([git, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")


def _web(git: str, words: "list[str]") -> int:
    """A remote helper as git knows them, of which only what fetches can be asked."""
    while True:
        line = _line()
        if not line:
            return 0
        if line == "capabilities":
            os.write(1, b"stateless-connect\n\n")
        elif line == "stateless-connect git-upload-pack":
            return _piped({"kind": "web", "address": words[-1]})
        else:
            _tell("From inside the sandbox git may only fetch over the web; to push, use the command `git push`.")
            return 128


def _line() -> str:
    """The next line of standard input, and nothing of what follows it."""
    found = b""
    while (byte := os.read(0, 1)) not in (b"", b"\n"):
        found += byte
    return found.decode("utf-8", "surrogateescape")


def _ssh(git: str, words: "list[str]") -> int:
    port, at = "", 0
    while at < len(words) and words[at].startswith("-"):
        if words[at] in ("-o", "-p"):
            port = words[at + 1] if words[at] == "-p" else port
            at += 1
        at += 1
    return _piped({"kind": "ssh", "host": words[at], "port": port, "command": " ".join(words[at + 1 :])})


def _local(git: str, words: "list[str]") -> int:
    path = next((word for word in words if not word.startswith("-")), "")
    try:
        os.listdir(path)  # noqa: PTH208
    except OSError:
        return _piped({"kind": "local", "path": os.path.abspath(path)})  # noqa: PTH100
    return os.execv(git, [git, "upload-pack", *words])


def _gate(git: str, words: "list[str]") -> int:
    """Has git's helper connect, and only then hands on what it is told: it does more than that when it is asked, such
    as push, and goes on asking where the other side cannot be talked to in this way."""
    helper = subprocess.Popen([git, "remote-https", "origin", words[0]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert helper.stdin is not None and helper.stdout is not None
    there, back = helper.stdin.fileno(), helper.stdout.fileno()
    os.write(there, b"stateless-connect git-upload-pack\n")
    first = os.read(back, 1)
    if first != b"\n":
        helper.stdin.close()
        if first:
            helper.kill()
            _tell("That server's git protocol is too old for the sandbox.")
        return max(helper.wait(), 0) or 128
    if os.fork() == 0:
        os.close(back)
        while data := os.read(0, CHUNK):
            _all(there, data)
        os._exit(0)
    os.close(there)
    while first:
        _all(1, first)
        first = os.read(back, CHUNK)
    return helper.wait()


# The way out


def _piped(request: "dict[str, object]") -> int:
    """Connects standard input and output to what answers outside."""
    result, code = _asked(request | {"protocol": os.environ.get("GIT_PROTOCOL", "")}, (0, 1))
    if "refused" in result:
        _tell(result["refused"])
    return code


def _asked(request: "dict[str, object]", streams: "tuple[int, ...]") -> "tuple[dict, int]":  # type: ignore[type-arg]
    reply = _sent(request, streams)
    for fd in streams:
        os.close(fd)  # theirs alone now: whoever reads them has to see their end
    return _answer(reply)


def _sent(request: "dict[str, object]", streams: "tuple[int, ...]") -> int:
    """Sends a request with the descriptors it is about; the end from which the answer is read."""
    reply, theirs = os.pipe()
    with tempfile.TemporaryFile() as file:
        file.write(json.dumps(request).encode("utf-8", "surrogateescape"))
        file.flush()
        with socket.socket(fileno=os.dup(int(os.environ["AGENT_TUI_GIT"]))) as outside:
            socket.send_fds(outside, [b"?"], [file.fileno(), theirs, *streams])
    os.close(theirs)
    return reply


def _answer(reply: int) -> "tuple[dict, int]":  # type: ignore[type-arg]
    result: dict = {}  # type: ignore[type-arg]
    with os.fdopen(reply, "rb") as frames:
        while len(head := frames.read(FRAME.size)) == FRAME.size:
            kind, length = FRAME.unpack(head)
            data = frames.read(length)
            if kind == RESULT:
                result = json.loads(data)
            elif kind == END:
                return result, int(data)
            else:
                _all(1 if kind == OUT else 2, data)
    return result, 128  # whoever answers is gone


def _all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


if __name__ == "__main__":
    main()
