import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from geosd.geometry import hellinger, union_support


def logits(n=6, v=30, models=3, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(n, v, generator=generator).to(dtype) for _ in range(models)]


def tokens(support, row):
    return support.ids[row][support.mask[row]].tolist()


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), v=st.integers(2, 40), k=st.integers(1, 45), m=st.integers(1, 3))
def test_the_union_is_that_of_python_sets_each_token_once(seed, v, k, m):
    models = logits(v=v, models=m, seed=seed)
    support = union_support(models, k)
    widths = []
    for row in range(6):
        best = [sorted(range(v), key=lambda i, z=z: -z[row, i].item())[:k] for z in models]
        expected = sorted(set().union(*best))
        assert tokens(support, row) == expected
        widths.append(len(expected))
    assert support.ids.shape == support.mask.shape == (6, max(widths))


@pytest.mark.parametrize("k", [30, 31, 10**6])
def test_keeping_all_tokens_is_exactly_the_full_softmax(k):
    models = logits()
    support = union_support(models, k)
    for z in models:
        assert torch.equal(support.restrict(z), z.log_softmax(-1))
        torch.testing.assert_close(support.mass(z), torch.ones(6))


def test_restriction_is_the_renormalised_full_softmax():
    models = logits(dtype=torch.float64)
    support = union_support(models, 4)
    for z in models:
        restricted, full = support.restrict(z).exp(), z.softmax(-1)
        mass = support.mass(z)
        for row in range(6):
            kept = full[row, tokens(support, row)]
            torch.testing.assert_close(restricted[row][support.mask[row]], kept / kept.sum())
            torch.testing.assert_close(mass[row], kept.sum())
        assert (restricted[~support.mask] == 0).all()
        torch.testing.assert_close(restricted.sum(-1), torch.ones(6, dtype=torch.float64))


def test_divergences_on_the_union_are_those_on_the_sets_state_by_state():
    student, teacher, anchor = logits(dtype=torch.float64)
    support = union_support([student, teacher, anchor], 5)
    together = hellinger(support.restrict(student), support.restrict(teacher))
    for row in range(6):
        at = tokens(support, row)
        alone = hellinger(student[row, at].log_softmax(-1), teacher[row, at].log_softmax(-1))
        torch.testing.assert_close(together[row], alone)


def test_gradients_reach_the_kept_logits_and_no_others():
    student, teacher, _ = logits()
    student.requires_grad_()
    support = union_support([student, teacher], 3)
    hellinger(support.restrict(student), support.restrict(teacher)).sum().backward()
    kept = torch.zeros(6, 30, dtype=torch.bool)
    for row in range(6):
        kept[row, tokens(support, row)] = True
    assert student.grad.isfinite().all()
    assert (student.grad[~kept] == 0).all()
    assert (student.grad[kept] != 0).all()


def test_models_that_agree_share_one_narrow_support():
    (z,) = logits(models=1)
    assert union_support([z, z, z], 7).ids.shape == (6, 7)


def test_half_precision_logits_are_normalised_in_single():
    models = logits(dtype=torch.bfloat16)
    support = union_support(models, 5)
    restricted = support.restrict(models[0])
    assert restricted.dtype == support.mass(models[0]).dtype == torch.float32
    torch.testing.assert_close(restricted.exp().sum(-1), torch.ones(6))


def test_mass_in_slices_of_rows_is_that_of_the_whole():
    models = logits(n=300, v=17)
    support = union_support(models, 2)
    mass = support.mass(models[0])
    assert mass.shape == (300,)
    full = models[0].softmax(-1)
    expected = torch.stack([full[i, tokens(support, i)].sum() for i in range(300)])
    torch.testing.assert_close(mass, expected)


def test_no_positions_give_an_empty_support():
    support = union_support([torch.zeros(0, 9)], 3)
    assert support.restrict(torch.zeros(0, 9)).shape[0] == 0


@pytest.mark.parametrize(
    ("models", "k"),
    [([], 3), ([torch.zeros(2, 5)], 0), ([torch.zeros(2, 5), torch.zeros(2, 6)], 3)],
)
def test_what_cannot_be_united_is_refused(models, k):
    with pytest.raises(ValueError, match="one shape"):
        union_support(models, k)


def test_logits_of_other_positions_are_refused():
    support = union_support(logits(), 3)
    with pytest.raises(ValueError, match="same N"):
        support.restrict(torch.zeros(5, 30))
