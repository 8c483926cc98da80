"""A headless Chromium for the tests of pages; skipped where there is none."""

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
TIME_LIMIT = 60_000  # milliseconds, for a machine that does much else
needs_chromium = pytest.mark.system("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    """A headless Chromium."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=TIME_LIMIT)
    with sync_playwright() as playwright:
        # a container has no user namespaces for the sandbox, and only pages of this machine are opened
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


def contrast(page: "Page", selector: str) -> float:
    """Return the contrast ratio of a text with what is behind it."""
    ink, paper = page.locator(selector).first.evaluate(
        """(element) => {
            const numbers = (color) => {
                const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
                const context = canvas.getContext("2d");
                context.fillStyle = color;
                context.fillRect(0, 0, 1, 1);
                return [...context.getImageData(0, 0, 1, 1).data];
            };
            const ink = numbers(getComputedStyle(element).color);
            let behind = element;
            while (numbers(getComputedStyle(behind).backgroundColor)[3] === 0) behind = behind.parentElement;
            return [ink, numbers(getComputedStyle(behind).backgroundColor)];
        }"""
    )
    light, dark = sorted((luminance(ink), luminance(paper)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(color: list[float]) -> float:
    """Return the relative luminance of an sRGB colour, as WCAG defines it."""
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (n / 255 for n in color[:3])
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
