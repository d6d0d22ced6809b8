"""multilingual-e5-small (MIT) to start from: its first layers, and its pieces as word pieces of chosen languages.

The pretrained pieces come from a unigram model that marks where words begin. Here the marked ones begin words, the
others go on (`##`), and the longest that fits is taken, so that a text is read word by word as BERT reads it and words
come out of a cache. Chinese characters, hiragana and signs are words of their own: entities of languages without
spaces then have exact bounds. Letters keep their case and accents.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from models.training.encoder import SPECIALS
from models.training.graph import Float
from models.training.teacher import e5
from models.training.teacher.bases import BASES

ALONE = r"[\p{S}\p{Hiragana}]"
"""Signs that are words of their own, beside those that BERT takes for such."""
_BEGINS = "\u2581"
_FRAME = (("[CLS]", "<s>"), ("[SEP]", "</s>"), ("[PAD]", "<pad>"), ("[UNK]", "<unk>"))
_BATCH = 1024


def _data() -> bytes:
    return BASES["e5"].files().weights


def e5_weights() -> Mapping[str, Float]:
    """Return the weights, named as `Encoder` names them; the table of pieces has the rows that `pruned` chooses from.

    Raises:
        FileNotFoundError: the package is missing.
    """
    return e5.named(_data())


def word_pieces(pieces: Iterable[str]) -> dict[str, int]:
    """Return word pieces, each with the row of the pretrained piece that stands for it.

    Args:
        pieces: the pretrained ones, in the order of their rows.
    """
    rows: dict[str, int] = {}
    single: dict[str, int] = {}
    for row, piece in enumerate(pieces):
        begins = piece.startswith(_BEGINS)
        written = piece.removeprefix(_BEGINS)
        if written and not written.startswith("##"):
            rows.setdefault(written if begins else f"##{written}", row)
            if len(written) == 1 and (not begins or written not in single):
                single[written] = row
    # Every sign that has a row can stand anywhere; one that stands by itself is mostly not marked as a beginning.
    for sign, row in single.items():
        rows.setdefault(f"##{sign}", row)
        rows[sign] = rows.get(sign, row) if sign.isalnum() and ord(sign) < 0x3000 else row
    return rows


def word_rows() -> dict[str, int]:
    """Return every word piece that there is, the special ones first, each with its row of the pretrained table.

    Raises:
        FileNotFoundError: the package of the pretrained weights is missing.
    """
    return _rows(_named(_data()))


def _named(data: bytes) -> list[tuple[str, float]]:
    named: list[tuple[str, float]] = json.loads(e5.tokenizer(data))["model"]["vocab"]
    return named


def _rows(named: Sequence[tuple[str, float]]) -> dict[str, int]:
    known = {piece: row for row, (piece, _) in enumerate(named)}
    frame = {name: known[piece] for name, piece in _FRAME}
    return {**{name: frame[name] for name in SPECIALS}, **word_pieces(piece for piece, _ in named)}


def tokenizer(vocabulary: Mapping[str, int]) -> str:
    """Return a `tokenizer.json` of word pieces."""
    ids = {name: vocabulary[name] for name in SPECIALS}
    frame = {name: {"id": name, "ids": [ids[name]], "tokens": [name]} for name in ("[CLS]", "[SEP]")}
    opens, closes = ({"SpecialToken": {"id": name, "type_id": 0}} for name in ("[CLS]", "[SEP]"))
    normalizer = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True}
    split = {"type": "Split", "pattern": {"Regex": ALONE}, "behavior": "Isolated", "invert": False}
    sequence = {"Sequence": {"id": "A", "type_id": 0}}
    described = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": number, "content": name, "special": True, "normalized": False}
            | dict.fromkeys(("single_word", "lstrip", "rstrip"), False)
            for name, number in ids.items()
        ],
        "normalizer": {
            "type": "Sequence",
            "normalizers": [{"type": "NFKC"}, {**normalizer, "strip_accents": False, "lowercase": False}],
        },
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "BertPreTokenizer"}, split]},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [opens, sequence, closes],
            "pair": [opens, sequence, closes, {"Sequence": {"id": "B", "type_id": 1}}, closes],
            "special_tokens": frame,
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": False},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": dict(vocabulary),
        },
    }
    return json.dumps(described, ensure_ascii=False)


def pruned(texts: Iterable[str], size: int, signs: int) -> tuple[str, NDArray[np.int64]]:
    """Keep the word pieces that a corpus uses most, and single signs, so that few words become unreadable.

    Args:
        texts: the corpus.
        size: pieces to keep.
        signs: so many signs the pretrained pieces know best, whether the corpus has them or not.

    Returns:
        The `tokenizer.json`, and int64[size]: the row of the pretrained table for each id.

    Raises:
        FileNotFoundError: the package of the pretrained weights is missing.
    """
    named = _named(_data())
    rows = _rows(named)
    whole = Tokenizer.from_str(tokenizer({name: number for number, name in enumerate(rows)}))
    names, counts = list(rows), np.zeros(len(rows), np.int64)
    batch: list[str] = []
    for text in texts:
        batch.append(text)
        if len(batch) == _BATCH:
            _count(whole, batch, counts)
            batch = []
    _count(whole, batch, counts)
    best = sorted((name for name in names if len(name) == 1), key=lambda name: -named[rows[name]][1])[:signs]
    # Letters without case that words are made of also go on; Chinese characters never do.
    kept = dict.fromkeys([*SPECIALS, *best, *(f"##{sign}" for sign in best if sign.isalnum() and not _stands(sign))])
    for number in np.argsort(-counts, kind="stable"):
        if len(kept) >= size:
            break
        kept.setdefault(names[number])
    pieces = [*SPECIALS, *sorted(set(kept) - set(SPECIALS), key=lambda name: (rows[name], name))]
    ids = {name: number for number, name in enumerate(pieces)}
    return tokenizer(ids), np.array([rows[name] for name in pieces], np.int64)


def _stands(sign: str) -> bool:
    """Tell whether a sign is always a word of its own."""
    return "\u3041" <= sign <= "\u309f" or "\u3400" <= sign <= "\u9fff" or "\uf900" <= sign <= "\ufaff"


def _count(whole: Tokenizer, texts: list[str], counts: NDArray[np.int64]) -> None:
    for encoding in whole.encode_batch(texts, add_special_tokens=False):
        np.add.at(counts, encoding.ids, 1)
