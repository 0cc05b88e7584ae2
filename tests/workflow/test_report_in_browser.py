"""What people see first, in a real browser: silent, without network, everything visible.

README and pages of results as GitHub shows them and as `make pages` writes them; then the report of
a finished study, first its front page, then Snakemake's report, which is the appendix.

Training and sampling are made up; everything after them is what `make run` runs.
"""

from __future__ import annotations

import io
import os
import platform
import random
import re
import runpy
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from contrast import INK, contrast
from markdown_it import MarkdownIt
from PIL import Image
from playwright.sync_api import Browser, Locator, Page

from geosd.config.run_folders import RunFoldersRow, write_run_folders
from geosd.files import sha256, write_json
from geosd.json_lines import write_jsonl
from geosd.problems.records import SampleRecord
from geosd.provenance.manifest import manifest, write_manifest

pytestmark = pytest.mark.slow

SHOWN = "table_main table_kfac_memory figure_frontier figure_training claims".split()
"""Of each kind, and one that no run enters."""
KNOWN = (
    "warning: cdn.tailwindcss.com should not be used in production.",
    "warning: The input spec uses Vega-Lite v3, but the current version of Vega-Lite is v",
)
"""What Snakemake's template writes to the console of every report, whatever the report shows."""
CATEGORIES = ["Claims", "Configuration", "Environment", "Figures", "Tables"]
MENU = "#app > div > nav"
LINKS = {
    "claims": "The paper's claims in study quick",
    "main table": "In-distribution and out-of-distribution accuracy",
    "frontier": None,
    "configuration": "response_tokens",
    "environment": "Machines",
}
"""The links of the first page, and words of the page that each opens; None: a figure."""


GITHUB = """
:root { color-scheme: light dark; }
body { margin: 0; font: 16px/1.5 sans-serif; }
body { color: light-dark(#1f2328, #f0f6fc); background: light-dark(#fff, #0d1117); }
main { max-width: 830px; margin: auto; padding: 16px; overflow-wrap: break-word; }
h1, h2 { margin: 24px 0 16px; padding-bottom: .3em; line-height: 1.25; }
h1 { font-size: 2em; margin-top: 0; }
p, ul, table, pre { margin: 0 0 16px; }
ul { padding-left: 2em; }
li + li { margin-top: .25em; }
a { color: light-dark(#0969da, #4493f8); }
img { max-width: 100%; }
code, pre { font: 13.6px monospace; background: light-dark(#eff1f3, #20262d); }
pre { padding: 16px; overflow: auto; line-height: 1.45; }
table { display: block; width: max-content; max-width: 100%; overflow: auto; }
th, td { padding: 6px 13px; border: 1px solid; }
"""
"""About GitHub's own style, with its column and its colours."""
INTERVAL = r"\d( points)? \[[-−+]?\d+\.\d, [-−+]?\d+\.\d\]"


def as_on_github(markdown: str, folder: Path) -> str:
    """A page of Markdown about as GitHub shows it."""
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    head += f'<base href="{folder.as_uri()}/"><title>.</title><style>{GITHUB}</style>'
    body = MarkdownIt("commonmark").enable("table").render(markdown)
    return f'<!doctype html><html lang="en"><head>{head}</head><main>{body}</main></html>'


def as_by_make_pages(markdown: str, folder: Path) -> str:
    """The page that `make pages` and a study's report make of Markdown."""
    path = Path(__file__).resolve().parents[2] / "workflow/scripts/page.py"
    return runpy.run_path(str(path))["markdown_page"](markdown, folder)


DOCUMENTS = [
    ("README.md", as_on_github),
    ("docs/results.md", as_on_github),
    ("docs/results/miniature_ladder.md", as_on_github),
    ("docs/results/miniature_ladder.md", as_by_make_pages),
]


@pytest.fixture(scope="module", params=DOCUMENTS, ids=lambda of: f"{of[0]}-{of[1].__name__}")
def document(request, browser, root, tmp_path_factory) -> Iterator[Page]:
    """A page of the documents, with its Markdown's path; the browser must have nothing to say."""
    name, form = request.param
    source, messages = root / name, []
    path = tmp_path_factory.mktemp("document") / "page.html"
    path.write_text(form(source.read_text(encoding="utf-8"), source.parent), encoding="utf-8")
    page = browser.new_page(offline=True)
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.goto(path.as_uri())
    page.source = source
    yield page
    assert messages == []
    page.close()


