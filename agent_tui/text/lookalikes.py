"""Names that may be taken for others."""

from __future__ import annotations

import re
import unicodedata

from agent_tui.text.clean import spelled

_LIKE_LATIN = frozenset(
    "\u0430\u0441\u0435\u043e\u0440\u0445\u0443\u0456\u0458\u0455\u04bb\u0501\u051b\u051d\u04cf"
    "\u0410\u0412\u0421\u0415\u041d\u0406\u0408\u041a\u041c\u041e\u0420\u0405\u0422\u0425\u0423"
    "\u03bf\u03b1\u03bd\u03c1\u03c5\u03b9\u03ba\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7"
)
"""Letters of Cyrillic and Greek that look like Latin ones."""
_AS_LATIN = str.maketrans(
    "\u0430\u0432\u0441\u0435\u043d\u0456\u0458\u043a\u043c\u043e\u0440\u0455\u0442\u0445\u0443\u04bb\u0501\u051b\u051d\u04cf\u0131\u0261"
    "\u03b1\u03b2\u03b5\u03b9\u03ba\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7\u0577\u0585\u057d",
    "abcehijkmopstxyhdqwligabeikvoptuxyou",
)
_ALPHABETS = frozenset({"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE"})


def latin_form(text: str) -> str:
    """Small letters, those of other alphabets that look like Latin ones as these."""
    return text.translate(_AS_LATIN)


def name_problem(name: str) -> str:
    """Why a name may be taken for another one; empty where it may not."""
    if name.isascii() and name.isprintable():
        return ""
    if spelled(name, line=True) != name:
        return "its name has characters that cannot be seen"
    for word in re.findall(r"[^\W\d_]+", name):
        alphabets = {unicodedata.name(char, "").partition(" ")[0] for char in word} & _ALPHABETS
        if len(alphabets) > 1 or _LIKE_LATIN.issuperset(word):
            return f"its name has letters that look like others ({word.encode('ascii', 'backslashreplace').decode()})"
    return ""
