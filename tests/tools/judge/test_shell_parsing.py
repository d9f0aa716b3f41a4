from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.tools.judge.shell import parse_command
from agent_tui.tools.judge.words import NotUnderstoodError
from tests.support.every import every

pytestmark = pytest.mark.quick


@every(
    ("source", "commands"),
    [
        ("git status", ["git status"]),
        ("git status; rm -rf x", ["git status", "rm -rf x"]),
        ("a && b || c | d |& e & f\ng", ["a", "b", "c", "d", "e", "f", "g"]),
        ("echo 'a; b' \"c && d\" e\\;f", ["echo a; b c && d e;f"]),
        ("g\"i\"t sta'tus'", ["git status"]),
        ("echo $(rm a)", ["rm a", "echo $(rm a)"]),
        ('echo "x $(rm a `ls`) y"', ["ls", "rm a `ls`", "echo x $(rm a `ls`) y"]),
        ("echo `rm a`", ["rm a", "echo `rm a`"]),
        ("diff <(sort a) <(rm b)", ["sort a", "rm b", "diff <(sort a) <(rm b)"]),
        ("cat a > >(tee b)", ["tee b", "cat a"]),
        ("(cd a; rm b)", ["cd a", "rm b"]),
        ("FOO=1 BAR=$(rm x) cmd y", ["rm x", "FOO=1 BAR=$(rm x) cmd y"]),
        ("PATH=.", ["PATH=."]),
        ("ls # ; rm x\nrm y", ["ls", "rm y"]),
        ("ls a#b; rm x", ["ls a#b", "rm x"]),
        ("cat <<'EOF'\n$(rm x)\nEOF\nrm y", ["cat", "rm y"]),
        ("cat <<-EOF | sh\n\thello\n\tEOF\n", ["cat", "sh"]),
        ("cat <<< hello; rm x", ["cat", "rm x"]),
        ("echo a \\\n  b", ["echo a b"]),
        ("echo '$(rm x)'", ["echo $(rm x)"]),
        ("echo \\$(rm", None),
        ("case a in a|b) rm x;; (c) ls;& *) cat y; esac; pwd", ["rm x", "ls", "cat y", "pwd"]),
        ("case $(rm x) in\n  $(rm y)) ls\n  ;;\nesac", ["rm x", "rm y", "ls"]),
        ("cat {a,/etc/passwd} x{1..3}", ["cat a /etc/passwd x1 x2 x3"]),
        ("cat <<EOF\n$(rm x) \\$(rm y) '$(rm z)'\nEOF", ["rm x", "rm z", "cat"]),
        ("python3 - <<'EOF'\nrm x\nEOF", ["python3 -"]),
        ("git commit -F - <<'EOF' && rm y\n$(rm x)\nEOF\nls", ["git commit -F -", "rm y", "ls"]),
        ("cat <<A | rm x -f\n$y\nA", ["cat", "rm x -f"]),
        ("ls > a b 2>&1 c", ["ls b c"]),
        ("echo $((1 + 2))", ["echo $((1 + 2))"]),
        ("echo ${x%.py} ${x:-a} ${#x} ${x//a/b}", ["echo ${x%.py} ${x:-a} ${#x} ${x//a/b}"]),
        ("echo $'a\\tb' c", ["echo a\tb c"]),
        ("", []),
        ("# nothing", []),
    ],
)
def test_commands_are_found_wherever_they_stand(source: str, commands: list[str] | None) -> None:
    if commands is None:
        with pytest.raises(NotUnderstoodError):
            parse_command(source)
    else:
        line = parse_command(source)
        assert ([command.text for command in line.commands], line.unclear) == (commands, "")


@every(
    ("source", "commands"),
    [
        ("X=src | ls ${X}/a", ["X=src", "ls ${X}/a"]),
        ("X=src & ls $X", ["X=src", "ls $X"]),
        ("a && X=src; ls $X", ["a", "X=src", "ls $X"]),
        ("(X=src); ls $X", ["X=src", "ls $X"]),
        ("while a; do X=src; done; ls $X", ["a", "X=src", "ls $X"]),
        ("a |\nX=src; ls $X", ["a", "X=src", "ls $X"]),
        ("if a; then X=src; fi; ls $X", ["a", "X=src", "ls $X"]),
        ("ls $X; X=src", ["ls $X", "X=src"]),
        ("X=a; X=b; ls > $X", ["X=a", "X=b", "ls"]),
        ("X=src; source y; ls $X", ["X=src", "source y", "ls $X"]),
        ("X=src; read X; ls $X", ["X=src", "read X", "ls $X"]),
        ("X='a b'; ls $X", ["X=a b", "ls $X"]),
        ("HOME=src; ls $HOME", ["HOME=src", "ls $HOME"]),
        ("for f in a b; do :; done; cat $f", [":", "cat $f"]),
        ("for f in *; do rm $f; done", ["rm $f"]),
        ("for f in a b c d e f g h i; do ls $f; done", ["ls $f"]),
        ("PWD=/; ls $PWD", ["PWD=/", "ls $PWD"]),
        ("cd /; ls $PWD", ["cd /", "ls $PWD"]),
        ("c'd' /; ls $PWD", ["cd /", "ls $PWD"]),
        ("ab=c; read a'b'; ls $ab", ["ab=c", "read ab", "ls $ab"]),
        ("ab=c; read a{b,c}; ls $ab", ["ab=c", "read ab ac", "ls $ab"]),
        ("ab=c; read a?; ls $ab", ["ab=c", "read a?", "ls $ab"]),
        ("ab=c; read -aab; ls $ab", ["ab=c", "read -aab", "ls $ab"]),
        ("ab=c; for g in b; do read a$g; done; ls $ab", ["ab=c", "read a$g", "ls $ab"]),
        ("ab=c; re'ad' $1; ls $ab", ["ab=c", "read $1", "ls $ab"]),
        ("ab=c; ev'al' $1; ls $ab", ["ab=c", "eval $1", "ls $ab"]),
        ("ab=c; printf $1 d; ls $ab", ["ab=c", "printf $1 d", "ls $ab"]),
    ],
)
def test_what_is_not_certain_is_not_known(source: str, commands: list[str]) -> None:
    assert [command.text for command in parse_command(source, {"PWD": "/work"}).commands] == commands


