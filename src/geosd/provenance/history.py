"""Which commits that runs name the history of the repository has.

A run records the commit of the sources that made it. That a prediction was committed before a run
can be checked only where the history has both commits.
"""

import subprocess
from collections.abc import Iterable
from pathlib import Path

from geosd.provenance.code import SOURCES

LOST_COMMITS = {
    "42c4d78003": "trainings and evaluations of miniature_ablation and miniature_privilege",
    "f1838068d7": "all runs of miniature_wide_100",
    "3a89734db2": "runs of miniature_rates, trainings of miniature_hyperparameters",
    "6c57605c03": "runs of miniature_selection, miniature_rates and miniature_hyperparameters",
}
"""Commits of runs that were shipped before `geosd ship` asked for them, and what they made. Each
run was made in a clone whose commit did not enter the history under this name."""


def unknown_commits(commits: Iterable[str], clone: Path = SOURCES) -> list[str]:
    """Those of some commits that the history of a clone does not have, in their order.

    Where git is not installed, or `clone` is no clone, it has none of them.
    """
    return [commit for commit in commits if not _has(commit, clone)]


def _has(commit: str, clone: Path) -> bool:
    command = ["git", "-C", str(clone), "cat-file", "-e", f"{commit}^{{commit}}"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def lost_history_in_words(commits: Iterable[str]) -> str:
    """A sentence on those of some commits that are lost (`LOST_COMMITS`); empty without any."""
    lost = [commit for commit in commits if commit in LOST_COMMITS]
    if not lost:
        return ""
    named = " and ".join(lost)
    has = "commits" if len(lost) > 1 else "commit"
    return (
        f"The repository's history lacks the {has} {named}: by git nobody can check which commits"
        " came before these runs."
    )
