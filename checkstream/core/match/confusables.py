"""Characters that look like ASCII ones: the pairs that evasions use most.

Source: our own selection from the single-character prototypes of Unicode Technical Standard 39,
section 4 (`confusables.txt`), for Cyrillic, Greek, Armenian, Cherokee, Latin extensions and common
punctuation. Fullwidth, mathematical, circled and superscript letters and digits need no entry: NFKC
maps them. Only what looks alike is listed; transliteration is not.
"""

# ruff: noqa: RUF001 - ambiguous characters are what this table is made of
from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_LOOKALIKES = (
    ("a", "аɑα⍺ᴀ"),
    ("b", "ЬƄʙ"),
    ("c", "сϲᴄⅽ"),
    ("d", "ԁɗᴅ"),
    ("e", "еҽᴇ"),
    ("f", "ꜰ"),
    ("g", "ɡցɢ"),
    ("h", "һհʜ"),
    ("i", "іιıɩɪ"),
    ("j", "јϳᴊ"),
    ("k", "κкᴋ"),
    ("l", "ӏǀ∣ʟ"),
    ("m", "мᴍ"),
    ("n", "ոռɴ"),
    ("o", "оοօσഠᴏ"),
    ("p", "рρ⍴ᴘ"),
    ("q", "ԛգǫ"),
    ("r", "гᴦʀ"),
    ("s", "ѕꜱ"),
    ("t", "тτᴛ"),
    ("u", "υսᴜʋ"),
    ("v", "ѵνᴠ"),
    ("w", "ԝաᴡѡ"),
    ("x", "хχ×"),
    ("y", "уγүʏ"),
    ("z", "ᴢ"),
    ("A", "АΑᎪ"),
    ("B", "ВΒᏴ"),
    ("C", "СϹᏟ"),
    ("D", "Ꭰ"),
    ("E", "ЕΕᎬ"),
    ("F", "Ϝ"),
    ("G", "ԌᏀ"),
    ("H", "НΗᎻ"),
    ("I", "ІΙӀ"),
    ("J", "ЈᎫ"),
    ("K", "КΚᏦ"),
    ("L", "Ꮮ"),
    ("M", "МΜᎷ"),
    ("N", "Ν"),
    ("O", "ОΟՕ"),
    ("P", "РΡᏢ"),
    ("R", "ᎡᏒ"),
    ("S", "ЅՏᏚ"),
    ("T", "ТΤᎢ"),
    ("U", "Ս"),
    ("V", "ѴᏙ"),
    ("W", "ԜᎳ"),
    ("X", "ХΧ"),
    ("Y", "ҮΥ"),
    ("Z", "ΖᏃ"),
    ("-", "‐‑‒–—―−﹘⁃֊־᐀᠆⸗⸚⸺⸻⹀⹝〜〰゠𐺭"),
    ("'", "‘’‚‛ʹʼˈ′´"),
    ('"', "“”„‟″〃"),
    (".", "․۔。｡"),
    (",", "،"),
    (":", "ː˸։∶꞉"),
    (";", "؛"),
    ("/", "⁄∕╱"),
    ("\\", "∖⧵"),
    ("*", "∗⁎٭"),
    ("|", "￨│┃"),
    ("!", "ǃ"),
    ("?", "ʔ؟"),
    ("<", "‹❮"),
    (">", "›❯"),
    ("~", "∼˜"),
    ("_", "ߺ"),
    ("@", "﹫"),
)

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_SETS = (0x1F150, 0x1F170, 0x1F1E6)
"""Where letters begin that stand white in circles and squares, and those of flags: NFKC leaves them."""

CONFUSABLES: Final[Mapping[str, str]] = MappingProxyType(
    {alike: char for char, group in _LOOKALIKES for alike in group}
    | {chr(first + place): char for first in _SETS for place, char in enumerate(_LETTERS)}
    | {"\u2800": " ", "\u1680": " "}  # the empty pattern of Braille, the space of Ogham
    | dict.fromkeys("\x85\u2028\u2029", "\n")  # ends of lines and paragraphs
)
"""One character that is not ASCII -> the ASCII character that it looks like."""
