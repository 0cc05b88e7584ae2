"""Whose a resume state is: everything that makes a job what it is, as one hash a part."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def identity_digests(identity: Any) -> dict[str, str]:
    """The SHA-256 of each named part of an identity; anything but a mapping is one part."""
    parts = identity if isinstance(identity, Mapping) else {"identity": identity}
    digests = {}
    for name, part in parts.items():
        text = json.dumps(part, sort_keys=True, default=str)
        digests[name] = hashlib.sha256(text.encode()).hexdigest()
    return digests


def differing_parts(digests: Mapping[str, str], others: Mapping[str, str]) -> str:
    """The names of the parts in which two identities differ, in words for a log."""
    names = sorted(digests.keys() | others.keys())
    return ", ".join(name for name in names if digests.get(name) != others.get(name))
