import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from geosd.optim.blocks import BlockFactors
from geosd.optim.damped_inverse import solve_left, solve_right
from geosd.optim.partition import partition

CPU = torch.device("cpu")


def factors(dims, blocks=1, storage=torch.float64):
    return BlockFactors(dims, blocks, storage, dict.fromkeys(dims, CPU))


def block_diagonal(matrix, blocks):
    kept = torch.zeros_like(matrix)
    for run in partition(len(matrix), blocks):
        for start in range(run.start, run.stop, run.size):
            at = slice(start, start + run.size)
            kept[at, at] = matrix[at, at]
    return kept


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 13), st.integers(1, 13), st.integers(1, 6), st.integers(0, 99))
def test_block_solves_equal_dense_solves_of_the_block_diagonalised_factors(rows, columns, g, seed):
    random = torch.Generator().manual_seed(seed)
    x, y = (torch.randn(9, d, dtype=torch.float64, generator=random) for d in (rows, columns))
    grad = torch.randn(rows, columns, dtype=torch.float64, generator=random)
    covariances = factors({"G": rows, "A": columns}, g)
    covariances.add("G", x)
    covariances.add("A", y)
    covariances.update(decay=0.95, shift=0.1)
    solved = solve_right(covariances.inverse("A"), solve_left(covariances.inverse("G"), grad))
    g_dense = block_diagonal(x.T @ x / 9, g) + 0.1 * torch.eye(rows, dtype=torch.float64)
    a_dense = block_diagonal(y.T @ y / 9, g) + 0.1 * torch.eye(columns, dtype=torch.float64)
    expected = torch.linalg.solve(a_dense, torch.linalg.solve(g_dense, grad).T).T
    torch.testing.assert_close(solved, expected, rtol=1e-9, atol=1e-9)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=8), st.floats(0.0, 0.99))
def test_the_average_is_its_closed_form_and_steps_without_positions_do_not_count(sizes, decay):
    random = torch.Generator().manual_seed(1)
    covariances = factors({"x": 3, "always": 2})
    means = []
    for size in sizes:
        x = torch.randn(size, 3, dtype=torch.float64, generator=random)
        if size:
            covariances.add("x", x)
            means.append(x.T @ x / size)
        covariances.add("always", torch.ones(1, 2, dtype=torch.float64))
        covariances.update(decay)
    if not means:
        return
    last = len(means) - 1
    weights = [(1 - decay) * decay ** (last - i) for i in range(len(means))]
    expected = sum(w * m for w, m in zip(weights, means, strict=True)) / sum(weights)
    average = {len(s[0]): s for _, s in covariances.averages(decay)}
    torch.testing.assert_close(average[3][0], expected, rtol=1e-10, atol=1e-12)
    # A constant stream is its own average from the first step on: that is the bias correction.
    torch.testing.assert_close(average[2][0], torch.ones(2, 2, dtype=torch.float64))


def test_bfloat16_is_for_storage_only_and_the_factorisation_sees_float32(monkeypatch):
    seen = []
    cholesky = torch.linalg.cholesky_ex
    monkeypatch.setattr(torch.linalg, "cholesky_ex", lambda x: seen.append(x.dtype) or cholesky(x))
    x = torch.randn(64, 12, generator=torch.Generator().manual_seed(0))
    covariances = factors({"x": 12}, 2, torch.bfloat16)
    covariances.add("x", x)
    covariances.update(0.95, 0.03)
    assert seen == [torch.float32]
    state = covariances.state_dict()
    assert {t.dtype for t in state["averages"] + state["inverses"]} == {torch.bfloat16}
    expected = torch.linalg.inv(block_diagonal(x.T @ x / 64, 2) + 0.03 * torch.eye(12))
    inverse = torch.block_diag(*next(iter(covariances.inverse("x")))[1])
    assert (inverse - expected).norm() < 0.02 * expected.norm()


def test_a_block_that_float32_cannot_factorise_is_done_in_float64():
    covariances = factors({"flat": 2, "good": 2}, 1, torch.float32)
    # 1e8 + sqrt(gamma) is 1e8 in float32: singular
    covariances.add("flat", torch.full((1, 2), 1e4))
    covariances.add("good", torch.eye(2))
    assert covariances.update(0.0, 0.03) == 1
    damped = torch.full((2, 2), 1e8, dtype=torch.float64) + 0.03 * torch.eye(2).double()
    for name, expected in (("flat", torch.linalg.inv(damped)), ("good", torch.eye(2) / 0.53)):
        ((_, inverse),) = covariances.inverse(name)
        torch.testing.assert_close(inverse[0], expected.float(), rtol=1e-4, atol=1e-6)


def test_a_block_without_an_inverse_is_named_and_leaves_the_averages_alone():
    covariances = factors({"fine": 2, "bad": 3}, storage=torch.float32)
    covariances.add("fine", torch.eye(2))
    covariances.add("bad", torch.eye(3))
    assert covariances.update(0.5, 0.03) == 0
    before = [t.clone() for t in covariances.state_dict()["averages"]]
    covariances.add("fine", torch.eye(2))
    covariances.add("bad", torch.eye(3))
    for total in covariances.sums():
        if total.shape[1] == 3:
            total -= 1e9 * torch.eye(3)
    with pytest.raises(torch.linalg.LinAlgError, match="factor bad has a block(.|\n)*Hint"):
        covariances.update(0.5, 0.03)
    assert all(map(torch.equal, before, covariances.state_dict()["averages"]))
    assert covariances.updates == {"fine": 1, "bad": 1}


def test_a_sum_that_is_not_finite_is_named_and_leaves_the_averages_alone():
    covariances = factors({"fine": 2, "bad": 3})
    for name in covariances.dims:
        covariances.add(name, torch.ones(1, covariances.dims[name], dtype=torch.float64))
    covariances.update(0.5)
    before = [t.clone() for t in covariances.state_dict()["averages"]]
    covariances.add("bad", torch.tensor([[1.0, torch.nan, 0.0]], dtype=torch.float64))
    with pytest.raises(FloatingPointError, match="covariance of bad(.|\n)*Hint"):
        covariances.update(0.5)
    assert all(map(torch.equal, before, covariances.state_dict()["averages"]))
    covariances.discard()
    covariances.update(0.5)
    assert covariances.updates == {"fine": 1, "bad": 1}


def test_chunks_change_nothing(monkeypatch):
    results = []
    for chunk in (2**26, 8):
        monkeypatch.setattr("geosd.optim.blocks.CHUNK", chunk)
        covariances = factors({"x": 12}, 4)
        covariances.add("x", torch.randn(5, 12, generator=torch.Generator().manual_seed(0)))
        covariances.update(0.9, 0.1)
        results.append(next(iter(covariances.inverse("x")))[1])
    assert torch.equal(*results)


def test_a_state_of_another_layout_or_dtype_is_refused():
    state = factors({"x": 4}, 2).state_dict()
    for other, message in (
        (factors({"x": 4}, 1), "blocks=2, this one has blocks=1"),
        (factors({"x": 4, "y": 3}, 2), "'y', 3"),
        (factors({"x": 4}, 2, torch.float32), "stored as torch.float64"),
    ):
        with pytest.raises(ValueError, match=message):
            other.load_state_dict(state)
