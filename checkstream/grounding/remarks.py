"""Sentences that nothing can be held against: questions, greetings, headings, and that the answer is not known.

English, Hebrew, German, French and Spanish. What is not known to be such counts as a claim: one too many is
checked, one too few is not.
"""

from __future__ import annotations

from checkstream.core.match.regex import TextRegex

_QUESTION_MARKS = ("?", "？", "؟", "⁇", "⁈", "\u037e")
_WHOM = r"(?:[ ,]+(?:there|again|everyone|all|and welcome|to you|dear|friend))*(?:,? (?-i:[A-Z]\pL{1,20}))?"
_SHORT = r"[^,;:\d]{1,60}"
_LONG = r"[^;:\d]{0,120}"
_NOT = r"(?:do not|don['’]t|cannot|can not|can['’]?t|could not|couldn['’]t|am not|are not|['’]m not|have no)"
_NOT_DO = r"(?:does not|doesn['’]t|do not|don['’]t|did not|didn['’]t)"
_NOT_ABLE = r"(?:can['’]?t|cannot|can not|could not|couldn['’]t|(?:am|was|are|were) (?:unable|not able) to)"
_EVIDENCE = r"(?:context|documents?|sources?|texts?|passages?|excerpts?|information)(?: (?:provided|given|available))?"
_SAY = r"(?:mention|contain|include|say|specify|state|provide|cover|address)"
_GREETINGS = (
    rf"(?:hello|hi|hey|greetings|welcome|dear (?:customer|user|sir|madam)){_WHOM}",
    rf"good (?:morning|afternoon|evening|day){_WHOM}",
    rf"(?:thank you|thanks)(?: (?:so|very) much)?(?: for {_SHORT})?",
    r"(?:you['’]re|you are) (?:very |most )?welcome|my pleasure|no problem|(?:have a|enjoy your) [a-z ]{1,30}day",
    r"sure|of course|certainly|absolutely|great question|good question|sure thing|happy to help",
    rf"i(?:['’]d| would| am|['’]m) (?:be )?(?:happy|glad|pleased) to (?:help|assist){_SHORT}",
    rf"(?:i )?hope (?:this|that|it) (?:helps|answers){_LONG}",
    rf"(?:please )?(?:let me know|feel free to (?:ask|reach out|contact)){_LONG}",
    rf"if you have (?:any )?(?:other |more |further |additional )?questions?{_LONG}",
    r"here (?:is|are) (?:the|a|an|some|your|what)[^.;\d]{0,60}:",
    r"(?:שלום|היי|הי|בוקר טוב|ערב טוב|ברוכים הבאים|בשמחה)(?: לך| לכם| וברכה| רב)?",
    rf"תודה(?: רבה)?(?: על {_SHORT})?|אשמח לעזור{_LONG}",
    r"hallo|guten (?:tag|morgen|abend)|gerne?(?: geschehen)?",
    rf"(?:vielen dank|danke)(?: für {_SHORT})?|ich helfe (?:ihnen|dir) gerne?{_LONG}",
    rf"bonjour|bonsoir|salut|avec plaisir|je vous en prie|n['’]hésitez pas{_LONG}",
    rf"merci(?: beaucoup)?(?: pour {_SHORT})?",
    rf"hola|buenos días|buenas (?:tardes|noches)|con (?:mucho )?gusto|de nada|(?:muchas )?gracias(?: por {_SHORT})?",
    rf"no dude en{_LONG}",
)
_ABSTENTIONS = (
    rf"(?:i['’]m |i am |we are |we['’]re )?(?:sorry|afraid)(?:,? but)?,? (?:i |we )?{_NOT}\b",
    r"(?:i|we) (?:really |simply |currently )?(?:do not|don['’]t) know\b",
    r"(?:i|we) (?:currently )?(?:do not|don['’]t) have (?:that|this|any|the|enough|access|sufficient)\b",
    rf"(?:i|we) {_NOT_ABLE} (?:answer|say|tell|confirm|verify|determine|help|assist|provide|find|share|comment)\b",
    r"(?:i['’]m|i am|we are) (?:not sure|unsure|unable to|not able to|not certain)\b",
    rf"as an? (?:ai|artificial intelligence|language model|virtual assistant)\b[^.]{{0,60}}\b{_NOT}\b",
    r"(?:i have|we have|there is|there['’]s) (?:no|not enough|insufficient) (?:information|data|details?|context)\b",
    rf"(?:(?:the|these|this|your|provided|given|retrieved|available) ){{0,3}}{_EVIDENCE} {_NOT_DO} {_SAY}\b",
    r"(?:אני )?(?:לא יודעת?|לא בטוחה?|אינני יודע|אינני יודעת|לא מצאתי)",
    r"אין (?:לי|לנו|ברשותי|בידי) (?:מידע|נתונים)|המסמכים (?:לא|אינם) (?:מציינים|מזכירים|כוללים)",
    r"(?:אני )?(?:לא|איני|אינני) יכולה? (?:לענות|לומר|לאשר|לקבוע)",
    r"(?:das )?wei(?:ß|ss) ich (?:das |es )?(?:leider )?nicht|ich wei(?:ß|ss) (?:das |es )?(?:leider )?nicht",
    r"(?:dazu )?(?:habe ich|haben wir|ich habe|wir haben) (?:(?:dazu|leider) )*keine (?:informationen|angaben|daten)",
    r"(?:kann ich|ich kann) (?:das|dazu|diese frage|ihnen)[^.]{0,40}nicht (?:sagen|beantworten|bestätigen|helfen)",
    r"je ne (?:le )?sais pas|je n['’]ai (?:pas|aucune) |je ne peux pas (?:répondre|dire|confirmer)",
    r"no (?:lo )?sé(?:[ .,;]|$)|no puedo (?:responder|decir|confirmar)",
    r"no (?:tengo|dispongo de|tenemos|encuentro) (?:(?:esa|suficiente|esta) )?(?:información|datos)",
)
_REGRET = "unfortunately|however|leider|malheureusement|désolée?|lo siento|lamentablemente|לצערי|מצטערת?"
_GREETING = TextRegex(rf"(?i)^[\s¡]*(?:{'|'.join(_GREETINGS)})[\s.!,…:)😀-🙏]*$")
_ABSTENTION = TextRegex(rf"(?i)^\s*(?:(?:{_REGRET}),? (?:pero )?)?(?:{'|'.join(_ABSTENTIONS)})")
_GOES_ON = TextRegex(
    r"(?i)(?:[,–—]?\s+(?:but|however|though|although|aber|jedoch|doch|mais|pero|אבל|אך)[\s,]|[;:]\s|\s[–—-]\s)\s*"
)
_OFFER = TextRegex(
    r"(?i)^(?:(?:i|we)(?:['’]d|['’]ll| can| could| will| would| am| are)\b[^.;]{0,20}\b"
    r"(?:help|assist|try|check|suggest|recommend|look|offer|explain|happy|glad)"
    r"|(?:please|you (?:can|may|could|might|should)) (?:contact|ask|check|visit|consult|reach|call|try|refer|see|find)"
    r"|feel free|let me|that|this|so)\b"
)
_HEADING = TextRegex(
    r"^\s*(?:(?:[-*+•]|\d{1,2}[.)])\s+)?(?:#{1,6}\s.*|\*\*[^*]+\*\*:?|__[^_]+__:?|[^\n]*[:：](?:\*\*)?)\s*$"
)
_TELLING = TextRegex(
    r"(?i)[\p{N}$€£₪¥%=]|(?:^|[^\pL])(?:(?:is|are|was|were|has|have|had|does|do|did|will|would|can|could|may|might|must|"
    r"shall|should|cannot|not|no|never|none|nothing|only|all|every|always|"
    r"ist|sind|war|waren|hat|haben|wird|werden|kann|können|darf|dürfen|muss|müssen|soll|nicht|nie|kein(?:e[mnrs]?)?|"
    r"est|sont|était|étaient|ont|peut|peuvent|doit|pas|jamais|es|son|era|eran|está|están|tiene|puede|pueden|nunca|"
    r"הוא|היא|הם|יש|אין|לא|ניתן|אפשר|אסור|מותר)(?:$|[^\pL])|[^\pL]?n['’]t\b)"
)
"""Numbers, and words that make a heading a statement."""
_MOST_HEADING_WORDS = 8
_LEAST_WORDS = 3
"""Of a statement behind an abstention."""


