"""The user's rules: whether a sentence that they typed says how things are to be done, in a dozen languages.

In doubt it does. Linear in the text.
"""

from __future__ import annotations

import re

WHOLE = 400
"""A message of the user of up to so many characters is one fact; a longer one is read sentence by sentence."""

PASTE = 8_000
"""From so many characters on a text was hardly typed: only its rules and the lines that carry a fact are read."""

STRETCH = 65_536
"""Characters of a text that are searched at once."""

_STANDING = """
never always must mustn shouldn should shall only prefer prefers preferred preferably avoid ensure remember don
forbidden prohibited required not dont cannot no without whenever unless until each every want wants like hate
important mandatory keep before after allowed use
nie niemals immer stets nicht kein keine keinen keiner keinem muss müssen musst soll sollen sollst sollte darf
dürfen darfst nur lieber bevorzuge bevorzugt vermeide vermeiden unbedingt keinesfalls ohne statt verboten achte
verwende benutze nutze bitte jedes jeder jede
jamais toujours pas doit doivent dois devez devons faut interdit évite évitez éviter préfère préférez préférer
seulement uniquement sans plutôt utilise utilisez obligatoire chaque
nunca siempre jamás debe deben debes prohibido evita evite evitar prefiero prefiere preferimos solo sólo solamente
sin usa utiliza cada sempre não nao deve devem prefira prefiro apenas somente sem mai non devi devono preferisci
soltanto senza ogni vietato
nooit altijd niet geen moet moeten alleen nigdy zawsze musi tylko unikaj asla daima mutlaka sadece
никогда всегда не нельзя должен должна должно должны обязательно только избегай предпочитаю используй ніколи завжди
لا لن دائما دائمًا أبدا أبدًا يجب ينبغي ممنوع يمنع فقط تجنب استخدم أفضل بدون עדיף תמיד אסור חייב רק אל לא
हमेशा कभी मत नहीं केवल
"""
_RULE_WORDS = frozenset(_STANDING.split())
_SAID = (
    "n't|make sure|from now on|stick to|instead of|rather than|at most|at least|ask me|ask first|hay que|n\u2019t|"
    "不要|不能|不得|不许|不許|不可|不准|不应|不該|不用|必须|必須|务必|務必|禁止|总是|總是|永远|永遠|始终|始終|从不|從不|"
    "绝不|絕不|请勿|請勿|勿|别|別|应该|應該|应当|應當|只|优先|優先|避免|最好|一定|尽量|盡量|喜欢|喜歡|每次|"
    "ないで|しない|禁じ|必ず|常に|絶対|いつも|べき|なければ|ならない|はいけ|てはなら|ください|下さい|避け|だけ|のみ|好み|"
    "ほしい|欲しい|こと。|毎回|ません|항상|절대|마세요|말 것|지 마|해야|반드시|금지|선호|피하|하지 말|만 사용"
)
_PIECES = _SAID.split("|")
_ASCII_PIECES = [piece for piece in _PIECES if piece.isascii()]
_BEGINNING = """
avoid stick stop respect follow reply answer respond speak name treat assume leave limit ask wait format indent
write call let be note pin commit run check test put target support antworte schreib schreibe lass halte nimm
réponds écris garde responde escribe mantén
"""
_IMPERATIVES = frozenset(_BEGINNING.split())
"""Words that begin a rule; those that ask for work (fix, read, show) do not."""
_WORD = re.compile(r"\w+")
_BETWEEN = re.compile(r"\W")


def is_rule(sentence: str) -> bool:
    """Returns whether a sentence that the user typed may say how things are to be done: in doubt it does."""
    small, start = sentence.lower(), 0
    while start < len(small):
        end = found.start() if (found := _BETWEEN.search(small, start + STRETCH)) is not None else len(small)
        words = _WORD.findall(small, start, end)
        begins = words[1:2] if words[:1] == ["please"] else words[:1]
        if not _RULE_WORDS.isdisjoint(words) or (start == 0 and not _IMPERATIVES.isdisjoint(begins)):
            return True
        start = end
    return any(piece in small for piece in (_ASCII_PIECES if small.isascii() else _PIECES))
