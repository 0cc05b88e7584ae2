"""A job that samples, cut anywhere, ends with the samples of one that was not."""

import itertools
import json
import random

import pytest
import torch

from geosd.models.tiny_models import build_tiny_model
from geosd.preemption import PreemptionError
from geosd.problems.encoding import Encoding
from geosd.problems.miniature import MiniatureGrader, MiniaturePrompts, build_miniature_tokenizer
from geosd.problems.records import Problem
from geosd.problems.search.corpora import VOCABULARY
from geosd.sampling.decoding.decode_session import PreallocatedSession
from geosd.sampling.graded_sampler import GradedDraw, GradedSampler
from geosd.sampling.kept_samples import KeptSamples
from geosd.sampling.sampler import SamplingParams
from geosd.sampling.transformers_sampler import TransformersSampler

ENCODING = Encoding(build_miniature_tokenizer(VOCABULARY), MiniaturePrompts())
PROBLEMS = [Problem(f"p{i}", "id", "1 + 1" + " + 1" * (i % 3), "2") for i in range(5)]
DRAWS = [GradedDraw(PROBLEMS, range(3), 7), GradedDraw(PROBLEMS[:2], range(3, 5), 8)]
WARM = SamplingParams(1.0, 1.0, 6)
ROWS, TOTAL, CHUNKS = 4, 19, 5  # 15 rows in four batches, and 4 in one
IDENTITY = {"code": "of today", "settings": {"samples": 3}, "inputs": ["a checkpoint", "problems"]}


@pytest.fixture(scope="module")
def model():
    model = build_tiny_model(
        "mini-qwen3-xs", len(VOCABULARY), ENCODING.pad_id, ENCODING.end_ids[0], seed=3
    )
    with torch.no_grad():
        model.lm_head.weight.mul_(8)
    return model.eval()


class Killed(BaseException):
    """What ends a job in a test."""


class Counted(TransformersSampler):
    """Counts what it samples, and dies instead of finishing chunk `last` of its life."""

    def __init__(self, model, last=None, compiled=False):
        super().__init__(model, ENCODING.end_ids, ENCODING.pad_id, ROWS, compiled)
        self.last, self.sampled, self.chunks = last, 0, 0

    def _sample_together(self, batch, places, sampling):
        if self.chunks == self.last:
            raise Killed
        self.chunks, self.sampled = self.chunks + 1, self.sampled + len(places)
        return super()._sample_together(batch, places, sampling)


def live(model, folder, last=None, identity=IDENTITY, stop=lambda: False, compiled=False):
    """One life of a job: its samples, what its sampler counted, and what it kept."""
    sampler, kept = Counted(model, last, compiled), KeptSamples(folder, identity)
    graded = GradedSampler(sampler, ENCODING, MiniatureGrader(), kept, stop)
    try:
        return graded.draw(DRAWS, WARM), sampler, kept
    except Killed:
        return None, sampler, kept


@pytest.fixture
def life(model, tmp_path):
    return lambda *given, folder=tmp_path, **options: live(model, folder, *given, **options)


@pytest.fixture(scope="module")
def undisturbed(model, tmp_path_factory):
    rows, sampler, _ = live(model, tmp_path_factory.mktemp("undisturbed"))
    assert len(rows) == sampler.sampled == TOTAL and sampler.chunks == CHUNKS
    assert len({row.text for row in rows}) > 3
    return rows


def cut(life, undisturbed, **options):
    """Cut a job before each chunk, then let it end; then in as many pieces as there are chunks."""
    for last in range(CHUNKS):
        folder = options["folder"] / str(last)
        _, before, _ = life(last, **{**options, "folder": folder})
        rows, after, kept = life(**{**options, "folder": folder})
        assert rows == undisturbed and before.sampled + after.sampled == TOTAL
        assert kept.record() == after.record()
        kept.clear()
        assert not list(folder.iterdir())
    lives = [life(1, **options) for _ in range(CHUNKS)]
    rows, after, kept = life(**options)
    assert rows == undisturbed and after.sampled == 0
    assert kept.record() == lives[-1][1].record()  # though nothing was sampled in the last life