def test_a_document_begins_with_a_finding_its_interval_and_commands(document):
    document.set_viewport_size({"width": 1400, "height": 900})
    commands = "code" if document.source.name == "results.md" else "pre"
    finding = document.locator("p, li").filter(has_text=re.compile(INTERVAL)).first
    for part in (finding, document.locator(commands).first):
        box = part.bounding_box()
        assert box["y"] + box["height"] <= 900
    assert "have not been run" in document.locator("main").inner_text()[:900]


def test_a_document_fits_a_desk_and_a_telephone_by_day_and_by_night(document):
    for width in (1400, 400):
        document.set_viewport_size({"width": width, "height": 900})
        assert document.evaluate("document.documentElement.scrollWidth") <= width
        for scheme in ("light", "dark"):
            document.emulate_media(color_scheme=scheme)
            assert weakest_contrast(document.locator("main")) > 4.5
            picture = document.locator("img").first
            picture.scroll_into_view_if_needed()
            corner = Image.open(io.BytesIO(picture.screenshot())).convert("L").getpixel((3, 3))
            assert corner > 250 if scheme == "light" else corner < 25


def test_the_pictures_links_and_tables_of_a_document_are_whole(document):
    for picture in document.locator("img").all():
        assert picture.evaluate("img => img.decode().then(() => img.naturalWidth, () => 0)") > 150
        assert len(picture.get_attribute("alt").split()) > 6
    links = "all => all.map(a => a.getAttribute('href'))"
    for link in document.locator("a").evaluate_all(links):
        if "://" not in link and not link.startswith("#"):
            assert (document.source.parent / link.partition("#")[0]).exists(), link
    if document.locator("[role=region]").count():
        assert_all_tables_say_whose_they_are(document)
        for link in document.locator("a[href^='#']").evaluate_all(links):
            assert document.locator(f"[id='{link[1:]}']").count() == 1, link


def assert_all_tables_say_whose_they_are(page: Page) -> None:
    """Each table keeps its role in a region with a name, and each header has a scope."""
    tables = page.get_by_role("table").count()
    assert 0 < tables == page.locator("table").count() == page.get_by_role("region").count()
    assert page.locator("[role=region][aria-label^='Table']").count() == tables
    assert page.locator("th").count() == page.locator("th[scope]").count() > 4


def weakest_contrast(within: Locator) -> float:
    """The least contrast of words to their ground, from 1 to 21."""
    words = within.locator("h1, h2, h3, p:not(.picture), li, td, th, a, code")
    return min(
        contrast(*pair) for pair in {*map(tuple, words.evaluate_all(f"all => all.map({INK})"))}
    )


@pytest.fixture(scope="module")
def report(fresh, root, tmp_path_factory) -> Path:
    """Snakemake's report of study quick, from made-up samples on; the front page lies beside it."""
    workflow = type(fresh)(tmp_path_factory.mktemp("reported") / "study")
    shutil.copytree(fresh.folder, workflow.folder, symlinks=True)
    text = (workflow.folder / "params.yaml").read_text(encoding="utf-8")
    outputs = next(line for line in text.splitlines() if line.startswith("    outputs: ["))
    workflow.edit("params.yaml", outputs, f"    outputs: [{', '.join(SHOWN)}]")
    methods = next(line for line in text.splitlines() if line.startswith("    methods: ["))
    few = "    methods: [pi_0, fwdkl, geosd]\n    seeds: [0, 1]"
    workflow.edit("params.yaml", f"{methods}\n    seeds: [0, 1, 2]", few)

    outputs = [workflow.folder / name for name in workflow.outputs()]
    for path in outputs:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(path.name, encoding="utf-8")
    rows = workflow.folders().rows()
    runs = {Path(folder): row for row in rows for folder in (row.train, row.evaluate)}
    write_run_folders(workflow.folder / "results/quick/runs.csv", rows)
    for path in sorted(outputs, key=is_manifest):  # which lists what the others hold
        make_up(path, workflow.folder, runs)
    workflow.snakemake("--profile", "local", "--touch", "--forceall")
    for folder in ("results/quick/analyse", "results/quick/pages", "figures/quick"):
        shutil.rmtree(workflow.folder / folder)
    workflow.snakemake("--profile", "local", "--cores", "1")
    assert workflow.planned_jobs() == {}

    target = workflow.folder / "results/quick/provenance.html"
    report = ("--quiet", "all", "--report", str(target))
    style = ("--report-stylesheet", "workflow/report/style.css")
    workflow.snakemake("--profile", "local", *report, *style)
    return target


