"""The programs that only read and print, with every option known to do no more. What is not here is asked about.

A line is a program (or several, with commas) and what it takes:

    -abc       options without a value           --name     the same, long
    -n:        one with a value, which is text   --name:    --name? only with ``=``
    -f<        its value is a file that is read  --name<
    -o>        its value is a file it writes     --name>
    -e^        its value stands for the pattern  --name^    (-% without a value: there is no pattern then)
    -r+        reads whatever is below folders   --name+
    -L~        follows links in those folders    --name~
    NUMBER     ``-20`` is an option too

and then its operands: ``FILES``, ``ONE`` (file at most), ``TEXT`` (no files), ``NONE``, ``PATTERN`` (the first is text,
the rest are files); ``WALK`` reads below folders without an option, ``LINKS`` follows the links in them, ``HELD`` is
let pass only where the system holds it. Options are taken as they are written: GNU's abbreviations are not known.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

_TABLE = r"""
cat: -AbeEnstTuv --number --number-nonblank --show-all --show-ends --show-tabs --squeeze-blank FILES
tac: -br -s: --before --regex --separator: FILES
head: -qvz -n: -c: --lines: --bytes: --quiet --silent --verbose --zero-terminated NUMBER FILES
tail: -qvz -n: -c: --lines: --bytes: --quiet --silent --verbose --zero-terminated NUMBER FILES
ls: -1aAbBcCdFfgGhiklmnNopqQrsStuUvxXZ -R -L~ -I: -w: -T: --all --almost-all --author --color? --classify? --format:
    --directory --file-type --full-time --group-directories-first --hide: --human-readable --ignore:
    --ignore-backups --indicator-style: --inode --literal --no-group --numeric-uid-gid --quote-name --quoting-style:
    --recursive --reverse --si --size --sort: --time: --time-style: --width: --dereference~ FILES
pwd: -LP --logical --physical NONE
wc: -cmlLw --bytes --chars --lines --words --max-line-length --total: FILES
stat: -ft -c: --format: --printf: --terse --file-system FILES
df: -aBhHiklPT --all --human-readable --inodes --local --portability --print-type --si --total FILES
du: -abchkmsSx0 -d: -B: -t: -X< -L~ -D~ -H~ --all --apparent-size --bytes --total --human-readable --si --summarize
    --separate-dirs --one-file-system --max-depth: --threshold: --exclude: --exclude-from< --time? --time-style:
    --dereference~ FILES
whoami,arch,tty: NONE
nproc: --all NONE
uname: -asnrvmpio --all --kernel-name --nodename --kernel-release --machine --operating-system NONE
id: -ugGnrz --user --group --groups --name --real TEXT
groups: TEXT
hostname: -adfsiIA NONE
uptime: -ps NONE
sleep: TEXT
cut: -nsz -b: -c: -d: -f: --bytes: --characters: --delimiter: --fields: --output-delimiter: --complement
    --only-delimited --zero-terminated FILES
tr: -cCdst --complement --delete --squeeze-repeats --truncate-set1 TEXT
nl: -p -b: -d: -f: -h: -i: -l: -n: -s: -v: -w: --body-numbering: --number-format: --number-width:
    --number-separator: FILES
rev: FILES
paste: -sz -d: --delimiters: --serial FILES
join: -iz -a: -e: -j: -o: -1: -2: -t: -v: --ignore-case --header FILES
comm: -123z --check-order --nocheck-order --output-delimiter: --total FILES
fold: -bs -w: --bytes --spaces --width: FILES
fmt: -cstu -w: --width: FILES
expand,unexpand: -ai -t: --tabs: --initial --all FILES
cmp: -bls -i: -n: --print-bytes --verbose --silent --quiet --ignore-initial: --bytes: FILES
seq: -w -f: -s: --format: --separator: --equal-width NUMBER TEXT
which: -a TEXT
type: -afpPt TEXT
basename: -az -s: --multiple --suffix: TEXT
dirname: -z TEXT
realpath: -eLmPqsz --canonicalize-existing --canonicalize-missing --logical --physical --no-symlinks --relative-to<
    --relative-base< FILES
readlink: -efmnqsvz --canonicalize --canonicalize-existing --canonicalize-missing --no-newline FILES
md5sum,sha1sum,sha224sum,sha256sum,sha384sum,sha512sum,b2sum: -btz --binary --text --tag --zero FILES
shasum: -bt -a: --algorithm: FILES
cksum,sum: FILES
diff: -abBdeEinNpqsStTwy -c -u -r+ -U: -C: -F: -I: -L: -W: -x: -X< --brief --color? --context? --exclude:
    --exclude-from< --ignore-all-space --ignore-blank-lines --ignore-case --ignore-matching-lines:
    --ignore-space-change --ignore-trailing-space --label: --minimal --new-file --no-dereference --recursive+
    --report-identical-files --show-c-function --side-by-side --strip-trailing-cr --suppress-common-lines --text
    --unified? --width: FILES LINKS
