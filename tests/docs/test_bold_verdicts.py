"""No verdict stands in bold on a page without the setting of the dial that it is of."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/miniature.md", "docs/transfer.md", "docs/wide.md")
PAGES += (
    "docs/factorial.md",
    "docs/factorial_core.md",
    "docs/selected_rates.md",
    "docs/reading.md",
    "docs/claims.md",
)
VERDICT = re.compile(
    r"\b(agrees?|opposite|too small to tell|gains ID|gains? OOD|gains? in distribution|loses?"
    r"|ahead|lead|withstands?|collapses|collapse (?:at|from|ID)|best|moves less|keeps?"
    r"|is better|seen to matter|makes? \w+ fall|speed limit|behind)\b"
)
SETTING = re.compile(r"conflict|[Aa]t (both|either|[01]\b)|settings?\b|either end|SmolLM2")
DEFINITIONS = {
    "docs/claims.md": ("The printed interval decides",),
    "docs/selected_rates.md": ("best",),
}
"""Bold words that define a word, and judge nothing."""


@pytest.mark.parametrize("name", PAGES)
def test_no_verdict_stands_in_bold_without_its_setting(name):
    bold = [
        " ".join(words.split())
        for words in re.findall(r"\*\*([^*]+)\*\*", (ROOT / name).read_text(encoding="utf-8"))
    ]
    verdicts = [
        words
        for words in bold
        if VERDICT.search(words) and not words.startswith(DEFINITIONS.get(name, ("\0",)))
    ]
    assert not [words for words in verdicts if not SETTING.search(words)]
    assert verdicts or name in ("README.md", "docs/claims.md")


def test_each_finding_of_readme_has_its_setting():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    findings = [line for line in lines if line.startswith("- **")]
    assert len(findings) == 7
    assert not [line for line in findings if not SETTING.search(line)]


def test_a_bold_verdict_without_its_setting_would_be_found():
    """The words that the pages once had."""
    for words in (
        "The natural gradient agrees with the paper",
        "No method gains OOD here, and every method gains ID.",
        "GeoSD withstands learning rates at which KL matching collapses",
    ):
        assert VERDICT.search(words) and not SETTING.search(words)
