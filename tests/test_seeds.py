from hypothesis import given
from hypothesis import strategies as st

from geosd.seeds import seed_of

part = st.one_of(st.integers(), st.text())


def test_seeds_are_the_same_on_every_machine():
    # printf 'int:0\x1fstr:rollout\x1fint:1' | sha256sum: the first 8 bytes, halved.
    assert seed_of(0, "rollout", 1) == 0x1FF533C1927CC40A >> 1


@given(st.lists(part, min_size=1), st.lists(part, min_size=1))
def test_other_names_give_other_seeds(first, second):
    assert (seed_of(*first) == seed_of(*second)) == (first == second)


@given(st.lists(part))
def test_seeds_fit_every_generator(parts):
    assert 0 <= seed_of(*parts) < 2**63