@every(
    ("source", "commands"),
    [
        ('X=src; ls $X ${X}/a "$X b"', ["X=src", "ls src src/a src b"]),
        ("X=src && ls $X", ["X=src", "ls src"]),
        ("X=a; Y=$X/b; ls $Y", ["X=a", "Y=a/b", "ls a/b"]),
        ("X=rm; $X y", ["X=rm", "rm y"]),
        ("for f in a b; do ls $f; done", ["ls a", "ls b"]),
        ('for f in src/*.py; do ls "$f"; done', ["ls src/*.py"]),
        ("for f in a b; do for g in c d; do x $f$g; done; done", ["x ac", "x ad", "x bc", "x bd"]),
        ("ls $PWD/a", ["ls /work/a"]),
        ("sleep 9 & p=$!; kill $p", ["sleep 9", "p=$!", "kill $!"]),
    ],
)
def test_what_is_set_once_and_for_certain_stands_for_the_variable(source: str, commands: list[str]) -> None:
    assert [command.text for command in parse_command(source, {"PWD": "/work"}).commands] == commands


def test_very_many_values_are_not_gone_through() -> None:
    loops = "".join(f"for {name} in a b c d e f g h; do " for name in "xyz")
    with pytest.raises(NotUnderstoodError):
        parse_command(f"{loops} ls $x$y$z; done; done; done")
    doubled = "; ".join(f"x{number + 1}=$x{number}$x{number}" for number in range(60))
    with pytest.raises(NotUnderstoodError):
        parse_command(f"x0=a; {doubled}; ls $x60")


@every(
    ("source", "redirects"),
    [
        ("echo a > b", [("write", "b")]),
        ("echo a >> b 2>&1", [("write", "b")]),
        ("echo a >| b", [("write", "b")]),
        ("echo a &> b", [("write", "b")]),
        ("echo a &>> b", [("write", "b")]),
        ("echo a >& b", [("write", "b")]),
        ("echo a 2>'b c'", [("write", "b c")]),
        ("> b", [("write", "b")]),
        (">b echo a", [("write", "b")]),
        ("sort < a", [("read", "a")]),
        ("echo a 2>&- >&2", []),
        ("(echo a) > b", [("write", "b")]),
        ("echo a>b", [("write", "b")]),
    ],
)
def test_redirections_are_found(source: str, redirects: list[tuple[str, str]]) -> None:
    found = [(r.kind, r.target.text) for command in parse_command(source).commands for r in command.redirects]
    assert found == redirects


@every(
    "source",
    [
        "case x in",
        "case x",
        "case x in a",
        "case x in esac) rm y;; esac",
        "echo {01..03}",
        "ls > {a,b}",
        "cat <<EOF\n$((x))\nEOF",
        "echo $'\\x72m'",
        'echo $"a"',
        "echo @(a|b)",
        "echo 'open",
        'echo "open',
        "echo `open",
        "echo $(open",
        "(open",
        "close)",
        "cat <<EOF\nEO\\\nF\nrm x",
        "cat <<EOF\nno end",
        "$(cat <<EOF)\nx\nEOF",
        'echo "$\\\n(rm x)"',
        "cat <<\\\n-EOF\nx\n-EOF",
        "echo a\0b",
        "echo a\rb",
        "echo\u00a0b",
        "echo \x1b[31m",
        "echo `echo \\`rm x\\``",
        "ls >",
        "ls > ; rm x",
        "ls \\",
        "x" * 60_000,
        "coproc rm x",
        "{rm,a}",
        "echo a <> b",
        "cat <<EOF\n`rm z`\nEOF",
        "cat <<A <<B\n1\nA\n2\nB",
        "time { rm a; }",
        "echo a\\ b \\ c",
        "[ a > b ]",
        "[[ -f !(a) ]]",
        "ls;; rm x",
        'cat <<A "$(ls)"\nx\nA',
        "( " * 210 + "ls" + " )" * 210,
        "[[-f a || rm x ]]",
        "[[ a ]] && {ls; }",
        "case$x in a) rm x;; esac",
        'a$"b"',
        "time x=1 rm y",
        "time -p ! rm y",
        "{fd}>a rm x",
        "\\ rm x",
        ">{\\a",
        "ls >& 'a'",
        "ls 1>&2''",
        "echo `echo '`'rm x'`'`",
    ],
)
def test_what_is_not_certain_is_not_understood(source: str) -> None:
    with pytest.raises(NotUnderstoodError):
        parse_command(source)


