import torch

from geosd.training.resume_state import ResumeState


def test_the_state_comes_back_bit_for_bit(tmp_path):
    weights = torch.randn(5, dtype=torch.bfloat16)
    ResumeState(tmp_path, {"seed": 0}).save(7, {"w": weights, "count": 3})
    step, state = ResumeState(tmp_path, {"seed": 0}).load(9)
    assert step == 7 and state["count"] == 3
    assert torch.equal(state["w"], weights)


def test_a_state_of_another_run_is_named_set_aside_and_not_continued(tmp_path, caplog):
    other = ResumeState(tmp_path, {"seed": 0, "code": "before", "packages": {"torch": "2.10"}})
    for step in (6, 7):
        other.save(step, {"after": step})
    resume = ResumeState(tmp_path, {"seed": 0, "code": "after", "packages": {"torch": "2.11"}})
    assert resume.load(9) is None
    assert caplog.messages == [
        f"{resume.path} is of a run with other code, packages: it is state.other.pt now, and this"
        " run begins anew."
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["state.other.pt"]
    resume.save(1, {"after": 1})
    assert resume.load(9) == (1, {"after": 1})
    resume.save(2, {"after": 2})  # the disk never holds more than two states
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state.previous.pt", "state.pt"]
    other.load(9)
    other.clear()
    assert list(tmp_path.iterdir()) == []


def test_a_state_is_continued_in_as_many_threads_as_the_run_began_with(tmp_path):
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        for folder in (tmp_path, tmp_path / "other"):
            ResumeState(folder, {}).save(7, {})
        torch.set_num_threads(1)
        assert ResumeState(tmp_path / "other", {"other": 1}).load(9) is None
        assert torch.get_num_threads() == 1
        assert ResumeState(tmp_path, {}).load(9) == (7, {})
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_the_state_before_is_kept_and_taken_where_the_last_one_cannot_be(tmp_path):
    resume = ResumeState(tmp_path, {})
    for step in (1, 2, 3):
        resume.save(step, {"after": step})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state.previous.pt", "state.pt"]
    assert resume.load(9) == (3, {"after": 3})
    assert resume.load(9, usable=lambda step: step < 3) == (2, {"after": 2})
    assert resume.load(9, usable=lambda step: step < 2) is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state.previous.pt", "state.pt"]


def test_a_damaged_state_is_named_and_set_aside(tmp_path, caplog):
    resume = ResumeState(tmp_path, {})
    for step in (1, 2):
        resume.save(step, {"after": step})
    resume.path.write_bytes(resume.path.read_bytes()[:-40])
    damaged = resume.path.read_bytes()
    assert resume.load(9) == (1, {"after": 1})
    assert f"{resume.path} is no state of this run: it cannot be read (BadZipFile" in caplog.text
    assert "Hint: the file is state.pt.damaged now" in caplog.text
    assert (tmp_path / "state.pt.damaged").read_bytes() == damaged
    resume.save(2, {"after": 2})
    assert resume.load(9) == (2, {"after": 2})


def test_leftovers_of_a_killed_save_are_removed(tmp_path):
    (tmp_path / ".state.pt.4711.tmp").touch()
    assert ResumeState(tmp_path, {}).load(9) is None
    assert list(tmp_path.iterdir()) == []


def test_there_is_nothing_to_continue_at_first_and_after_the_end(tmp_path):
    state = ResumeState(tmp_path, {})
    assert state.load(9) is None
    state.save(1, {})
    state.save(2, {})
    state.clear()
    assert state.load(9) is None
    assert list(tmp_path.iterdir()) == []
