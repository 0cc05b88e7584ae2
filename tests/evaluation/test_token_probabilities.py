"""The probability of each token is what a softmax over a plain forward pass gives."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cases import decoder
from scipy.special import softmax

from geosd.evaluation.token_probabilities import token_probabilities, token_texts

VOCABULARY = 64
PROMPTS = ([5, 6, 7], [9], [3, 1, 4, 1, 5])
RESPONSES = ([2, 8, 1], [11, 12, 13, 14, 0], [1])


@pytest.fixture(scope="module")
def model():
    return decoder(vocab_size=VOCABULARY, initializer_range=0.3).eval()


def expected(model, prompt, response):
    """Of one sequence at a time, without padding, by scipy in float64."""
    with torch.no_grad():
        logits = model(torch.tensor([[*prompt, *response]])).logits[0].double().numpy()
    before = softmax(logits, axis=-1)[len(prompt) - 1 : -1]
    return before[np.arange(len(response)), response]


@pytest.mark.parametrize("chunk", [1, 4, 100])
def test_each_token_has_the_probability_of_a_plain_pass(model, chunk):
    found = token_probabilities(model, PROMPTS, RESPONSES, pad_id=0, chunk=chunk)
    assert [len(values) for values in found] == [len(response) for response in RESPONSES]
    for values, prompt, response in zip(found, PROMPTS, RESPONSES, strict=True):
        np.testing.assert_allclose(values, expected(model, prompt, response), rtol=1e-4)


def test_a_teacher_is_the_model_with_another_prompt(model):
    found = token_probabilities(model, [[5, 6, 7], [5, 6, 7, 20, 21]], [[2, 8]] * 2, 0, 100)
    assert np.abs(np.subtract(*found)).max() > 1e-3


def test_an_empty_prompt_is_refused(model):
    with pytest.raises(ValueError, match="prompt 0 is empty"):
        token_probabilities(model, [[]], [[1]], pad_id=0, chunk=8)


PIECES = {1: "na\u00efve".encode()[:3], 2: "na\u00efve".encode()[3:], 3: b" <b>", 0: b""}


def decoded(ids):
    return b"".join(PIECES[i] for i in ids).decode(errors="replace")


def test_a_character_that_two_tokens_share_stands_at_the_second():
    assert token_texts([1, 2, 3, 0], decoded) == ["na", "\u00efve", " <b>", ""]


@pytest.mark.parametrize("ids", [[1], [1, 2], [3, 3, 1, 2, 0], [2, 1]])
def test_the_texts_of_tokens_joined_are_the_text(ids):
    texts = token_texts(ids, decoded)
    assert len(texts) == len(ids) and "".join(texts) == decoded(ids)
