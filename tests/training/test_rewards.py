"""A response that the cap ended earns nothing, by the rule of pool and evaluation."""

import dataclasses
from types import SimpleNamespace

from geosd.problems.grading import GradingVerdict
from geosd.sampling.sampler import Completion
from geosd.training.run import RunInputs, assemble_run


def test_a_truncated_response_has_no_reward_whatever_it_says(tiny, settings):
    settings["objective"] = {"name": "grpo"}
    inputs = (tiny / "base", tiny / "train.jsonl", tiny / "pool.jsonl")
    graded = []

    def always_right(text, gold):
        graded.append(text)
        return GradingVerdict(gold, True, "correct")

    def sample(prompts, sampling, seed):
        ends = ("length", "stop")
        return [Completion((5, 6), ends[place % 2]) for place in range(len(prompts))]

    source = dataclasses.replace(
        assemble_run(RunInputs(settings, *inputs, 0)).rollout_source,
        sampler=SimpleNamespace(sample=sample, sync_values=dict),
        grade=always_right,
    )
    drawn = source.draw(0)
    assert drawn.truncated == [True, False] * 2
    assert drawn.rewards == [0.0, 1.0] * 2
    assert len(graded) == 2
    source.encoding.opens_thought = True
    source.draw(0)
    assert [text.startswith("<think>") for text in graded] == [False] * 2 + [True] * 2
