"""Ids are those of the library, whatever the text; words, places and case are those of the text."""

import gzip
import itertools
import json
import os
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Library
from tokenizers import models, pre_tokenizers

from checkstream.errors import ModelError
from checkstream.scoring import tokenizer as module
from checkstream.scoring.tokenizer import Case, Tokenizer, Unit, case_of
from tests.chance import examples
from tests.tiny_tokenizers import changed, unigram, wordpiece

DATA = Path(os.environ.get("CHECKSTREAM_DATA", Path(__file__).parents[4] / "shared" / "data"))
SIGNS = (
    "さくらトヨーaA zß\n\t\x0b\x0c\x1c\x85\xa0e\u0301=\u0338!.-漢字。、ก\u200b\xad\ufffd\x00É\u0130"
    "\u2028\u3000\ufb01\xb4<\ufdfa😂\u017fΣ\U0001d4b3"
)
HOSTILE = st.one_of(
    st.text(SIGNS, max_size=120),
    st.text(max_size=60),
    st.lists(
        st.sampled_from(["the", "un", "known", "[SEP]", "[", "Ann", "ing", " ", "\n", "a" * 130, "漢" * 60, "さ" * 60]),
        max_size=20,
    ).map("".join),
)


@pytest.fixture(scope="module")
def words() -> Tokenizer:
    return Tokenizer(wordpiece())


def library(data: bytes) -> Library:
    return Library.from_str(data.decode())


BERT = library(wordpiece())
CASED = library(wordpiece(lowercase=False, strip_accents=False))
QUICK = Tokenizer(wordpiece())
OWN = library(wordpiece(symbols=True))
QUICK_OWN = Tokenizer(wordpiece(symbols=True))
KANA = wordpiece(symbols=True, alone=r"[\p{S}\p{Hiragana}]", lowercase=False, strip_accents=False)
QUICK_KANA = Tokenizer(KANA)
QUICK_CASED = Tokenizer(wordpiece(lowercase=False, strip_accents=False))


def too_long(library: Library, text: str) -> bool:
    """Tell whether a word of a text is longer than BERT reads."""
    return any(len(word) > 100 for word, _ in library.pre_tokenizer.pre_tokenize_str(normal(library, text)))


def normal(library: Library, text: str) -> str:
    shown: str = library.normalizer.normalize_str(text)
    return shown


@settings(max_examples=examples(400))
@given(text=HOSTILE)
def test_ids_are_those_of_the_library_for_the_whole_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    assert QUICK_OWN.by_words
    assert QUICK_KANA.by_words
    for quick, slow in ((QUICK, BERT), (QUICK_CASED, CASED), (QUICK_OWN, OWN), (QUICK_KANA, library(KANA))):
        assert too_long(slow, text) or quick.ids(text) == slow.encode(text, add_special_tokens=False).ids


@given(text=HOSTILE)
def test_placed_units_have_the_same_ids_and_name_the_words_of_the_text(text: str) -> None:
    placed = list(QUICK.units(text, placed=True))
    assert [token for _, unit in placed for token in unit.ids] == QUICK.ids(text)
    end = 0
    for start, unit in placed:
        assert len(unit.cases) == len(unit.ids)
        assert [first for first, _, _ in unit.words] == sorted({first for first, _, _ in unit.words})
        for _, begin, after in unit.words:
            assert end <= start + begin <= start + after <= len(text)
            end = start + after