def is_manifest(path: Path) -> bool:
    return path.name.endswith("manifest.json")


def make_up(path: Path, folder: Path, runs: dict[Path, RunFoldersRow]) -> None:
    """Write what the steps after training and sampling read; other files keep their own name.

    Args:
        path: The file.
        folder: The workflow's folder.
        runs: The run whose student or samples lie in a folder.
    """
    run, seed = runs.get(path.parent.relative_to(folder)), path.parts[-2]
    variant = run and run.variant
    if is_manifest(path):
        written = [p for p in path.parent.iterdir() if p.is_file() and not is_manifest(p)]
        of_run, inputs = {}, {}
        if run:
            weights = Path(run.train or run.base, "model.safetensors")
            of_run = {"model": run.model, "seed": run.seed, "draw": run.draw}
            inputs = {weights: sha256(folder / weights)}
        listed = {p.name: sha256(p) for p in written}
        write_manifest(path, {**manifest("analyse", inputs, {}, 60.0, listed), **of_run})
    elif path.name == "counts.json":
        counts = {"problems": 4, "problems_trained_on": 3, "rollouts_drawn": 8}
        write_json(path, counts | {"rollouts_by_reason": {"correct": 6, "truncated": 2}})
    elif path.name == "steps.csv":
        path.write_text(
            f"step,loss,drift/pi_0,rollout/accuracy,overlap\n0,1,0,0,.9\n1,1,0.{seed},.5,.8\n",
            encoding="utf-8",
        )
    elif path.name == "samples.jsonl":
        draw = random.Random(f"{variant} {seed}")
        skill = 0.6 if variant == "geosd" else 0.4
        rows = [
            SampleRecord(
                b, f"{b}-{p}", k, "", 9, "1" if ok else str(draw.randint(2, 3)), ok, "stop"
            )
            for b in ("id", "long", "mulhard", "mid", "easy")
            for p in range(12)
            for k in range(16)
            for ok in [draw.random() < skill]
        ]
        write_jsonl(path, rows)


BEHIND = {
    "Every claim": "Estimates for the paper's claims in study quick",
    "Configuration": "response_tokens",
    "Environment": "Machines",
    "Snakemake's report": "Workflow",
}
"""How the links of the front page to other pages begin, and words of the page behind each."""


@pytest.fixture(scope="module", params=[(1400, "light"), (400, "dark")])
def front(request, browser, report) -> Iterator[Page]:
    """The front page; meanwhile the browser must write no message and send no request."""
    width, scheme = request.param
    url, messages = (report.parent / "report.html").as_uri(), []
    page = browser.new_page(
        viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True
    )
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("request", lambda request: messages.append(request.url[:99]))
    page.goto(url)
    yield page
    assert [text for text in messages if text != url and not text.startswith("data:image/")] == []
    page.close()


def test_the_front_page_begins_with_what_was_found_and_has_everything_shown(front, root):
    studies = yaml.safe_load((root / "params.yaml").read_text(encoding="utf-8"))["studies"]
    assert front.title() == front.locator("h1").inner_text() == "Study quick"
    found, about, *_ = front.locator(".head > p").all_inner_texts()
    assert re.match(
        r"Against the base model GeoSD .+ points \[.+\].+ \(2 runs, .*the paper: ", found
    )
    assert about == studies["quick"]["about"]
    grey = front.locator("p.made").inner_text()
    assert re.match(r"\d{4}-\d\d-\d\d · commit \w+.* runs .* CPUs$", grey)
    headings = front.locator("h2").all_inner_texts()
    assert headings[:4] == [
        "The frontier of gains in and out of distribution",
        "Estimates for the paper's claims",
        "Accuracy in and out of distribution",
        "Training curves",
    ]
    assert len(headings) == len(SHOWN) + 1
    pictures = sum(name.startswith("figure_") or name == "claims" for name in SHOWN)
    assert front.locator("img").count() == pictures


