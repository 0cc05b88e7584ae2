"""What a crate says of a run of the workflow: the profile Workflow Run Crate 0.5 of RO-Crate.

https://w3id.org/ro/wfrun/workflow/0.5 asks for the workflow (`mainEntity`), what went in and came
out, and one action that used it. What nobody recorded is left out.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

WORKFLOW_CRATE = "https://w3id.org/workflowhub/workflow-ro-crate/1.0"
PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": "Process Run Crate",
    "https://w3id.org/ro/wfrun/workflow/0.5": "Workflow Run Crate",
    WORKFLOW_CRATE: "Workflow RO-Crate",
}
"""The profiles that the root conforms to; a profile's identifier ends with its version."""
BIOSCHEMAS = "https://bioschemas.org/profiles"
SNAKEMAKE: dict[str, Any] = {
    "@id": "https://w3id.org/workflowhub/workflow-ro-crate#snakemake",
    "@type": "ComputerLanguage",
    "name": "Snakemake",
    "identifier": {"@id": "https://doi.org/10.1093/bioinformatics/bts480"},
    "url": {"@id": "https://snakemake.github.io"},
}
"""The language, as the profile Workflow RO-Crate names it."""
SOURCE = ["File", "SoftwareSourceCode"]
RUN, PARAMS_INPUT, STUDY_INPUT, STUDY = "#run", "#input-params", "#input-study", "#study"
AGENT, PAPER = "#agent", "#paper"


def workflow_entities(
    snakefile: str, rules: Sequence[str], params: str, study: str, version: str
) -> list[dict[str, Any]]:
    """The workflow, its language and its two inputs: the configuration and the name of a study.

    Args:
        snakefile: The Snakefile's name in the crate.
        rules: Names of the files that it includes.
        params: Name of the configuration.
        study: The value that the run was given.
        version: Of the workflow.
    """
    workflow = {
        "@id": snakefile,
        "@type": [*SOURCE, "ComputationalWorkflow"],
        "conformsTo": {"@id": f"{BIOSCHEMAS}/ComputationalWorkflow/1.0-RELEASE"},
        "name": "The workflow of geosd",
        "version": version,
        "programmingLanguage": _refer(SNAKEMAKE["@id"]),
        "hasPart": [_refer(name) for name in rules],
        "input": [_refer(PARAMS_INPUT), _refer(STUDY_INPUT)],
    }
    parts = [
        {"@id": name, "@type": SOURCE, "programmingLanguage": _refer(SNAKEMAKE["@id"])}
        for name in rules
    ]
    given = {"@id": STUDY, "@type": "PropertyValue", "name": "study", "value": study}
    return [
        workflow,
        *parts,
        SNAKEMAKE,
        _parameter(PARAMS_INPUT, "params", "File", params),
        _parameter(STUDY_INPUT, "study", "Text", STUDY),
        {"@id": params, "exampleOfWork": _refer(PARAMS_INPUT)},
        {**given, "exampleOfWork": _refer(STUDY_INPUT)},
    ]


def run_entities(
    snakefile: str,
    params: str,
    results: Iterable[str],
    days: Iterable[str],
    described: str,
    agent: str | None = None,
) -> list[dict[str, Any]]:
    """The action that used the workflow, and who did it where that is known.

    Args:
        snakefile: The Snakefile's name in the crate.
        params: Name of the configuration.
        results: Names of the files that the run made.
        days: ISO dates on which its steps ended; manifests keep no time of day.
        described: What ran, in words.
        agent: Who ran it.
    """
    listed = sorted(days)
    action = {
        "@id": RUN,
        "@type": "CreateAction",
        "name": "A run of the workflow",
        "description": described,
        "instrument": _refer(snakefile),
        "object": [_refer(params), _refer(STUDY)],
        "result": [_refer(name) for name in results],
        "actionStatus": "http://schema.org/CompletedActionStatus",
    }
    if listed:
        action |= {"startTime": listed[0], "endTime": listed[-1]}
    if agent is None:
        return [action]
    return [
        {**action, "agent": _refer(AGENT)},
        {"@id": AGENT, "@type": "Person", "name": agent},
    ]


def citation_entities(citation: Mapping[str, Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The authors of the software and the paper's, and the keys of the root that name them.

    Args:
        citation: The contents of a file CITATION.cff of format 1.2.0.
    """
    authors = [_author(each) for each in citation["authors"]]
    root: dict[str, Any] = {"author": [_refer(each["@id"]) for each in authors]}
    preferred = citation.get("preferred-citation")
    if preferred is None:
        return authors, root
    writers = [_author(each) for each in preferred["authors"]]
    paper = {
        "@id": preferred.get("url", PAPER),
        "@type": "ScholarlyArticle",
        "name": preferred["title"],
        "author": [_refer(each["@id"]) for each in writers],
        "datePublished": str(preferred["year"]),
    }
    if "doi" in preferred:
        paper["identifier"] = f"https://doi.org/{preferred['doi']}"
    return [*authors, *writers, paper], {**root, "citation": _refer(paper["@id"])}


def profile_entities() -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The profiles, and the key of the root that names them."""
    profiles = [
        {
            "@id": address,
            "@type": "CreativeWork",
            "name": name,
            "version": address.rpartition("/")[2],
        }
        for address, name in PROFILES.items()
    ]
    return profiles, {"conformsTo": [_refer(address) for address in PROFILES]}


def _parameter(name: str, shown: str, kind: str, example: str) -> dict[str, Any]:
    return {
        "@id": name,
        "@type": "FormalParameter",
        "conformsTo": {"@id": f"{BIOSCHEMAS}/FormalParameter/1.0-RELEASE"},
        "name": shown,
        "additionalType": kind,
        "valueRequired": True,
        "workExample": _refer(example),
    }


def _author(named: Mapping[str, str]) -> dict[str, Any]:
    """A person with given and family names, or an organisation with its name."""
    if "name" in named:
        identifier = "#" + named["name"].lower().replace(" ", "-")
        return {"@id": identifier, "@type": "Organization", "name": named["name"]}
    whole = f"{named['given-names']} {named['family-names']}"
    person = {
        "@id": named.get("orcid", "#" + whole.lower().replace(" ", "-")),
        "@type": "Person",
        "name": whole,
        "givenName": named["given-names"],
        "familyName": named["family-names"],
    }
    return {**person, "affiliation": named["affiliation"]} if "affiliation" in named else person


def _refer(identifier: str) -> dict[str, str]:
    return {"@id": identifier}
