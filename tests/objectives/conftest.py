"""States made of random logits, as the training loop would make them."""

import pytest
import torch

from geosd.geometry import union_support
from geosd.objectives.objective import ObjectiveBatch, ObjectiveStates

LENGTHS = (5, 1, 9, 3)
VOCABULARY = 20


@pytest.fixture
def logits():
    """float64 logits [N, V] of the student (which takes a gradient), teacher, anchor, pi_0."""
    generator = torch.Generator().manual_seed(11)
    shape = (4, sum(LENGTHS), VOCABULARY)
    base = torch.randn(*shape[1:], dtype=torch.float64, generator=generator)
    student, teacher, anchor, reference = base + torch.randn(
        shape, dtype=torch.float64, generator=generator
    )
    return {
        "student": student.requires_grad_(),
        "teacher": (2 * teacher).requires_grad_(),
        "anchor": anchor.requires_grad_(),
        "reference": reference.requires_grad_(),
    }


@pytest.fixture
def token():
    """[N] sampled tokens."""
    generator = torch.Generator().manual_seed(12)
    return torch.randint(VOCABULARY, (sum(LENGTHS),), generator=generator)


@pytest.fixture
def states(logits, token):
    """Function: the States of a slice of positions; all positions without one."""

    def of(at=slice(None), k=6):
        z = {name: value[at] for name, value in logits.items()}
        support = union_support([z["student"], z["teacher"], z["anchor"]], k)

        def chosen(name):
            return z[name].log_softmax(-1).gather(-1, token[at, None])[:, 0]

        return ObjectiveStates(
            log_p=support.restrict(z["student"]),
            log_q=support.restrict(z["teacher"]),
            log_anchor=support.restrict(z["anchor"]),
            token_log_p=chosen("student"),
            token_log_q=chosen("teacher"),
            token_log_ref=chosen("reference"),
        )

    return of


@pytest.fixture
def batch():
    """Four responses of uneven lengths, two of them right."""
    sequence = torch.repeat_interleave(torch.arange(len(LENGTHS)), torch.tensor(LENGTHS))
    return ObjectiveBatch(sequence, torch.tensor([1.0, 0.0, 0.0, 1.0]), VOCABULARY)


@pytest.fixture
def run(states, batch):
    """Function: the Terms of an objective on all positions."""

    def terms(objective):
        return objective.combine(objective.per_position(states()), batch)

    return terms


@pytest.fixture
def gradient(logits):
    """Function: the student's gradient [N, V] of a scalar."""

    def of(scalar):
        (value,) = torch.autograd.grad(scalar, logits["student"], retain_graph=True)
        return value

    return of