def test_a_job_cut_before_any_chunk_samples_none_twice_and_ends_like_one_undisturbed(
    life, undisturbed, tmp_path
):
    cut(life, undisturbed, folder=tmp_path / "cut")


@pytest.mark.slow
def test_so_it_is_with_a_compiled_step(compiled_steps, random_weights, tmp_path):
    model = random_weights("olmo3")  # whose step test_compiled_step.py has compiled, too

    def life(*given, folder=tmp_path / "lives", **options):
        return live(model, folder, *given, **options)

    rows, sampler, _ = life(folder=tmp_path / "whole", compiled=True)
    assert sampler.record()["step"]["kind"] == "compiled"
    cut(life, rows, folder=tmp_path / "cut", compiled=True)


def test_sigterm_ends_a_job_after_its_chunk_and_before_the_first_at_once(
    life, undisturbed, tmp_path
):
    with pytest.raises(PreemptionError, match="after 0 of 19 samples"):
        life(stop=lambda: True)
    kept = tmp_path / "samples/000001.jsonl"
    with pytest.raises(PreemptionError, match="after 8 of 19 samples; start again"):
        life(stop=kept.exists)
    rows, sampler, _ = life()
    assert rows == undisturbed and sampler.sampled == TOTAL - 8


def after(looks):
    """What asks a job to stop once it was called so many times."""
    calls = itertools.count()
    return lambda: next(calls) > looks


def in_lives_of(tokens, life, **options):
    """The samples of a job that is asked to stop after so many tokens of each life."""
    for lives in range(1000):
        try:
            rows, _, kept = life(stop=after(tokens), **options)
        except PreemptionError:
            continue
        assert lives > TOTAL / tokens
        kept.clear()
        return rows
    raise AssertionError("no life has ended the job")


@pytest.mark.parametrize("tokens", [2, 3, 5])
def test_a_job_left_in_the_middle_of_its_parts_ends_with_the_same_bytes(
    life, undisturbed, tokens, tmp_path
):
    folder = tmp_path / "cut"
    assert in_lives_of(tokens, life, folder=folder) == undisturbed
    assert not list(folder.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize(("family", "compiled"), [("olmo3", True), ("llama", False)])
def test_so_it_is_with_other_models_and_a_compiled_step(
    compiled_steps, random_weights, family, compiled, tmp_path
):
    model = random_weights(family)

    def life(*given, folder=tmp_path / "lives", **options):
        return live(model, folder, *given, compiled=compiled, **options)

    rows, _, _ = life(folder=tmp_path / "whole")
    assert in_lives_of(3, life) == rows


def test_a_part_goes_on_from_its_last_token_and_not_from_its_first(
    life, undisturbed, tmp_path, monkeypatch
):
    steps = []
    step = PreallocatedSession.step
    monkeypatch.setattr(
        PreallocatedSession, "step", lambda self, ids: steps.append(1) or step(self, ids)
    )
    assert life(folder=tmp_path / "whole")[0] == undisturbed
    whole = len(steps)
    steps.clear()
    lives = 1 + sum(1 for _ in stopped_lives(life, 3))
    assert lives > 3
    # In each life the sampler takes one step more, to find out whether the model can be decoded.
    assert len(steps) - lives == whole - 1


def stopped_lives(life, tokens):
    """End a job in lives of so many tokens; each that was stopped."""
    while True:
        try:
            life(stop=after(tokens))
            return
        except PreemptionError as error:
            yield error


def left_in_the_middle(life):
    with pytest.raises(PreemptionError, match="after 0 of 19 samples"):
        life(stop=after(3))


@pytest.mark.parametrize("damage", ["cut", "flipped", "of another job", "without a head"])
def test_a_part_that_is_not_what_was_written_begins_anew(
    damage, life, undisturbed, tmp_path, caplog
):
    left_in_the_middle(life)
    head, data = tmp_path / "samples/part.json", tmp_path / "samples/part.bin"
    content = bytearray(data.read_bytes())
    if damage == "cut":
        data.write_bytes(content[:-1])
    elif damage == "flipped":
        content[100] ^= 1
        data.write_bytes(content)
    elif damage == "of another job":
        head.write_text(head.read_text().replace('"identity": {', '"identity": {"more": "x", '))
    else:
        head.unlink()
    rows, sampler, _ = life()
    assert rows == undisturbed and sampler.sampled == TOTAL
    assert ("begins anew" in caplog.text) == (damage in ("cut", "flipped"))


def test_a_part_that_cannot_be_written_in_time_is_not_kept(
    life, undisturbed, tmp_path, monkeypatch
):
    monkeypatch.setattr("geosd.sampling.paused_part.SAVING_S", -1.0)
    left_in_the_middle(life)
    assert not list((tmp_path / "samples").iterdir())
    assert life()[0] == undisturbed


@pytest.mark.parametrize(
    "other",
    [
        {"code": "of yesterday"},
        {"settings": {"samples": 4}},
        {"inputs": ["another checkpoint", "problems"]},
        {"inputs": ["a checkpoint", "other problems"]},
    ],
)
def test_samples_of_another_job_are_set_aside_with_one_line(
    other, life, undisturbed, tmp_path, caplog
):
    life(3, IDENTITY | other)
    rows, sampler, kept = life()
    assert rows == undisturbed and sampler.sampled == TOTAL
    (name,) = other
    assert caplog.messages == [
        f"{tmp_path / 'samples'} is of a job with other {name}: it is samples.other now, and this"
        " job begins anew."
    ]
    assert len(list(kept.aside.iterdir())) == 3
    kept.clear()
    assert not kept.aside.exists()


def flip(data, draw):
    data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)


