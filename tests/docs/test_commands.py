"""Every command of README and docs is one: the program that would read it takes its words.

Nothing is run: `make` has the target and the variables, `geosd`, `snakemake` and `dvc` parse their
own words, and a program of the repository is there with the options that a page gives it.
"""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import dvc.cli.parser
import pytest
import snakemake.cli
import tyro

from geosd.cli import command
from geosd.cli.signatures import signature_of
from geosd.config import load

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("", "benchmarks", "config", "tests/hostile", "tests/rehearsal")
PAGES = [ROOT / name / "README.md" for name in FOLDERS]
PAGES += [ROOT / "CONTRIBUTING.md", ROOT / "ARTIFACT.md"]
PAGES += [*sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "analysis").glob("*.md"))]
PROGRAMS = ("make", "geosd", "snakemake", "dvc", "python")
OTHERS = "accelerate apptainer bash git hf pip sbatch source torchrun uv .venv/bin/pytest".split()
"""Programs of others, whose words no test here knows."""
BEGINS = rf"^(?:[A-Z]\w*=\S+ )*({'|'.join(map(re.escape, [*PROGRAMS, *OTHERS]))})(?= )"


def commands_of(page: Path) -> list[str]:
    """The commands in a page's blocks and between its backticks, without what explains them."""
    blocks = r"^```(?:bash|sh)?\n(.*?)^```"
    text = page.read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    lines = "\n".join(re.findall(blocks, text, re.M | re.S)).splitlines()
    lines += re.findall(r"^    (\S.*)$", prose, re.M) + re.findall(r"`([^`\n]+)`", prose)
    parts = (p.strip() for li in lines for p in re.split(r" && |;|\s{3,}| # ", li.strip())[:2])
    return [part for part in dict.fromkeys(parts) if re.search(BEGINS, part)]


COMMANDS: dict[str, list[list[str]]] = {name: [] for name in (*PROGRAMS, *OTHERS)}
"""Program -> the words of each of its commands in the documents, with variables set before it."""
for _page in PAGES:
    for _line in commands_of(_page):
        _words = shlex.split(_line)
        _place = next(i for i, word in enumerate(_words) if not re.match(r"[A-Z]\w*=", word))
        COMMANDS[_words[_place]].append(_words[:_place] + _words[_place + 1 :])


@pytest.fixture(scope="module")
def studies() -> set[str]:
    """The studies of params.yaml, and how pages write that it is any, or one of one's own."""
    return {*load(ROOT / "params.yaml").entries, "NAME", "name", "...", "short", "own", "worlds"}


def is_study(word: str, studies: set[str]) -> bool:
    return word in studies or "$" in word  # a loop's variable


def test_make_has_each_target_and_variable(studies):
    text = "".join((ROOT / name).read_text(encoding="utf-8") for name in ("Makefile", "dev.mk"))
    rules = " ".join(re.findall(r"^([\w./ -]+):", text, re.M))
    targets, known = {*rules.split()}, {*re.findall(r"\$\((\w+)\)", text)}
    assert len(COMMANDS["make"]) > 60
    for words in COMMANDS["make"]:
        values = dict(word.split("=", 1) for word in words if "=" in word)
        assert {word for word in words if "=" not in word} <= targets, words
        assert values.keys() - {"ATEN_CPU_CAPABILITY"} <= known, words
        assert is_study(values.get("STUDY", "NAME"), studies), words


def test_geosd_takes_the_words_of_each_command():
    assert len(COMMANDS["geosd"]) > 12
    for name, *words in COMMANDS["geosd"]:
        assert name in [*command.PROGRAMS, "NAME", "--help"], name
        if not words or name in (*command.ALONE, "NAME") or words == ["--help"]:
            continue
        tyro.cli(signature_of(*command.PROGRAMS[name]), args=words)  # SystemExit: what is wrong


def test_snakemake_takes_the_words_of_each_command(studies):
    parser = snakemake.cli.get_argument_parser([])
    rules = "".join(path.read_text() for path in (ROOT / "workflow").rglob("*.smk"))
    assert len(COMMANDS["snakemake"]) > 8
    for words in COMMANDS["snakemake"]:
        taken = parser.parse_args(words)
        assert all((ROOT / "profiles" / profile).is_dir() for profile in taken.profile or ())
        for value in taken.config or ():
            assert value.startswith("study=") and is_study(value.removeprefix("study="), studies)
        for target in taken.targets:
            name = Path(target).stem
            assert f"rule {name}:" in rules or importlib.util.find_spec(f"geosd.reporting.{name}")


def test_dvc_takes_the_words_of_each_command():
    parser = dvc.cli.parser.get_main_parser()
    pipeline = (ROOT / "dvc.yaml").read_text(encoding="utf-8")
    assert len(COMMANDS["dvc"]) > 4
    for words in COMMANDS["dvc"]:
        if words[-1] == "--set-param":
            words = [*words, "training.steps=50"]
        taken = parser.parse_args(words)
        for target in taken.targets if words[0] == "repro" else ():
            rule, _, run = target.partition("@")
            assert f"\n  {rule}:\n" in pipeline and f"\n      {run}:\n" in pipeline


def test_programs_of_the_repository_are_there_with_their_options():
    assert len(COMMANDS["python"]) > 12
    for words in COMMANDS["python"]:
        words = [word for word in words if not re.match(r"[A-Z]\w*=", word)]
        options = [word[2:].replace("-", "_") for word in words if word.startswith("--")]
        if words[0] == "-m":
            spec = importlib.util.find_spec(words[1])
            path = spec and Path(spec.origin)
            if words[1] in ("pip", "pytest"):
                options, path = [], ROOT / (words[-1] if words[1] == "pytest" else "")
        else:
            path = ROOT / words[0]
        assert path and path.exists(), words
        near = "".join(file.read_text() for file in path.parent.glob("*.py")) if options else ""
        assert all(re.search(rf"\b{option}\b", near) for option in options), words
