"""Damaged files: what each step does that reads one of them, with the damage drawn from a seed.

A study of made-up results lies on the disk, every file of it listed by the manifest of its step.
One file is damaged, and the step that reads it is run. It must refuse the file by its name with a
hint, and write nothing; or write the bytes that it writes of the whole study.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
import yaml
from matplotlib.figure import Figure

from geosd.cli import (
    alignment,
    analyse,
    claims,
    early_stop,
    evaluate,
    grade,
    pages,
    render,
    render_family,
    select_rates,
    ship,
    train,
)
from geosd.cli import data as data_program
from geosd.config import load, resolve_study
from geosd.config.run_folders import RunFolders, write_run_folders
from geosd.evaluation.alignment import AlignmentRollout
from geosd.files import sha256, write_json
from geosd.json_lines import write_jsonl
from geosd.problems.dataset_download import DatasetCatalogueEntry
from geosd.problems.records import PooledSolutionsRecord, Problem, SampleRecord
from geosd.provenance.manifest import manifest, write_manifest
from geosd.scores.tidy import COLUMNS

SEED = 0
PROVEN, UNPROVEN = (420, 120) if "GEOSD_ALL_DRAWS" in os.environ else (160, 48)
STUDY, MODEL, STEPS = "quick", "mini-qwen3", 6
BENCHMARKS = ("id", "long", "mulhard", "mid", "easy")
CHECKPOINT = ("config.json", "generation_config.json", "tokenizer.json", "model.safetensors")
# Studies of the steps that quick has no rule for.
OTHERS = {
    "rates": {
        **{"kind": "selection", "data": {"purpose": "selection"}},
        "grid": {"geosd": {"learning_rate": [1.0e-6, 1.0e-5]}},
    },
    "stops": {
        **{"kind": "stepsize", "training": {"warmup": 1}},
        "grid": {"geosd": [{"steps": [4, STEPS]}]},
    },
    "shown": {"kind": "main", "methods": ["pi_0", "geosd"], "outputs": ["table_main"]},
}


class GoesOnError(Exception):
    """The step has read all its files, and would begin to compute."""


def sign(folder: Path, inputs: dict[Path, str], names: list[str], to: str = "", **fields) -> None:
    """Write the manifest of made-up results."""
    listed = {name: sha256(folder / name) for name in names}
    content = manifest("analyse", inputs, {}, 1.0, listed)
    write_manifest(folder / f"{to}manifest.json", {**content, **fields})


def make_checkpoint(folder: Path, draw: random.Random) -> None:
    folder.mkdir(parents=True)
    for name in CHECKPOINT:
        (folder / name).write_text(f'{{"{name}": "{draw.random()}", "0": 15, "1": 16}}')


def make_samples(path: Path, draw: random.Random) -> None:
    rows = [
        SampleRecord(b, f"{b}-{p}", k, f"It is {k}.", 9, str(k % 3), ok, "stop", reason)
        for b in BENCHMARKS
        for p in range(2)
        for k in range(16)
        for ok in [draw.random() < 0.5]
        for reason in ["correct" if ok else "wrong answer"]
    ]
    write_jsonl(path, rows)


def make_steps(path: Path, draw: random.Random) -> None:
    rows = [f"{step},{draw.random()},{step / 10},0.9\n" for step in range(STEPS)]
    rows.append(f"{STEPS},,{draw.random()},0.8\n")
    path.write_text("step,loss/total,drift/pi_0,overlap\n" + "".join(rows))


def make_longer_run(folder: Path, draw: random.Random) -> None:
    """A run with the weights after its fourth step, from which one of four steps is taken."""
    make_checkpoint(folder, draw)
    make_steps(folder / "steps.csv", draw)
    (folder / "snapshots").mkdir()
    (folder / "snapshots/step_4.safetensors").write_text(f"weights {draw.random()} of step 4")
    write_json(folder / "snapshots/step_4.json", {"drift/pi_0": 0.25, "overlap": 0.75})
    names = [str(p.relative_to(folder)) for p in sorted(folder.rglob("*")) if p.is_file()]
    of_run = {"model": MODEL, "seed": 0, "ranks": 1, "precision": "float32", "sampler": {}}
    of_run["card"] = {"prompt": "1+1", "limits": "None."}
    sign(folder, {}, names, **of_run)


def make_raw_files(folder: Path) -> list[DatasetCatalogueEntry]:
    """A file of a data set and its catalogue."""
    folder.mkdir()
    (folder / "training.txt").write_text("".join(f"What is {n} + 1?\n" for n in range(50)))
    pinned = sha256(folder / "training.txt")
    return [DatasetCatalogueEntry("training.txt", "owner/name", "0", "training.txt", pinned)]


def tidy(path: Path, name: str, rows: list[tuple]) -> None:
    pd.DataFrame(rows, columns=list(COLUMNS[name])).to_csv(path, index=False)


@pytest.fixture(scope="module")
def study(root, tmp_path_factory) -> Iterator[SimpleNamespace]:
    """Files of a made-up study by kind, and the steps that read them; it is the work folder."""
    folder, draw = tmp_path_factory.mktemp("study"), random.Random(SEED)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        (folder / "base_models").symlink_to(root / "base_models")
        patch.setattr("geosd.cli.job.load", functools.cache(load))
        patch.setattr("geosd.cli.render_family.load", functools.cache(load))
        patch.setattr("geosd.provenance.code._git", lambda *_: None)

        def go_on(*_, **__):
            raise GoesOnError

        patch.setattr(train, "ResumeState", go_on)
        patch.setattr(evaluate, "open_graded_sampler", go_on)
        patch.setattr(alignment, "load_model", go_on)
        save = Figure.savefig

        def svg_alone(figure: Figure, path: Path, *, format: str, **options) -> None:
            """Of each figure: it has all that the others show, and takes a third."""
            save(figure, path, format=format, **options) if format == "svg" else path.touch()

        patch.setattr(Figure, "savefig", svg_alone)
        values = yaml.safe_load((root / "params.yaml").read_text(encoding="utf-8"))
        values["studies"] = {STUDY: values["studies"][STUDY]}  # each is checked at every load
        values["studies"][STUDY] |= {"methods": ["pi_0", "geosd"], "seeds": [0, 1]}
        values["studies"][STUDY]["verdicts"] = True
        shared = {"extends": STUDY, "about": "For one step.", "methods": ["pi_0"], "draws": 1}
        shared["outputs"] = ["claims"]
        values["studies"] |= {name: {**shared, **other} for name, other in OTHERS.items()}
        judged = {"about": "Its ledger.", "kind": "family", "of": [STUDY]}
        values["studies"]["judged"] = judged | {"outputs": ["claims_all"]}
        params = folder / "params.yaml"
        params.write_text(yaml.safe_dump(values), encoding="utf-8")
        study = resolve_study(load(params), STUDY)
        rows = RunFolders(study).rows()
        files_of_kind: dict[str, set[Path]] = {}

        def keep(kind: str, *paths: Path) -> None:
            files_of_kind.setdefault(kind, set()).update(paths)

        for row in rows:
            base, student, samples = map(Path, (row.base, row.train, row.evaluate))
            run = {"model": row.model, "seed": row.seed, "draw": row.draw}
            if not base.exists():
                make_checkpoint(base, draw)
                sign(base, {}, list(CHECKPOINT))
                keep("manifest", base / "manifest.json")
            if row.train and not student.exists():
                make_checkpoint(student, draw)
                make_steps(student / "steps.csv", draw)
                sign(student, {}, [*CHECKPOINT, "steps.csv"], **run)
                keep("steps.csv", student / "steps.csv")
                keep("manifest", student / "manifest.json")
            if not (counts := Path(row.pool, "counts.json")).exists():
                drawn = {"problems": 9, "problems_trained_on": 8, "rollouts_drawn": 36}
                write_json(counts, {**drawn, "rollouts_by_reason": {"correct": 30, "truncated": 6}})
                sign(counts.parent, {}, [counts.name])
                keep(counts.name, counts)
            samples.mkdir(parents=True)
            make_samples(samples / "samples.jsonl", draw)
            weights = (student if row.train else base) / "model.safetensors"
            sign(samples, {weights: sha256(weights)}, ["samples.jsonl"], **run)
            keep("samples.jsonl", samples / "samples.jsonl")
            keep("manifest", samples / "manifest.json")
        write_run_folders(Path("runs.csv"), rows)
        sign(Path(), {}, ["runs.csv"], to="runs.")
        keep("runs.csv", Path("runs.csv"))
        analyse.main(STUDY, Path("runs.csv"), Path("analyse"), params)

        data = Path("data")
        data.mkdir()
        problems = [Problem(f"p{n}", "train", f"{n}+1?", str(n + 1)) for n in range(9)]
        pool = [PooledSolutionsRecord(p.id, (f"So {p.answer}.",), 4, 2) for p in problems]
        probes = [AlignmentRollout(p.id, (1, 2), (1, 3), (4, 5), (1,), ((6, 7),)) for p in problems]
        for name, records in {"train": problems, "pool": pool, "states": probes}.items():
            write_jsonl(data / f"{name}.jsonl", records)
            keep(f"{name}.jsonl", data / f"{name}.jsonl")
        runs = [(row.model, row.variant, row.seed, row.draw) for row in rows if row.train]
        drifts = [(*run, step, step / 10) for run in runs for step in range(3)]
        tidy(data / "drift_over_steps.csv", "drift_over_steps", drifts)
        masses = [
            (*runs[0], s, w, r, 0.5 / r, 9)
            for s in (0, 6)
            for w in ("pi_0", "live")
            for r in (1, 2)
        ]
        tidy(data / "alignment.csv", "alignment", masses)
        states = [
            (MODEL, f"p{n}", n, at, 3, 0.5, at == 1, 0.9, 4, 0.7, 0.2, 0.1, 0.2, 0.3)
            for n in range(9)
            for at in range(5)
        ]
        tidy(data / "states.csv", "states", states)
        tidy_names = ("drift_over_steps", "alignment", "states")
        names = [f"{n}.jsonl" for n in ("train", "pool", "states")] + [
            f"{n}.csv" for n in tidy_names
        ]
        sign(data, {}, names)

        first = next(row for row in rows if row.variant == "geosd")
        base, student = Path(first.base), Path(first.train)
        of_run = {"study": STUDY, "model": MODEL, "variant": "geosd", "seed": first.seed}
        tables = [Path("analyse", f"{name}.csv") for name in ("scores", "drift", "consensus")]

        def judge(out: Path) -> None:
            others = (data / f"{name}.csv" for name in tidy_names)
            claims.main(STUDY, (*tables, *others), out, params)

        ledger = Path("figures", STUDY, "claims.csv")
        judge(ledger.parent)
        for path in (*tables, *(data / f"{name}.csv" for name in tidy_names)):
            keep(path.name, path)
        keep("claims.csv", ledger)
        for name in CHECKPOINT:
            keep(name, base / name)
        problem_file, pool_file = data / "train.jsonl", data / "pool.jsonl"

        def learn(out: Path) -> None:
            scratch = out / "scratch"
            paths = (base, problem_file, pool_file, out, scratch)
            train.main(*of_run.values(), *paths, params=params)

        def examine(out: Path) -> None:
            evaluate.main(*of_run.values(), base, problem_file, out, out / "scratch", params)

        def follow(out: Path) -> None:
            paths = (base, student, data / "states.jsonl", out, out / "scratch")
            alignment.main(*of_run.values(), *paths, params)

        longer, raw = Path("longer"), Path("data/raw")
        make_longer_run(longer, draw)
        kept_of_run = ("steps.csv", *(f"snapshots/step_4.{e}" for e in ENDINGS))
        keep("longer run", *(longer / name for name in (*kept_of_run, "config.json")))
        entries = make_raw_files(raw)
        patch.setattr(data_program, "load_dataset_catalogue", lambda *_: entries)
        keep("raw files", *(raw / entry.name for entry in entries))
        validated = Path("rates/scores.csv")
        validated.parent.mkdir()
        of_score = ("select_validation", "ID", "avg@k", 8)
        candidates = ["pi_0", *(f"geosd-learning_rate_{rate}" for rate in ("1e-06", "1e-05"))]
        scored = [(MODEL, c, 0, 0, *of_score, 40.0 + n) for n, c in enumerate(candidates)]
        tidy(validated, "scores", scored)
        sign(validated.parent, {}, [validated.name])
        keep("rates/scores.csv", validated)
        pages.environment_page_program("shown", Path("figures/shown"))
        ship.main("shown", (tables[0],), params=params)
        keep("shipped scores.csv", Path("figures/shown/source/scores.csv"))
        keep("rendered scores.csv", tables[0])
        rows = [{"gold": str(n), "response": f"The answer is {n % 3}."} for n in range(40)]
        (data / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        keep("rows.jsonl", data / "rows.jsonl")

        def draw_again(out: Path) -> None:
            ship.redraw_shipped("shown")
            shutil.copy("figures/shown/table_main.csv", out)

        def select_again(out: Path) -> None:
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                select_rates.main("rates", validated, params)
            (out / "variants.yaml").write_text(printed.getvalue())

        readers: dict[str, Callable[[Path], None]] = {
            "longer run": lambda out: early_stop.main(
                "stops", MODEL, "geosd-steps_4", 0, longer, out, params
            ),
            "raw files": lambda out: data_program.fetch_data_program(STUDY, out, params),
            "rates/scores.csv": select_again,
            "rendered scores.csv": lambda out: render.main(
                "table_main", STUDY, out, (*tables[:2], Path("analyse/shares.csv")), params
            ),
            "shipped scores.csv": draw_again,
            "rows.jsonl": lambda out: grade.main(data / "rows.jsonl", out / "rows.jsonl"),
            **dict.fromkeys(
                ("runs.csv", "samples.jsonl", "counts.json", "steps.csv"),
                lambda out: analyse.main(STUDY, Path("runs.csv"), out, params),
            ),
            "manifest": lambda out: pages.environment_page_program(STUDY, out, Path("runs.csv")),
            **dict.fromkeys([*(t.name for t in tables), *(f"{n}.csv" for n in tidy_names)], judge),
            "claims.csv": lambda out: render_family.main(
                "claims_all", "judged", out, (ledger,), params
            ),
            **dict.fromkeys(CHECKPOINT, learn),
            "tokenizer.json": examine,
            "train.jsonl": examine,
            "pool.jsonl": learn,
            "states.jsonl": follow,
        }
        yield SimpleNamespace(kinds=files_of_kind, readers=readers)


def flip_a_bit(data: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << draw.randrange(8)]) + data[at + 1 :]


def cut_short(data: bytes, draw: random.Random) -> bytes:
    return data[: draw.randrange(len(data))]


def cut_within_a_line(data: bytes, draw: random.Random) -> bytes:
    ends = [at for at, byte in enumerate(data) if byte == 10]
    return data[: draw.choice(ends) - 1]


def blank(data: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(data))
    return data[:at] + bytes(min(64, len(data) - at)) + data[at + 64 :]


def change_a_digit(data: bytes, draw: random.Random) -> bytes:
    places = [at for at, byte in enumerate(data) if 48 <= byte < 58]
    at = draw.choice(places) if places else 0
    return data[:at] + bytes([48 + (data[at] - 47) % 10]) + data[at + 1 :]


def lines_of(change: Callable[[list[bytes], random.Random], object]):
    def changed(data: bytes, draw: random.Random) -> bytes:
        lines = data.splitlines(keepends=True)
        change(lines, draw)
        return b"".join(lines)

    changed.__name__ = change.__name__
    return changed


@lines_of
def drop_a_line(lines, draw):
    lines.pop(draw.randrange(len(lines)))


@lines_of
def drop_the_second_half(lines, draw):
    del lines[(len(lines) + 1) // 2 :]
    if len(lines) == 1:
        lines.clear()


@lines_of
def repeat_a_line(lines, draw):
    lines.append(draw.choice(lines))


@lines_of
def swap_two_lines(lines, draw):
    a, b = draw.randrange(len(lines)), draw.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]


def add_what_is_no_text(data: bytes, draw: random.Random) -> bytes:
    return data + b"\xff\xfe"


def empty(data: bytes, draw: random.Random) -> bytes:
    return b""


def flip_a_verdict(data: bytes, draw: random.Random) -> bytes:
    pairs = ((b"true", b"false"), (b"opposite", b"agrees"), (b"True", b"False"))
    old, new = next(((o, n) for o, n in pairs if o in data), (data[:1], b"x"))
    return data.replace(old, new, 1)


def swap_digits(data: bytes, draw: random.Random) -> bytes:
    return data.translate(bytes.maketrans(b"56", b"65"))


def nest(data: bytes, draw: random.Random) -> bytes:
    return b"[" * 100_000 + data


DAMAGES = (
    *(flip_a_bit, cut_short, blank, change_a_digit, drop_a_line, drop_the_second_half),
    *(repeat_a_line, swap_two_lines, add_what_is_no_text, empty, flip_a_verdict, swap_digits, nest),
)
BROKEN = (cut_within_a_line, add_what_is_no_text, empty, nest)
"""What a reader sees without a manifest."""
READ_WHOLE = (
    *("samples.jsonl", "steps.csv", "scores.csv", "drift.csv", "consensus.csv"),
    "rows.jsonl",
)
ENDINGS = ("json", "safetensors")


def outcome(study: SimpleNamespace, kind: str, file: Path, out: Path, whole: dict) -> str:
    """How the step that reads a damaged file ends."""
    try:
        study.readers[kind](out)
    except GoesOnError:
        return "silently wrong"
    except Exception as error:
        text = str(error)
        written = [path for path in out.rglob("*") if path.is_file()]
        if "\nHint: " not in text:
            return f"bare traceback ({type(error).__name__})"
        return "not named" if str(file) not in text else "written" if written else "refused"
    return "the same result" if contents(out) == whole[study.readers[kind]] else "silently wrong"


def contents(out: Path) -> dict[str, bytes]:
    """What a step wrote, but for the times in its manifest."""
    return {
        path.name: path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file() and not path.name.endswith("manifest.json")
    }


@pytest.fixture
def whole(study, tmp_path) -> dict:
    """What each step writes of the whole study; None where it goes on to compute."""
    written = {}
    for number, reader in enumerate(dict.fromkeys(study.readers.values())):
        out = tmp_path / str(number)
        out.mkdir()
        try:
            reader(out)
        except GoesOnError:
            written[reader] = None
        else:
            written[reader] = contents(out)
            assert written[reader]
    return written


@pytest.mark.slow
def test_no_damaged_file_is_accepted(study, whole, tmp_path, capsys):
    draw, counts = random.Random(SEED), {}
    kinds = sorted(study.kinds.keys() - {"rows.jsonl"})  # a person's own, which no step lists
    for number in range(PROVEN + UNPROVEN):
        proven = number < PROVEN
        kind = kinds[number % len(kinds)] if proven else READ_WHOLE[number % len(READ_WHOLE)]
        file = draw.choice(sorted(study.kinds[kind]))
        damage = draw.choice(DAMAGES if proven else BROKEN)
        before, signed = file.read_bytes(), file.parent / "manifest.json"
        kept = signed.read_bytes() if signed.exists() else None
        others = sorted(study.kinds[kind] - {file})
        if proven and others and draw.random() < 0.1:
            after = draw.choice(others).read_bytes()  # another run's
        else:
            after = damage(before, draw)
        if after == before:
            after = empty(before, draw)
        out = tmp_path / "out"
        out.mkdir()
        try:
            file.write_bytes(after)
            if not proven:
                signed.unlink(missing_ok=True)
            end = outcome(study, kind, file, out, whole)
        finally:
            file.write_bytes(before)
            if kept is not None and kind != "manifest":
                signed.write_bytes(kept)
            shutil.rmtree(out)
        counts.setdefault(kind if proven else f"{kind}, no manifest", Counter())[end] += 1
        assert end in ("refused", "the same result"), (end, kind, damage.__name__, str(file))
    total = sum(counts.values(), Counter())
    with capsys.disabled():
        print()
        for name, of_kind in sorted(counts.items()):
            print(f"| {name} | {of_kind.total()} | {dict(of_kind)} |")
        print(total)
    assert total["refused"] >= 0.95 * (PROVEN + UNPROVEN)
