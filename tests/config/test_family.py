"""A family shows studies that are there and have what its outputs need, or it is refused."""

from __future__ import annotations

import re

import pytest
import yaml

from geosd.config import (
    ConfigError,
    Family,
    Study,
    load,
    resolve_family,
    resolve_study,
    resolve_study_or_family,
)
from geosd.config.family import family_tidy_file, study_of_family_file
from geosd.reporting.specs import family_specs

DIAL = ("miniature_transfer_0", "miniature_transfer_100")
NEEDED = ("quick", "miniature", "miniature_rates", "miniature_transfer_100", "miniature_transfer_0")


@pytest.fixture
def loaded(root, tmp_path, monkeypatch):
    """Load the studies of the dial's ends, and a family of them with some keys changed."""
    for name in ("selected", "base_models"):
        (tmp_path / name).symlink_to(root / name)
    monkeypatch.chdir(tmp_path)
    values = yaml.load((root / "params.yaml").read_text(), Loader=yaml.CSafeLoader)
    values["studies"] = {name: values["studies"][name] for name in NEEDED}
    family = {"about": "The dial.", "kind": "family", "of": [*DIAL], "outputs": ["figure_transfer"]}

    def load_with(studies=(), **changes):
        entries = values["studies"] | {"dial": family | changes} | dict(studies)
        text = yaml.dump(values | {"studies": entries}, Dumper=yaml.CSafeDumper, sort_keys=False)
        (tmp_path / "params.yaml").write_text(text)
        return load("params.yaml")

    return load_with


def test_a_family_is_none_of_the_studies_and_resolves_to_them(loaded):
    params = loaded()
    assert [*params.studies] == [*NEEDED] and [*params.families] == ["dial"]
    family = resolve_study_or_family(params, "dial")
    assert isinstance(family, Family) and isinstance(
        resolve_study_or_family(params, "quick"), Study
    )
    assert [*family.studies] == [*DIAL]
    settings = family.settings("figure_transfer")
    assert settings["conflict"] == dict(zip(DIAL, (0.0, 1.0), strict=True))
    assert settings["common_rate"] == dict.fromkeys(DIAL, 1e-5)
    runs = settings["rates_of_runs"]["miniature_transfer_0"]
    assert runs["geosd-learning_rate_3e-06"] == {"variant": "geosd", "learning_rate": 3e-6}
    assert len(runs) == 8 * 4


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"of": ["miniature_transfer_1"]}, r"of\[0\]: miniature_transfer_1 is no study. Did"),
        ({"of": ["dial"]}, r"of\[0\]: dial is no study"),
        ({"of": []}, "of: .* not allowed"),
        ({"of": [DIAL[0], DIAL[0]]}, "stands twice"),
        ({"outputs": ["table_main"]}, r"outputs\[0\]: table_main is no output of a family"),
        ({"outputs": ["claims_all"]}, "claims_all merges ledgers .*in study miniature_transfer_0"),
        ({"of": [DIAL[0], "quick"]}, "figure_transfer shows rates over .* in study quick"),
        ({"kind": "famly"}, r'kind: "famly" is not allowed. Did you mean family\?'),
        ({"seeds": [0]}, "seeds: there is no such key. Allowed: about, kind, of, outputs"),
        ({"extends": "quick"}, "extends: dial is a family, which extends no entry"),
    ],
)
def test_what_is_wrong_with_a_family_is_named_with_its_line(loaded, changes, expected):
    with pytest.raises(ConfigError, match=rf"(?s)params.yaml:\d+: studies.dial.*{expected}.*Hint:"):
        loaded(**changes)


def test_a_study_neither_extends_a_family_nor_shows_what_a_family_shows(loaded):
    own = {"extends": "dial", "about": "Own.", "kind": "main"}
    with pytest.raises(ConfigError, match=r"studies.own.extends: dial is a family, which no entry"):
        loaded({"own": own})
    own |= {"extends": "quick", "outputs": ["figure_transfer"]}
    with pytest.raises(ConfigError, match=r"own.outputs\[0\]: figure_transfer is no table, fig"):
        loaded({"own": own})


def test_a_family_in_the_place_of_a_study_is_refused_with_its_studies(loaded):
    params = loaded()
    hint = f"Hint: name one of its studies: {', '.join(DIAL)}"
    with pytest.raises(ConfigError, match=rf"(?s)dial is a family.*{re.escape(hint)}"):
        resolve_study(params, "dial")
    with pytest.raises(ConfigError, match="'quick' is no family"):
        resolve_family(params, "quick")


def test_a_family_reads_results_where_there_are_any_and_else_what_is_shipped(
    loaded, tmp_path, monkeypatch
):
    family, files = resolve_family(loaded(), "dial"), {}
    for place in ("figures/{}/source/scores.csv.gz", "results/{}/analyse/scores.csv"):
        files[place] = tmp_path / place.format(DIAL[0])
        files[place].parent.mkdir(parents=True)
        files[place].touch()
        (read,) = family.tidy_files("figure_transfer").values()
        assert (tmp_path / read[DIAL[0]]) == files[place]
        assert study_of_family_file(read[DIAL[0]]) == DIAL[0]
        assert str(read[DIAL[1]]) == f"results/{DIAL[1]}/analyse/scores.csv", "where it will be"
    ledger = family_tidy_file("quick", "claims")
    assert (str(ledger), study_of_family_file(ledger)) == ("figures/quick/claims.csv", "quick")


def test_the_repository_s_families_show_every_output_that_there_is(root, monkeypatch):
    monkeypatch.chdir(root)
    families = load("params.yaml").families.values()
    assert {name for family in families for name in family.outputs} == {*family_specs()}
