"""Mass on the teacher's ranks, on a model whose every probability is written down here."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from geosd.evaluation.alignment import RANKS, AlignmentRollout, alignment_mass

PAD, HINT, A, B, V = 0, 1, 2, 3, 10


class Bigram(nn.Module):
    """p(next | current token, whether a hint was read before): two tables of log-probabilities."""

    def __init__(self, unhinted, hinted):
        super().__init__()
        self.lm_head = nn.Linear(2 * V, V, bias=False)
        self.lm_head.weight = nn.Parameter(torch.cat([unhinted, hinted]).log().T.contiguous())

    def model(self, input_ids, **_):
        hinted = (input_ids == HINT).cumsum(1) > 0
        hidden = nn.functional.one_hot(input_ids + V * hinted.long(), 2 * V).float()
        return SimpleNamespace(last_hidden_state=hidden)


def table(seed):
    draw = torch.Generator().manual_seed(seed)
    return torch.rand(V, V, generator=draw).softmax(-1)


def ranks_of(row):
    return tuple(row.argsort(descending=True)[:RANKS].tolist())


UNHINTED, HINTED = table(0), table(1)
# Position 0 is predicted by the prompt's last token A, position 1 by the response's first, B, ...
LONG = AlignmentRollout(
    "p0", (A,), (HINT, A), (B, A, B), (0, 1), (ranks_of(HINTED[A]), ranks_of(HINTED[B]))
)
SHORT = AlignmentRollout("p1", (B,), (HINT, HINT, B), (A,), (0,), (ranks_of(HINTED[B]),))


def mass(model, rollouts=(LONG, SHORT), rows=8, chunk=4096):
    return alignment_mass(model, rollouts, PAD, rows, chunk)


def test_mass_is_the_students_on_the_teachers_tokens_averaged_over_positions():
    states = [A, B, B]
    expected = [
        sum(UNHINTED[s, ranks_of(HINTED[s])[rank]] for s in states) / 3 for rank in range(RANKS)
    ]
    found = mass(Bigram(UNHINTED, HINTED))
    torch.testing.assert_close(found["pi_0"], torch.stack(expected).double())
    torch.testing.assert_close(found["live"], found["pi_0"])


def test_a_student_that_is_its_teacher_gives_rank_one_most():
    found = mass(Bigram(HINTED, HINTED))["pi_0"]
    assert (found.diff() <= 0).all()


def test_only_the_live_ranking_follows_a_teacher_that_changes():
    moved = table(2)
    found = mass(Bigram(UNHINTED, moved))
    torch.testing.assert_close(found["pi_0"], mass(Bigram(UNHINTED, HINTED))["pi_0"])
    expected = sum(UNHINTED[s, ranks_of(moved[s])[0]] for s in (A, B, B)) / 3
    torch.testing.assert_close(found["live"][0], expected.double())


@pytest.mark.parametrize(("rows", "chunk"), [(1, 4096), (8, 1), (1, 1)])
def test_how_much_is_held_at_once_changes_nothing(rows, chunk):
    model = Bigram(UNHINTED, HINTED)
    for name, value in mass(model).items():
        torch.testing.assert_close(mass(model, rows=rows, chunk=chunk)[name], value)


def test_rollouts_without_a_selected_position_are_refused():
    bare = AlignmentRollout("p", (A,), (HINT, A), (B,), (), ())
    with pytest.raises(ValueError, match="(?s)none of the 1 rollouts.*Hint:"):
        mass(Bigram(UNHINTED, HINTED), [bare])
