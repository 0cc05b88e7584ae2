"""Join results of benchmarks: JSON and Markdown of a machine, tables of benchmarks/README.md.

    python benchmarks/report.py RESULT.json... --out docs/measurements --page benchmarks/README.md

A section that is measured anew takes the place of the old one; the others stay. The page shows this
machine's sections, and another machine's where this one has none. In the page everything between
`<!-- bench: NAME -->` and `<!-- /bench -->` is written here, and nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from measuring import digits, machine_name, markdown, table

ORDER = (
    "steps",
    "smollm2",
    "kfac",
    "generation",
    "decoding",
    "divergence",
    "scaling",
    "workflow",
    "long",
    "floors",
)
BLOCK = re.compile(r"(<!-- bench: (\w+) -->\n).*?(<!-- /bench -->)", re.S)


def rounded(value: Any) -> Any:
    """The same with six digits of every number."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, Mapping):
        return {str(key): rounded(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(each) for each in value]
    return value


def merged(new: Iterable[dict[str, Any]], old: Path) -> dict[str, dict[str, Any]]:
    """Sections by name, the new ones in place of those of the file, in the order of the page."""
    kept = json.loads(old.read_text(encoding="utf-8")) if old.exists() else {}
    sections = {**kept, **{each["section"]: rounded(each) for each in new}}
    return {name: sections[name] for name in ORDER if name in sections}


def of_all_machines(folder: Path, own: Path) -> dict[str, tuple[Path, dict[str, Any]]]:
    """Files and sections by section: those of `own`, and of other machines what it lacks."""
    found: dict[str, tuple[Path, dict[str, Any]]] = {}
    for file in (own, *sorted(set(folder.glob("bench-*.json")) - {own})):
        for name, section in json.loads(file.read_text(encoding="utf-8")).items():
            found.setdefault(name, (file, section))
    return {name: found[name] for name in ORDER if name in found}


def about(section: Mapping[str, Any]) -> str:
    """Machine, versions and commit of a section in one line."""
    of = section["machine"]
    extensions = ", ".join(of["extensions"])
    engines = section["data"].get("versions", {}).values()  # of environments of their own
    known = {name: version for each in engines for name, version in each.items()}
    packages = ", ".join(f"{n} {version}" for n, version in (known | section["versions"]).items())
    return (
        f"{of['cpu']}, {of['cores']} cores, {of['capability']} ({extensions}),"
        f" {of['memory_gb']} GB, {of['system']}; {packages}; commit {section['commit']}; load"
        f" average at the end {section['load_average']}."
    )


def summary(sections: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The numbers that the project is judged by, as lines of Markdown."""
    rows = [
        [each["what"], digits(each["value"]), each["aim"], "yes" if each["holds"] else "**no**"]
        for section in sections.values()
        for each in section["headlines"]
    ]
    return markdown(table("What it should show", ["", "measured", "aim", "reached"], rows))


def blocks(sections: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """Lines of Markdown by the name of their place in the page."""
    made = {"summary": summary(sections)}
    for name, section in sections.items():
        made[name] = [line for each in section["tables"] for line in markdown(each)]
    made["machine"] = [f"- {name}: {about(section)}" for name, section in sections.items()]
    return made


def page(text: str, made: Mapping[str, list[str]]) -> str:
    """The page with its blocks filled; a block without a measurement says so."""

    def filled(match: re.Match[str]) -> str:
        lines = made.get(match[2], ["Not measured here yet.", ""])
        return match[1] + "\n".join(lines).rstrip() + "\n" + match[3]

    return BLOCK.sub(filled, text)


def main() -> None:
    """Join, write, fill."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("results", nargs="+", type=Path)
    options.add_argument("--out", type=Path, default=Path("docs/measurements"))
    options.add_argument("--page", type=Path, help="page whose blocks are filled")
    given = options.parse_args()
    new = [json.loads(path.read_text(encoding="utf-8")) for path in given.results]
    given.out.mkdir(parents=True, exist_ok=True)
    name = f"bench-{machine_name(new[0]['machine'])}"
    sections = merged(new, given.out / f"{name}.json")
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in sections.items()]
    (given.out / f"{name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    made = blocks(sections)
    text = [f"# Benchmarks: {name.removeprefix('bench-')}", "", "`make bench`.", ""]
    text += [line for key in ("summary", *sections, "machine") for line in made[key]]
    (given.out / f"{name}.md").write_text("\n".join(text).rstrip() + "\n", encoding="utf-8")
    if given.page is not None:
        shown = of_all_machines(given.out, given.out / f"{name}.json")
        made = blocks({name: section for name, (_, section) in shown.items()})
        pages = dict.fromkeys(file.with_suffix(".md").resolve() for file, _ in shown.values())
        here = given.page.resolve().parent
        links = [f"[{each.name}]({os.path.relpath(each, here)})" for each in pages]
        made["machine"] = [f"All tables of a machine: {', '.join(links)}.", "", *made["machine"]]
        filled = page(given.page.read_text(encoding="utf-8"), made)
        given.page.write_text(filled, encoding="utf-8")
    print(f"{given.out / name}.md")


if __name__ == "__main__":
    main()
