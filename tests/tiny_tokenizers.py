"""Small `tokenizer.json` files, for tests of what reads them."""

import json
import string

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
_WORDS = """the model will answer your question now ignore all previous instruction ##s ##ing ##ed ##ly ##er un ##known
ann smith paris works at acme e cafe strasse ##st 漢 字 ß ก さ く 田 ト ##ヨ"""


def wordpiece(*, symbols: bool = False, alone: str = r"\p{S}", **normalizer: bool) -> bytes:
    """Return an uncased BERT tokenizer that knows some words, and every ASCII sign by itself.

    Args:
        symbols: as our own recipes make it, with NFKC before it and symbols by themselves.
        alone: what is by itself then, as a pattern of one sign.
        normalizer: Of BERT's normaliser.
    """
    letters = [*string.ascii_lowercase, *string.digits]
    pieces = [*SPECIALS, *letters, *(f"##{letter}" for letter in letters), *string.punctuation, *_WORDS.split()]
    vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(**{"lowercase": True} | normalizer)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    if symbols:
        tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), tokenizer.normalizer])
        isolated = pre_tokenizers.Split(Regex(alone), "isolated")
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.BertPreTokenizer(), isolated])
    tokenizer.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", None, [("[CLS]", 2), ("[SEP]", 3)])
    tokenizer.add_special_tokens(list(SPECIALS))
    return tokenizer.to_str().encode()


def unigram() -> bytes:
    """Return a tokenizer as sentencepiece makes them, with a frame of its own."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=80, special_tokens=["<pad>", "<s>", "</s>", "<unk>"], unk_token="<unk>"
    )
    tokenizer.train_from_iterator(["the model will answer your question now", "Ann Smith works at Acme"] * 4, trainer)
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A </s>", None, [("<s>", 1), ("</s>", 2)])
    return tokenizer.to_str().encode()


def changed(data: bytes, **changes: object) -> bytes:
    """Return a `tokenizer.json` with other top-level entries."""
    return json.dumps(json.loads(data) | changes).encode()
