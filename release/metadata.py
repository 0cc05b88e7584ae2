"""Write what other files repeat of the project's description, from the one place of each value.

    python release/metadata.py           write them anew (`make metadata`)
    python release/metadata.py --check   name those that differ; the exit code is then 1

`src/geosd/VERSION` has the version, `[project]` of pyproject.toml the description, authors,
licence, keywords, requirements and the repository's address, CITATION.cff the title, the day of the
release and the paper. From them come the other keys of CITATION.cff, `codemeta.json` and
`.zenodo.json`, and the address in the pages that name it.
"""

import argparse
import io
import json
import re
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from geosd.files import write_text

ROOT = Path(__file__).resolve().parents[1]
PAGES = (
    *("README.md", "config/README.md", "docs/quickstart.md", "docs/cluster.md", "docs/gpu.md"),
    *("docs/reference.md", ".github/ISSUE_TEMPLATE/config.yml"),
)
"""Files with the repository's address, mostly after `git clone`."""


def project(root: Path = ROOT) -> dict[str, Any]:
    """The table `[project]` of pyproject.toml, with the version of `src/geosd/VERSION`."""
    table = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = (root / "src/geosd/VERSION").read_text(encoding="utf-8").strip()
    return {**table, "version": version}


def licence(described: Mapping[str, Any]) -> str:
    """The licence of the code, an identifier of SPDX; the other is that of the figures' letters."""
    return described["license"].partition(" AND ")[0]


def repository(described: Mapping[str, Any]) -> str:
    """The repository's address."""
    return described["urls"]["Repository"]


def citation(described: Mapping[str, Any], text: str) -> str:
    """CITATION.cff with the keys that pyproject.toml decides; its comments and all others stay."""
    yaml = YAML()
    yaml.width = 200
    yaml.indent(mapping=2, sequence=4, offset=2)
    content = yaml.load(text)
    content["version"] = described["version"]
    content["license"] = licence(described)
    content["abstract"] = described["description"] + "."
    content["keywords"] = list(described["keywords"])
    content["authors"] = [{"name": author["name"]} for author in described["authors"]]
    content["repository-code"] = content["url"] = repository(described)
    out = io.StringIO()
    yaml.dump(content, out)
    return out.getvalue()


def codemeta(described: Mapping[str, Any], cited: Mapping[str, Any]) -> dict[str, Any]:
    """The description in CodeMeta 3.0; `cited` is CITATION.cff."""
    address, paper = repository(described), cited["preferred-citation"]
    return {
        "@context": "https://w3id.org/codemeta/3.0",
        "@type": "SoftwareSourceCode",
        "name": cited["title"],
        "description": described["description"] + ".",
        "version": described["version"],
        "datePublished": str(cited["date-released"]),
        "license": f"https://spdx.org/licenses/{licence(described)}",
        "author": [
            {"@type": "Organization", "name": author["name"]} for author in described["authors"]
        ],
        "keywords": described["keywords"],
        "codeRepository": address,
        "url": address,
        "issueTracker": f"{address}/issues",
        "readme": f"{address}/blob/main/README.md",
        "programmingLanguage": "Python",
        "runtimePlatform": f"Python {described['requires-python']}",
        "operatingSystem": "Linux",
        "softwareRequirements": described["dependencies"],
        "developmentStatus": "active",
        "referencePublication": {
            "@type": "ScholarlyArticle",
            "name": paper["title"],
            "datePublished": str(paper["year"]),
            "author": [
                {
                    "@type": "Person",
                    "givenName": author["given-names"],
                    "familyName": author["family-names"],
                }
                for author in paper["authors"]
            ],
        },
    }


def zenodo(described: Mapping[str, Any], cited: Mapping[str, Any]) -> dict[str, Any]:
    """What Zenodo reads at a release on GitHub; it then reads CITATION.cff no more."""
    paper = cited["preferred-citation"]
    names = [f"{author['family-names']}, {author['given-names']}" for author in paper["authors"]]
    return {
        "upload_type": "software",
        "access_right": "open",
        "title": cited["title"],
        "description": described["description"] + ".",
        "version": described["version"],
        "publication_date": str(cited["date-released"]),
        "license": licence(described),
        "creators": [{"name": author["name"]} for author in described["authors"]],
        "keywords": described["keywords"],
        "references": [f"{'; '.join(names)} ({paper['year']}). {paper['title']}."],
    }


def with_address(text: str, address: str, name: str) -> str:
    """A page in which the address of the repository `name`, wherever it stands, is this one.

    Example:
        >>> with_address("git clone https://github.com/a/geosd .", "https://h.org/b/geosd", "geosd")
        'git clone https://h.org/b/geosd .'
    """
    return re.sub(rf"https://[\w.-]+(?:/[\w.-]+)+?/{name}(?![\w-])", address, text)


def written(root: Path = ROOT) -> dict[Path, str]:
    """Every file that repeats something -> its content as it must be."""
    described = project(root)
    cff = root / "CITATION.cff"
    files = {cff: citation(described, cff.read_text(encoding="utf-8"))}
    cited = YAML(typ="safe").load(files[cff])
    for name, content in (
        ("codemeta.json", codemeta(described, cited)),
        (".zenodo.json", zenodo(described, cited)),
    ):
        files[root / name] = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    for page in PAGES:
        text = (root / page).read_text(encoding="utf-8")
        files[root / page] = with_address(text, repository(described), described["name"])
    return files


def differing(root: Path = ROOT) -> list[str]:
    """The names of the files that `written` has otherwise than the disk."""
    found = []
    for file, content in written(root).items():
        if not file.exists() or file.read_text(encoding="utf-8") != content:
            found.append(file.relative_to(root).as_posix())
    return found


def main() -> None:
    """Write the files, or with `--check` name those that differ."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, name what differs")
    checked = parser.parse_args().check
    names = differing()
    if checked and names:
        sys.exit(
            f"Not as pyproject.toml, VERSION and CITATION.cff say: {', '.join(names)}.\n"
            "Hint: make metadata writes them anew."
        )
    if not checked:
        files = written()
        for name in names:
            write_text(ROOT / name, files[ROOT / name])
            print(f"Written  {name}")


if __name__ == "__main__":
    main()
