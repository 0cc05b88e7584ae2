"""What student and teacher would read of a run, against the context of the model."""

import json
import shutil

import pytest

from geosd.models.context_length import ContextError
from geosd.training import rollouts
from geosd.training.run import RunInputs, assemble_run


def with_context(tiny, folder, tokens):
    shutil.copytree(tiny / "base", folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"max_position_embeddings": tokens}))
    return folder, tiny / "train.jsonl", tiny / "pool.jsonl", 0


@pytest.fixture
def lengths(tiny, settings):
    """The longest prompts of student and teacher, in tokens."""
    source = assemble_run(
        RunInputs(settings, tiny / "base", tiny / "train.jsonl", tiny / "pool.jsonl", 0)
    )
    drawn, encoding = source.problem_sampler, source.encoding
    pairs = [(one, text) for one in drawn.problems for text in drawn.solutions[one.id]]
    student = max(len(encoding.student(problem)) for problem, _ in pairs)
    return student, max(len(encoding.teacher(*pair)) for pair in pairs)


def test_a_teacher_whose_context_is_too_short_is_refused_before_the_first_step(
    tiny, settings, lengths, tmp_path
):
    student, teacher = lengths
    assert student < teacher
    needed = teacher + settings["response_tokens"]
    assert assemble_run(RunInputs(settings, *with_context(tiny, tmp_path / "enough", needed)))
    with pytest.raises(ContextError, match=rf"(?s)the teacher of problem p\d+ .*{needed}.*Hint: "):
        assemble_run(RunInputs(settings, *with_context(tiny, tmp_path / "short", needed - 1)))
    settings["privilege"] = 0.0  # then the teacher reads little more than the student
    assert assemble_run(RunInputs(settings, *with_context(tiny, tmp_path / "without", needed - 1)))


def test_a_prompt_that_was_not_among_the_longest_is_refused_when_it_is_drawn(
    tiny, settings, lengths, tmp_path, monkeypatch
):
    monkeypatch.setattr(rollouts, "LONGEST", 0)
    settings["problems"] = 12  # every problem
    needed = min(lengths[1], lengths[0] + 8) + settings["response_tokens"]
    run = assemble_run(RunInputs(settings, *with_context(tiny, tmp_path / "base", needed - 1)))
    with pytest.raises(ContextError, match="(?s)the (teacher|student) of problem"):
        for step in range(3):
            run.rollout_source.collect(step, measured=False)
