"""The dial's figure and tables follow from its shipped studies; an unshipped study is named."""

from pathlib import Path

import pytest

from geosd.cli import transfer

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "figures"
STUDIES = tuple(f"miniature_transfer_{setting}_one_rate" for setting in (0, 25, 50, 75, 100))


@pytest.mark.slow
def test_the_shipped_studies_give_the_shipped_figure_and_tables(tmp_path, monkeypatch, no_png):
    monkeypatch.chdir(ROOT)
    transfer.main(STUDIES, 1e-5, tmp_path)
    folder, drawn = SHIPPED / "miniature_transfer", (".svg", ".csv", ".md", ".tex")
    kept = [path for path in folder.iterdir() if path.suffix in drawn]
    assert len(kept) == 7
    for path in kept:
        assert (tmp_path / path.name).read_bytes() == path.read_bytes(), path.name


def test_a_study_that_is_not_shipped_is_named_with_the_command_that_ships_it(tmp_path):
    with pytest.raises(SystemExit, match=r"quick is not shipped\.\nHint: `make ship STUDY=quick`"):
        transfer.main(("quick",), 1e-5, tmp_path, SHIPPED, ROOT / "params.yaml")
