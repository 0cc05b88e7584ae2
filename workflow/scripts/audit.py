"""Look for known vulnerabilities in the pins of envs/: `make audit`.

    python workflow/scripts/audit.py PIP_AUDIT LOCK...

pip-audit asks a database of advisories for each pin. Where there is no network, or only a mirror
of packages without advisories, nothing was asked; pip-audit then says of every package that nobody
knows it, and this program that it was skipped.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

OPTIONS = ("--disable-pip", "--require-hashes", "--progress-spinner=off", "--format=json")
UNREACHABLE = ("ConnectionError", "ProxyError", "Failed to resolve", "Max retries exceeded")


class AuditError(RuntimeError):
    """pip-audit ended with an error of its own; the message is what it printed."""


def audited(program: str, lock: str) -> list[dict[str, Any]] | None:
    """What pip-audit finds of each package of a lock; None: it reached no database.

    Raises:
        AuditError: It ended for another reason.
    """
    done = subprocess.run(
        [program, *OPTIONS, "--requirement", lock], capture_output=True, text=True
    )
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        if any(words in done.stderr for words in UNREACHABLE):
            return None
        raise AuditError(f"{lock}: {done.stderr.strip() or 'pip-audit printed nothing'}") from None
    return None if all("skip_reason" in package for package in packages) else packages


def main(program: str, *locks: str) -> int:
    """Print what is known of the pins; 1 where a vulnerability is."""
    found = 0
    for lock in locks:
        packages = audited(program, lock)
        if packages is None:
            print(f"{lock}: skipped: no network")
            continue
        unknown = [package["name"] for package in packages if "skip_reason" in package]
        known = [(each, advisory) for each in packages for advisory in each.get("vulns", ())]
        for package, advisory in known:
            fixed = ", ".join(advisory["fix_versions"]) or "no version yet"
            print(
                f"{lock}: {package['name']} {package['version']}: {advisory['id']}, fixed: {fixed}"
            )
        checked = len(packages) - len(unknown)
        print(f"{lock}: {checked} packages, {len(known)} known vulnerabilities", end="")
        print(f"; not in the database: {', '.join(unknown)}" if unknown else "")
        found += len(known)
    return min(found, 1)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
