import torch

from geosd.training.resume_state import ResumeState


def test_the_state_comes_back_bit_for_bit(tmp_path):
    weights = torch.randn(5, dtype=torch.bfloat16)
    ResumeState(tmp_path, {"seed": 0}).save(7, {"w": weights, "count": 3})
    step, state = ResumeState(tmp_path, {"seed": 0}).load(9)
    assert step == 7 and state["count"] == 3
    assert torch.equal(state["w"], weights)


def test_a_state_of_another_run_is_not_continued(tmp_path):
    ResumeState(tmp_path, {"seed": 0, "rate": 1e-6}).save(7, {})
    assert ResumeState(tmp_path, {"seed": 0, "rate": 1e-5}).load(9) is None


def test_a_state_is_continued_in_as_many_threads_as_the_run_began_with(tmp_path):
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        ResumeState(tmp_path, {}).save(7, {})
        torch.set_num_threads(1)
        assert ResumeState(tmp_path, {"other": 1}).load(9) is None
        assert torch.get_num_threads() == 1
        assert ResumeState(tmp_path, {}).load(9) == (7, {})
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_there_is_nothing_to_continue_at_first_and_after_the_end(tmp_path):
    state = ResumeState(tmp_path, {})
    assert state.load(9) is None
    state.save(1, {})
    state.clear()
    assert state.load(9) is None
    assert list(tmp_path.iterdir()) == []