@every(
    ("source", "commands"),
    [
        ("f() { rm x; }; f", ["rm x", "f"]),
        ("function f { rm x; }", ["rm x"]),
        ("[[ -v a[$(rm x)] ]]", ["rm x"]),
        ("[[ $a -eq 1 ]] && ls", ["ls"]),
        ("[[ $a == -x1 ]] && ls", ["ls"]),
        ("((x = 1)); ls", ["ls"]),
        ("echo $((1 + a[$(rm x)]))", ["rm x", "echo $((1 + a[$(rm x)]))"]),
        ("echo $((x))", ["echo $((x))"]),
        ("echo $[1]", ["echo $[1]"]),
        ("echo ${x:-$(rm y)}", ["rm y", "echo ${x:-$(rm y)}"]),
        ("echo ${x:=a} ${x@P} ${x[1]} ${!x}", ["echo ${x:=a} ${x@P} ${x[1]} ${!x}"]),
        ("cat <<EOF\n${x:-$(rm y)}\nEOF", ["rm y", "cat"]),
        ("cat <<EOF\n${x@P}\nEOF", ["cat"]),
        ("read x; echo $((x + 1)) ${x:y}", ["read x", "echo $((x + 1)) ${x:y}"]),
        ("a=(1 $(rm x)); a[$(rm y)]=1", ["rm x", "a=(1 $(rm x))", "rm y", "a[$(rm y)]=1"]),
        ("a={b,c}", ["a={b,c}"]),
        ("cat {'a',b}; cat a{b,{c,d}}e; echo x{a..c}", ["cat {a,b}", "cat a{b,{c,d}}e", "echo x{a..c}"]),
        ("select x in a; do rm x; done", ["rm x"]),
        ("for PATH in .; do ls; done", ["ls"]),
        ("for http_proxy in x; do ls; done", ["ls"]),
        ("for f; do ls; done", ["ls"]),
        ("for ((i=0;i<3;i++)); do ls; done", ["i=0", "ls"]),
    ],
)
def test_where_more_may_happen_what_is_seen_is_found(source: str, commands: list[str]) -> None:
    line = parse_command(source)
    assert sorted(command.text for command in line.commands) == sorted(commands)
    assert line.unclear


@given(st.text(alphabet="ab $(){}`'\"\\\n;&|<>#=*~[]!-1", max_size=40))
def test_any_text_is_parsed_or_refused(source: str) -> None:
    try:
        commands = parse_command(source).commands
    except NotUnderstoodError:
        return
    assert all(c.words or c.assignments or c.redirects or "<" in source or ">" in source for c in commands)


@given(st.text(alphabet='ab;&|$`"<>() \n#*', max_size=20))
def test_single_quotes_hide_everything(text: str) -> None:
    (command,) = parse_command(f"echo '{text}'").commands
    assert [word.text for word in command.words] == ["echo", text]
    assert not command.dynamic and not command.redirects


@every(
    ("source", "found"),
    [
        ("for f in $(evil) b\ndo ls; done > out", ["evil", "ls", ""]),
        ("if true; then rm x; elif ls; then :; else evil; fi", ["true", "rm x", "ls", ":", "evil"]),
        ("while read l; do echo $l; done < a | evil", ["read l", "echo $l", "", "evil"]),
        ("until ls; do evil; done & evil", ["ls", "evil", "evil"]),
        ("{ rm x; } 2> err; ls", ["rm x", "", "ls"]),
        ("! rm x", ["rm x"]),
        ("time -p rm x", ["time -p rm x"]),
        ("[[ -f a && $(evil) == b* ]] || ls", ["evil", "ls"]),
        ("[[ a < b ]]", []),
        ("echo if; fi=1 ls", ["echo if", "fi=1 ls"]),
        ("find . -exec ls {} +", ["find . -exec ls {} +"]),
        ("git show HEAD@{1}", ["git show HEAD@{1}"]),
    ],
)
def test_loops_and_conditions_give_every_command_in_them(source: str, found: list[str]) -> None:
    assert [command.text for command in parse_command(source).commands] == found


@every(
    "source",
    [
        "[[ a =~ (b|c) ]]",
        "[[ a",
        "fi rm x",
        "X=1 if ls",
    ],
)
def test_what_only_looks_like_them_is_not_understood(source: str) -> None:
    with pytest.raises(NotUnderstoodError):
        parse_command(source)
