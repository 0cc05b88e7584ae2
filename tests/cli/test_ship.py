"""What is shipped of a study draws it again, byte for byte, and git keeps it."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from cases import python
from dvc.repo import Repo

from geosd.cli import pages, ship
from geosd.cli.capsule import _as_shipped
from geosd.cli.figures import redraw_figures
from geosd.config import load, resolve_study
from geosd.config.rule_settings import configuration_rule_settings
from geosd.config.run_folders import RunFolders, write_run_folders
from geosd.files import sha256, write_text
from geosd.provenance.history import LOST_COMMITS, unknown_commits
from geosd.provenance.manifest import manifest as step_manifest
from geosd.provenance.manifest import write_manifest
from geosd.reporting import shipping
from geosd.reporting.environment_page import (
    EnvironmentStep,
    environment_commits,
    environment_markdown,
)
from geosd.reporting.run_summary import RunSummary
from geosd.reporting.shipping import (
    LARGE,
    PACKAGES,
    ShippedManifest,
    changed_shipped_files,
    read_shipped,
    ship_tidy_tables,
    shipped_shows_all,
)
from geosd.reporting.specs import output_spec_caption, output_spec_title, output_specs
from geosd.reporting.study_page import study_pages
from geosd.scores.tidy import COLUMNS, read_tidy

ROOT = Path(__file__).parents[2]
STUDY = resolve_study(load(ROOT / "params.yaml"), "quick")
LACKS = re.compile(r"history lacks the commits? ([0-9a-f and]+):")


def made_up_tables() -> dict[str, pd.DataFrame]:
    """Tidy tables of study quick with made-up numbers, and runs of a foreign variant."""
    draw = np.random.default_rng(3)
    rows, shares, drift, curves = [], [], [], []
    runs = [(m, v, s, 0) for m in STUDY.models for v in STUDY.methods for s in STUDY.seeds]
    for run in [*runs, *((*run[:1], "left_over", *run[2:]) for run in runs[:3])]:
        drift.append((*run, "drift/pi_0", draw.uniform(0, 0.1)))
        for quantity in ("rollout/accuracy", "drift/pi_0", "overlap"):
            curves += [(*run, step, quantity, draw.uniform(0, 1)) for step in (0, 50, 100)]
        for benchmark in ("id", "long", "easy", "ood_avg"):
            split = "ID" if benchmark == "id" else "OOD"
            if benchmark != "ood_avg":
                shares += [(*run, benchmark, str(n), 16, draw.uniform(0, 1)) for n in range(3)]
            for metric, k in (("avg@k", 16), ("pass@k", 1), ("pass@k", 16)):
                rows.append((*run, benchmark, split, metric, k, draw.uniform(20, 80)))
    tables = {
        "scores": rows,
        "shares": shares,
        "drift": drift,
        "consensus": [],
        "training_curves": curves,
    }
    return {name: pd.DataFrame(of, columns=list(COLUMNS[name])) for name, of in tables.items()}


@pytest.fixture(scope="module")
def shipped(tmp_path_factory) -> Path:
    """The folder of a shipped study."""
    results, figures = tmp_path_factory.mktemp("results"), tmp_path_factory.mktemp("figures")
    files = []
    for name, table in made_up_tables().items():
        files.append(results / f"{name}.csv")
        table.to_csv(files[-1], index=False)
    params = results / "params.yaml"  # with verdicts, so that the pages have something to show
    text = (ROOT / "params.yaml").read_text()
    params.write_text(text.replace("\n  quick:\n", "\n  quick:\n    verdicts: true\n"))
    (results / "base_models").symlink_to(ROOT / "base_models")
    write_environment(figures / "quick")
    ship.main("quick", tuple(files), figures, params, pipeline=results / "none")
    return figures / "quick"


def write_environment(folder: Path, *commits: str) -> None:
    """Write an environment page of runs of some commits, or of no run."""
    device = {"platform": "Linux", "accelerators": [], "cpus": 2}
    runs = [
        EnvironmentStep(
            "train",
            {
                "code": {"commit": commit, "dirty": False, "version": "1"},
                "peak_memory_bytes": {"host": 2**30},
                "wall_s": 1.0,
                "device": device,
                "packages": {},
            },
        )
        for commit in commits
    ]
    write_text(folder / "environment.md", environment_markdown(runs, {}, folder.name))


def hashes(folder: Path) -> dict[str, str]:
    return {p.relative_to(folder).as_posix(): sha256(p) for p in folder.rglob("*") if p.is_file()}


@pytest.mark.slow
def test_the_manifest_of_a_runs_ledger_goes_with_its_verdicts(shipped, tmp_path):
    study, path = tmp_path / "quick", tmp_path / "quick/claims.manifest.json"
    shutil.copytree(shipped, study)
    recorded = json.loads((study / "shipped.json").read_text())
    recorded["outputs"] = {"claims": recorded["outputs"]["claims"]}  # nothing else is drawn
    (study / "shipped.json").write_text(json.dumps(recorded))
    files = (f"claims.{ending}" for ending in ("csv", "md", "pdf", "svg", "png"))
    outputs = {name: sha256(study / name) for name in files}
    write_manifest(path, step_manifest("claims", [], {}, 1.0, outputs))
    ship.redraw_shipped("quick", tmp_path)
    assert path.exists()
    write_manifest(path, step_manifest("claims", [], {}, 1.0, outputs | {"claims.csv": "0" * 64}))
    ship.redraw_shipped("quick", tmp_path)
    assert not path.exists()


@pytest.mark.slow
def test_a_clone_with_the_tidy_tables_alone_makes_the_same_bytes(shipped, tmp_path):
    manifest = read_shipped(shipped)
    clone = tmp_path / "quick"
    shutil.copytree(shipped / "source", clone / "source")
    shutil.copy(shipped / "environment.md", clone)
    made = RunSummary(date="", commit="c", steps="train 1 runs 2 s", machine="m", cpus="2")
    shipping.write_shipped_manifest(clone, manifest.model_copy(update={"made": made}))
    of_runs = (clone / "shipped.json").read_text()
    ship.redraw_shipped("quick", tmp_path)
    assert (clone / "shipped.json").read_text() == of_runs
    (clone / "shipped.json").write_text((shipped / "shipped.json").read_text())
    assert hashes(clone) == hashes(shipped)
    assert not changed_shipped_files(clone, {**manifest.inputs, **manifest.files})


def test_every_output_has_its_files_caption_and_source_data(shipped):
    files = set(read_shipped(shipped).files)
    for name in STUDY.outputs:
        if name == "claims":
            assert {"claims.csv", "claims.md", "claims.svg"} <= files
            continue
        endings = ("svg",) if name.startswith("figure") else ("csv", "md", "tex")
        assert {f"{name}.{ending}" for ending in endings} <= files
        if name.startswith("figure"):
            assert all((shipped / f"{name}.{ending}").exists() for ending in ("pdf", "png"))
        caption = (shipped / f"{name}.caption.md").read_text()
        assert output_specs()[name].caption.split()[:5] == caption.partition("** ")[2].split()[:5]
        links = re.findall(r"\]\(([^)]+)\)", caption)
        assert links and all((shipped / link).exists() for link in links)


def test_a_caption_says_where_the_rows_are_listed_if_the_output_shows_a_part(shipped):
    listed = (
        "It shows the rows of the models and runs that [shipped.json](shipped.json) lists under"
    )
    caption = (shipped / "figure_frontier.caption.md").read_text()
    assert "(source/scores.csv)" in caption and f"{listed} `figure_frontier`.\n" in caption
    assert "left_over" in (shipped / "source/scores.csv").read_text()
    assert not [path for path in shipped.glob("*.csv") if path.name.count(".") > 1]


def test_a_sweep_shows_the_runs_of_its_points_and_the_base_model():
    runs = {"model": ["m", "m", "n"], "variant": ["pi_0", "geosd-a", "geosd-a"]}
    table, points = pd.DataFrame(runs), {"m": [{"run": "geosd-a", "variant": "geosd"}]}
    assert shipped_shows_all(table, {"models": ["m", "n"], "points": points})
    assert not shipped_shows_all(table, {"models": ["m"], "points": points})
    assert not shipped_shows_all(table, {"models": ["m", "n"], "methods": ["geosd"]})
    assert shipped_shows_all(table, {})


def test_a_large_table_is_shipped_compressed_and_read_like_any_other(tmp_path):
    tables, study = made_up_tables(), tmp_path / "study"
    path = tmp_path / "scores.csv"
    tables["scores"].to_csv(path, index=False)
    (plain,) = ship_tidy_tables([path], study)
    assert plain.read_bytes() == path.read_bytes()
    copies = -(-LARGE // len(path.read_bytes()))
    runs = [tables["scores"].assign(seed=tables["scores"]["seed"] + 9 * n) for n in range(copies)]
    pd.concat(runs).to_csv(path, index=False)
    (large,) = ship_tidy_tables([path], study)
    assert large.name == "scores.csv.gz" and not plain.exists()
    assert gzip.decompress(large.read_bytes()) == path.read_bytes()
    pd.testing.assert_frame_equal(read_tidy("scores", large), read_tidy("scores", path))


def test_a_tidy_table_that_was_changed_is_refused(shipped, tmp_path):
    shutil.copytree(shipped, tmp_path / "quick")
    scores = tmp_path / "quick/source/scores.csv"
    scores.write_text(scores.read_text().replace("0", "1", 1))
    with pytest.raises(ValueError, match="(?s)scores.csv is not the tidy table.*Hint:"):
        ship.redraw_shipped("quick", tmp_path)


@pytest.mark.parametrize("text", [None, "{", '{"study": 3}'])
def test_a_manifest_that_is_not_whole_is_refused(tmp_path, text):
    (tmp_path / "quick").mkdir()
    if text is not None:
        (tmp_path / "quick/shipped.json").write_text(text)
    with pytest.raises(ValueError, match="(?s)no whole manifest.*Hint:"):
        ship.redraw_shipped("quick", tmp_path)


def test_what_dvc_keeps_is_not_shipped(tmp_path):
    pipeline = tmp_path / "dvc.yaml"
    pipeline.write_text("outs:\n- figures/quick/claims.md:\n")
    with pytest.raises(ValueError, match="(?s)keeps figures/quick.*Hint:"):
        ship.main("quick", (), Path("figures"), ROOT / "params.yaml", pipeline)


def test_what_was_published_with_dvc_is_not_shipped(tmp_path):
    pointer = tmp_path / "published/figures/quick.dvc"
    pointer.parent.mkdir(parents=True)
    pointer.touch()
    with pytest.raises(ValueError, match="(?s)quick.dvc lets DVC keep figures/quick.*Hint:"):
        ship.main("quick", (), Path("figures"), ROOT / "params.yaml", tmp_path / "dvc.yaml")


def test_without_its_environment_page_nothing_is_shipped(tmp_path):
    with pytest.raises(ValueError, match=r"(?s)environment.md is not there.*Hint: `make ship"):
        ship.main("quick", (), tmp_path, ROOT / "params.yaml", tmp_path / "dvc.yaml")
    assert not [*tmp_path.iterdir()]


def test_runs_of_a_commit_that_the_history_lacks_are_not_shipped(tmp_path, monkeypatch):
    """The page names two commits; the history, made here, has the first alone."""
    clone = tmp_path / "clone"
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    for words in (("init", "-q"), ("commit", "-q", "--allow-empty", "-m", "first")):
        made = tmp_path if words[0] == "init" else clone
        arguments = (*words, str(clone)) if words[0] == "init" else words
        subprocess.run(("git", *identity, *arguments), cwd=made, check=True)
    head = subprocess.run(("git", "rev-parse", "HEAD"), cwd=clone, capture_output=True, text=True)
    known, unknown = head.stdout.strip(), "0123456789" * 4
    assert unknown_commits([known, unknown], clone) == [unknown]
    assert unknown_commits([known], tmp_path / "nowhere") == [known]
    write_environment(tmp_path / "quick", known, unknown)
    page = (tmp_path / "quick/environment.md").read_text(encoding="utf-8")
    assert environment_commits(page) == [known[:10], unknown[:10]]
    monkeypatch.setattr(ship, "unknown_commits", lambda named: unknown_commits(named, clone))
    with pytest.raises(ValueError, match=rf"(?s) names {unknown[:10]}, which.*Hint: fetch"):
        ship.main("quick", (), tmp_path, ROOT / "params.yaml", tmp_path / "dvc.yaml")
    assert {path.name for path in (tmp_path / "quick").iterdir()} == {"environment.md"}


def test_every_commit_that_a_shipped_page_names_is_in_the_history_or_said_to_be_lost():
    shallow = subprocess.run(
        ("git", "rev-parse", "--is-shallow-repository"), cwd=ROOT, capture_output=True, text=True
    )
    if shallow.stdout.strip() != "false":
        pytest.skip("no clone, or a shallow one, which lacks the commits")
    named = {}
    for page in sorted(ROOT.glob("figures/*/environment.md")):
        if page.parent.joinpath("shipped.json").exists():
            named[page] = environment_commits(page.read_text(encoding="utf-8"))
    every = dict.fromkeys(commit for commits in named.values() for commit in commits)
    assert len(named) > 25 and len(every) > 5
    assert {*unknown_commits(every, ROOT)} == {*LOST_COMMITS}
    for page, commits in named.items():
        study = page.parent.name
        results = ROOT / f"docs/results/{study}.md"
        for text in (page.read_text(encoding="utf-8"), results.read_text(encoding="utf-8")):
            says = set(re.findall(r"[0-9a-f]{10}", " ".join(re.findall(LACKS, text))))
            assert says == {*commits} & {*LOST_COMMITS}, study
        assert all(study in LOST_COMMITS[commit] for commit in says)


def test_git_keeps_shipped_folders_and_no_others(shipped, tmp_path):
    shutil.copy(ROOT / ".gitignore", tmp_path)
    shutil.copytree(shipped, tmp_path / "figures/quick")
    (tmp_path / "figures/other").mkdir()
    (tmp_path / "figures/other/claims.md").touch()
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    subprocess.run(["git", "-C", tmp_path, "add", "."], check=True)
    kept = subprocess.run(
        ["git", "-C", tmp_path, "ls-files", "figures"], capture_output=True, text=True, check=True
    ).stdout.split()
    recorded = read_shipped(shipped)
    names = {"shipped.json", "environment.md", *recorded.inputs, *recorded.files}
    assert set(kept) == {f"figures/quick/{name}" for name in names}


def test_the_page_of_a_study_shows_each_output_and_the_index_links_it(shipped):
    index = shipped.parent / "docs/results.md"
    pages = study_pages([shipped], index)
    page = index.parent / "results/quick.md"
    assert set(pages) == {index, page}
    for name in STUDY.outputs:
        if name != "claims":
            assert f"## {output_spec_title(name)}\n" in pages[page]
    assert "- [quick](results/quick.md): " in pages[index]
    links = [(at, link) for at in pages for link in re.findall(r"\]\((\.\./[^)]+)\)", pages[at])]
    assert len(links) > 12
    files = [(at.parent / link).resolve() for at, link in links]
    assert all(file.is_file() or file == index for file in files)
    assert (shipped / "claims.svg").resolve() in files


REPOSITORY = sorted(ROOT.glob("figures/*/shipped.json"))


@pytest.mark.parametrize("manifest", REPOSITORY, ids=lambda path: path.parent.name)
def test_shipped_files_are_those_of_their_manifest(manifest):
    recorded = read_shipped(manifest.parent)
    assert not changed_shipped_files(manifest.parent, {**recorded.inputs, **recorded.files})


@pytest.mark.parametrize("manifest", REPOSITORY, ids=lambda path: path.parent.name)
def test_shipped_captions_say_what_the_declarations_of_today_say(manifest):
    for name, settings in read_shipped(manifest.parent).outputs.items():
        if name != "claims":
            shipped = manifest.with_name(f"{name}.caption.md").read_text(encoding="utf-8")
            caption = output_spec_caption(name, settings.get("models", ()))
            words = f"**{output_spec_title(name)}.** {caption}"
            assert " ".join(shipped.split()).startswith(words), "make figures"


OF_STUDIES = [path for path in REPOSITORY if not read_shipped(path.parent).studies]
"""Manifests of studies, which have runs; a family has those of its studies."""


@pytest.mark.parametrize("manifest", OF_STUDIES, ids=lambda path: path.parent.name)
def test_a_manifest_and_the_environment_page_say_the_same_of_the_runs(manifest):
    made = read_shipped(manifest.parent).made
    page = manifest.with_name("environment.md").read_text(encoding="utf-8")
    lines = [[cell.strip() for cell in line.split("|")] for line in page.splitlines()]
    in_cells = {cell for line in lines for cell in line}
    machine, _, accelerators = made.machine.partition(", ")
    assert {made.date, made.commit, machine, accelerators or "none", made.cpus} <= in_cells
    for words in made.steps.split(", "):
        step, runs, _, time = words.split(" ", 3)
        (line,) = (line for line in lines if line[1:2] == [step])
        assert {runs, time} <= set(line)


LARGEST = ("miniature", "miniature_rates")
"""Studies that take half a minute each to draw."""
WRITERS = ("geosd/files.py", "geosd/provenance/")
"""Code behind an output that draws nothing of it."""


def is_of_today(shipped: ShippedManifest) -> bool:
    """Whether the code that draws a shipped study, and its packages, are those of its manifest."""
    today, recorded = ship.shipping_code(shipped.outputs), shipped.code
    changed = [n for n in today.keys() | recorded.keys() if today.get(n) != recorded.get(n)]
    packages = {name: version(name) for name in PACKAGES}
    return shipped.packages == packages and all(name.startswith(WRITERS) for name in changed)


def always_drawn() -> set[str]:
    """Studies that together show each output of all but the largest, those of the fewest bytes."""
    folders = [path.parent for path in REPOSITORY if path.parent.name not in LARGEST]
    bytes_of = {folder: sum(map(os.path.getsize, folder.glob("source/*"))) for folder in folders}
    smallest: dict[str, str] = {}
    for folder in sorted(folders, key=bytes_of.__getitem__):
        for output in read_shipped(folder).outputs:
            smallest.setdefault(output, folder.name)
    return {*smallest.values()}


@pytest.mark.slow
@pytest.mark.parametrize("manifest", REPOSITORY, ids=lambda path: path.parent.name)
def test_the_code_of_today_draws_what_is_shipped(manifest, tmp_path, no_png):
    """Each study whose code or packages are others than in its manifest; and each output once.

    Where both are those of the manifest, only the machine could draw an output otherwise.
    """
    study = manifest.parent.name
    if study not in always_drawn() and is_of_today(read_shipped(manifest.parent)):
        return
    shutil.copytree(manifest.parent, tmp_path / study)
    for name in read_shipped(manifest.parent).studies:
        (tmp_path / name).symlink_to(ROOT / "figures" / name)
    redraw_figures(study, tmp_path)
    redrawn = json.loads((tmp_path / study / "shipped.json").read_text())["files"]
    recorded = read_shipped(manifest.parent).files
    changed = {name for name, digest in recorded.items() if redrawn[name] != digest}
    assert not changed, f"make figures STUDY={study}, and look at what git shows"


@pytest.mark.slow
def test_a_processor_that_sorts_equal_keys_otherwise_draws_the_same(tmp_path, monkeypatch, no_png):
    """Without `kind="stable"` numpy leaves the order of equal keys to the processor."""
    stable = pd.DataFrame.sort_values

    def otherwise(rows, by, *, kind="quicksort", **options):
        free = kind != "stable" and isinstance(by, str)  # several keys are always sorted stably
        return stable(rows.iloc[::-1] if free else rows, by, kind="stable", **options)

    shutil.copytree(ROOT / "figures/smollm2_methods", tmp_path / "smollm2_methods")
    recorded = read_shipped(tmp_path / "smollm2_methods").files
    monkeypatch.setattr(pd.DataFrame, "sort_values", otherwise)
    ship.redraw_shipped("smollm2_methods", tmp_path)
    assert read_shipped(tmp_path / "smollm2_methods").files == recorded


def test_the_pages_of_results_are_those_of_what_is_shipped():
    index = ROOT / "docs/results.md"
    pages = study_pages([path.parent for path in REPOSITORY], index)
    kept = [index, *index.with_suffix("").glob("*.md")]
    assert {page: page.read_text() for page in kept} == pages, "make results"


@pytest.mark.slow
def test_the_metrics_that_git_keeps_are_those_of_what_is_shipped(tmp_path):
    kept = ROOT / "docs/metrics"
    pages.dvc_metrics_page_program(ROOT / "figures", tmp_path)
    shipped = {file for file in kept.rglob("*.json") if "own" not in file.parts}
    assert {file.relative_to(kept).as_posix(): file.read_text() for file in shipped} == {
        file.relative_to(tmp_path).as_posix(): file.read_text() for file in tmp_path.rglob("*.json")
    }, "make results"
    with Repo(str(ROOT)) as repo:
        shown = repo.metrics.show(["docs/metrics/miniature/mini-llama/geosd.json"])[""]["data"]
    (numbers,) = (file["data"] for file in shown.values())
    table = pd.read_csv(ROOT / "figures/miniature/table_main.csv", index_col="method")
    of_table = round(table.loc["GeoSD", "mini-llama.id"], 2)
    assert numbers["ID avg@16"] == of_table


@pytest.mark.slow
def test_in_a_fresh_clone_dvc_shows_metrics_without_an_error_in_few_columns(tmp_path):
    """As people type it: what git keeps is there, and no result of a run."""
    names = subprocess.run(
        ["git", "ls-files", "-z", "docs/metrics", ".dvc", ".dvcignore", "dvc.yaml", "dvc.lock"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split("\0")  # fmt: skip
    for name in filter(None, names):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for name in ("params.yaml", "workflow", "src"):
        (tmp_path / name).symlink_to(ROOT / name)
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    command = [sys.executable, "-m", "dvc", "metrics", "show", "--md"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    header, _, *rows = done.stdout.strip().splitlines()
    columns = [word.strip() for word in header.strip("|").split("|")]
    assert columns[0] == "Path" and {"ID avg@16", "OOD avg@16"} <= set(columns)
    assert len(columns) <= 12
    assert len(rows) == len([name for name in names if name.startswith("docs/metrics")])
    assert any(row.startswith("| docs/metrics/miniature/mini-llama/geosd.json") for row in rows)


@pytest.mark.slow
def test_a_capsule_has_the_shipped_form_of_a_study_that_is_not_shipped(
    tmp_path, monkeypatch, no_png
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "base_models").symlink_to(ROOT / "base_models")
    folders, params = RunFolders(STUDY), ROOT / "params.yaml"
    with pytest.raises(ValueError, match=r"(?s)study quick is not finished.*Hint: make run"):
        _as_shipped("quick", folders, params, tmp_path / "home")
    for name, table in made_up_tables().items():
        file = tmp_path / folders.tidy_files()[name][0]
        file.parent.mkdir(parents=True, exist_ok=True)
        table.to_csv(file, index=False)
    with pytest.raises(ValueError, match=r"(?s)runs.csv is missing: study quick is not finished"):
        _as_shipped("quick", folders, params, tmp_path / "home")
    rows, of_any_step = folders.rows(), step_manifest("analyse", [], {}, 1.0)
    write_run_folders(tmp_path / "results/quick/runs.csv", rows)
    run_folders = {folder for row in rows for folder in (row.base, row.train, row.evaluate)} - {""}
    for folder in run_folders:
        write_manifest(tmp_path / folder / "manifest.json", of_any_step)
    made = _as_shipped("quick", folders, params, tmp_path / "home")
    manifest = read_shipped(made)
    assert f"evaluate {len({row.evaluate for row in rows})} runs" in manifest.made.steps
    assert {*manifest.outputs} == {*STUDY.outputs} and not Path("figures").exists()
    assert not changed_shipped_files(made, manifest.files | manifest.inputs)
    assert yaml.safe_load((made / "configuration.yaml").read_text()) == configuration_rule_settings(
        STUDY
    )
    page = (made / "environment.md").read_text()
    for step in ("base", "train", "evaluate"):
        ran = {getattr(row, step) for row in rows} - {""}
        assert re.search(rf"^\| {step} +\|[^|]*\|[^|]*\| +{len(ran)} \|", page, re.M), page


@pytest.mark.slow
def test_a_capsule_is_checked_without_torch():
    program = "import sys, geosd.cli.verify; print({'torch', 'transformers'} & {*sys.modules})"
    done = python("-c", program)
    assert done.stdout == "set()\n", done.stderr