def not_checkable(sentence: str) -> str:
    """Return why nothing can say if `sentence` is true; empty for a statement.

    Returns:
        `question`, `abstention`, `greeting`, `heading`, or nothing.
    """
    if sentence.rstrip(" \t\"'”’»)]*_!.…").endswith(_QUESTION_MARKS):
        return "question"
    abstained = _ABSTENTION.spans(sentence)
    if abstained:
        return "" if _states(sentence[abstained[0].end :]) else "abstention"
    if _GREETING.found_in(sentence):
        return "greeting"
    return "heading" if _is_heading(sentence) else ""


def _states(rest: str) -> bool:
    """Return whether an abstention goes on with a statement: `..., but the fee is $500`, not `..., but I can check`."""
    for joint in _GOES_ON.spans(rest):
        said = rest[joint.end :]
        if len(said.split()) >= _LEAST_WORDS and not _OFFER.found_in(said) and not not_checkable(said):
            return True
    return False


def _is_heading(sentence: str) -> bool:
    """Return whether a line only says what follows: `## Refunds`, `**Key points:**`; not `## Refunds take 14 days`."""
    return (
        len(sentence.split(None, _MOST_HEADING_WORDS + 2)) <= _MOST_HEADING_WORDS + 1  # its mark counts too
        and _HEADING.found_in(sentence)
        and not _TELLING.found_in(sentence.lstrip(" \t#*+-•0123456789.)"))
    )
