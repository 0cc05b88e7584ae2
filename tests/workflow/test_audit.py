"""The look for vulnerabilities, with a stand-in that prints what pip-audit prints."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

SAFE = {"name": "numpy", "version": "2.4.6", "vulns": []}
UNKNOWN = {"name": "torch", "skip_reason": "Dependency not found: torch (2.13.0)"}
ADVISORY = {
    "id": "PYSEC-2026-1",
    "fix_versions": ["3.0", "2.9.1"],
    "aliases": [],
    "description": "",
}
UNSAFE = {"name": "pyyaml", "version": "6.0.3", "vulns": [ADVISORY]}
OFFLINE = "requests.exceptions.ConnectionError: Max retries exceeded with url: /v1/query"


@pytest.fixture
def audit(root, tmp_path):
    """Run the program on one lock, with a pip-audit that prints, complains and ends as given."""

    def run(printed, complained="", status=0):
        program = tmp_path / "pip-audit"
        statements = [f"print({printed!r})", f"print({complained!r}, file=sys.stderr)"]
        text = "\n".join([f"#!{sys.executable}", "import sys", *statements, f"sys.exit({status})"])
        program.write_text(text + "\n")
        program.chmod(0o755)
        words = [root / "workflow/scripts/audit.py", program, "envs/some.txt"]
        return subprocess.run([sys.executable, *words], capture_output=True, text=True)

    return run


def dependencies(*packages):
    return json.dumps({"dependencies": packages, "fixes": []})


def test_a_database_that_answers_is_reported(audit):
    done = audit(dependencies(SAFE, UNKNOWN))
    assert done.returncode == 0
    assert done.stdout == (
        "envs/some.txt: 1 packages, 0 known vulnerabilities; not in the database: torch\n"
    )


def test_a_vulnerability_is_named_and_ends_with_a_status(audit):
    done = audit(dependencies(SAFE, UNSAFE), status=1)
    assert done.returncode == 1
    assert "pyyaml 6.0.3: PYSEC-2026-1, fixed: 3.0, 2.9.1" in done.stdout


@pytest.mark.parametrize(
    ("printed", "complained", "status"),
    [
        ("", f"Traceback\n{OFFLINE}", 1),
        (dependencies(UNKNOWN, UNKNOWN | {"name": "numpy"}), "", 0),  # a mirror without advisories
    ],
    ids=["no connection", "no advisories"],
)
def test_without_a_network_it_says_so_and_ends_well(audit, printed, complained, status):
    done = audit(printed, complained, status)
    assert (done.returncode, done.stdout) == (0, "envs/some.txt: skipped: no network\n")


def test_any_other_error_is_not_taken_for_a_missing_network(audit):
    done = audit("", "ERROR: envs/some.txt is no requirements file", 2)
    assert done.returncode and "is no requirements file" in done.stderr
