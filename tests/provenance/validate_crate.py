"""Print which issues each profile of roc-validator finds in a crate, as JSON; no network.

    python tests/provenance/validate_crate.py CRATE.zip PROFILE ...

It runs in an environment of its own, `make .venv-crate/installed`. rocrate 0.14 carries the JSON-LD
context of RO-Crate 1.1, which else is loaded from its address.
"""

import json
import sys
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from requests import Response
from rocrate_validator import services
from rocrate_validator.utils.http import HttpRequester

CONTEXT = "https://w3id.org/ro/crate/1.1/context"


def answered(_: HttpRequester, url: str, **options: object) -> Response:
    """The context at its address; at every other one nothing."""
    response = Response()
    response.url, response.status_code = url, 504
    if url == CONTEXT:
        response.status_code = 200
        response.headers["Content-Type"] = "application/ld+json"
        response._content = (files("rocrate") / "data/ro-crate.jsonld").read_bytes()
        assert response.json()["@id"] == CONTEXT
    return response


def main(crate: str, *profiles: str) -> None:
    """Print `{profile: [message, ...]}` for a crate."""
    HttpRequester.get = answered
    found = {}
    with TemporaryDirectory() as cache:
        for profile in profiles:
            settings = services.ValidationSettings(
                rocrate_uri=crate,
                profile_identifier=profile,
                offline=True,
                cache_path=Path(cache) / "http",
            )
            result = services.validate(settings)
            found[profile] = [str(issue.message) for issue in result.get_issues()]
    print(json.dumps(found))


main(*sys.argv[1:])
