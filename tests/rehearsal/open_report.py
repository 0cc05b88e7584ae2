"""A study's front page in a real browser: every picture is drawn, no message, no request."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

CHROMIUMS = "chromium chromium-browser google-chrome google-chrome-stable chrome".split()


def chromium() -> str | None:
    """The path of a Chromium; None where there is none."""
    found = [path for name in CHROMIUMS if (path := shutil.which(name))]
    return os.environ.get("CHROMIUM") or next(iter(found), None)


def open_report(browser: str, report: Path) -> dict[str, int]:
    """Open a report, and count what it shows.

    Args:
        browser: Path of a Chromium.
        report: The front page.

    Raises:
        AssertionError: The browser said something or asked for something, a picture is not drawn,
            or a link leads nowhere.
    """
    with sync_playwright() as playwright:
        offline = ["--host-resolver-rules=MAP * ~NOTFOUND"]
        launched = playwright.chromium.launch(executable_path=browser, args=offline)
        page = launched.new_page(offline=True)
        url, messages = report.as_uri(), []
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("request", lambda request: messages.append(request.url[:99]))
        page.goto(url)
        pictures = page.locator("img").all()
        for picture in pictures:
            width = picture.evaluate("img => img.decode().then(() => img.naturalWidth, () => 0)")
            assert width > 200, f"{report}: {picture.get_attribute('alt')} is not drawn"
        linked = page.locator("a").evaluate_all("all => all.map(a => a.getAttribute('href'))")
        files = {target for target in linked if not target.startswith("#")}
        dead = [target for target in files if not (report.parent / target).is_file()]
        assert not dead, f"{report}: links to {dead}"
        others = [text for text in messages if text != url and not text.startswith("data:image/")]
        assert not others, f"{report}: {others}"
        shown = {"headings": page.locator("h2").count(), "pictures": len(pictures)}
        launched.close()
    return {**shown, "links": len(linked)}