def test_the_first_screen_has_the_finding_with_its_interval_and_the_commands(front):
    if front.viewport_size["width"] < 1000:
        pytest.skip("a telephone's screen has the finding alone")
    for part in (".head > p >> nth=0", "pre", "p.made"):
        box = front.locator(part).bounding_box()
        assert box["y"] + box["height"] <= 900, part


def test_a_wide_front_page_has_its_main_picture_in_its_right_half(front):
    """The first picture is the frontier; below one another on a telephone."""
    picture = front.locator("img").first
    assert picture.get_attribute("alt").startswith("The frontier of gains")
    box, width = picture.bounding_box(), front.viewport_size["width"]
    if width > 1000:
        assert box["x"] > width / 2 - 60 and box["y"] + box["height"] <= 900
    else:
        assert box["x"] < 60
    training = front.locator("h2", has_text="Training curves")
    shown = front.locator("section").filter(has=training)
    words = shown.locator("p:not(.picture)").first.bounding_box()
    image = shown.locator("img").bounding_box()
    assert (words["x"] > image["x"] + image["width"]) == (width > 1000), "a caption beside it"


def test_the_front_page_is_walked_by_keys_and_its_tables_scroll_alone(front):
    front.keyboard.press("Tab")
    skip = front.locator("a.skip")
    assert skip.evaluate("e => e === document.activeElement") and skip.bounding_box()["x"] >= 0
    front.keyboard.press("Enter")
    assert front.locator("main").evaluate("e => e === document.activeElement")
    front.goto(front.url.partition("#")[0])
    assert_all_tables_say_whose_they_are(front)


def test_every_picture_of_the_front_page_is_drawn_and_says_what_it_shows(front):
    for picture in front.locator("img").all():
        assert picture.evaluate("img => img.decode().then(() => img.naturalWidth, () => 0)") > 200
        words = picture.get_attribute("alt")
        assert len(words) > 60 and words.endswith(".")
        seen = Image.open(io.BytesIO(picture.screenshot())).convert("RGB")
        assert len(set(seen.get_flattened_data())) > 20


def test_the_front_page_can_be_read_on_a_telephone_and_in_the_dark(front):
    width = front.viewport_size["width"]
    assert front.evaluate("document.documentElement.scrollWidth") <= width
    for scheme in ("light", "dark"):
        front.emulate_media(color_scheme=scheme)
        assert weakest_contrast(front.locator("body")) > 4.5
        ground = front.locator("body").evaluate(INK)[1]
        assert (contrast("rgb(0, 0, 0)", ground) < 2) == (scheme == "dark")
    for paragraph in front.locator(".head > p").all():
        assert paragraph.bounding_box()["width"] >= min(0.9 * width, 500) - 20


def test_every_link_of_the_front_page_opens_what_it_names(browser, report):
    front = browser.new_page(offline=True)
    front.goto((report.parent / "report.html").as_uri())
    links = front.locator("main a").evaluate_all(
        "all => all.map(a => [a.innerText, a.getAttribute('href')])"
    )
    assert len(links) > 3 * len(SHOWN)
    targets: dict[str, set[str]] = {}
    for words, target in links:
        # A source file bears one name wherever it is linked; no other words lead to two places.
        targets.setdefault(words, set()).add(target)
    assert [words for words, of in targets.items() if len(of) > 1 or len(words) < 5] == []
    for words, (target,) in targets.items():
        if target.startswith("#"):
            front.get_by_role("link", name=words, exact=True).click()
            assert front.locator(f"h2[id='{target[1:]}']").inner_text() == words
            continue
        path = (report.parent / target).resolve()
        assert path.is_relative_to(report.parents[2]) and path.stat().st_size > 40, target
        if path.suffix != ".html":
            assert words == path.name
    pages = {words: of.pop() for words, of in targets.items() if ".html" in min(of)}
    assert len(pages) == len(BEHIND)
    for begin, title in BEHIND.items():
        (words,) = [words for words in pages if words.startswith(begin)]
        front.get_by_role("link", name=words, exact=True).click()
        front.get_by_text(title).first.wait_for()
        front.go_back()
        front.locator("h1").get_by_text("Study quick").wait_for()
    front.close()


