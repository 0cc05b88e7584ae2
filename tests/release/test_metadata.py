"""What machines read of the project: one value, one place, and each file as its format wants it."""

from __future__ import annotations

import json
import re
import runpy
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from cases import schema_errors

import geosd
from geosd.provenance.code import SOURCES, code_of

ROOT = Path(__file__).resolve().parents[2]
METADATA = runpy.run_path(str(ROOT / "release/metadata.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CITED = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
CODEMETA = json.loads((ROOT / "codemeta.json").read_text(encoding="utf-8"))
ZENODO = json.loads((ROOT / ".zenodo.json").read_text(encoding="utf-8"))
CODEMETA_TERMS = {
    *(
        "author",
        "codeRepository",
        "datePublished",
        "description",
        "developmentStatus",
        "familyName",
    ),
    *("givenName", "issueTracker", "keywords", "license", "name", "operatingSystem"),
    *("programmingLanguage", "readme", "referencePublication", "runtimePlatform"),
    *("softwareRequirements", "url", "version", "@context", "@type"),
}
"""The terms of CodeMeta 3.0's context that the project uses, and JSON-LD's own two."""
ZENODO_KEYS = {
    *("access_right", "creators", "description", "keywords", "license", "publication_date"),
    *("references", "title", "upload_type", "version"),
}
"""Keys of a deposit that Zenodo's interface knows, as far as the project uses them."""


def test_nothing_differs_from_the_one_place_of_each_value():
    assert METADATA["differing"](ROOT) == []


def test_versions_titles_authors_licence_keywords_and_addresses_agree():
    names = [author["name"] for author in PROJECT["authors"]]
    assert geosd.__version__ == CITED["version"] == CODEMETA["version"] == ZENODO["version"]
    assert CITED["title"] == CODEMETA["name"] == ZENODO["title"]
    for authors in (CITED["authors"], CODEMETA["author"], ZENODO["creators"]):
        assert [author["name"] for author in authors] == names
    licence = PROJECT["license"].split(" AND ")[0]
    assert licence == CITED["license"] == ZENODO["license"] == CODEMETA["license"].split("/")[-1]
    assert PROJECT["keywords"] == CITED["keywords"] == CODEMETA["keywords"] == ZENODO["keywords"]
    day = str(CITED["date-released"])
    assert day == CODEMETA["datePublished"] == ZENODO["publication_date"]
    address = PROJECT["urls"]["Repository"]
    assert address == CITED["repository-code"] == CITED["url"] == CODEMETA["codeRepository"]


@pytest.mark.parametrize("page", METADATA["PAGES"])
def test_every_page_that_is_named_has_the_address_and_no_other(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    address = PROJECT["urls"]["Repository"]
    assert address in text
    cloned = re.findall(r"git clone (\S+)", re.sub(r"`git clone`", "", text))
    assert set(cloned) <= {address}


def test_no_other_page_has_an_address_that_metadata_would_not_reach():
    listed = subprocess.run(
        ["git", "grep", "-l", "--untracked", "-F", PROJECT["urls"]["Repository"]],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    if listed.returncode:
        pytest.skip("no clone")
    made = {"CITATION.cff", "codemeta.json", ".zenodo.json", "pyproject.toml"}
    assert set(listed.stdout.split()) - made == set(METADATA["PAGES"])


def test_citation_is_valid_and_has_what_finds_the_software(tmp_path):
    citation = ROOT / "CITATION.cff"
    assert CITED["cff-version"] == "1.2.0"
    assert {"repository-code", "url", "date-released", "abstract", "keywords"} <= CITED.keys()
    assert "doi" not in CITED and "identifiers" not in CITED, "there is none yet: none is invented"
    assert schema_errors("vendor.citation-file-format", citation) == ""
    wrong = tmp_path / "CITATION.cff"
    wrong.write_text(citation.read_text().replace("type: article", "type: gospel"))
    assert "gospel" in schema_errors("vendor.citation-file-format", wrong)


def terms(value: object) -> set[str]:
    """All keys of a JSON document."""
    if isinstance(value, dict):
        return set(value).union(*(terms(each) for each in value.values()))
    return set().union(*(terms(each) for each in value)) if isinstance(value, list) else set()


def test_codemeta_and_zenodo_use_words_of_their_vocabularies():
    assert CODEMETA["@context"] == "https://w3id.org/codemeta/3.0"
    assert terms(CODEMETA) <= CODEMETA_TERMS and ZENODO.keys() <= ZENODO_KEYS
    assert CODEMETA["referencePublication"]["name"] == CITED["preferred-citation"]["title"]


def test_a_new_version_address_or_keyword_reaches_every_file(tmp_path):
    for name in ("pyproject.toml", "CITATION.cff", "src/geosd/VERSION", *METADATA["PAGES"]):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    pyproject = tmp_path / "pyproject.toml"
    old, new = PROJECT["urls"]["Repository"], "https://git.example.org/group/room/geosd"
    text = pyproject.read_text(encoding="utf-8").replace(old, new)
    pyproject.write_text(text.replace('"K-FAC",', '"K-FAC",\n    "miniature",'), encoding="utf-8")
    (tmp_path / "src/geosd/VERSION").write_text("7.8.9\n")
    files = METADATA["written"](tmp_path)
    assert len(files) == 3 + len(METADATA["PAGES"])
    made = {file.name: text for file, text in files.items() if file.suffix != ".md"}
    for text in (made["CITATION.cff"], made["codemeta.json"], made[".zenodo.json"]):
        assert "7.8.9" in text and "miniature" in text and geosd.__version__ not in text
    for file, text in files.items():
        assert old not in text and (new in text or file.name == ".zenodo.json"), file
    assert METADATA["with_address"](files[tmp_path / "README.md"], old, "geosd") == (
        (ROOT / "README.md").read_text(encoding="utf-8")
    )
    assert "# There is no DOI yet" in made["CITATION.cff"], "comments stay"


def test_a_new_version_makes_no_result_out_of_date(tmp_path):
    shutil.copytree(SOURCES / "geosd", tmp_path / "geosd", ignore=shutil.ignore_patterns("*.pyc"))
    settings = {"objective": {"name": "geosd"}, "source": "search"}
    before = code_of("train", settings)
    assert "geosd/__init__.py" in before
    (tmp_path / "geosd/VERSION").write_text("7.8.9\n")
    assert code_of("train", settings, sources=tmp_path) == before
