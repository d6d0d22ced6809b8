"""The file of a tokenizer: what of a `tokenizer.json` says how texts can be read.

Source: the library `tokenizers`, which writes and reads it.
"""

from __future__ import annotations

import msgspec
from tokenizers import Tokenizer as Library
from tokenizers.models import BPE, Unigram
from tokenizers.pre_tokenizers import ByteLevel

_ALONE = frozenset({r"\p{S}", r"[\p{S}\p{Hiragana}]"})
"""Patterns of one sign each, which part words and look at nothing around them: symbols, and hiragana too."""


class Part(msgspec.Struct):
    """A model, a normaliser or a splitter of words, or a sequence of them."""

    type: str = ""
    max_input_chars_per_word: int = 100
    unk_token: str | None = None
    unk_id: int | None = None
    byte_fallback: bool = False
    continuing_subword_prefix: str | None = None
    end_of_word_suffix: str | None = None
    clean_text: bool = False
    normalizers: tuple[Part, ...] = ()
    pretokenizers: tuple[Part, ...] = ()
    pattern: dict[str, str] | str = ""
    behavior: str = ""


class Added(msgspec.Struct):
    """A text that is one token wherever it stands."""

    content: str
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False


class TokenizerFile(msgspec.Struct):
    """Of a `tokenizer.json`, what says whether words can be read one by one."""

    model: Part
    normalizer: Part | None = None
    pre_tokenizer: Part | None = None
    added_tokens: list[Added] = []

    def meets_unknown(self, library: Library) -> bool:
        """Say whether there is a token for what the vocabulary lacks, or it is left out; else the library raises."""
        vocabulary = library.get_vocab(with_added_tokens=False)
        if not isinstance(library.model, BPE | Unigram):
            return self.model.unk_token in vocabulary
        if self._spells_bytes and all(sign in vocabulary for sign in ByteLevel.alphabet()):
            return True  # whatever the text, nothing is unknown
        if isinstance(library.model, Unigram):
            return self.model.unk_id is not None
        by_bytes = self.model.byte_fallback and all(f"<0x{byte:02X}>" in vocabulary for byte in range(256))
        return by_bytes or self.model.unk_token is None or self.model.unk_token in vocabulary

    @property
    def _spells_bytes(self) -> bool:
        """The model sees the signs that stand for bytes, and they are its pieces as they are."""
        last = self.pre_tokenizer
        while last is not None and last.pretokenizers:
            last = last.pretokenizers[-1]
        changed = self.model.continuing_subword_prefix or self.model.end_of_word_suffix
        return last is not None and last.type == "ByteLevel" and not changed

    @property
    def by_words(self) -> bool:
        """Nothing of it looks beyond white space: BERT's own, also behind NFKC and with some signs by themselves."""
        match self.normalizer:
            case Part(type="Sequence", normalizers=(Part(type="NFKC"), normalizer)):
                pass
            case normalizer:
                pass
        match self.pre_tokenizer:
            case Part(type="BertPreTokenizer"):
                split = True
            case Part(
                type="Sequence",
                pretokenizers=(
                    Part(type="BertPreTokenizer"),
                    Part(type="Split", pattern={"Regex": pattern}, behavior="Isolated"),
                ),
            ):
                split = pattern in _ALONE
            case _:
                split = False
        marked = any(
            token.single_word or token.lstrip or token.rstrip or len(token.content.split()) != 1
            for token in self.added_tokens
        )
        clean = normalizer is not None and normalizer.type == "BertNormalizer" and normalizer.clean_text
        return self.model.type == "WordPiece" and clean and split and not marked
