"""Programs that only look: at what, and whether that may be looked at."""

from __future__ import annotations

import os

from agent_tui.tools.files.paths import resolve_from
from agent_tui.tools.git.config import names_programs
from agent_tui.tools.judge.folders import holds_denied, leads_out, shows_denied
from agent_tui.tools.judge.line.syntax import NotUnderstoodError, Word
from agent_tui.tools.judge.paths import option_like
from agent_tui.tools.judge.programs.arguments import Reading
from agent_tui.tools.judge.programs.kinds import HARMLESS_SETTINGS
from agent_tui.tools.judge.programs.readers import reading
from agent_tui.tools.judge.subject import Subject, in_plan
from agent_tui.tools.rules.decision import ALLOWED, Decision, worst


def looked_at(subject: Subject) -> Reading | None:
    """What a program looks at that does no more than that; None for all others."""
    command = subject.command
    if not subject.words or "/" in subject.words[0] or not all(_harmless(subject, w) for w in command.assignments):
        return None
    found = reading(command.words)
    if found is None:
        return None
    if subject.started.given:
        if subject.name in ("find", "sort", "uniq", "xxd", "tree", "base64"):
            return None  # what it is given may be options that write
        found.held, found.unseen = found.held or "what it is given is only known when it runs", True
    if subject.name == "git":
        cwd = subject.ground.cwd
        # git reads the configuration of the folder it is in, which can name programs to run.
        if subject.folders != {cwd} or names_programs(cwd):
            found.held = found.held or "git reads the settings of the folder it is in"
    return found


def _harmless(subject: Subject, setting: Word) -> bool:
    """Whether a setting in front of a command changes nothing of what it does."""
    if subject.words[0] == "read" and setting.text.startswith("IFS="):
        return not setting.dynamic
    return HARMLESS_SETTINGS.fullmatch(setting.text) is not None and not setting.dynamic


def looks(subject: Subject, look: Reading) -> Decision:
    """The decision on a program that only looks."""
    ground = subject.ground
    decisions: list[Decision] = [_held(subject, look)] if look.held else []
    if option_like(subject.command.words[1:], subject.folders):
        raise NotUnderstoodError("a file pattern gives a name that is an option")
    for word in look.paths:
        if word.dynamic and look.held:
            continue  # held to what may be looked at anyway
        decisions += subject.on_paths("read", word)
        decisions += _below(subject, look, word)
    for word in look.written:
        decisions += subject.on_paths("edit", word)
    if look.contents and (denied := shows_denied(ground, subject.command.words, look.contents)):
        decisions.append(denied)
    found = worst(decisions)
    if found.action == "deny":
        return found
    if subject.words[:1] == ["cd"]:
        _change_folder(subject)
    if subject.named_by("ask", broadly=True):
        return worst([found, Decision("ask", f"a rule says to ask about {subject.name}")])
    return found


def _below(subject: Subject, look: Reading, word: Word) -> list[Decision]:
    """What lies below the folders it is given, where it goes into them."""
    ground = subject.ground
    if not (look.walks or look.follows) or word.dynamic:
        return []
    decisions: list[Decision] = []
    for path in subject.paths("read", word):
        if look.walks and (denied := holds_denied(ground, path)):
            decisions.append(denied)
        if look.follows and not ground.holds("look") and leads_out(path, ground.folders):
            reason = f"{subject.name} follows links, and one below {path} leads outside the project"
            decisions.append(Decision("ask", reason, domain="free"))
    return decisions


def _held(subject: Subject, look: Reading) -> Decision:
    """Sure to only look where the system holds it to that. Elsewhere it is a program like others, and if it may
    read what is not named, it is asked about."""
    ground, why = subject.ground, look.held
    if ground.holds("look"):
        return ALLOWED
    if ground.mode == "plan":
        return in_plan(ground, why)
    if ground.mode == "auto" and not look.unseen and (subject.name != "git" or ground.trusted):
        return ALLOWED
    if (subject.started.given or not subject.command.dynamic) and subject.named_by("allow"):
        return ALLOWED
    return Decision("ask", f"{subject.name}: {why}", patterns=subject.patterns())


def _change_folder(subject: Subject) -> None:
    targets = [word for word in subject.command.words[1:] if not word.text.startswith("-")]
    if len(targets) != 1 or len(subject.words) > 2 or targets[0].glob or targets[0].tilde or subject.words[1] == "-":
        raise NotUnderstoodError("where cd leads is not clear")
    if targets[0].dynamic:
        raise NotUnderstoodError("where cd leads is only known when it runs")
    for folder in list(subject.folders):
        path = resolve_from(targets[0].text, folder)
        if os.path.normpath(folder / targets[0].text) != str(path):
            # The shell remembers the way it came: `..` would lead back there, not to the real parent.
            raise NotUnderstoodError("cd goes through a link")
        subject.folders.add(path)
