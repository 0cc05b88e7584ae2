"""The page of a study: what comes first, what pictures say, where links lead."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from geosd.reporting import study_page
from geosd.reporting.run_summary import RunSummary
from geosd.reporting.sentences import SENTENCES
from geosd.reporting.specs import output_specs
from geosd.reporting.study_page import (
    StudyPage,
    caption_markdown,
    study_markdown,
    study_page_alt_text,
)
from geosd.scores.tidy import COLUMNS

OUTPUTS = ("table_benchmarks", "table_main", "figure_training", "claims", "figure_frontier")
QUANTITY = "OOD avg@k: geosd - pi_0"
"""What the effect of every made-up claim is a value of."""


@pytest.fixture
def study(tmp_path):
    """A study with five outputs, a primary claim that agrees and two that are not exercised."""
    figures, results = tmp_path / "figures/quick", tmp_path / "results/quick"
    figures.mkdir(parents=True)
    for name in OUTPUTS:
        if name.startswith("table_"):
            text = "# A title\n\nA note.\n\n## mini\n\n| a |\n|---|\n| 1 |\n"
            (figures / f"{name}.md").write_text(text)
    (figures / "claims.svg").touch()
    more = {"statement": "GeoSD gains", "unit": "points", "paper_effect": 8.6, "n_a": 3}
    more |= {"designed_for": "main", "units": 3, "confidence": 0.95}
    more |= {"comparison": "geosd - pi_0 > 0, avg@k of ood_avg"}
    more |= {"place": "Table main_id_ood", "effect": 1.25, "low": 0.5, "high": 2.0}
    more |= {"claimed_to": float("inf"), "holds_paper": "no"}
    rows = [
        {**dict.fromkeys(COLUMNS["claims"], 0), **more, "model": "mini", "word": word, "part": part}
        for word, part in (
            ("agrees", "primary"),
            ("not exercised", "other"),
            ("not exercised", "other"),
        )
    ]
    pd.DataFrame(rows).to_csv(figures / "claims.csv", index=False)
    page = results / "report.md"
    named = [name for name in OUTPUTS if name != "claims"]
    sources = [results / "analyse/scores.csv"]
    sources[0].parent.mkdir(parents=True)
    sources[0].write_text("model,variant,seed,draw\nm,geosd,0,0\n")
    return StudyPage(
        name="quick",
        about="A trial.",
        outputs=OUTPUTS,
        folder=figures,
        captions={name: caption_markdown(name, [], sources, page.parent) for name in named},
        page=page,
        claims_page=results / "pages/claims.html",
        models=("mini",),
        appendix={"All settings": results / "pages/configuration.html"},
        runs="π₀, GeoSD on mini, seeds 0, 1.",
        made=RunSummary(date="2026-11-25", commit="c", steps="s", machine="m", cpus="2"),
    )


@pytest.fixture
def text(study):
    return study_markdown(study)


def test_a_page_says_that_the_papers_models_have_not_been_run(study, text):
    assert text.index(SENTENCES["not_run"]) < text.index("seeds 0, 1")
    assert "have not been run" not in study_markdown(replace(study, models=("qwen3-8b",)))


def test_the_finding_comes_first_then_commands_the_main_picture_claims_and_the_rest(text):
    assert re.findall(r"^##? (.*)$", text, re.M) == [
        "Study quick",
        "The frontier of gains in and out of distribution",
        "The paper's claims",
        "Accuracy in and out of distribution",
        "Training curves",
        "Accuracy on each benchmark",
        "Appendix: how this was made",
    ]
    found = "**Of this study's claims 1 agrees; the first, agrees: GeoSD gains, +1.2 points"
    beside = f"({QUANTITY}; 3 runs, mini; the paper: +8.6)"
    first = [f"{found} [+0.5, +2.0] {beside}.**", "A trial."]
    first += [
        "make run STUDY=quick",
        "seeds 0, 1.",
        "*2026-11-25 · commit c · s · m · 2 CPUs*",
        "](../../figures/quick/figure_frontier.svg)",
        "**agrees**",
        "](../../figures/quick/claims.svg)",
    ]
    places = [text.index(words) for words in [*first, "## Accuracy"]]
    assert places == sorted(places)
    assert text.count("A title") == 0 and text.count("**mini**") == 2


def test_every_output_has_its_words_its_source_data_and_its_files_by_name(text, study):
    words = " ".join(text.split())
    for name in study.captions:
        of_figure = " ".join(output_specs()[name].words(beside_paper=False).split())
        assert (of_figure in words) == name.startswith("figure_")
    assert text.count("A note.") == 2
    assert text.count("Source data: [scores.csv](analyse/scores.csv).") == 4
    assert "[figure_frontier.pdf](../../figures/quick/figure_frontier.pdf)" in text
    assert "[table_main.tex](../../figures/quick/table_main.tex)" in text
    assert "(pages/claims.html)" in text and "[All settings](pages/configuration.html)" in text


def test_the_primary_claims_stand_once_and_the_others_are_counted(text):
    rows = [re.sub(" +", " ", line) for line in text.splitlines() if line.startswith("| ")]
    numbers = "+1.2 [+0.5, +2.0] | +8.6 | 3"
    assert rows.count(f"| agrees | GeoSD gains | {QUANTITY} | {numbers} |") == 1
    assert "Of the other claims 1 is not exercised." in " ".join(text.split())


def test_a_study_that_judges_no_claim_shows_estimates_in_their_place(study):
    table = pd.read_csv(study.folder / "claims.csv")
    table["word"] = table["word"].replace("agrees", "not judged")
    table.to_csv(study.folder / "claims.csv", index=False)
    text = study_markdown(study)
    assert "not meant to judge" in text.split("## Estimates for the paper's claims")[1]
    assert "not judged" not in text and "agrees" not in text
    rows = [re.sub(" +", " ", line) for line in text.splitlines() if line.startswith("| ")]
    assert f"| GeoSD gains | {QUANTITY} | +1.2 [+0.5, +2.0] | +8.6 | 3 |" in rows


def test_every_sentence_stands_on_a_page():
    pages = Path(study_page.__file__).parent.glob("*_page.py")
    code = "".join(page.read_text(encoding="utf-8") for page in pages)
    assert all(re.search(rf"[\"']{name}[\"']", code) for name in SENTENCES)


@pytest.mark.parametrize("name", [name for name in output_specs() if name.startswith("figure_")])
def test_a_pictures_alternative_says_what_the_figure_shows(name):
    words = study_page_alt_text(caption_markdown(name, [], [], Path()))
    title = output_specs()[name].title
    assert words.lower().startswith(f"{title.lower()}. ")
    assert len(words) > len(title) + 30 and words.endswith(".")
    assert not re.search(r"[\[\]*\n]|\.\.$", words)


@pytest.mark.parametrize(
    ("seeds", "draws", "words"),
    [
        (12, 6, "n = 12 runs on 6 base models; 95 % intervals of the mean are"),
        (10, 1, "n = 10 runs; 95 % intervals of the mean are Student's t over the runs."),
        (6, 3, "n = 6 runs on 3 base models, each drawn: too few for an interval."),
    ],
)
def test_a_caption_says_how_many_runs_there_are(tmp_path, seeds, draws, words):
    rows = [f"{m},{v},{s},{s % draws}" for m in "ab" for v in "xy" for s in range(seeds)]
    source = tmp_path / "scores.csv"
    source.write_text("\n".join(["model,variant,seed,draw", *rows, "c,x,99,0"]))
    caption = caption_markdown("figure_frontier", ["a", "b"], [source], tmp_path)
    assert words in " ".join(caption.split())


def test_files_of_one_name_are_distinguished_by_their_folders(tmp_path):
    sources = [tmp_path / f"results/states/{name}/states.csv" for name in "ab"]
    for source in sources:
        source.parent.mkdir(parents=True)
        source.write_text("model,overlap\n")
    caption = caption_markdown("figure_density", [], sources, tmp_path / "results/quick")
    text = " ".join(caption.split())
    assert "[../states/a/states.csv](../states/a/states.csv), [../states/b/states.csv]" in text
