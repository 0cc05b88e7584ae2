import random

from geosd.problems.chains.documents import ChainCorpus
from geosd.problems.chains.questions import evaluate
from geosd.problems.grading.miniature_grader import MiniatureGrader
from geosd.problems.held_out import is_held_out


def drawn(corpus, number=1500):
    draw = random.Random(0)
    return [corpus.draw_document(draw) for _ in range(number)]


def question_of(document):
    return document.prompt.removeprefix("Q: ").split(" R:")[0].removesuffix(" S:")


def test_every_response_answers_its_question():
    for document in drawn(ChainCorpus()):
        assert MiniatureGrader()(document.response, str(evaluate(question_of(document)))).correct


def test_references_are_shown_repeated_and_cut_as_often_as_the_corpus_says():
    documents = drawn(
        ChainCorpus(with_reference=0.4, reference_repeated=0.75, reference_truncated=0.25),
        number=4000,
    )
    shown = [document for document in documents if " R:" in document.prompt]
    assert abs(len(shown) / len(documents) - 0.4) < 0.03
    whole = [document for document in shown if "A:" in document.prompt]
    assert abs(len(whole) / len(shown) - 0.75) < 0.05
    repeats = [d for d in whole if d.prompt.endswith(f"R: {d.response} S:")]
    # A new solution of a short question is at times the same one, so repeats are a little more.
    assert 0.70 < len(repeats) / len(whole) < 0.86


def test_no_document_asks_a_held_out_question():
    questions = {question_of(document) for document in drawn(ChainCorpus())}
    assert questions and not any(map(is_held_out, questions))
