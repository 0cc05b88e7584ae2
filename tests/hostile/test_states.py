"""Resume states that are flipped, cut short, blanked, exchanged or half written.

A run that finds one ends with the bytes of a run that was never disturbed. Damage is drawn from
seeds, and each test prints how much of it there was. Run as a program, this file is what each of
two ranks does.
"""

import io
import json
import logging
import os
import random
import runpy
import signal
import sys
from collections import Counter
from itertools import count
from pathlib import Path

import pytest
import torch
from cases import launch
from safetensors.torch import load_file, save_file

from geosd.files import sha256, write_json
from geosd.models.load_and_save import save_weights
from geosd.models.tiny_models import build_tiny_model
from geosd.problems.miniature import build_miniature_tokenizer
from geosd.problems.search.corpora import VOCABULARY, SearchCorpus
from geosd.training.pretrain import PretrainArguments, pretrain
from geosd.training.process_groups import init_process_groups
from geosd.training.processes import end_training_process
from geosd.training.resume_state import ResumeState, Snapshots

TRAINING = Path(__file__).parents[1] / "training"
TOKENIZER = build_miniature_tokenizer(VOCABULARY)


def flip(path, draw):
    """One bit."""
    data = bytearray(path.read_bytes())
    data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    path.write_bytes(data)


def cut(path, draw):
    """Everything behind some byte is gone."""
    os.truncate(path, draw.randrange(path.stat().st_size))


def blank(path, draw):
    """A sector of zeros, as a disk leaves that was not written in time."""
    data = bytearray(path.read_bytes())
    start = 512 * draw.randrange(len(data) // 512)
    data[start : start + 512] = bytes(512)
    path.write_bytes(data)


def misnumber(path, draw):
    """A whole state, of a step that the run does not have."""
    try:
        saved = torch.load(path, weights_only=True)
    except Exception:  # damaged before
        return
    torch.save(saved | {"step": draw.choice([-1, 0, 99])}, path)


DAMAGES = (flip, cut, blank, misnumber)


def state_of(step):
    """A state of all kinds of values; the tensors are most of its bytes."""
    values = torch.Generator().manual_seed(step)
    tensors = [torch.randn(40, 10, generator=values), torch.arange(7), torch.zeros(0)]
    return {"weights": tensors, "half": tensors[0].bfloat16(), "losses": [0.1 * step, 2.0], "n": {}}


def bytes_of(state):
    held = io.BytesIO()
    torch.save(torch.utils._pytree.tree_map_only(torch.Tensor, torch.clone, state), held)
    return held.getvalue()


@pytest.fixture
def saved(tmp_path):
    """Two states in a folder, after 2 and 3 of 4 steps, and a way to put the last one back."""
    resume = ResumeState(tmp_path, "a run")
    for step in (2, 3):
        resume.save(step, state_of(step))
    last, previous = resume.path.read_bytes(), resume.previous.read_bytes()

    def restore():
        resume.path.write_bytes(last)
        resume.previous.write_bytes(previous)
        return resume

    return restore


@pytest.mark.slow
def test_what_is_loaded_from_a_flipped_or_blanked_state_was_saved(saved, caplog, capsys):
    """Bits that nothing reads may differ (dates, padding): the state comes back all the same."""
    flips = 600
    expected, steps, draw = {n: bytes_of(state_of(n)) for n in (2, 3)}, Counter(), random.Random(0)
    resume = saved()
    data = resume.path.read_bytes()
    tensor = state_of(3)["weights"][0].numpy().tobytes()
    inside = range(data.index(tensor), data.index(tensor) + len(tensor))
    for number in range(flips):
        resume = saved()
        (blank if number % 10 == 9 else flip)(resume.path, draw)
        touched = [at for at, byte in enumerate(resume.path.read_bytes()) if byte != data[at]]
        step, state = resume.load(4)
        assert bytes_of(state) == expected[step]
        aside = resume.path.with_name("state.pt.damaged")
        assert aside.exists() == (step == 2) and resume.path.exists() == (step == 3)
        if any(at in inside for at in touched):
            assert step == 2
        if step == 2:
            message = caplog.records[-1].getMessage()  # of all messages it would take minutes
            assert str(resume.path) in message and "Hint: " in message
            aside.unlink()
        steps[step] += 1
    with capsys.disabled():
        print(f"\n{flips} flips: {steps[2]} refused, {steps[3]} of bits that nothing reads")
    assert steps[2] > 0.5 * flips


def test_a_state_cut_short_anywhere_is_refused(saved, capsys):
    size = saved().path.stat().st_size
    lengths = [*range(0, size, 23), *range(size - 30, size)]
    for length in lengths:
        resume = saved()
        os.truncate(resume.path, length)
        step, state = resume.load(4)
        assert (step, bytes_of(state)) == (2, bytes_of(state_of(2))), length
    with capsys.disabled():
        print(f"\n{len(lengths)} lengths: all refused")


@pytest.mark.parametrize("content", [b"", b"x" * 5000, b"PK\x05\x06" + bytes(18)])
def test_a_file_that_is_no_state_is_refused(saved, content):
    resume = saved()
    resume.path.write_bytes(content)
    assert resume.load(4)[0] == 2
    resume.previous.write_bytes(content)
    assert resume.load(4) is None
    assert {path.name for path in resume.path.parent.iterdir()} == {
        "state.pt.damaged",
        "state.previous.pt.damaged",
    }


@pytest.mark.parametrize("step", [-1, 0, 5, 99, True, 3.0, "3", None])
def test_a_step_that_the_run_does_not_have_is_refused(saved, step, caplog):
    resume = saved()
    whole = torch.load(resume.path, weights_only=True)
    torch.save(whole | {"step": step}, resume.path)
    assert resume.load(4)[0] == 2
    if type(step) is int:
        assert f"it says step {step} of a run of 4" in caplog.text


def test_a_state_that_is_a_program_does_not_run(saved, tmp_path):
    class Program:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "ran"),)

    resume = saved()
    whole = torch.load(resume.path, weights_only=True)
    torch.save(whole | {"state": {"program": Program()}}, resume.path)
    assert resume.load(4)[0] == 2
    assert not (tmp_path / "ran").exists()


