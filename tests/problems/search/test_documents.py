"""Every document is parsed and computed again here, by counted additions."""

import random
import re

import pytest

from geosd.problems.miniature import MiniatureGrader, build_tokenizer, is_held_out
from geosd.problems.search.documents import VOCABULARY, SearchCorpus
from geosd.problems.search.equations import Question

TRIAL = re.compile(r"(\d+) (\d+) (\d+)(?P<again> \2 \3)? (;|ok)(?: (\d+) (\d+) (;|ok))?(?: |$)")


def drawn(number, seed=0, exercises=0.0):
    rng, corpus = random.Random(seed), SearchCorpus(exercises=exercises)
    return [corpus.draw_document(rng) for _ in range(number)]


def parts(document):
    """Question, reference (None, or a text), attempt and response of a document."""
    question, _, attempt = document.prompt.removeprefix("Q: ").partition(" S:")
    question, shown, reference = question.partition(" R:")
    return question, reference.strip() if shown else None, attempt.strip(), document.response


def equations(question):
    return [[int(n) for n in re.findall(r"\d+", line)] for line in question.split(" , ")]


def added(factor, x, summand):
    at = 0
    for step in [factor] * x + [summand]:
        at = at + step if at + step < 16 else at + step - 16
    return at


def checked_trials(text, question):
    """The values that a text tries, each trial computed again; what is left must be the answer."""
    tried, end = [], 0
    (a, b, c), (e, f, g) = equations(question)
    while match := TRIAL.match(text, end):
        x, product, left, _, passed, product_2, left_2, passed_2 = match.groups()
        x, end = int(x), match.end()
        assert (int(product), int(left)) == (added(a, x, 0), added(a, x, b))
        assert (passed == "ok") == (int(left) == c)
        if product_2 is not None:
            assert passed == "ok"
            assert (int(product_2), int(left_2)) == (added(e, x, 0), added(e, x, f))
            assert (passed_2 == "ok") == (int(left_2) == g)
        tried.append(x)
    return tried, text[end:]


@pytest.fixture(scope="module")
def corpus():
    return [parts(document) for document in drawn(4000)]


def test_every_number_and_every_comparison_of_every_document_is_true(corpus):
    for question, reference, attempt, response in corpus:
        tried, answer = checked_trials(response, question)
        assert answer == f"A: {tried[-1]}"
        (a, b, c), _ = equations(question)
        assert added(a, tried[-1], b) == c
        assert not checked_trials(attempt, question)[1]
        if reference and "A:" in reference:
            values, answer = checked_trials(reference, question)
            assert answer == f"A: {values[-1]}"
            assert MiniatureGrader()(reference, str(Question.parse(question).answer())).correct
        elif reference:
            assert not checked_trials(f"{reference} ;", question)[1]


def test_no_document_tries_a_value_twice(corpus):
    shared = 0
    for question, reference, attempt, response in corpus:
        tried = checked_trials(attempt, question)[0]
        if reference and "A:" not in reference:
            tried = checked_trials(f"{reference} ;", question)[0]
        shared += bool(tried)
        tried += checked_trials(response, question)[0]
        assert len(tried) == len(set(tried))
    assert shared > 500


def test_documents_with_a_whole_reference_go_to_its_answer(corpus):
    guided = [p for p in corpus if p[1] and "A:" in p[1]]
    right = [checked_trials(p[3], p[0])[0][0] == Question.parse(p[0]).answer() for p in guided]
    assert sum(right) / len(right) == pytest.approx(0.98, abs=0.02)
    blind = [p for p in corpus if p[1] is None]
    right = [checked_trials(p[3], p[0])[0][0] == Question.parse(p[0]).answer() for p in blind]
    assert sum(right) / len(right) < 0.2


def test_references_are_shown_and_cut_and_attempts_stand_as_often_as_the_corpus_says(corpus):
    shown = [p for p in corpus if p[1] is not None]
    assert len(shown) / len(corpus) == pytest.approx(0.5, abs=0.032)
    whole = [p for p in shown if "A:" in p[1]]
    assert len(whole) / len(shown) == pytest.approx(0.75, abs=0.04)
    # Half of them draw an attempt, and some draw one of no trial.
    attempts = sum(bool(p[2]) for p in whole) / len(whole)
    assert 0.3 < attempts < 0.5
    assert not any(p[2] for p in corpus if p not in whole)


def test_exercises_are_true_trials_half_of_them_right_and_their_ends_are_not_learned():
    documents = drawn(1500, exercises=1.0)
    passed = 0
    for document in documents:
        question, _, x, response = parts(document)
        tried, rest = checked_trials(f"{x} {response}", question)
        assert tried == [int(x)] and not rest and not document.ends
        passed += response.endswith("ok")
    # Half by intent; of the other values one in sixteen is x, and some solve the first equation.
    assert 0.5 < passed / len(documents) < 0.6
    shared = sum(not document.ends for document in drawn(3000, exercises=0.3)) / 3000
    assert shared == pytest.approx(0.3, abs=0.034)


def test_no_document_asks_a_held_out_question():
    questions = {parts(document)[0] for document in drawn(400)}
    assert len(questions) > 300 and not any(map(is_held_out, questions))


def test_every_document_survives_encoding_and_decoding():
    tokenizer = build_tokenizer(VOCABULARY)
    assert len(tokenizer) == len(set(VOCABULARY)) == 29
    for document in drawn(200):
        for text in (document.prompt, document.response):
            ids = tokenizer(text, add_special_tokens=False).input_ids
            assert len(ids) == len(text.split()) and tokenizer.unk_token_id not in ids
            assert tokenizer.decode(ids) == text
