"""Programs that reach out: where to, and what they send or write on the way."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from agent_tui.errors import ToolError
from agent_tui.tools.judge.line.syntax import Word
from agent_tui.tools.judge.programs.git import git_reaches_out
from agent_tui.tools.urls import parse_url
from agent_tui.tools.word_sets import word_set

_CURL_FLAGS = re.compile(
    r"-[sSfLIivkgj46#0]+|--(silent|show-error|fail|fail-with-body|location|head|include|verbose|insecure|compressed|globoff"
    r"|ipv4|ipv6|progress-bar|no-progress-meter|http1\.1|http2|no-buffer|get|create-dirs|remote-time)|-[sSfLi]*O|-G"
)
_CURL_VALUES = re.compile(
    r"-[sSfLi]*[HXAmeuwdo]|--(header|request|user-agent|max-time|connect-timeout|retry|retry-delay|referer|write-out|data"
    r"|data-raw|json|output|url|max-redirs)"
)
_WGET_FLAGS = re.compile(
    r"-[qcSN46]+|-nv|-nc|--(quiet|no-verbose|continue|no-check-certificate|server-response)|-qO-|-O-"
)
_WGET_VALUES = re.compile(r"-[TtU]|-q?O|--(timeout|tries|user-agent|output-document|header)")
_REACHES = word_set(
    "curl wget ssh scp sftp rsync ftp nc ncat netcat socat telnet gh glab hub docker podman kubectl helm aws "
    "gcloud az terraform npx bunx uvx pipx dig nslookup host ping traceroute http https"
)
_FETCHING = {
    **dict.fromkeys(["pip", "pip3"], word_set("install download wheel index search")),
    "npm": word_set("install i ci add update outdated audit publish view info search login exec init create"),
    "pnpm": word_set("install i add update outdated audit publish dlx"),
    "yarn": word_set("install add upgrade outdated audit publish dlx"),
    "bun": word_set("install add update x"),
    "uv": word_set("sync add tool lock install compile"),
    "poetry": word_set("install add update lock publish"),
    "cargo": word_set("add install update fetch publish search"),
    "go": word_set("get mod install"),
    "bundle": word_set("install update"),
    "gem": word_set("install update push"),
    "composer": word_set("install update require"),
    "brew": word_set("install upgrade update"),
}


def reaches_out(line: Sequence[Word], folders: Iterable[Path]) -> bool:
    """Whether a command is one that needs the network to do what it is for, in whichever of ``folders`` it runs."""
    name = line[0].text.rpartition("/")[2]
    if name in ("npx", "bunx") and _installed(line[1:], folders):
        return False
    if name in _REACHES:
        return True
    if name == "git":
        return git_reaches_out(line[1:])
    if re.fullmatch(r"python[\d.]*", name) and [word.text for word in line[1:3]] == ["-m", "pip"]:
        return len(line) > 3 and line[3].text in _FETCHING["pip"]
    return (name in _FETCHING and any(word.text in _FETCHING[name] for word in line[1:3])) or (
        name == "yarn" and len(line) == 1
    )


def _installed(arguments: Sequence[Word], folders: Iterable[Path]) -> bool:
    """Whether what ``npx`` is to run lies in the project."""
    rest = [word.text for word in arguments if word.text not in ("--no-install", "--no", "--")]
    plain = bool(rest) and re.fullmatch(r"[\w.-]+", rest[0]) is not None and not rest[0].startswith(("-", "."))
    return plain and all((folder / "node_modules/.bin" / rest[0]).exists() for folder in folders)


@dataclass(slots=True, frozen=True)
class Transfer:
    """What a line of curl or wget does: the addresses, the options as they stand there and the files it writes.
    ``problem``: why that cannot be said; empty where it can."""

    problem: str = ""
    urls: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    written: tuple[Word, ...] = ()


def transfer_asks(line: Sequence[Word]) -> tuple[str, list[Word]]:
    """For curl and wget: why it is asked about even where the network may be reached (empty where it need not be), and
    the files it writes."""
    done = transfer(line)
    if done.problem:
        return done.problem, []
    for url in done.urls:
        if problem := _problem(url):
            return problem, []
    return ("" if done.urls else "where it reaches is not visible here"), list(done.written)


def transfer(line: Sequence[Word]) -> Transfer:
    name, arguments = line[0].text, list(line[1:])
    flags, values = (_CURL_FLAGS, _CURL_VALUES) if name == "curl" else (_WGET_FLAGS, _WGET_VALUES)
    urls: list[str] = []
    options: list[str] = []
    written: list[Word] = []
    saves = name == "wget"
    at = 0
    while at < len(arguments):
        word = arguments[at]
        at += 1
        if word.dynamic or word.glob:
            return Transfer("where it reaches is only known when it runs")
        option, _, given = word.text.partition("=") if word.text.startswith("--") else (word.text, "", "")
        if not word.text.startswith("-"):
            urls.append(word.text)
        elif flags.fullmatch(word.text):
            options.append(word.text)
            saves = (saves or "O" in word.text) and "O-" not in word.text
        elif values.fullmatch(option) and (given or at < len(arguments)):
            value = Word(given) if given else arguments[at]
            at += not given
            options.append(option)
            if value.dynamic or value.text.startswith("@") or (option.endswith("e") and "=" in value.text):
                return Transfer("it sends a file, or what is only known when it runs")
            if option == "--url":
                urls.append(value.text)
            elif (option.endswith(("o", "O")) and not option.startswith("--")) or option in (
                "--output",
                "--output-document",
            ):
                saves = False
                written += [] if value.text == "-" else [value]
        else:
            return Transfer(f"what {word.text[:40]} does is not known here")
    if saves:
        for url in urls:
            written.append(Word(PurePosixPath(url.partition("?")[0]).name or "index.html"))
    return Transfer("", tuple(urls), tuple(options), tuple(written))


def _problem(url: str) -> str:
    if "://" not in url:
        url = f"http://{url}"
    if re.search(r"[\[\]{}]", url):
        return "the address is a pattern"
    try:
        parsed = parse_url(url)
    except ToolError:
        return "it is not a plain address of the web"
    return "" if parsed.public else f"{parsed.host} is on this machine or a private network"