class Reader:
    """An open report, with the messages and the requests of its browser."""

    def __init__(self, browser: Browser, report: Path, width: int = 1400, **view: Any) -> None:
        self.messages: list[str] = []
        self.requests: list[str] = []
        self.url = report.as_uri()
        size = {"width": width, "height": 900}
        self.page: Page = browser.new_page(viewport=size, offline=True, **view)
        self.page.on("console", self._message)
        self.page.on("pageerror", lambda error: self.messages.append(f"error: {error}"))
        self.page.on("request", self._request)
        self.page.on("requestfailed", lambda request: self.requests.append(f"{request.url[:99]}!"))
        self.begin()

    def _message(self, message) -> None:
        if message.type in ("error", "warning"):
            self.messages.append(f"{message.type}: {message.text}")

    def _request(self, request) -> None:
        if request.url != self.url and not request.url.startswith("data:"):
            self.requests.append(request.url)

    def begin(self) -> None:
        """Open the report at its first page."""
        self.page.goto(self.url)
        self.page.locator("nav").get_by_text("Results").wait_for()

    def menu(self) -> list[str]:
        """The entries of the menu."""
        return self.page.locator("nav li a").all_inner_texts()

    def follow(self, entry: str) -> None:
        """Click an entry of the menu."""
        self.page.locator("nav li").get_by_role("link", name=entry, exact=True).click()

    def faults(self, categories: Iterable[str] = CATEGORIES) -> dict[str, str]:
        """What is wrong with each result that does not show when its eye is clicked."""
        faults = {}
        for category in categories:
            self.begin()
            self.follow(category)
            rows = self.page.locator("nav tbody tr")
            for row in rows.all():
                row.get_by_role("link").first.click()
                if fault := self._fault(figures=category == "Figures"):
                    faults[row.inner_text().strip()] = fault
        return faults

    def _fault(self, figures: bool) -> str:
        shown = self.page.locator("#app div.p-3 > img" if figures else "iframe")
        try:
            shown.wait_for(timeout=5000)
        except Exception as error:  # the library's own timeout is one of the faults
            return f"not shown: {error}"
        if figures:
            width = shown.evaluate("img => img.decode().then(() => img.naturalWidth, () => 0)")
            if not width:
                return "no picture that a browser can draw"
        else:
            body = shown.content_frame.locator("body")
            body.wait_for()
            if len(body.inner_text()) < 40:
                return "an empty page"
        box = shown.bounding_box()
        if box is None or min(box["width"], box["height"]) < 200:
            return f"too small: {box}"
        seen = Image.open(io.BytesIO(shown.screenshot())).convert("RGB")
        return "" if len(set(seen.get_flattened_data())) > 20 else "blank"


@pytest.fixture(scope="module")
def reader(browser, report) -> Reader:
    """A reader who has looked at everything once."""
    reader = Reader(browser, report)
    for general in ("Workflow", "Statistics", "About"):
        reader.begin()
        reader.follow(general)
        reader.page.wait_for_timeout(500)  # the charts draw themselves
    reader.seen_faults = reader.faults()
    return reader


def test_the_browser_reports_nothing_but_the_two_messages_of_snakemakes_template(reader):
    others = [text for text in reader.messages if not any(known in text for known in KNOWN)]
    assert others == []


def test_nothing_is_fetched_from_anywhere(reader):
    assert reader.requests == []


def test_every_figure_and_page_shows_when_its_eye_is_clicked(reader):
    assert reader.seen_faults == {}