@given(text=HOSTILE)
def test_the_cache_never_changes_an_answer_and_stays_bounded(text: str) -> None:
    fresh = Tokenizer(wordpiece())
    once = fresh.ids(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CACHED_WORDS", 2)
        for _ in range(3):
            assert fresh.ids(text) == once
        assert fresh.ids("one two three four five")
        assert len(fresh._young) <= 2
        assert fresh.ids(text) == once


def test_words_stand_where_the_text_has_them_and_say_how_they_are_written(words: Tokenizer) -> None:
    text = "  Ann\u00a0SMITH works,\tat ACME-19"
    placed = list(words.units(text, placed=True))
    found = [text[start + begin : start + end] for start, unit in placed for _, begin, end in unit.words]
    assert found == ["Ann", "SMITH", "works", ",", "at", "ACME", "-", "19"]
    cases = [Case(unit.cases[first]) for _, unit in placed for first, _, _ in unit.words]
    assert cases == [
        Case.CAPITALISED,
        Case.UPPER,
        Case.LOWER,
        Case.LOWER,
        Case.LOWER,
        Case.UPPER,
        Case.LOWER,
        Case.DIGITS,
    ]


def test_hiragana_are_words_of_their_own_where_the_tokenizer_says_so() -> None:
    text = "田さんはトヨで"
    units = QUICK_KANA.units(text, placed=True)
    found = [text[start + begin : start + end] for start, unit in units for _, begin, end in unit.words]
    assert found == ["田", "さ", "ん", "は", "トヨ", "で"]


@pytest.mark.parametrize("alone", ["田+", r"\s*", r"\p{Hiragana}\p{Han}", "(?<=田)ト"])
def test_a_pattern_that_may_look_around_is_not_read_word_by_word(alone: str) -> None:
    assert not Tokenizer(wordpiece(symbols=True, alone=alone)).by_words


@pytest.mark.parametrize(
    ("word", "case"),
    [
        ("", 0),
        ("a", 0),
        ("A", 1),
        ("AB", 2),
        ("Ab", 1),
        ("aB", 0),
        ("b2", 3),
        ("É", 1),
        ("ÉÈ", 2),
        ("漢", 0),
        ("-A", 0),
    ],
)
def test_case_of_a_word(word: str, case: int) -> None:
    assert case_of(word) == case


def test_the_frame_is_what_the_tokenizer_puts_around_a_text(words: Tokenizer) -> None:
    assert (words.before, words.after) == ((2,), (3,))
    bare = Tokenizer(changed(wordpiece(), post_processor=None))
    assert (bare.before, bare.after) == ((), ())


def test_ids_are_below_the_size_where_they_have_gaps_too() -> None:
    form = json.loads(wordpiece())
    word = max(form["model"]["vocab"], key=form["model"]["vocab"].__getitem__)
    form["model"]["vocab"][word] += 1_000
    gapped = Tokenizer(json.dumps(form).encode())
    assert gapped.size == form["model"]["vocab"][word] + 1 == Tokenizer(wordpiece()).size + 1_000


def test_lone_surrogates_are_read_as_nothing(words: Tokenizer) -> None:
    assert words.ids("the \ud800 mo\udfffdel") == words.ids("the model")


def test_a_lone_surrogate_in_a_word_longer_than_bert_reads_does_not_fail_the_text(words: Tokenizer) -> None:
    assert words.ids("the " + "a" * 150 + "\ud800" + "a" * 150 + " model")


def test_a_text_without_white_space_is_read_in_bounded_parts(words: Tokenizer) -> None:
    for text in ("a" * 9_000, "漢" * 50_000, "a-" * 50_000, "\u0301" * 100_000, "https://x.y/" + "z9" * 90):
        longest = max((len(unit.ids) for _, unit in words.units(text)), default=0)
        assert longest <= module._RUN_CHARS
    assert len(words._young) < 100


@pytest.mark.parametrize(
    ("length", "parts"), [(100, 1), (101, 2), (200, 2), (1_024, 11), (1_025, 12), (2_500, 27)], ids=str
)
def test_a_word_longer_than_bert_reads_is_read_in_parts(words: Tokenizer, length: int, parts: int) -> None:
    word = ("ignoretheanswer" * length)[:length]
    units = [unit for _, unit in words.units("a the " + word + " model")]
    assert [token for unit in units for token in unit.ids if token == 1] == []
    assert len(units) == 3 + parts
    placed = list(words.units("a the " + word + " model", placed=True))
    assert [token for _, unit in placed for token in unit.ids] == [token for unit in units for token in unit.ids]
    spans = [(start + begin, start + end) for start, unit in placed for _, begin, end in unit.words]
    assert spans[2][0] == 6
    assert all(end == start for (_, end), (start, _) in itertools.pairwise(spans[2:-1]))
    assert spans[-2][1] == 6 + length


def test_what_is_unknown_for_another_reason_than_its_length_stays_so(words: Tokenizer) -> None:
    for text in ("\u2603" * 90, "the" + "\u2603" * 40 + "\u2014" + "x" * 30, "한" * 33):
        assert words.ids(text) == BERT.encode(text, add_special_tokens=False).ids
    assert len(words.ids("한" * 49)) == 2  # 147 letters, when taken apart


@pytest.mark.parametrize(
    "text",
    [
        "the model " * 5_000,
        "the\u00a0model\u2003" * 3_000,
        "[SEP]the-model" * 2_000,
        "the\x1cmodel\tan swer\x85" * 3_000,
        "e\u0301\u0300-" * 5_000,
        " " * 20_000 + "the",
        "漢字the" * 4_000,
    ],
    ids=["blanks", "other blanks", "marks", "hidden signs", "accents", "nothing but blanks", "chinese"],
)
def test_reading_block_by_block_parts_no_word(words: Tokenizer, text: str) -> None:
    for shift in range(3):
        shown = "x" * shift + text
        whole = BERT.encode(shown, add_special_tokens=False).ids
        assert words.ids(shown) == whole
        assert [token for _, unit in words.units(shown, placed=True) for token in unit.ids] == whole


@pytest.mark.parametrize("sign", [" ", "\u200b", "\u2003", "\x00", "a", "a ", "漢", "-", "\u0301", "[SEP]"])
@pytest.mark.parametrize("placed", [False, True])
def test_no_step_reads_much_of_a_long_text(sign: str, placed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    words = Tokenizer(wordpiece())
    looked_at = 0
    read, shown = words._read, module._shown

    def counted(of: Callable[[str], object]) -> Callable[[str], object]:
        def told(text: str) -> object:
            nonlocal looked_at
            looked_at += len(text)
            return of(text)

        return told

    monkeypatch.setattr(words, "_read", counted(read))
    monkeypatch.setattr(module, "_shown", counted(shown))
    text = sign * (30_000 // len(sign))
    before = 0
    for _ in words.units(text, placed=placed):
        assert looked_at - before <= 6_000
        before = looked_at


@pytest.mark.parametrize("placed", [False, True])
def test_a_long_word_is_read_as_far_as_it_is_taken(placed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    words = Tokenizer(wordpiece())
    read: list[str] = []

    def noted(text: str) -> Unit:
        read.append(text)
        return Unit((0,), (), (0,))

    monkeypatch.setattr(words, "_read", noted)
    units = words.units("[SEP]漢" * 1_000, placed=placed)
    assert not read
    next(units)
    assert read == ["[SEP]"]


def test_text_is_read_as_far_as_it_is_taken(words: Tokenizer) -> None:
    units = words.units("never seen before: " + "xyzzy" * 3 + " plugh" * 100_000)
    next(units)
    assert "plugh" not in words._young


def test_other_tokenizers_go_through_the_library_in_stretches() -> None:
    data = unigram()
    tokenizer, reference = Tokenizer(data), library(data)
    assert not tokenizer.by_words
    assert (tokenizer.before, tokenizer.after) == ((1,), (2,))
    text = "Ann Smith works at Acme now"
    assert tokenizer.ids(text) == reference.encode(text, add_special_tokens=False).ids
    spans = [
        text[start + begin : start + end]
        for start, unit in tokenizer.units(text, placed=True)
        for _, begin, end in unit.words
    ]
    assert spans == text.split()
    long = text + " the model will answer" * 500 + "x" * 5_000
    assert sum(len(unit.ids) for _, unit in tokenizer.units(long)) > 2_000
    assert tokenizer.ids("") == []
    assert tokenizer.ids("\ud800")


@pytest.mark.parametrize("token", [{"lstrip": True}, {"single_word": True}, {"content": "two words"}])
def test_words_are_not_read_one_by_one_where_a_token_spans_them(token: dict[str, object]) -> None:
    added = {
        "id": 1,
        "content": "[X]",
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": True,
    }
    data = changed(wordpiece(), added_tokens=[added | token])
    assert not Tokenizer(data).by_words


def test_words_are_not_read_one_by_one_where_control_signs_count() -> None:
    data = wordpiece(clean_text=False)
    assert not Tokenizer(data).by_words


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"{}",
        b"[" * 100_000,
        b"\xff\xfe",
        b"\x80\x04\x95cos\nsystem\n",
        b'{"model": 7}',
        b'{"model": {"type": "WordPiece", "vocab": {"a": -1}}}',
        wordpiece()[:-20],
        changed(wordpiece(), model={"type": "BPE", "vocab": {}, "merges": [["a", "b"]]}),
        changed(wordpiece(), added_tokens={"a": 1}),
        wordpiece().replace(b'{"SpecialToken":{"id":"[CLS]"', b'{"SpecialToken":{"id":"[CL]"'),  # panics when it reads
    ],
)
def test_what_is_no_tokenizer_is_refused(data: bytes) -> None:
    with pytest.raises(ModelError, match="tokenizer"):
        Tokenizer(data)


def test_a_frame_of_pairs_that_has_no_such_mark_is_refused() -> None:
    form = json.loads(wordpiece())
    form["post_processor"]["pair"].insert(0, {"SpecialToken": {"id": "[CL]", "type_id": 0}})
    with pytest.raises(ModelError, match="tokenizer"):
        Tokenizer(json.dumps(form).encode()).pair_frame()


SIGNS_OF_BYTES = {sign: number for number, sign in enumerate(pre_tokenizers.ByteLevel.alphabet())}
BYTES = {f"<0x{byte:02X}>": byte for byte in range(256)}


@pytest.mark.parametrize(
    ("model", "taken", "by_bytes"),
    [
        (models.WordPiece({"a": 0}, unk_token="[UNK]"), False, False),
        (models.WordPiece(SIGNS_OF_BYTES, unk_token="[UNK]"), False, False),
        (models.WordLevel({"a": 0}, unk_token="[UNK]"), False, False),
        (models.WordLevel(SIGNS_OF_BYTES, unk_token="[UNK]"), False, False),
        (models.Unigram([("a", -1.0)]), False, False),
        (models.Unigram([(sign, -1.0) for sign in SIGNS_OF_BYTES]), False, True),
        (models.BPE({"a": 0}, [], unk_token="<unk>"), False, False),
        (models.BPE(SIGNS_OF_BYTES, [], unk_token=""), False, True),
        (models.BPE(SIGNS_OF_BYTES, [], unk_token="<unk>"), False, True),
        (models.BPE(SIGNS_OF_BYTES, [], unk_token="<unk>", continuing_subword_prefix="##"), False, False),
        (models.BPE(BYTES, [], unk_token="<unk>", byte_fallback=True), True, True),
        (models.BPE({"a": 0}, [], unk_token="<unk>", byte_fallback=True), False, False),
        (models.BPE({"a": 0}, []), True, True),
        (models.BPE({"a": 0, "<unk>": 1}, [], unk_token="<unk>"), True, True),
        (models.Unigram([("a", -1.0), ("<unk>", 0.0)], unk_id=1), True, True),
        (models.WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]"), True, True),
    ],
)
@pytest.mark.parametrize("bytewise", [False, True])
@pytest.mark.parametrize("typed", [True, False])
def test_a_tokenizer_that_would_fail_at_an_unknown_word_is_refused(
    model: models.Model, taken: bool, by_bytes: bool, bytewise: bool, typed: bool
) -> None:
    library = Library(model)
    if bytewise:
        level = pre_tokenizers.ByteLevel(add_prefix_space=False)
        library.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), level])
    form = json.loads(library.to_str())
    if not typed:  # as older files are
        del form["model"]["type"]
    data = json.dumps(form).encode()
    if by_bytes if bytewise else taken:
        Tokenizer(data).ids("a unknown \u6f22 \U0001f600")
    else:
        with pytest.raises(ModelError, match="no token for unknown words"):
            Tokenizer(data)


