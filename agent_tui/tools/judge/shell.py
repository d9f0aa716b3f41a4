"""Takes a shell command apart into the simple commands it would run, as tree-sitter-bash reads it.

This is no shell: it answers "which programs with which words, and which files are written", and no variable has a value
in it. The parser may read a text otherwise than bash does. So only the kinds of nodes that are listed here count,
nothing but blanks may stand between two of them, and every word is read again by the quotes it stands in.
"""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from agent_tui.records import dataclass
from agent_tui.tools.judge.heredocs import check_heredoc
from agent_tui.tools.judge.quoting import (
    add_double_quoted,
    add_single_quoted,
    add_unquoted,
    brace_words,
    expansion_doubt,
    has_braces,
)
from agent_tui.tools.judge.values import Values, Variables, with_values
from agent_tui.tools.judge.words import NotUnderstoodError, Redirect, SimpleCommand, Word
from agent_tui.tools.word_sets import word_set

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MAX_LENGTH = 20_000
MAX_COMMANDS = 2_000
MAX_DEPTH = 200

_BLANKS = re.compile(r"(?:[ \t]|\\\n)*")
_BETWEEN = re.compile(r"(?:[ \t\n]|\\\n)*")
_NONE = re.compile("")
_OR_DASH = re.compile(r"(?:[ \t\n]|\\\n)*|[ \t]+-[ \t]*")
"""What may stand before a redirection: the parser leaves out a ``-`` before a here-document."""
_RESERVED = word_set("select function coproc [[ ]] if then else elif while until do { ! for case fi done } esac in")
_TOKENS = word_set(
    "; ;; ;& ;;& & && || | |& ( ) { } if then elif else fi while until do done ! case esac in for "
    "$( ` <( >( [[ ]] == = != < >"
) | {""}
_COMPARED = word_set("-a -o -z -n -e -f -d -r -w -x -s -L -h -nt -ot -ef -b -c -p -S")
_SIMPLE = word_set("command variable_assignment variable_assignments declaration_command unset_command")
_GROUPS = word_set(
    "program list pipeline subshell compound_statement do_group if_statement elif_clause else_clause while_statement "
    "negated_command command_substitution process_substitution for_statement case_statement case_item "
    "test_command binary_expression unary_expression parenthesized_expression"
)
_STATEMENTS = _SIMPLE | _GROUPS | word_set("redirected_statement function_definition c_style_for_statement")
_DOUBTS = {
    "function_definition": "it defines a function",
    "c_style_for_statement": "it uses an unusual loop",
    "((": "it uses arithmetic",
    "=~": "it uses a condition that is not plain",
    "select": "it uses an unusual loop",
}
_EXPANSIONS = word_set("simple_expansion expansion command_substitution arithmetic_expansion")
_UNQUOTED = word_set("word number variable_name special_variable_name brace_expression test_operator $ = == =~")
_QUOTED = word_set("raw_string ansi_c_string")
_LONGEST_NAME = 100
_DESCRIPTOR = re.compile(rb"(?:(?<!\$)\{|\A)\w+\}\Z")
_LOOP_NAME = re.compile(r"(?!\w*_proxy)[a-z][a-z0-9_]*", re.ASCII)
_PATTERN = re.compile(r"[^\s;&|<>()$`\"'\\#]+")
_EXTENDED = re.compile(r"[?*+@!]\(")
_KEYWORDS = word_set("if then elif else fi while until do done ! case esac in for [[ ]] { }")
_BEFORE_COMMENT = (b"", b" ", b"\t", b"\n", b";", b"&", b"|", b"(", b")")
_AROUND_KEYWORD = (*_BEFORE_COMMENT, b"<", b">", b"`")
_SET = re.compile(r"[A-Za-z_]\w*(?:\[.*\])?\+?=.*", re.ASCII | re.DOTALL)


@dataclass(slots=True)
class CommandLine:
    """The simple commands of a line in order, those of substitutions and subshells included. ``unclear`` says why they
    may not be all, or be run in another way than it seems; empty where that is certain."""

    commands: list[SimpleCommand] = field(default_factory=list)
    unclear: str = ""


