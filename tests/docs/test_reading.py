"""docs/reading.md has a row for every value of params.yaml that the paper does not give."""

from __future__ import annotations

import re
from collections.abc import Iterator

LINE = re.compile(r"(?P<indent> *)(?P<key>[\w.-]+):(?P<value>[^#]*)(?:#.*not given.*)?$")
COMMENT = re.compile(r"(?P<indent> *)# (?P<key>[A-Z]\w+) .*; not given: ")
ABBREVIATED = re.compile(r"^training\.(?:optimiser\.(?=kfac\.))?(?=kfac|optimiser|objective)")


def names_not_given(text: str) -> Iterator[str]:
    """The dotted name of each key whose comment says `not given`, as docs/reading.md writes it.

    The section's own name and, of the protocol and of methods and models, the name below it are
    left out. A line that sets several keys gives one name for each. A comment on a line of its own
    begins with the key of the section `training` that it is about.
    """
    path: list[tuple[int, str]] = []
    for line in text.splitlines():
        comment = COMMENT.match(line)
        if comment:
            inner = f"training.{comment['key'].lower()}"
            yield _name([*(k for i, k in path if i < len(comment["indent"])), inner])
        if line.lstrip().startswith("#") or not (match := LINE.match(line)):
            continue
        path = [(i, key) for i, key in path if i < len(match["indent"])]
        path.append((len(match["indent"]), match["key"]))
        if len(path) > 1 and "not given" in line.partition("#")[2]:
            keys = [key for _, key in path]
            inner = re.findall(r"(\w+): ", match["value"]) if "{" in match["value"] else []
            anchors = [f".{key}" for key in inner] if keys[-1] == "rollout" else [""]
            yield from (_name(keys) + anchor for anchor in anchors)


def _name(keys: list[str]) -> str:
    """`protocol training optimiser kfac decay` -> `kfac.decay`."""
    head, *rest = keys
    rest = rest if head in ("protocol", "studies") else rest[1:]
    return ABBREVIATED.sub("", ".".join(rest))


def test_names_are_read_off_the_comments():
    text = """\
study: quick  # where it is not given
protocol:
  training:
    chunk: 1  # not given: any
    betas: [0.9]  # Table hparams
    optimiser:
      kfac:
        decay: 0.95  # not given: any
models:
  m:
    rollout: {tensor_parallel: 4, memory: 0.5}  # not given: any
variants:
  grpo:
    training:
      objective:
        std_epsilon: 1.0e-4  # not given: any
studies:
  s:
    seeds: [0]  # not given: any
    data: {a: b}
    # Steps as in the protocol; not given: any.
"""
    assert list(names_not_given(text)) == [
        "training.chunk",
        "kfac.decay",
        "rollout.tensor_parallel",
        "rollout.memory",
        "objective.std_epsilon",
        "s.seeds",
        "s.training.steps",
    ]


def test_every_value_that_the_paper_does_not_give_has_a_row(root):
    text = (root / "params.yaml").read_text(encoding="utf-8")
    page = (root / "docs/reading.md").read_text(encoding="utf-8")
    rows = "\n".join(line for line in page.splitlines() if line.startswith("|"))
    names = dict.fromkeys(names_not_given(text))
    assert len(names) > 35
    assert not [name for name in names if f"`{name}`" not in rows]
