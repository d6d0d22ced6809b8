"""What a reader is told, in the answer's language where there is a translation, else in English."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec


class _Wording(msgspec.Struct, frozen=True):
    no_source: str
    """Of one claim."""
    one: str
    """Of an answer with one ungrounded claim; `{count}` is the number."""
    many: str
    unavailable: str


_WORDINGS: Mapping[str, _Wording] = MappingProxyType(
    {
        "en": _Wording(
            "No sufficient source was found",
            "Note: {count} claim in the answer is not fully supported by the sources.",
            "Note: {count} claims in the answer are not fully supported by the sources.",
            "Note: the answer could not be checked against the sources.",
        ),
        "he": _Wording(
            "לא נמצא מקור מספק",
            "שים לב: {count} טענות בתשובה לא נתמכות במלואן על ידי המקורות.",
            "שים לב: {count} טענות בתשובה לא נתמכות במלואן על ידי המקורות.",
            "שים לב: לא ניתן היה לבדוק את התשובה מול המקורות.",
        ),
        "de": _Wording(
            "Keine ausreichende Quelle gefunden",
            "Hinweis: {count} Aussage der Antwort ist durch die Quellen nicht vollständig belegt.",
            "Hinweis: {count} Aussagen der Antwort sind durch die Quellen nicht vollständig belegt.",
            "Hinweis: Die Antwort konnte nicht anhand der Quellen geprüft werden.",
        ),
        "fr": _Wording(
            "Aucune source suffisante trouvée",
            "Attention : {count} affirmation de la réponse n’est pas entièrement étayée par les sources.",
            "Attention : {count} affirmations de la réponse ne sont pas entièrement étayées par les sources.",
            "Attention : la réponse n’a pas pu être vérifiée à l’aide des sources.",
        ),
        "es": _Wording(
            "No se encontró una fuente suficiente",
            "Atención: {count} afirmación de la respuesta no está plenamente respaldada por las fuentes.",
            "Atención: {count} afirmaciones de la respuesta no están plenamente respaldadas por las fuentes.",
            "Atención: no se pudo comprobar la respuesta con las fuentes.",
        ),
    }
)
LANGUAGES = frozenset(_WORDINGS)


def no_source(language: str) -> str:
    """Return the warning of a claim that no source carries."""
    return _wording(language).no_source


def ungrounded(count: int, language: str) -> str | None:
    """Return the warning of an answer with `count` ungrounded claims; none for none."""
    wording = _wording(language)
    return (wording.one if count == 1 else wording.many).format(count=count) if count else None


def unavailable(language: str) -> str:
    """Return the warning of an answer that nobody could check."""
    return _wording(language).unavailable


def _wording(language: str) -> _Wording:
    """Return the words of a language; `de-CH` has those of `de`."""
    return _WORDINGS.get(language.casefold().replace("_", "-").split("-")[0], _WORDINGS["en"])
