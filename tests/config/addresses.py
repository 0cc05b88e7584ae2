"""Where the results of every study lie, as short digests: `python tests/config/addresses.py`.

The program writes addresses.json anew. Each line of it is a study: by kind of result a digest of
all its folders, and of its index. Results keep their folders as long as the digests stay.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from geosd.config import load, resolve_study
from geosd.config.added_later import without_added_later
from geosd.config.params_schema import Params
from geosd.config.run_folders import SHARED, RunFolders
from geosd.config.study import Study
from geosd.dotted_keys import dotted_items

FILE = Path(__file__).with_suffix(".json")
SECTIONS = ("data", "pool", "training", "evaluation", "rollout")
"""Sections whose keys are in the digests of folders; base models are known by their files."""
DIGITS = 8
"""Hexadecimal digits of a digest."""

Digests = Mapping[str, str]
"""Kind of result -> a digest of a study's folders of it."""


def digests(study: Study) -> Digests:
    """The digests of a study's folders by kind of result, and of its index as `runs`."""
    folders = RunFolders(study)
    shared = sorted(folders.shared())
    found = {kind: [one for one in shared if one.split("/")[1] == kind] for kind in SHARED}
    found["runs"] = [repr(dataclasses.asdict(row)) for row in folders.rows()]
    return {kind: _digest(lines) for kind, lines in found.items() if lines}


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:DIGITS]


def keys(study: Study) -> set[str]:
    """The dotted keys that the digests of a study's folders may depend on."""
    sections = list(_sections(study))
    return {
        f"{name}.{key}"
        for name, values in sections
        for key, _ in dotted_items(without_added_later(name, values))
    }


def _sections(study: Study) -> Iterator[tuple[str, Mapping[str, object]]]:
    for name, model in itertools.product(SECTIONS, study.models):
        yield name, study.section(name, model)
    for model, variant in itertools.product(study.models, study.trained):
        yield "training", study.training(model, variant)


def listing(params: Params) -> dict[str, dict]:
    """The content of addresses.json: `keys` in order, and `studies`, each with its digests."""
    studies = {name: resolve_study(params, name) for name in params.studies}
    known = set().union(*map(keys, studies.values()))
    found = {name: digests(study) for name, study in studies.items()}
    return {"keys": sorted(known), "studies": found}


def moved(params: Params, listed: Mapping[str, Mapping]) -> str:
    """Which results of listed studies lie elsewhere, and by which new keys; empty: none.

    A key is new if the list does not know it and `ADDED_LATER` does not take it away.
    """
    lines: list[str] = []
    new: set[str] = set()
    for name, before in listed["studies"].items():
        if name not in params.studies:
            lines.append(f"{name}: params.yaml has no such study any more")
            continue
        study = resolve_study(params, name)
        now = digests(study)
        kinds = [kind for kind in {**before, **now} if before.get(kind) != now.get(kind)]
        if kinds:
            lines.append(f"{name}: its {', '.join(kinds)}")
            new |= keys(study) - set(listed["keys"])
    if not lines:
        return ""
    hint = "Hint: if they are to move, `python tests/config/addresses.py` writes the list anew."
    if new:
        hint = (
            f"Hint: new are {', '.join(sorted(new))}. List each in ADDED_LATER of"
            " src/geosd/config/added_later.py, with the value that results had before there was"
            " the key."
        )
    return "\n".join(["Results would be looked for elsewhere, and made again:", *lines, hint])


def main() -> None:
    """Write addresses.json."""
    content = listing(load("params.yaml"))
    studies = [f"  {json.dumps(name)}: {json.dumps(d)}" for name, d in content["studies"].items()]
    known = json.dumps(content["keys"], indent=1).replace("\n", "\n ")
    text = '{\n "keys": ' + known + ',\n "studies": {\n' + ",\n".join(studies) + "\n }\n}\n"
    FILE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
