"""A job that samples, cut anywhere, ends with the samples of one that was not."""

import json
import random

import pytest
import torch

from geosd.models.tiny_models import build
from geosd.preemption import PreemptionError
from geosd.problems.encoding import Encoding
from geosd.problems.miniature import MiniatureGrader, MiniaturePrompts, build_tokenizer
from geosd.problems.records import Problem
from geosd.problems.search.corpora import VOCABULARY
from geosd.sampling.graded_sampler import Draw, GradedSampler
from geosd.sampling.kept_samples import KeptSamples
from geosd.sampling.sampler import SamplingParams
from geosd.sampling.transformers_sampler import TransformersSampler

ENCODING = Encoding(build_tokenizer(VOCABULARY), MiniaturePrompts())
PROBLEMS = [Problem(f"p{i}", "id", "1 + 1" + " + 1" * (i % 3), "2") for i in range(5)]
DRAWS = [Draw(PROBLEMS, range(3), 7), Draw(PROBLEMS[:2], range(3, 5), 8)]
WARM = SamplingParams(1.0, 1.0, 6)
ROWS, TOTAL, CHUNKS = 4, 19, 5  # 15 rows in four batches, and 4 in one
IDENTITY = {"code": "of today", "settings": {"samples": 3}, "inputs": ["a checkpoint", "problems"]}


@pytest.fixture(scope="module")
def model():
    model = build("mini-qwen3-xs", len(VOCABULARY), ENCODING.pad_id, ENCODING.end_ids[0], seed=3)
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


def test_sigterm_ends_a_job_after_its_chunk_and_before_the_first_at_once(life, undisturbed):
    with pytest.raises(PreemptionError, match="after 0 of 19 samples"):
        life(stop=lambda: True)
    asked = iter([False, False, True])
    with pytest.raises(PreemptionError, match="after 8 of 19 samples; start again"):
        life(stop=lambda: next(asked))
    rows, sampler, _ = life()
    assert rows == undisturbed and sampler.sampled == TOTAL - 8


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
