import random

from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from geosd.problems.miniature.tokenizer import END, PAD, build_tokenizer
from geosd.problems.search.documents import VOCABULARY, SearchCorpus


@given(st.integers(0, 2**32))
def test_every_document_survives_encoding_and_decoding(seed):
    tokenizer = build_tokenizer(VOCABULARY)
    document = SearchCorpus().draw_document(random.Random(seed))
    for text in (document.prompt, document.response):
        ids = tokenizer(text, add_special_tokens=False).input_ids
        assert len(ids) == len(text.split())
        assert tokenizer.unk_token_id not in ids
        assert tokenizer.decode(ids) == text


def test_unknown_words_are_marked_and_never_dropped():
    tokenizer = build_tokenizer(VOCABULARY)
    assert tokenizer("7 plus 8").input_ids[1] == tokenizer.unk_token_id


def test_the_saved_tokenizer_is_the_same_tokenizer(tmp_path):
    build_tokenizer(VOCABULARY).save_pretrained(tmp_path)
    opened = AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
    assert opened.convert_tokens_to_ids(list(VOCABULARY)) == list(range(len(VOCABULARY)))
    assert (opened.pad_token, opened.eos_token) == (PAD, END)
    text = "Q: 7 + 8 S: 7 + 8 = 5 ; A: 5"
    ids = opened(text).input_ids
    assert opened.decode([*ids, opened.eos_token_id], skip_special_tokens=True) == text
