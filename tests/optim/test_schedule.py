import pytest

from geosd.optim.update import warmup


def test_the_first_step_moves_by_one_part_and_the_last_of_the_warmup_fully():
    assert [warmup(step, 20) for step in (0, 9, 19, 20, 624)] == [1 / 20, 0.5, 1.0, 1.0, 1.0]


def test_no_warmup_is_always_one():
    assert warmup(0, 0) == 1.0


def test_negative_steps_are_refused():
    with pytest.raises(ValueError, match="Hint"):
        warmup(-1, 20)