def dies_at(number, work):
    """Do `work` in a process that is killed at its n-th operation on files; whether it was."""
    child = os.fork()
    if child == 0:
        logging.disable()
        numbers, save = count(1), torch.save

        def half(value, path):
            save(value, path)
            os.truncate(path, os.path.getsize(path) // 2)

        def or_die(operation, last=lambda *_: None):
            def call(*arguments):
                if next(numbers) == number:
                    last(*arguments)
                    os.kill(os.getpid(), signal.SIGKILL)
                return operation(*arguments)

            return call

        os.replace, os.fsync = or_die(os.replace), or_die(os.fsync)
        torch.save = or_die(save, last=half)
        status = 1
        try:
            work()
            status = 0
        finally:  # or an error would let pytest go on in the fork
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL)
    return status != 0


def disturb(work, folder, operations, seed):
    """Kill `work` one to three times with damage, then let it end; its result, what was done."""
    draw, done = random.Random(seed), Counter()
    for _ in range(draw.randint(1, 3)):
        done["killed"] += dies_at(draw.randint(1, operations), work)
        for path in sorted(folder.glob("state*.pt")):
            if draw.random() < 0.6:
                damage = draw.choice(DAMAGES)
                damage(path, draw)
                done[damage.__name__] += 1
    result = work()
    done["set aside"] += len(list(folder.glob("*.damaged")))
    return result, done


def pretrained(folder):
    """Pretrain for 7 steps with a state after each second; hashes of weights and losses."""
    model = build_tiny_model("mini-qwen3-xs", len(VOCABULARY), 0, 1, seed=0)
    args = PretrainArguments(steps=7, documents=2, warmup=3)
    resume = ResumeState(folder, "a run")
    losses = pretrain(model, TOKENIZER, SearchCorpus(), args, 5, resume, save_every=2)
    save_weights(model, folder / "weights")
    write_json(folder / "losses.json", losses)
    return [sha256(folder / name) for name in ("weights", "losses.json")]


PRETRAINING_OPERATIONS = 20
"""Of three states, weights and losses; a run of one more ends by itself."""


