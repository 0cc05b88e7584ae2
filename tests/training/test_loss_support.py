"""Whose top-K tokens a loss is computed on: those of the models that the method reads."""

import pytest
import torch

from geosd.objectives.objective import build_objective
from geosd.training.arguments import training_arguments
from geosd.training.loop import train_step
from geosd.training.run import RunInputs, assemble_run

TOP_K = 4


def probabilities_recorded(monkeypatch, objective):
    """What the method is given of the student, [N, S] a chunk, while steps are taken."""
    seen, local = [], type(objective).per_position

    def recording(self, states):
        seen.append(states.student.detach())
        return local(self, states)

    monkeypatch.setattr(type(objective), "per_position", recording)
    return seen


def union_sizes(models, rollouts):
    """Size of the union of the models' top-K at each response token, sequence by sequence."""
    sizes = []
    for i, response in enumerate(rollouts.responses):
        chosen = []
        for name, model in models.items():
            teacher = name == "teacher"
            prompt = (rollouts.teacher_prompts if teacher else rollouts.student_prompts)[i]
            logits = model(input_ids=torch.tensor([[*prompt, *response]])).logits[0]
            first = len(prompt) - 1
            best = logits[first : first + len(response)].argsort(-1, descending=True)[:, :TOP_K]
            chosen.append(best.tolist())
        sizes += [len(set().union(*tokens)) for tokens in zip(*chosen, strict=True)]
    return sizes


@pytest.mark.parametrize(
    ("method", "read"),
    [
        ({"name": "geosd"}, ("student", "teacher", "anchor")),
        ({"name": "geosd", "drift_penalty": 0.0}, ("student", "teacher")),
        ({"name": "fwdkl"}, ("student", "teacher")),
        ({"name": "tip"}, ("student", "teacher")),
    ],
    ids=lambda value: " ".join(map(str, value.values())) if isinstance(value, dict) else None,
)
def test_the_support_is_of_the_models_that_the_method_reads_also_at_a_measured_step(
    tiny, settings, monkeypatch, method, read
):
    settings |= {"objective": method, "top_k": TOP_K, "diagnose_every": 1}
    run = assemble_run(
        RunInputs(settings, tiny / "base", tiny / "train.jsonl", tiny / "pool.jsonl", 0)
    )
    torch.manual_seed(0)
    with torch.no_grad():  # an anchor whose top-K is another than the student's
        run.student.lm_head.weight.add_(torch.randn_like(run.student.lm_head.weight))
    run.reference_models.refresh = lambda step: None
    rollouts, _ = run.rollout_source.collect(0, False)
    models = {"student": run.student, "teacher": run.student, "anchor": run.reference_models.anchor}
    with torch.no_grad():
        expected = union_sizes({name: models[name] for name in read}, rollouts)
        all_three = union_sizes(models, rollouts)
    seen = probabilities_recorded(monkeypatch, build_objective(**method))
    run.update_rule.step = lambda rate: None
    train_step(run, training_arguments(settings), 0)
    kept = [row.isfinite().sum().item() for chunk in seen for row in chunk]
    assert kept == expected
    assert (expected == all_three) == (len(read) == 3)