file: -0bhikLnNpr --brief --mime --mime-type --mime-encoding --keep-going --dereference --no-dereference FILES
grep,egrep,fgrep: -EFGIPabcHhilLnoqsTUvwxyZz -r+ -R~ -e^ -f< -m: -A: -B: -C: --after-context: --before-context:
    --binary-files: --byte-offset --basic-regexp --color? --colour? --context: --count --exclude: --exclude-dir:
    --exclude-from< --extended-regexp --files-with-matches --files-without-match --fixed-strings --ignore-case
    --no-ignore-case --include: --initial-tab --invert-match --label: --line-buffered --line-number --line-regexp
    --max-count: --no-filename --no-messages --null --null-data --only-matching --perl-regexp --quiet --silent
    --recursive+ --dereference-recursive~ --regexp^ --file< --text --with-filename --word-regexp NUMBER PATTERN
rg: -.aBcFHIilnNopPqsSUuvwx0 -e^ -f< -g: -t: -T: -A: -B: -C: -m: -M: -E: -j: -r: -d: -L~ --after-context:
    --before-context: --context: --binary --case-sensitive --color: --column --count --count-matches --crlf
    --encoding: --engine: --files% --files-with-matches --files-without-match --fixed-strings --follow~ --file<
    --glob: --glob-case-insensitive --heading --no-heading --hidden --iglob: --ignore-case --include-zero
    --invert-match --json --line-buffered --line-number --no-line-number --line-regexp --max-columns:
    --max-columns-preview --max-count: --max-depth: --max-filesize: --multiline --multiline-dotall --no-config
    --no-filename --no-ignore --no-ignore-vcs --no-ignore-global --no-ignore-parent --no-messages --null --null-data
    --one-file-system --only-matching --passthru --path-separator: --pcre2 --quiet --regexp^ --replace: --smart-case
    --sort: --sortr: --stats --text --threads: --trim --type: --type-not: --type-list% --unrestricted --vimgrep
    --with-filename --word-regexp PATTERN WALK
sort: -bcCdfghiMmnRrsuVz -k: -t: -S: -o> -T> --check? --dictionary-order --field-separator: --general-numeric-sort
    --human-numeric-sort --ignore-case --ignore-leading-blanks --key: --merge --month-sort --numeric-sort --output>
    --parallel: --random-sort --reverse --sort: --stable --unique --version-sort --zero-terminated FILES
uniq: -cdDiuz -f: -s: -w: --all-repeated? --check-chars: --count --group? --ignore-case --repeated --skip-chars:
    --skip-fields: --unique --zero-terminated ONE
tree: -adfgilpqrstuvACDFJNSUXhn -l~ -I: -L: -P: -o> --charset: --dirsfirst --du --filelimit: --gitignore
    --ignore-case --inodes --matchdirs --noreport --prune --si --sort: FILES
strings: -af -n: -t: -e: --all --bytes: --radix: NUMBER FILES
xxd: -abCdeipuEr -c: -g: -l: -s: -o: ONE
hexdump,hd: -bcCdovx -n: -s: FILES
od: -abcdfhilosvx -A: -j: -N: -S: -t: -w: --address-radix: --format: --read-bytes: --skip-bytes: FILES
column: -tnx -s: -c: -o: -N: -R: --table --separator: --output-separator: FILES
jq: -aCceMjnRrsS --ascii-output --color-output --compact-output --exit-status --indent: --join-output
    --monochrome-output --null-input --raw-input --raw-output --raw-output0 --seq --slurp --sort-keys --stream --tab
    PATTERN
base64: -di -w: --decode --ignore-garbage --wrap: ONE
nproc: --all NONE
printenv: -0 TEXT HELD
locale: -a NONE
"""


@dataclass(slots=True)
class Spec:
    """What a program takes. Of each option, by its name with dashes: the signs above, empty for none."""

    options: dict[str, str] = field(default_factory=dict)
    operands: str = "FILES"
    number: bool = False
    walks: bool = False
    links: bool = False
    held: bool = False


@cache
def specs() -> dict[str, Spec]:
    """By name of the program."""
    found: dict[str, Spec] = {}
    for line in _TABLE.strip().replace("\n    ", " ").splitlines():
        names, _, rest = line.partition(":")
        spec = Spec()
        for token in rest.split():
            _take(spec, token)
        found |= dict.fromkeys(names.split(","), spec)
    return found


def _take(spec: Spec, token: str) -> None:
    if not token.startswith("-"):
        match token:
            case "NUMBER":
                spec.number = True
            case "WALK":
                spec.walks = True
            case "LINKS":
                spec.links = True
            case "HELD":
                spec.held = True
            case _:
                spec.operands = token
        return
    sign = token[-1] if token[-1] in ":?<>^%+~" else ""
    name = token.removesuffix(sign)
    if name.startswith("--"):
        spec.options[name] = sign
    else:
        spec.options |= {f"-{letter}": sign for letter in name[1:]}