@functools.cache
def shell_parser() -> Parser:
    """The parser, imported with the first command. Raises NotUnderstoodError where there is none on this machine."""
    try:
        import tree_sitter_bash
        from tree_sitter import Language, Parser

        return Parser(Language(tree_sitter_bash.language()))
    except (ImportError, OSError, ValueError, TypeError, AttributeError) as error:  # another version, too
        raise NotUnderstoodError(f"tree-sitter, which reads commands, cannot be loaded: {error}") from None


def parse_command(source: str, given: Mapping[str, str] | None = None) -> CommandLine:
    """Reads a whole line. ``given`` are the variables that the shell is certain to start with. Raises
    NotUnderstoodError for what cannot be read."""
    if len(source) > MAX_LENGTH:
        raise NotUnderstoodError("the command is very long")
    for char in source:
        if char not in "\n\t" and (ord(char) < 32 or ord(char) == 127 or (not char.isascii() and _unseen(char))):
            raise NotUnderstoodError("it contains a control character, an invisible one or an unusual space")
    if re.search(r"[^ \t]\\\n", source):
        # The shell joins such lines before it looks at them, so an operator may be spread over two.
        raise NotUnderstoodError("a line is continued in the middle of a word")
    text = source.encode()
    root = shell_parser().parse(text).root_node
    around = text[: root.start_byte] + text[root.end_byte :]
    if root.has_error or not _BETWEEN.fullmatch(around.decode()):
        raise NotUnderstoodError("it cannot be read as shell")
    reader = _Reader(text, Variables(source, given or {}))
    try:
        reader.statement(root)
    except (IndexError, ValueError, RecursionError):  # a tree of another shape than the grammar is known to make
        raise NotUnderstoodError("it cannot be read as shell") from None
    every = [one for command, certain in reader.commands for one in with_values(command, certain)]
    if reader.variables.may_change(every):
        every = [command for command, _ in reader.commands]
    return CommandLine(every, reader.unclear)


def _unseen(char: str) -> bool:
    return char.isspace() or unicodedata.category(char) in ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")


def _is_certain(assignment: Node) -> bool:
    """Returns whether an assignment is made in any case, by the shell that reads the line."""
    node = assignment
    while node.parent is not None and node.parent.type == "list" and node.parent.children[0] == node:
        node = node.parent
    behind = node.next_sibling
    return node.parent is not None and node.parent.type == "program" and (behind is None or behind.type != "&")


