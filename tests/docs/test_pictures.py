"""Pictures of README and docs: each says in words what it shows, and is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
PICTURES = [
    pytest.param(page, *found, id=f"{page.name}-{found[1]}")
    for page in PAGES
    for found in PICTURE.findall(page.read_text(encoding="utf-8"))
]


def test_the_readme_has_a_picture_and_no_page_one_in_html():
    assert any(param.values[0].name == "README.md" for param in PICTURES)
    assert not [page for page in PAGES if "<img" in page.read_text(encoding="utf-8")]


@pytest.mark.parametrize(("page", "words", "path"), PICTURES)
def test_a_picture_says_in_words_what_it_shows(page, words, path):
    assert len(words.split()) > 6, "a title, and what the axes or the parts are"
    assert Path(path).stem.lower() not in words.lower().split()
    assert not re.match(r"(an? )?(image|picture|figure|plot|screenshot)\b", words, re.IGNORECASE)
    assert (page.parent / path).stat().st_size > 1000
