"""Whether a released checkpoint is pinned to one place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PLACES = {
    "folder": ("folder",),
    "repo": ("repo", "revision"),
    "package": ("package", "file", "sha256"),
}


def unplaced(checkpoint: Mapping[str, Any]) -> str | None:
    """What is missing, or None where the checkpoint can be found.

    A folder goes before the hub, so a model may name both: the hub for others, the folder here.

    Args:
        checkpoint: The keys of `base.checkpoint` that are given.
    """
    named = [place for place in PLACES if checkpoint.get(place)]
    if not named:
        return "base.checkpoint names neither repo, folder nor package"
    if missing := [key for key in PLACES[named[0]] if not checkpoint.get(key)]:
        return f"base.checkpoint names {named[0]} but not {', '.join(missing)}"
    return None