@pytest.mark.slow
def test_a_pretraining_killed_at_any_operation_ends_like_one_undisturbed(tmp_path, capsys):
    whole = pretrained(tmp_path / "whole")
    for number in range(1, PRETRAINING_OPERATIONS + 2):
        folder = tmp_path / str(number)
        killed = dies_at(number, lambda folder=folder: pretrained(folder))
        assert killed == (number <= PRETRAINING_OPERATIONS)
        assert pretrained(folder) == whole, number
        assert not list(folder.glob(".state*.tmp"))
    with capsys.disabled():
        print(f"\n{PRETRAINING_OPERATIONS} kills, one before each operation on files")


@pytest.mark.slow
def test_disturbed_pretrainings_end_like_one_undisturbed(tmp_path, capsys):
    whole, done, seeds = pretrained(tmp_path / "whole"), Counter(), 14
    for seed in range(seeds):
        folder = tmp_path / str(seed)
        ended, disturbances = disturb(
            lambda folder=folder: pretrained(folder), folder, PRETRAINING_OPERATIONS, seed
        )
        assert ended == whole, seed
        done += disturbances
    with capsys.disabled():
        print(f"\n{seeds} pretrainings: {dict(done)}")
    assert all(done[kind.__name__] for kind in DAMAGES) and done["killed"] > seeds / 2


@pytest.mark.slow
def test_disturbed_trainings_end_like_one_undisturbed(tiny, settings, tmp_path, capsys):
    run_to_end = runpy.run_path(str(TRAINING / "test_snapshots.py"))["run_to_end"]
    settings |= {"response_tokens": 6, "steps": 5, "diagnose_every": 2}

    def trained(folder):
        run_to_end(tiny, settings, folder, Snapshots(folder / "snapshots", [1, 4]))
        return {
            path.relative_to(folder): sha256(path)
            for part in ("out", "snapshots", "steps.csv")
            for path in sorted([folder / part, *(folder / part).rglob("*")])
            if path.is_file()
        }

    whole, done, seeds = trained(tmp_path / "whole"), Counter(), 4
    for seed in range(seeds):
        folder = tmp_path / str(seed)
        ended, disturbances = disturb(lambda folder=folder: trained(folder), folder, 150, seed)
        assert ended == whole, seed
        done += disturbances
    with capsys.disabled():
        print(f"\n{seeds} trainings: {dict(done)}")
    assert done["killed"] and done["set aside"]


@pytest.mark.slow
def test_two_ranks_take_the_same_state_and_end_like_two_undisturbed(tiny, settings, tmp_path):
    settings |= {"problems": 4, "steps": 4, "save_every": 1}
    (tmp_path / "case.json").write_text(json.dumps([str(tiny), settings]))
    launch(__file__, tmp_path)
    found = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1)]
    assert [each["continued from"] for each in found] == [2, 2]
    for each in found:
        assert "not every rank finds the first rank's state" in each["of two scratch folders"]
    whole, disturbed = (
        load_file(tmp_path / f"{name}.safetensors") for name in ("whole", "disturbed")
    )
    assert whole and whole.keys() == disturbed.keys()
    assert all(torch.equal(value, disturbed[name]) for name, value in whole.items())


def main(folder):
    """A rank: an undisturbed run, a disturbed one, and one whose ranks have a folder each."""
    torch.set_num_threads(1)
    folder = Path(folder)
    tiny, settings = json.loads((folder / "case.json").read_text())
    five_steps = runpy.run_path(str(TRAINING / "test_ranks.py"))["five_steps"]
    continued, load = [], ResumeState.load

    def remember(self, *arguments):
        found = load(self, *arguments)
        continued.append(found and found[0])
        return found

    ResumeState.load = remember
    with init_process_groups() as (ranks, _):
        whole = five_steps(ranks, settings, tiny, folder / "whole", steps=4)
        five_steps(ranks, settings, tiny, folder / "disturbed", steps=3)
        if ranks.is_main:
            cut(folder / "disturbed/state.pt", random.Random(0))
            save_file(whole["weights"], folder / "whole.safetensors")
        ranks.barrier()
        ended = five_steps(ranks, settings, tiny, folder / "disturbed", steps=4)
        if ranks.is_main:
            save_file(ended["weights"], folder / "disturbed.safetensors")
        own = ResumeState(folder / f"rank {ranks.rank}", "a run")
        own.save(1 + ranks.rank, {})
        try:
            load(own, 4, ranks)
        except RuntimeError as error:
            refusal = str(error)
        found = {"continued from": continued[-1], "of two scratch folders": refusal}
        (folder / f"{ranks.rank}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
    end_training_process()
