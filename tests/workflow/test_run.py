"""What `geosd run` and its like hand to Snakemake and DVC, and what they do around them."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from geosd.cli import extras, figures, pages, publish, run, snakemake_runs
from geosd.cli.snakemake_runs import snakemake
from geosd.config import load, resolve_family, resolve_study
from geosd.config.run_folders import RunFolders
from geosd.provenance.code import code_version
from geosd.provenance.manifest import manifest, write_manifest


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """A folder in which Python is a program that does what a test says."""
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "python"
    monkeypatch.setattr(sys, "executable", str(program))

    def does(text: str) -> None:
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)

    does('echo "$@" >> words')
    return does


@pytest.mark.parametrize(
    ("call", "rules"),
    [
        (pages.report_page_program, {"front_page"}),
    ],
)
def test_a_command_hands_snakemake_its_rules(fresh, stand_in, tmp_path, monkeypatch, call, rules):
    monkeypatch.setattr(pages, "write_snakemake_report", lambda study: None)
    call("quick")
    _, _, *arguments = shlex.split((tmp_path / "words").read_text())
    planned = fresh.snakemake("--dry-run", *arguments)
    jobs = {line.split()[0] for line in planned.splitlines() if line.split()[1:] == ["1"]}
    assert rules <= jobs


def test_make_ship_hands_snakemake_its_rule(root):
    command = [
        "make",
        "--no-print-directory",
        "--dry-run",
        "--old-file=.venv/installed",
        "ship",
        "STUDY=small",
    ]
    printed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    assert printed.splitlines()[0].endswith("--config study=small -- ship")


def test_figures_are_drawn_of_what_is_complete_or_shipped_and_nothing_is_run(
    done, stand_in, tmp_path, monkeypatch, capsys
):
    redrawn, words = [], tmp_path / "words"
    monkeypatch.setattr(figures, "redraw_figures", redrawn.append)
    monkeypatch.chdir(done.folder)
    stand_in(f'echo "$@" >> {words}')
    done.append("src/geosd/training/loop.py", "\nEDITED = True\n")  # what is there is stale
    done.append("src/geosd/reporting/table_main.py", "\nEDITED = True\n")
    figures.main("quick")
    assert capsys.readouterr().out == "Figures  figures/quick/: nothing to draw again\n"
    _, _, *arguments = shlex.split(words.read_text().replace("--logger brief", ""))
    stand_in(f'echo "$@" >> {words}; echo drawn > figures/quick/table_main.md')
    figures.main("quick")
    assert capsys.readouterr().out == "Figures  figures/quick/: table_main\n"
    words.unlink()
    planned = done.snakemake("--dry-run", *arguments)
    jobs = {line.split()[0] for line in planned.splitlines() if line.split()[1:] == ["1"]}
    assert jobs - {"tables", "figures"} == {"table_main"} and redrawn == []

    scores = Path("results/quick/analyse/scores.csv")
    scores.unlink()  # the folder of results is there, half-made
    with pytest.raises(SystemExit, match=rf"(?s)  {scores}\nHint: `make run STUDY=quick`") as told:
        figures.main("quick")
    assert "training_curves" not in str(told.value)  # which is there
    Path("figures/quick/shipped.json").touch()
    files = iter([{"a.csv": "1", "b.md": "2"}, {"a.csv": "1", "b.md": "3"}])
    shipped = partial(SimpleNamespace, studies=())
    monkeypatch.setattr(figures, "read_shipped", lambda folder: shipped(files=next(files)))
    figures.main("quick")
    assert redrawn == ["quick"] and not words.exists()
    said = "Figures  figures/quick/: 2 files drawn of its source/, not as shipped: b.md\n"
    assert capsys.readouterr().out == said


@pytest.mark.parametrize(
    ("study", "needed"),
    [
        ("quick", []),
        ("smollm2_methods", ["smollm2"]),
        ("own", ["smollm2"]),
        ("qwen05_rates", ["gguf"]),
    ],
)
def test_what_make_run_installs_follows_from_the_models_of_the_study(
    root, tmp_path, monkeypatch, capsys, study, needed
):
    own = "  own: {extends: smollm2, kind: main, about: A name of its own.}\n\n  quick_selection:\n"
    text = (root / "params.yaml").read_text(encoding="utf-8")
    (tmp_path / "params.yaml").write_text(text.replace("  quick_selection:\n", own, 1))
    (tmp_path / "base_models").symlink_to(root / "base_models")
    monkeypatch.chdir(tmp_path)
    extras.main(study, root / "envs")
    assert capsys.readouterr().out.split() == needed


@pytest.mark.parametrize(
    ("study", "cards", "needed"),
    [
        ("one_gpu", "0", ["gpu"]),
        ("one_gpu_24gb", "0", ["gpu", "lora"]),
        ("one_gpu", "", []),  # vLLM's several GB serve no laptop
        ("quick", "0", []),
    ],
)
def test_vllm_is_installed_where_a_study_samples_by_it_and_a_gpu_is_there(
    root, monkeypatch, capsys, study, cards, needed
):
    monkeypatch.chdir(root)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", cards)
    extras.main(study)
    assert capsys.readouterr().out.split() == needed
    rules = (root / "Makefile").read_text() + (root / "dev.mk").read_text()
    assert all(f".venv/installed-{name}" in rules for name in needed)


@pytest.mark.parametrize("given", ["", "/a b:/c;d", "$(touch pwned)'\""])
def test_a_path_of_python_with_any_character_reaches_snakemake_whole(
    stand_in, tmp_path, monkeypatch, given
):
    stand_in('printf %s "$PYTHONPATH" > path')
    monkeypatch.setenv("PYTHONPATH", given)
    snakemake("quick", "--dry-run")
    assert (tmp_path / "path").read_text() == ":".join(filter(None, ["workflow/logger", given]))


def test_an_error_of_snakemake_is_the_status_and_nothing_follows(
    root, stand_in, tmp_path, monkeypatch
):
    stand_in(f'echo "$@" >> {tmp_path}/words; exit 3')
    monkeypatch.chdir(root)  # where params.yaml is
    with pytest.raises(SystemExit) as ended:
        run.main("quick")
    assert ended.value.code == 3
    assert len((tmp_path / "words").read_text().splitlines()) == 1


def test_the_report_appears_only_where_snakemake_succeeds(stand_in, tmp_path):
    writes = 'while [ "$1" != --report ]; do shift; done\necho whole > "$2"\nexit'
    page = tmp_path / "results/quick/provenance.html"
    page.parent.mkdir(parents=True)
    failed = "how study quick was made could not be written: OSError: no style.*\nHint: .*complete"
    stand_in(f"echo 'OSError: no style'; echo 'More words.'; {writes} 3")
    with pytest.raises(SystemExit, match=f"(?s){failed}"):
        snakemake_runs.write_snakemake_report("quick")
    assert not list(page.parent.iterdir())  # nor what is half written
    stand_in(f"{writes} 0")
    snakemake_runs.write_snakemake_report("quick")
    assert page.read_text() == "whole\n"
    stand_in("exit 3")  # it is current
    snakemake_runs.write_snakemake_report("quick")
    (tmp_path / "figures/quick").mkdir(parents=True)
    table = tmp_path / "figures/quick/table_main.md"
    table.touch()
    os.utime(table, (page.stat().st_mtime + 1,) * 2)
    with pytest.raises(SystemExit):
        snakemake_runs.write_snakemake_report("quick")


@pytest.mark.slow
def test_a_family_runs_each_of_its_studies_and_is_drawn_last(monkeypatch, root):
    ran = []
    monkeypatch.chdir(root)
    monkeypatch.setattr(run, "snakemake", lambda name, *words: ran.append(name))
    monkeypatch.setattr(run, "print_run_summary", lambda study: None)
    monkeypatch.setattr(run, "write_snakemake_report", lambda study: None)
    run.main("miniature_parts")
    family = resolve_family(load("params.yaml"), "miniature_parts")
    assert len(family.studies) > 1
    assert ran == [*family.studies, "miniature_parts"]


def test_what_was_found_is_said_before_the_report_of_how_it_was_made(monkeypatch, root, capsys):
    def fails(study):
        print("how it was made")
        raise SystemExit("no room")

    monkeypatch.chdir(root)
    monkeypatch.setattr(run, "snakemake", lambda *of: None)
    monkeypatch.setattr(run, "write_snakemake_report", fails)
    monkeypatch.setattr(run, "print_run_summary", lambda study: print("the finding"))
    with pytest.raises(SystemExit, match="no room"):
        run.main("quick")
    said = capsys.readouterr().out
    assert said.index("the finding") < said.index("Report   results/quick/report.html")
    assert said.index("report.html") < said.index("how it was made")


def test_a_run_that_fails_on_a_full_disk_says_so_last(stand_in, monkeypatch, capfd):
    stand_in("echo 'anything else'; exit 1")
    monkeypatch.setattr(
        snakemake_runs, "refused_by_disk", lambda folder: 122 * (folder.name == "figures")
    )
    with pytest.raises(SystemExit):
        snakemake("quick")
    last = capfd.readouterr().err.splitlines()[-2:]
    assert last[0] == "figures: [Errno 122] the quota on this disk is used up."
    assert last[1].startswith("Hint: make room")


@pytest.mark.parametrize("folder", ["results", "scratch", "figures"])
def test_a_link_to_a_disk_that_is_not_there_is_named(stand_in, root, tmp_path, monkeypatch, folder):
    for name in ("params.yaml", "base_models"):
        (tmp_path / name).symlink_to(root / name)
    (tmp_path / folder).symlink_to("/nowhere/disk")
    with pytest.raises(FileNotFoundError, match=f"{folder} is a link to /nowhere/disk.*\nHint: "):
        run.main("quick")
    assert not (tmp_path / "words").exists()


def test_two_clones_that_share_their_results_by_a_link_do_not_run_at_once(tmp_path, monkeypatch):
    (tmp_path / "disk").mkdir()
    for clone in ("one", "two"):
        (tmp_path / clone).mkdir()
        (tmp_path / clone / "results").symlink_to(tmp_path / "disk")
    monkeypatch.chdir(tmp_path / "one")
    with run._alone_in_results():
        monkeypatch.chdir(tmp_path / "two")
        with (
            pytest.raises(ValueError, match="Another run is at work in .*disk.*\nHint: "),
            run._alone_in_results(),
        ):
            pass
    with run._alone_in_results():
        pass


def test_files_of_a_finished_study_that_are_gone_are_named(root, tmp_path, monkeypatch, capsys):
    study = resolve_study(load(root / "params.yaml"), "quick")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "base_models").symlink_to(root / "base_models")
    folder = Path(RunFolders(study).rows()[0].evaluate)
    samples, scores = folder / "samples.jsonl", Path("results/quick/analyse/scores.csv")
    recorded = {scores: {"inputs": [samples]}, samples: {"inputs": [Path("results/gone.jsonl")]}}
    for path, named in recorded.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        inputs = {str(each): "0" for each in named["inputs"]}
        made = manifest("analyse", inputs, {}, 0.0, {path.name: "0"}, {})
        write_manifest(path.parent / "manifest.json", made)
    run._say_what_is_missing(study)
    assert capsys.readouterr().out == ""
    for path in (samples, scores):
        path.unlink()
    run._say_what_is_missing(study)
    head, *files, hint = capsys.readouterr().out.strip().splitlines()
    assert head.endswith("are gone (2):") and sorted(files) == [f"  {samples}", f"  {scores}"]
    assert hint.startswith("Hint: `snakemake --profile local --config study=quick -- results/")


@pytest.mark.parametrize(
    ("does", "why"),
    [
        ("echo 'fatal: detected dubious ownership in repository at x' >&2; exit 128", "another"),
        ("echo 'fatal: not a git repository (or any parent)' >&2; exit 128", "no git repository"),
        (None, "git is not installed"),
    ],
)
def test_why_no_commit_is_known_is_recorded_and_ends_no_run(
    tmp_path, monkeypatch, capsys, does, why
):
    if does:
        (tmp_path / "git").write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    recorded = code_version("analyse", {})
    assert recorded["commit"] is None and why in recorded["no_commit"]
    assert str(tmp_path) not in recorded["no_commit"]
    publish.dvc_commit("quick", finished=True)
    said = capsys.readouterr().out
    assert said.startswith("DVC does not know study quick: ") and "fatal" not in said
    run._say_why_no_commit()
    hinted = "Hint: `git config --global --add safe.directory" in capsys.readouterr().out
    assert hinted == (why == "another")