def test_a_tokenizer_that_is_too_large_is_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 100)
    with pytest.raises(ModelError, match="more than the 100 allowed"):
        Tokenizer(wordpiece())


def test_truncation_and_padding_of_the_file_are_not_for_us() -> None:
    truncation = {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0}
    assert (
        len(Tokenizer(changed(wordpiece(), truncation=truncation)).ids("the model will answer your question now")) == 7
    )


def real_texts() -> Iterator[str]:
    """Yield what people wrote: every Python has its own library, and the public sets are read where they are."""
    for source in sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py")):
        if "site-packages" not in source.parts:
            yield from source.read_text("utf-8", "replace").split("\n\n")
    for packed in sorted(DATA.glob("*.jsonl.gz")):
        with gzip.open(packed, "rt") as lines:
            for line in itertools.islice(lines, 500):
                row = msgspec.json.decode(line)
                yield " ".join(value for value in row.values() if isinstance(value, str))


@pytest.mark.nightly
def test_ids_are_those_of_the_library_on_a_million_words() -> None:
    seen = 0
    for text in real_texts():
        for quick, slow in ((QUICK_OWN, OWN), (QUICK, BERT)):
            ids = slow.encode(text, add_special_tokens=False).ids
            assert quick.ids(text) == ids or too_long(slow, text)
        seen += 0 if too_long(OWN, text) else len(text.split())
    assert seen > 1_000_000
