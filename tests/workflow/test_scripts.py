"""Pages of the report."""

from __future__ import annotations

import base64
import importlib.util
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
import snakemake
from cases import python

from geosd.claims.finding import WORDS
from geosd.reporting.claims_page import MARKS


@pytest.fixture
def script(root):
    def load(name):
        path = root / "workflow/scripts" / f"{name}.py"
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


def test_a_markdown_table_becomes_a_table_and_its_html_stays_text(script):
    html = script("page").markdown_page("| a | b |\n|---|---|\n| **1** | <script>x</script> |\n")
    assert "<td><strong>1</strong></td>" in html
    assert "<script>" not in html


class Parts(HTMLParser):
    """The elements of a page that people without eyes or mouse go by: tag and attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def test_a_page_can_be_heard_and_walked_by_keys(script, root, monkeypatch):
    """On the shipped ledger: roles, scopes, names, and links that lead somewhere."""
    monkeypatch.chdir(root)
    source = root / "figures/miniature/claims.md"
    page = script("page").markdown_page(source.read_text(), source.parent, "../report.html")
    parts = Parts(page)
    assert parts.of("html") == [{"lang": "en"}]
    assert parts.of("a")[0] == {"class": "skip", "href": "#main"}
    assert parts.of("main") == [{"id": "main", "tabindex": "-1"}]
    assert [a["href"] for a in parts.of("a")][1] == "../report.html" and len(parts.of("nav")) == 1
    assert all(th["scope"] == "col" for th in parts.of("th")) and len(parts.of("th")) > 20
    regions = [d for d in parts.of("div") if d.get("role") == "region"]
    assert len(regions) == len(parts.of("table")) > 3
    assert all(d["tabindex"] == "0" and d["aria-label"].startswith("Table: ") for d in regions)
    assert all(len(image["alt"]) > 60 for image in parts.of("img")) and len(parts.of("img")) == 1
    style = page.partition("</style>")[0]
    assert ":focus-visible" in style and "table { display" not in style


def test_the_verdict_is_the_first_column_and_the_claim_a_sentence(script, root, monkeypatch):
    monkeypatch.chdir(root)
    source = root / "figures/miniature/claims.md"
    page = script("page").markdown_page(source.read_text(), source.parent)
    rows = re.findall(r"<tr>\n<td[^>]*>([^<]*)</td>\n<td[^>]*>([^<]*)</td>", page)
    assert len(rows) > 30
    assert {word for word, _ in rows} <= {*WORDS, "by model"}
    assert all(" " in sentence for _, sentence in rows)


def test_the_papers_columns_and_the_words_stand_apart(script):
    html = script("page").markdown_page(
        "| claim | effect | paper |\n|:--|--:|--:|\n| a | +1 | +2 |\n| agrees | 3 | 4 |\n\n"
        "| paper | b |\n|--|--|\n| 5 | opposite |\n"
    )
    marked = {text: of for of, text in re.findall(r'<td[^>]*class="([^"]*)"[^>]*>([^<]*)', html)}
    assert marked == {
        "+2": "paper",
        "4": "paper",
        "5": "paper",
        "agrees": "agrees",
        "opposite": "opposite",
    }


def test_a_cell_of_words_may_be_broken_into_lines_and_a_number_may_not(script):
    html = script("page").markdown_page(f"| a | b |\n|--:|--:|\n| [-2.3, +2.8] | {'word ' * 8}|\n")
    assert re.findall(r'class="words">(\w+)', html) == ["word"]


def test_the_coloured_words_are_words_of_the_ledger(script):
    assert set(script("page").COLOURED_WORDS) < {*WORDS, *MARKS.values()}
    html = script("page").markdown_page("| a |\n|--|\n| ✗ -5.7 [-6.7, -4.6] |\n")
    assert '<td class="opposite">✗ -5.7' in html


def test_a_line_in_emphasis_is_grey_and_one_with_an_emphasised_word_is_not(script):
    html = script("page").markdown_page("*12 runs · 3 min*\n\nA *word* alone\n")
    assert html.count('class="made"') == 1 and '<p class="made"><em>12 runs' in html


@pytest.mark.slow
def test_yaml_becomes_a_page_line_by_line(script, root, tmp_path):
    (tmp_path / "a.yaml").write_text("a: 1\nb: <2>\n")
    page = tmp_path / "a.html"
    python(root / "workflow/scripts/page.py", tmp_path / "a.yaml", page, check=True)
    assert "<pre>a: 1\nb: &lt;2&gt;\n</pre>" in page.read_text()


def test_snakemakes_template_still_writes_the_two_messages_that_are_known():
    """The test in the browser allows these two messages and no other."""
    folder = Path(snakemake.__file__).parent
    for path, text in {
        "assets/data/tailwindcss/tailwind.css": "cdn.tailwindcss.com should not be used in",
        "assets/data/vega-embed/vega-embed.js": "but the current version of ",
        "report/html_reporter/data/runtimes.py": "schema/vega-lite/v3.json",
    }.items():
        assert (folder / path).read_text(encoding="utf-8").count(text) == 1, path


@pytest.fixture
def figures(tmp_path, monkeypatch):
    """The folder of figures of a project in which a page is made."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "figures"
    folder.mkdir()
    return folder