def shorten(data, draw):
    del data[draw.randrange(len(data)) :]


def zeros(data, draw):
    start = draw.randrange(len(data))
    data[start : start + 512] = bytes(len(data[start : start + 512]))


def repeat(data, draw):
    lines = data.splitlines(keepends=True)
    data += lines[-1]


@pytest.mark.parametrize("damage", [flip, shorten, zeros, repeat])
def test_a_damaged_file_is_never_trusted(damage, life, undisturbed, tmp_path, caplog):
    life(3)
    files = sorted((tmp_path / "samples").iterdir())
    for seed in range(100):
        draw = random.Random(seed)
        file = draw.choice(files)
        whole = file.read_bytes()
        data = bytearray(whole)
        damage(data, draw)
        file.write_bytes(data)
        caplog.clear()
        rows = KeptSamples(tmp_path, IDENTITY).load()
        assert len(rows) == 2 * ROWS and f"{file} does not hold" in caplog.text
        assert tmp_path.joinpath(f"samples-{file.stem}.damaged").read_bytes() == data
        file.write_bytes(whole)
    file.write_bytes(data)
    rows, sampler, _ = life()
    assert rows == undisturbed and sampler.sampled == TOTAL - 2 * ROWS


def test_a_job_goes_on_in_the_threads_that_it_began_with(undisturbed, tmp_path):
    threads = torch.get_num_threads()
    try:
        kept = KeptSamples(tmp_path, IDENTITY)
        for number, place in ((2, 0), (1, 1)):
            torch.set_num_threads(number)
            kept.keep({place: undisturbed[place]}, {})
        KeptSamples(tmp_path, IDENTITY).load()
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)


def test_a_record_that_changed_on_the_way_is_told(tmp_path):
    kept = KeptSamples(tmp_path, IDENTITY)
    for kernel in ("a", "b", "a", "c"):
        kept.keep({}, {"attention": kernel})
    again = KeptSamples(tmp_path, IDENTITY)
    again.load()
    expected = {"attention": "c", "earlier": [{"attention": "b"}, {"attention": "a"}]}
    assert kept.record() == again.record() == json.loads(json.dumps(expected))
