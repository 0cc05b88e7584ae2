import pytest
from hypothesis import given
from hypothesis import strategies as st

from geosd.optim.partition import partition


@given(st.integers(1, 400), st.integers(1, 64))
def test_blocks_tile_the_dimensions_and_differ_by_at_most_one(dim, blocks):
    runs = partition(dim, blocks)
    assert runs[0].start == 0 and runs[-1].stop == dim
    assert all(earlier.stop == later.start for earlier, later in zip(runs, runs[1:], strict=False))
    assert sum(run.count for run in runs) == min(blocks, dim)
    sizes = [run.size for run in runs]
    assert len(sizes) <= 2 and max(sizes) - min(sizes) <= 1 and sizes == sorted(sizes, reverse=True)


def test_the_papers_dimensions_are_cut_evenly():
    for dim, blocks in ((2048, 16), (9728, 16), (12288, 16), (17408, 32), (25600, 32), (1024, 32)):
        (run,) = partition(dim, blocks)
        assert (run.count, run.size) == (blocks, dim // blocks)


def test_nothing_to_cut_is_refused():
    with pytest.raises(ValueError, match="Hint"):
        partition(4, 0)
