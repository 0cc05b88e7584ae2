import pytest
import torch

from geosd.models.load_and_save import save_model
from geosd.models.tiny_models import build_tiny_model
from geosd.preemption import PreemptionError
from geosd.problems.miniature import build_miniature_tokenizer
from geosd.problems.search.corpora import VOCABULARY, SearchCorpus, WideCorpus
from geosd.training import pretrain as module
from geosd.training.pretrain import (
    BUCKET,
    IGNORED,
    PretrainArguments,
    draw_pretrain_batches,
    pretrain,
    pretrain_base_model,
    pretrain_batch,
)
from geosd.training.resume_state import ResumeState

ARGS = PretrainArguments(steps=13, documents=4, warmup=3)
TOKENIZER = build_miniature_tokenizer(VOCABULARY)


class Killed(Exception):
    """What the machine does to a run."""


def trained(name="mini-qwen3-xs", args=ARGS, **rest):
    model = build_tiny_model(
        name, len(VOCABULARY), TOKENIZER.pad_token_id, TOKENIZER.eos_token_id, seed=0
    )
    losses = pretrain(model, TOKENIZER, SearchCorpus(), args, seed=5, **rest)
    return model, losses


def same_bits(first, second):
    weights = second.state_dict()
    return all(torch.equal(tensor, weights[name]) for name, tensor in first.state_dict().items())


@pytest.mark.parametrize("killed_at", [5, 8, 11])
def test_a_killed_run_ends_with_the_bits_of_one_that_was_not(killed_at, tmp_path, monkeypatch):
    whole, losses = trained()
    step = module._step

    def dies(*arguments):
        if arguments[-1] == killed_at:
            raise Killed
        return step(*arguments)

    monkeypatch.setattr(module, "_step", dies)
    with pytest.raises(Killed):
        trained(resume=ResumeState(tmp_path, "a run"), save_every=3)
    taken = []
    monkeypatch.setattr(module, "_step", lambda *a: taken.append(a[-1]) or step(*a))
    resumed, again = trained(resume=ResumeState(tmp_path, "a run"), save_every=3)
    assert taken[0] == killed_at // 3 * 3
    assert same_bits(whole, resumed)
    assert losses == again


@pytest.mark.slow
@pytest.mark.parametrize("after", [1, 4, 12])
def test_a_run_that_is_asked_to_stop_loses_no_step_and_ends_with_the_same_bits(
    after, tmp_path, monkeypatch
):
    whole, losses = trained()
    step, taken = module._step, []
    monkeypatch.setattr(module, "_step", lambda *a: taken.append(a[-1]) or step(*a))
    with pytest.raises(PreemptionError, match=f"after {after} steps of 13"):
        trained(resume=ResumeState(tmp_path, "a run"), stop_requested=lambda: len(taken) == after)
    assert taken == list(range(after))
    resumed, again = trained(resume=ResumeState(tmp_path, "a run"))
    assert taken == list(range(13))
    assert same_bits(whole, resumed)
    assert losses == again


def test_a_run_that_is_asked_to_stop_in_its_last_step_is_done():
    assert len(trained(stop_requested=lambda: False)[1]) == 13
    asked = iter([False] * 12)  # a question after the last step would find none
    assert len(trained(stop_requested=lambda: next(asked))[1]) == 13


def test_the_seed_names_the_documents():
    batches = draw_pretrain_batches(SearchCorpus(), 4, 5, 0)
    assert batches == draw_pretrain_batches(SearchCorpus(), 4, 5, 0)
    assert batches != draw_pretrain_batches(SearchCorpus(), 4, 6, 0)
    assert batches != draw_pretrain_batches(SearchCorpus(), 4, 5, 1)
    assert [len(batch) for batch in batches] == [4] * BUCKET


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mini-qwen3", "mini-olmo3", "mini-llama"])
def test_training_lowers_the_loss_of_every_family(name):
    args = PretrainArguments(steps=48, documents=16, warmup=4)
    _, losses = trained(name, args)
    assert sum(losses[-4:]) < 0.8 * sum(losses[:4])


def test_the_learning_rate_rises_to_its_peak_and_falls_to_zero():
    args = PretrainArguments(steps=100, warmup=10, decay=0.5)
    factors = [args.factor(step) for step in range(100)]
    assert factors[0] == pytest.approx(0.1)
    assert set(factors[9:51]) == {1.0}
    assert factors[99] == pytest.approx(0.02)
    assert factors == sorted(factors[:10]) + sorted(factors[10:], reverse=True)


def test_a_recipe_without_steps_is_refused():
    with pytest.raises(ValueError, match="steps is 0(.|\n)*Hint"):
        PretrainArguments(steps=0)


def test_everything_after_the_question_but_an_attempt_is_supervised_and_nothing_else():
    documents = [d for batch in draw_pretrain_batches(SearchCorpus(), 16, 5, 0) for d in batch]
    attempts = 0
    for document, row, target in zip(documents, *pretrain_batch(TOKENIZER, documents), strict=True):
        words = f"{document.prompt} {document.response} <eos>".split()
        tokens = TOKENIZER.convert_ids_to_tokens(row.tolist())
        assert tokens[: len(words)] == words
        assert set(tokens[len(words) :]) <= {TOKENIZER.pad_token}
        solution, begin = words.index("S:"), len(document.prompt.split())
        attempts += begin > solution + 1
        reference = words.index("R:") if "R:" in words else solution
        places = (target != IGNORED).nonzero().flatten().tolist()
        last = len(words) - 1 if document.ends else len(words) - 2
        assert places == [*range(reference, solution), *range(begin - 1, last)]
        assert torch.equal(target[places], row[1:][places])
    assert attempts > 5


def test_a_base_model_of_more_words_starts_from_one_of_fewer(tmp_path):
    end = TOKENIZER.eos_token_id
    small = build_tiny_model("mini-qwen3-xs", len(VOCABULARY), TOKENIZER.pad_token_id, end, seed=3)
    save_model(small, TOKENIZER, tmp_path / "bases" / "7")
    recipe = {"architecture": "mini-qwen3-xs", "corpus": "search-wide", "steps": 1, "documents": 2}
    recipe |= {"learning_rate": 0.0, "seed": 7, "start": str(tmp_path / "bases")}
    model, tokenizer, losses = pretrain_base_model(
        recipe, ResumeState(tmp_path / "resume", "a run")
    )
    assert len(losses) == 1
    taken = small.state_dict()
    for name, tensor in model.state_dict().items():
        if tensor.shape == taken[name].shape:
            assert torch.equal(tensor, taken[name])
            continue
        rows, near = tensor, 0.3 * taken[name].std()
        for word in WideCorpus.vocabulary:
            row = rows[tokenizer.convert_tokens_to_ids(word)]
            old = word if word in VOCABULARY else str(int(word) % 16) if word.isdigit() else "*"
            apart = (row - taken[name][TOKENIZER.convert_tokens_to_ids(old)]).square().mean().sqrt()
            # Of 32 random numbers the root of the mean square is within half of its mean.
            assert apart == 0 if word == old else 0.5 * near < apart < 1.5 * near
