"""Names of params.yaml's keys in other programs and papers; errors name the key that is meant."""

from pathlib import Path

import yaml

ALIASES: dict[str, list[str]] = {
    key: words.split()
    for key, words in yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text()).items()
}
"""Key -> other words for it, in small letters with underscores."""
NOTES = {
    "steps": "an epoch is data.train / training.problems steps",
    "problems": "a step takes one rollout of each",
    "microbatch": "responses that a process takes through the models at once; the update stays",
}
"""The conversion where the other word counts in another unit."""


def keys_of_alias(word: object) -> list[str]:
    """The keys that a word of other programs may mean; `word` itself first."""
    plain = str(word).lower().replace("-", "_")
    return [plain, *(key for key, words in ALIASES.items() if plain in words)]