def test_a_page_has_its_pictures_in_it(script, figures):
    (figures / "a.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg" width="336.0pt"/>')
    html = script("page").markdown_page("A ![title](a.svg) and [a file](b.csv)\n", figures)
    ((kind, data, rest),) = re.findall(r'<img src="data:([^;]+);base64,([^"]+)" ([^>]*)>', html)
    assert (kind, base64.b64decode(data)) == ("image/svg+xml", (figures / "a.svg").read_bytes())
    assert 'alt="title" width="700" class="wide"' in rest
    assert '<a href="b.csv">' in html


def test_a_picture_alone_stands_on_a_card_and_headings_have_the_anchors_of_links(script, figures):
    (figures / "a.svg").write_text('<svg width="5pt"/>')
    text = "# The paper's claims\n\n[to](#the-papers-claims)\n\n![title](a.svg)\n"
    html = script("page").markdown_page(text, figures)
    assert '<p class="picture"><img' in html
    assert html.count('class="picture"') == 1 and "wide" not in html.partition("</style>")[2]
    assert (
        '<h1 id="the-papers-claims">' in html and "<title>The paper&#x27;s claims</title>" in html
    )


@pytest.mark.parametrize(
    "source",
    [
        "../../../private.svg",  # outside the project
        "../../notes.svg",  # in it, but no figure
        "../../figures/notes.txt",
        "../../figures/link.svg",  # a link that leads out
        "../../figures/quick/../../../private.svg",
        "../../figures/missing.svg",
        "%2e%2e/%2e%2e/notes.svg",
        "data:image/png;base64,AAAA",
    ],
)
def test_no_other_file_than_a_figure_reaches_a_page(script, figures, source):
    project = figures.parent
    private = project.parent / "private.svg"
    for path in (private, project / "notes.svg", figures / "notes.txt"):
        path.write_text("<svg>private</svg>")
    (figures / "link.svg").symlink_to(private)
    (figures / "quick").mkdir()
    page = script("page")
    folder = Path("results/quick")
    with pytest.raises(page.PictureError, match="(?s)picture .*\nHint: .*below figures/ alone"):
        page.markdown_page(f"About ![h]({source}).", folder)


@pytest.mark.slow
def test_a_refused_picture_ends_the_program_with_two_lines(figures, root):
    (figures.parent / "a.md").write_text("![h](b.txt)")
    done = python(root / "workflow/scripts/page.py", "a.md", "a.html")
    assert done.returncode == 1
    assert [line.partition(":")[0] for line in done.stderr.splitlines()] == ["b.txt", "Hint"]
    assert not Path("a.html").exists()


@pytest.mark.parametrize("source", ["http://example.invalid/x.png", "//example.invalid/x.svg"])
def test_a_picture_of_the_web_becomes_a_link(script, figures, source):
    html = script("page").markdown_page(f"About ![an i](<{source}>).", Path("results/quick"))
    assert f'<a href="{source}">an i</a>' in html and "<img" not in html


def test_where_results_and_figures_are_links_the_projects_own_pictures_are_shown(
    script, tmp_path, monkeypatch
):
    project, disk = tmp_path / "project", tmp_path / "disk/user"
    project.mkdir()
    monkeypatch.chdir(project)
    for name in ("results", "figures"):
        (disk / name / "quick").mkdir(parents=True)
        (project / name).symlink_to(disk / name)
    (disk / "figures/quick/f.svg").write_text("<svg>this</svg>")
    (tmp_path / "figures/quick").mkdir(parents=True)
    (tmp_path / "figures/quick/f.svg").write_text("<svg>of another project</svg>")
    html = script("page").markdown_page("![f](../../figures/quick/f.svg)", Path("results/quick"))
    (data,) = re.findall('base64,([^"]+)', html)
    assert base64.b64decode(data) == b"<svg>this</svg>"