def test_claims_come_first_and_everything_shown_is_there(reader):
    reader.begin()
    menu = reader.menu()
    assert menu[menu.index("About") + 1 :] == CATEGORIES
    shown = reader.page.evaluate("Object.keys(results)")
    names = sorted(Path(path).stem for path in shown)
    assert names == sorted([*SHOWN, "configuration", "environment"])


def test_every_result_has_a_caption_that_the_reader_can_open(reader):
    captions = reader.page.evaluate(
        "Object.entries(results).map(([path, r]) => [path, r.caption || ''])"
    )
    assert [path for path, caption in captions if len(caption) < 40] == []
    reader.begin()
    reader.follow("Figures")
    reader.page.locator("nav tbody tr").first.get_by_role("link").nth(1).click()
    assert reader.page.locator("nav .prose").is_visible()


@pytest.mark.parametrize("category", [None, "Tables"])
def test_every_link_of_the_first_page_opens_what_it_names(reader, category):
    reader.begin()
    links = reader.page.locator(".prose a")
    assert links.all_inner_texts() == list(LINKS)
    for name, words in LINKS.items():
        reader.begin()
        if category:
            reader.follow(category)
        listed = reader.page.locator(MENU).inner_text()
        reader.page.locator(".prose").get_by_role("link", name=name, exact=True).click()
        if words:
            shown = reader.page.locator("iframe").content_frame.locator("body")
            shown.get_by_text(words).first.wait_for()
        else:
            reader.page.locator("#app div.p-3 > img").wait_for()
        # A link of Snakemake's own left the list of one category under the name of another.
        assert reader.page.locator(MENU).inner_text() == listed


@pytest.mark.parametrize(("width", "scheme"), [(1400, "dark"), (400, "light")])
def test_the_report_can_be_read_on_a_telephone_and_in_the_dark(browser, report, width, scheme):
    reader = Reader(browser, report, width, color_scheme=scheme)
    page = reader.page
    assert contrast(*page.locator(".prose").first.evaluate(INK)) > 7
    menu = page.locator(MENU).bounding_box()
    assert menu["width"] * menu["height"] < 0.4 * width * 900
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if width < 640:
        assert page.locator(".prose").first.bounding_box()["width"] > 0.8 * width

    page.locator(".prose").get_by_role("link", name="claims", exact=True).click()
    shown = page.locator("iframe")
    body = shown.content_frame.locator("body")
    body.get_by_text("What the claims say").wait_for()
    box = shown.bounding_box()
    assert box["width"] > 0.7 * width and box["height"] > 400
    # A table may be wider than the page: it is moved alone.
    assert body.evaluate("e => e.ownerDocument.documentElement.scrollWidth") <= box["width"]
    assert (contrast("rgb(0, 0, 0)", body.evaluate(INK)[1]) < 2) == (scheme == "dark")
    assert weakest_contrast(body) > 4.5
    page.close()


def test_the_environment_names_packages_and_machine(reader):
    reader.begin()
    reader.follow("Environment")
    reader.page.locator("nav tbody tr").first.get_by_role("link").first.click()
    text = reader.page.locator("iframe").content_frame.locator("body").inner_text()
    for word in ("torch", "snakemake", "Machines", platform.machine()):
        assert word in text
    # A kernel's release names the machine of a provider, so that a shipped page leaves it out.
    assert os.uname().release not in text


def test_a_figure_that_no_browser_can_draw_and_a_foreign_address_are_noticed(
    browser, report, tmp_path
):
    whole = report.read_text(encoding="utf-8")
    start = whole.index("data:image/svg+xml", whole.index('"figures/quick/figure_frontier.svg"'))
    end = whole.index('"', start)
    broken = tmp_path / "broken.html"
    image = '<img src="http://localhost:9/x.png">'
    text = whole[:start] + "data:image/svg+xml;base64,AAAA" + whole[end:]
    app = '<div id="app">'
    broken.write_text(text.replace(app, image + app), encoding="utf-8")

    reader = Reader(browser, broken)

    assert list(reader.faults(["Figures"])) == ["the frontier of gains in and out of distribution"]
    assert any("localhost:9" in url for url in reader.requests)