class _Reader:
    """Walks over the nodes of ``text`` and collects ``commands``."""

    def __init__(self, text: bytes, variables: Variables) -> None:
        self._text, self.variables = text, variables
        self.commands: list[tuple[SimpleCommand, Values]] = []
        self.unclear = ""
        self._depth = 0

    def statement(self, node: Node) -> None:
        """Reads a statement, or anything that holds some."""
        self._depth += 1
        if self._depth > MAX_DEPTH or len(self.commands) > MAX_COMMANDS:
            raise NotUnderstoodError("it is nested too deeply, or runs very many commands")
        if node.type in _SIMPLE:
            self._append(self._simple(node))
        elif node.type == "redirected_statement":
            self._redirected(node)
        elif node.type == "test_command" and self._raw(node)[:2] != "[[":
            self._test(node)
        elif node.type == "test_command" and _EXTENDED.search(self._raw(node)):
            raise NotUnderstoodError("it uses a pattern that is not plain")
        elif node.type in _GROUPS:
            self._group(node)
        else:
            self._doubt(_DOUBTS.get(node.type, "it uses something unusual"))
            self._search(node)
        self._depth -= 1

    def _group(self, node: Node) -> None:
        """Reads all that stands in a compound command; which of it is run, and how often, is not looked at."""
        children = self._parts(node, _BLANKS if "expression" in node.type else _BETWEEN)
        words: list[Word] = []
        end = -1
        if node.type == "for_statement":
            # Names in capitals may be settings of programs (``PATH``).
            if [children[0].type, children[2].type] != ["for", "in"] or not _LOOP_NAME.fullmatch(
                self._raw(children[1])
            ):
                self._doubt("it uses an unusual loop")
            children = children[2:]
        for child in children:
            if child.type in ("regex", "extglob_pattern"):
                if not _PATTERN.fullmatch(self._raw(child)):
                    raise NotUnderstoodError("it uses a pattern that is not plain")
            elif child.type == "file_redirect":  # $(< file)
                self._append(SimpleCommand(redirects=self._redirect(child, [], [])))
            elif child.type in _STATEMENTS and child.type not in ("command_substitution", "process_substitution"):
                before = self.variables.certain
                if node.type == "for_statement" and words and not self.unclear:
                    self.variables.settle(self._raw(node.children[1]), words)
                self.statement(child)
                if node.type == "for_statement":
                    self.variables.certain = before
            elif child.type == "test_operator":
                if self._raw(child).strip() not in _COMPARED:
                    self._doubt("it uses a condition that is not plain")
            elif child.is_named:
                if child.start_byte == end:
                    raise NotUnderstoodError("words stand together that are one for the shell")
                end = child.end_byte
                words += self._words(child)
                raw = self._raw(child)
                if node.type != "for_statement" and (has_braces(raw) or (raw[:1] == "-" and raw not in _COMPARED)):
                    self._doubt("it uses a condition that is not plain")
            elif child.type in (";;", ";&", ";;&") and node.type != "case_item":
                raise NotUnderstoodError(f"{child.type!r} is not expected here")
            elif self._raw(child).strip() not in _TOKENS:
                self._doubt(_DOUBTS.get(child.type, "it uses something unusual"))
        if node.type != "for_statement" and any(word.pipe for word in words):
            raise NotUnderstoodError("a process substitution is unclear")

    def _search(self, node: Node) -> None:
        """Reads what runs somewhere below a node that is not understood."""
        for child in node.named_children:
            if child.type in _STATEMENTS and "expression" not in child.type:
                self.statement(child)
            else:
                self._search(child)

    def _append(self, command: SimpleCommand) -> None:
        self.commands.append((command, self.variables.certain))

    def _doubt(self, why: str) -> None:
        self.unclear = self.unclear or why

    def _simple(self, node: Node) -> SimpleCommand:
        """A command with its words; assignments alone are one, too."""
        command = SimpleCommand()
        end = -1
        for child in [node] if node.type == "variable_assignment" else self._parts(node, _BLANKS):
            redirect = child.type.endswith("redirect")
            if child.start_byte == end and not redirect:
                raise NotUnderstoodError("words stand together that are one for the shell")
            end = child.end_byte
            if redirect:
                command.redirects += self._redirect(child, command.words, None)
            elif child.type == "variable_assignment":
                (command.words or command.assignments).append(self._assignment(child))
            elif not child.is_named and "command" in node.type and node.type != "command":
                command.words.append(Word(self._raw(child)))  # export, declare, unset
            else:
                command.words += self._words(child.children[0] if child.type == "command_name" else child)
        names = iter(command.words if node.type == "command" else [])
        name = first = next(names, Word())
        while first.text == "time" and name.text in ("time", "-p", "--"):  # the shell's own, and then any command
            name = next(names, Word())
        if not name.quoted and name.text in _RESERVED:
            raise NotUnderstoodError(f"it uses the shell keyword {name.text}")
        if name is not first and _SET.fullmatch(name.text):
            raise NotUnderstoodError("a variable is set behind time")
        return command

    def _test(self, node: Node) -> None:
        """``[ … ]``, which is a program with words."""
        command = SimpleCommand()
        end = -1
        for leaf in self._leaves(node):
            if leaf.start_byte == end or self._raw(leaf).strip() in ("<", ">", "&&", "||", "(", ")", "((", "))"):
                raise NotUnderstoodError("it uses a condition that is not plain")
            end = leaf.end_byte
            command.words += self._words(leaf) if leaf.is_named else [Word(self._raw(leaf).strip())]
        self._append(command)

    def _leaves(self, node: Node) -> Iterable[Node]:
        for child in self._parts(node, _BLANKS):
            yield from (
                self._leaves(child)
                if child.type.endswith("_expression") and child.type != "brace_expression"
                else [child]
            )

    # Redirections

    def _redirected(self, node: Node) -> None:
        """A statement with redirections behind it, between which further words of it may stand."""
        children = self._parts(node, _OR_DASH)
        last = body = None if children[0].type.endswith("redirect") else children[0]
        if body is not None:
            self.statement(body)
        while last is not None and last.type in ("list", "pipeline", "negated_command"):
            last = last.named_children[-1]
        simple = last is not None and last.type in _SIMPLE
        command = self.commands.pop()[0] if simple else SimpleCommand()
        words: list[Word] = []
        behind: list[Node] = []
        end = body.end_byte if body is not None else children[0].start_byte
        for child in children[body is not None :]:
            if b"-" in self._text[end : child.start_byte]:
                words.append(Word("-"))
            end = child.end_byte
            command.redirects += self._redirect(child, words, behind)
        if words and body is not None and not simple:
            raise NotUnderstoodError("something follows the end of a group")
        command.words += words
        if command.words or command.assignments or command.redirects:
            self._append(command)
        for child in behind:
            self.statement(child)

    def _redirect(self, node: Node, words: list[Word], behind: list[Node] | None) -> list[Redirect]:
        """What one redirection does. ``words`` gets those that follow its target, and ``behind`` the statements that
        follow the mark of a here-document."""
        if _DESCRIPTOR.search(self._text[max(0, node.start_byte - _LONGEST_NAME) : node.start_byte]):
            raise NotUnderstoodError("a redirection sets a variable")
        document = node.type == "heredoc_redirect"
        sign, *rest = self._parts(node, _BETWEEN if document else _BLANKS)
        if sign.type == "file_descriptor":
            if not self._raw(sign).isdigit() or sign.end_byte != rest[0].start_byte:
                raise NotUnderstoodError("a redirection is unclear")
            sign, *rest = rest
        if document:
            return self._heredoc(rest, words, behind)
        operator = self._raw(sign).strip()
        together = any(one.end_byte == two.start_byte for one, two in itertools.pairwise(rest))
        if operator in ("<&-", ">&-") and not rest:
            return []
        if not rest or together or operator not in ("<<<", "<", ">", ">>", ">|", "&>", "&>>", ">&", "<&"):
            raise NotUnderstoodError("a redirection is unclear")
        target, *more = self._words(rest[0])
        if more:
            raise NotUnderstoodError("a redirection is unclear")
        for child in rest[1:]:
            words += self._words(child)
        if operator == "<<<":
            return [Redirect("read", Word("", pipe=True))] if target.dynamic or target.pipe else []
        if operator in (">&", "<&") and target.quoted:  # bash takes away the quotes twice
            raise NotUnderstoodError("a redirection is unclear")
        if operator in (">&", "<&") and re.fullmatch(r"\d+-?|-", target.text):
            return []
        return [Redirect("read" if operator == "<" else "write", target)]

    def _heredoc(self, nodes: list[Node], words: list[Word], behind: list[Node] | None) -> list[Redirect]:
        start, body, end = nodes[0], nodes[-2], nodes[-1]
        if behind is None or (start.type, body.type, end.type) != ("heredoc_start", "heredoc_body", "heredoc_end"):
            raise NotUnderstoodError("a here-document is unclear")
        found: list[Redirect] = []
        for child in nodes[1:-2]:
            if child.type in _STATEMENTS:
                behind.append(child)
            elif child.type.endswith("redirect"):
                found += self._redirect(child, words, None)
            elif child.is_named:
                words += self._words(child)
            elif self._raw(child).strip() not in _TOKENS:
                raise NotUnderstoodError("a here-document is unclear")
        if not check_heredoc(self._text, start, body, end):
            self._spans(body, body.start_byte, body.end_byte, Word(), document=True)
        return found

    # Words

    def _assignment(self, node: Node) -> Word:
        """``NAME=value`` as one word."""
        name, sign, *rest = self._parts(node, _NONE)
        word = Word(self._raw(name) + self._raw(sign))
        if name.type != "variable_name" or any(part.type == "array" for part in rest):
            self._doubt("it assigns to an array")
            self._search(node)
            return Word(self._raw(node), dynamic=True)
        if not re.fullmatch(r"[A-Za-z_]\w*", self._raw(name), re.ASCII) or len(rest) > 1:
            raise NotUnderstoodError("an assignment is unclear")
        if rest:
            value = self._word(rest[0])
            if value.pipe:
                raise NotUnderstoodError("a process substitution is part of a word")
            if value.text == "$!" or _is_certain(node):
                self.variables.settle(self._raw(name), [value])
            word = Word(word.text + value.text, value.dynamic or value.tilde, value.glob, value.tilde, value.quoted)
        return word

    def _words(self, node: Node) -> list[Word]:
        """A word, or the several that plain braces make of it."""
        found = brace_words(self._raw(node))
        return [self._word(node)] if found is None else found

    def _word(self, node: Node) -> Word:
        if node.type == "process_substitution":
            self.statement(node)
            return Word(self._raw(node), pipe=True)
        parts = self._parts(node, _NONE) if node.type == "concatenation" else [node]
        word = Word()
        if has_braces("".join(self._raw(part) if part.type in _UNQUOTED else "_" for part in parts)):
            self._doubt("it uses brace expansion")
            word.dynamic = True
        for part in parts:
            if part.type in _UNQUOTED:
                add_unquoted(self._raw(part), word)
            elif part.type in _QUOTED:
                add_single_quoted(self._raw(part), word)
            elif part.type == "string":
                if self._text[part.start_byte - 1 : part.start_byte] == b"$":  # no sign of its own: it is left out
                    raise NotUnderstoodError("a quote is unclear")
                word.quoted = True
                self._spans(part, part.start_byte + 1, part.end_byte - 1, word)
            elif part.type in _EXPANSIONS:
                self._expansion(part, word)
            else:
                raise NotUnderstoodError("a word is unclear")
        return word

    def _spans(self, node: Node, start: int, end: int, word: Word, document: bool = False) -> None:
        """Reads a text with expansions in it."""
        for child in node.children:
            if child.type in _EXPANSIONS:
                add_double_quoted(self._text[start : child.start_byte].decode(), word, document)
                self._expansion(child, word)
                start = child.end_byte
            elif child.type not in ("string_content", "heredoc_content", '"', "$"):
                raise NotUnderstoodError("a quote is unclear")
        add_double_quoted(self._text[start:end].decode(), word, document)

    def _expansion(self, node: Node, word: Word) -> None:
        raw = self._raw(node)
        if self._text[node.start_byte - 1 : node.start_byte] == b"$":
            raise NotUnderstoodError("a variable is unclear")
        if why := expansion_doubt(node.type, raw.lstrip()):  # the parser takes blanks before it along
            self._doubt(why)
            self._search(node)
        elif node.type == "command_substitution":
            self.statement(node)
        word.text += raw
        word.dynamic = True

    # The text

    def _raw(self, node: Node) -> str:
        return self._text[node.start_byte : node.end_byte].decode()

    def _parts(self, node: Node, blank: re.Pattern[str] = _BETWEEN) -> list[Node]:
        """The parts of a node but its comments. Raises NotUnderstoodError for text that none of them has."""
        at, found = node.start_byte, []
        for child in node.children:
            if not blank.fullmatch(self._text[at : child.start_byte].decode()):
                raise NotUnderstoodError("it cannot be read as shell")
            at = child.end_byte
            around = (self._text[child.start_byte - 1 : child.start_byte], self._text[at : at + 1])
            if child.type in _KEYWORDS and any(char not in _AROUND_KEYWORD for char in around):
                raise NotUnderstoodError(f"{child.type!r} is a part of a word")  # bash runs that as a program
            if child.type != "comment":
                found.append(child)
            elif self._text[child.start_byte - 1 : child.start_byte] not in _BEFORE_COMMENT:
                raise NotUnderstoodError("a comment is unclear")
        if not blank.fullmatch(self._text[at : node.end_byte].decode()):
            raise NotUnderstoodError("it cannot be read as shell")
        return found
