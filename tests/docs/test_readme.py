"""The lines of Python of README and docs/trainers.md run, and K-FAC's G acts in them.

The lines on TRL are run by tests/integrations/test_geosd_trainer.py, where TRL is installed.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from cases import decoder

from geosd.config import load, resolve_study
from geosd.reporting.sentences import SENTENCES
from geosd.reporting.shipping import read_shipped
from geosd.reporting.specs import output_specs

VOCABULARY = 64


COMMANDS = (
    *("git clone", "make run", "make test", "make figures STUDY=miniature"),
    *("snakemake --profile slurm", "dvc repro train@mini-qwen3-geosd-0"),
)


@pytest.fixture
def first_screen(root):
    """The paragraphs of README above its first command; each finding is a paragraph's line."""
    text = (root / "README.md").read_text(encoding="utf-8")
    return text.partition("```\ngit clone")[0].split("\n\n")


def test_the_door_has_the_commands_in_one_block(root):
    text = (root / "README.md").read_text(encoding="utf-8")
    block = re.search(r"^```\n(git clone.*?)^```", text, re.M | re.S)[1]
    assert [command for command in COMMANDS if command not in block] == []


def test_the_door_says_what_has_not_been_run(first_screen):
    not_run, _, rest = SENTENCES["not_run"].strip().partition("\n")
    said, _, of_numbers = first_screen[2].partition("\n")
    assert said == not_run
    assert "toy models in a made-up world" in of_numbers
    assert of_numbers.endswith("neither confirm nor refute the paper's.")
    assert rest.endswith("neither confirm nor refute the paper's.")


def test_the_door_has_at_most_220_words_above_its_first_command(first_screen):
    """All words of the source, those of a link and of the alternative text too."""
    words = [word for word in "\n\n".join(first_screen).split() if re.search(r"\w", word)]
    assert 150 < len(words) <= 220


def test_the_door_has_its_picture_and_one_line_a_finding_above_the_commands(first_screen):
    picture, findings = first_screen[3], first_screen[-2].splitlines()
    assert picture.startswith("![") and picture.endswith(".svg)")
    assert len(findings) == 7
    for line in findings:
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)|\*\*", r"\1", line)
        assert line.startswith("- **") and len(shown) < 125, line
        (page,) = re.findall(r" \(\[\w+\]\((docs/\w+\.md#[\w-]+)\)\)\.$", line)


def test_the_table_of_storeys_has_each_room_once(root):
    text = (root / "README.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"^\| storey .*\n((?:\|.*\n)+)", text, re.M)
    rows = [line.split("|")[1:-1] for line in table.splitlines()[1:]]
    rooms = [room for _, names, _ in rows for room in re.findall(r"`(\w+)`", names)]
    folders = {path.parent.name for path in (root / "src/geosd").glob("*/__init__.py")}
    assert len(rows) == 6 and sorted(rooms) == sorted(folders)


def test_each_figure_and_table_of_the_paper_has_a_row_with_what_is_shipped(root, tex):
    text = (root / "README.md").read_text(encoding="utf-8")
    row = r"^\| ((?:Figure|Table) \w+) \| \[(\w+)\]\((\S+)\), (\w+) \| (.+) \|$"
    rows, params = re.findall(row, text, re.M), load(root / "params.yaml")
    assert {name for _, name, *_ in rows} >= {n for n, s in output_specs().items() if s.paper}
    for label, name, file, study, of in rows:
        spec = output_specs()[name]
        assert spec.paper in (label, "")
        assert file == f"figures/{study}/{Path(file).name}" and (root / file).stem == name
        assert name in read_shipped(root / "figures" / study).outputs and (root / file).exists()
        known = of in ("arithmetic", "settings")
        assert known or name in resolve_study(params, of.strip("`")).outputs
    labels = re.findall(r"^ *\\label\{(fig|tab):(\w+)\}", tex, re.M)
    kinds = {"fig": "Figure", "tab": "Table"}
    assert {f"{kinds[kind]} {name}" for kind, name in labels} == {label for label, *_ in rows}


def test_every_picture_and_table_of_the_readme_is_an_output_of_the_workflow(root):
    """The study or family of each in params.yaml ends in it, and its manifest has its hash."""
    text = (root / "README.md").read_text(encoding="utf-8")
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text)
    tables = re.findall(r"(?<!!)\[[^\]]*\]\((figures/[^)]+)\)", text)
    assert len(pictures) > 0 and len(tables) > 15
    params = load(root / "params.yaml")
    for link in (*pictures, *tables):
        folder, study, file = link.split("/")
        assert folder == "figures", f"{link} is made by no rule"
        assert Path(file).stem in params.entries[study].outputs, link
        assert file in read_shipped(root / folder / study).files, link


def test_every_file_below_figures_that_a_page_links_is_an_output_of_the_workflow(root):
    params, count = load(root / "params.yaml"), 0
    of_each = {"configuration.yaml", "environment.md", "shipped.json"}
    for page in (root / "docs").glob("*.md"):
        text = page.read_text(encoding="utf-8")
        for study, file in re.findall(r"\]\(\.\./figures/(\w+)/([\w.]+)\)", text):
            if file not in of_each:
                shown = read_shipped(root / "figures" / study).files
                assert file in shown, f"{page.name}: {study}/{file}"
                output = file.partition(".")[0]
                assert output in params.entries[study].outputs, f"{page.name}: {study}/{file}"
                count += 1
    assert count > 10


@pytest.fixture
def blocks(root):
    """The blocks of Python on the core of docs/trainers.md, joined in their order."""
    found, readme = (
        re.findall(r"^```python\n(.*?)^```", (root / name).read_text(), re.M | re.S)
        for name in ("docs/trainers.md", "README.md")
    )
    assert readme == found[:1]
    core = [block for block in found if "integrations.trl" not in block]
    assert len(core) == len(found) - 1 == 2
    return "\n".join(core)


def names():
    """What the README takes for granted: a model, padded tokens, logits of the other models."""
    sizes = {"vocab_size": VOCABULARY, "hidden_size": 64, "intermediate_size": 96, "head_dim": 16}
    model = decoder(**sizes, initializer_range=0.2)
    ids = torch.randint(VOCABULARY, (8, 48))
    place = torch.arange(48)
    mask = place < torch.randint(32, 49, (8, 1))
    logits = 2 * torch.randn(3, 8, 48, VOCABULARY)
    return {
        **dict(zip(("student_logits", "teacher_logits", "anchor_logits"), logits, strict=True)),
        **{"model": model, "ids": ids, "mask": mask, "response": mask & (place >= 8)},
        "optimizer": torch.optim.AdamW(model.parameters()),
    }


def test_the_lines_run_and_g_is_large_enough_against_the_damping(blocks):
    namespace = names()
    before = namespace["model"].model.layers[0].mlp.up_proj.weight.detach().clone()
    exec(blocks, namespace)
    assert not torch.equal(before, namespace["model"].model.layers[0].mlp.up_proj.weight)
    assert namespace["loss"].isfinite()
    sizes = namespace["kfac"].spectrum()
    assert sizes["sqrt_damping"] == pytest.approx(1e-3**0.5)
    assert sizes["g_mean"] > 1e-3 * sizes["sqrt_damping"]
    assert sizes["g_max"] > 1e-2 * sizes["sqrt_damping"]


def test_without_the_number_of_terms_g_would_vanish(blocks):
    namespace, without = names(), names()
    exec(blocks, namespace)
    exec(blocks.replace(", loss_terms=response.sum()", ""), without)
    terms = int(namespace["response"].sum())
    acts, vanishes = (each["kfac"].spectrum()["g_mean"] for each in (namespace, without))
    assert vanishes * terms**2 == pytest.approx(acts, rel=1e-4)
    assert vanishes < 1e-7 * namespace["kfac"].spectrum()["sqrt_damping"]
