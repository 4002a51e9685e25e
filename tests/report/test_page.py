import base64
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.report.factory import Found, Resolved, Run, augmented, failure, frame, record, study
from tests.requirements import require_program
from vitbench.report import html, tables

HOSTILE = 'a|b </script><script>alert(1)</script> <img src=x onerror=alert(2)> & "quoted" 100 % ' + "w" * 100
QUESTION = "Who <b>overfits</b> & \"why\"? </title>"


def hostile(run: Run, facts: Resolved) -> Found:
    if run.spec.share == "1" and run.label != "convnet:xs":
        return None if run.spec.seed else failure(run, "</script><script>alert(3)</script> <!-- out of memory")
    if run.spec.share == "0.1" and run.spec.seed == 1:
        return record(run, facts, diverged="loss is <nan>")
    return record(run, facts)


@cache
def made() -> str:
    of = study(question=QUESTION, budgets=[{"steps": 300}, {"epochs": 9}], fractions=[0.02, 0.1, 1],
               models=["convnet:xs", {"name": "token_transformer", "size": "xs", "label": HOSTILE}])
    return html.page(frame(of, hostile), of)


def outside_scripts(text: str) -> str:
    return re.sub(r"<script>.*?</script>", "", text, flags=re.S)


def test_the_same_records_give_the_same_page() -> None:
    of = study()
    assert html.page(frame(of), of) == html.page(frame(of), of)


def test_nothing_in_a_record_or_study_becomes_markup() -> None:
    text = made()
    assert "<img" not in outside_scripts(text)
    assert "<b>overfits" not in text
    assert text.count("</script") == 3
    assert len(re.findall("<script[ >]", text)) == 3
    assert "alert(1)" in json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])["cells"][1]["label"]  # type: ignore[index]


def test_the_page_names_no_address_and_forbids_every_request() -> None:
    text = outside_scripts(made())
    assert not re.search(r'(src|href)="(?!data:)', text)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert policy[1].startswith("default-src &#39;none&#39;; script-src &#39;sha256-")
    assert "eval" not in policy[1]


def test_missing_failed_and_diverged_runs_are_listed_with_reasons() -> None:
    text = outside_scripts(made())
    assert "failed. &lt;/script&gt;" in text
    assert "diverged. loss is &lt;nan&gt;" in text
    assert "seeds 1, 2</li>" in text


def test_a_whole_study_says_that_nothing_is_missing() -> None:
    of = study()
    assert "None: all 12 runs are done." in html.page(frame(of), of)


def test_mixed_devices_are_refused_as_in_the_table() -> None:
    of = study()
    mixed = frame(of, lambda run, facts: record(run, facts, device=f"device {run.spec.seed}"))
    with pytest.raises(tables.MixedDevices):
        html.page(mixed, of)
    assert "device 0, device 1" in html.page(mixed, of, mixed_devices=True)


def test_an_empty_study_has_a_page() -> None:
    of = study()
    assert "missing" in html.page(frame(of, lambda run, facts: None), of)


PNG = base64.b64decode(  # 18 x 10 grey pixels
    "iVBORw0KGgoAAAANSUhEUgAAABIAAAAKCAAAAACcIFF9AAAAD0lEQVR4nGNowAAMQ0cIAGitWgEweYohAAAAAElFTkSuQmCC")
REGIMES = ["none", "light", "strong"]


@cache
def with_regimes() -> str:
    of = study(regimes=REGIMES)
    return html.page(frame(of, augmented), of, {"light": PNG, "strong": None}.get)


def test_each_regime_has_its_picture_and_what_was_done_or_says_that_it_is_missing() -> None:
    text = outside_scripts(with_regimes())
    section = text[text.index('<section id="regimes"'):].split("</section>")[0]
    assert section.count("<img") == 1
    assert f'src="data:image/png;base64,{base64.b64encode(PNG).decode()}"' in section
    assert 'alt="Training images of digits, one a row: as they are in the first column, then in eight draws of the ' \
           'regime light."' in section
    assert "Applied: shift; not flip." in section
    assert "has no whole <code>augmented/strong.png</code>" in section
    assert "Applied: mixup; with label smoothing" in section


def test_a_study_without_augmentation_has_no_such_section() -> None:
    of = study()
    assert 'id="regimes"' not in html.page(frame(of), of)
    waiting = study(regimes=["none", "light"])
    empty = html.page(frame(waiting, lambda run, facts: None), waiting)
    assert "No run of this regime has ended." in empty


def test_five_hundred_runs_stay_under_five_megabytes() -> None:
    of = study(models=["convnet:xs", "convnet:s", "linear", "mlp", "token_transformer:xs"],
               fractions=[0.1, 0.2, 0.3, 0.5, 1], seeds=20)
    full = frame(of)
    assert len(full.rows) == 500
    assert len(html.page(full, of).encode()) < 5e6


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    chromium = require_program("chromium")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"])
        yield running
        running.close()


class Watched:
    """A page in a browser that notes each request and each complaint."""

    def __init__(self, browser: Any, file: Path, width: int, **options: Any) -> None:
        self.page = browser.new_page(viewport={"width": width, "height": 900}, **options)
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda said: self.complaints.append(said.text))
        self.page.on("dialog", lambda dialog: (self.complaints.append("dialog"), dialog.dismiss()))
        self.page.goto(file.as_uri())
        for name in ("accuracy", "overfitting", "overview"):
            self.page.wait_for_selector(f"#{name}[data-drawn] svg", timeout=30_000)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(made(), encoding="utf-8")
    return path


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1600, "light")])
def test_pictures_are_shown_large_with_sharp_pixels_and_fit(browser: Any, tmp_path: Path, width: int,
                                                            scheme: str) -> None:
    path = tmp_path / "regimes.html"
    path.write_text(with_regimes(), encoding="utf-8")
    watched = Watched(browser, path, width, color_scheme=scheme)
    picture = watched.page.locator("img.grid")
    shown = picture.evaluate("(i) => [i.complete, i.naturalWidth, i.clientWidth, i.clientHeight, "
                             "getComputedStyle(i).imageRendering]")
    assert shown[:2] == [True, 18]
    assert 300 < shown[2] <= min(640, width)
    assert abs(shown[2] / shown[3] - 18 / 10) < 0.02
    assert shown[4] == "pixelated"
    assert {url for url in watched.requests if not url.startswith("data:")} == {path.as_uri()}
    assert watched.complaints == []
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= width
    watched.page.close()


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (1600, "light"), (360, "dark"), (1600, "dark")])
def test_it_asks_for_nothing_complains_of_nothing_and_fits(browser: Any, file: Path, width: int, scheme: str) -> None:
    watched = Watched(browser, file, width, color_scheme=scheme)
    assert watched.requests == [file.as_uri()]
    assert watched.complaints == []
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= width
    ground = watched.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(21, 24, 28)"}[scheme]
    watched.page.close()


def test_selects_change_the_figure_and_its_words(browser: Any, file: Path) -> None:
    watched = Watched(browser, file, 1200)
    page = watched.page
    words, drawing = page.locator("#overfitting-text"), page.locator("#overfitting")
    seen = {drawing.inner_html()}
    assert page.locator("#share").input_value() == "0.1"  # 0.02 has no validation, so no onset to look at
    for name, value, expected in (("share", "1", "share 1"), ("condition", "none, epochs:9, default", "epochs:9"),
                                  ("quantity", "accuracy", ""), ("axis", "linear", ""), ("model", HOSTILE, "a|b")):
        before = drawing.inner_html()
        page.locator(f"#{name}").select_option(value)
        page.wait_for_timeout(250)
        assert expected in words.inner_text()
        if name != "condition":  # synthetic curves are the same for every budget
            assert drawing.inner_html() != before
        seen.add(drawing.inner_html())
    assert "step (linear scale)" in drawing.inner_html()
    page.locator("#accuracy-condition").select_option("none, epochs:9, default")
    page.wait_for_timeout(250)
    assert watched.complaints == []
    assert watched.requests == [file.as_uri()]
    page.close()


def test_the_table_sorts_by_keyboard_with_missing_last(browser: Any, file: Path) -> None:
    page = Watched(browser, file, 1600).page
    head = page.locator("#results th", has_text="test accuracy")
    head.locator("button").focus()
    for order in ("ascending", "descending"):
        page.keyboard.press("Enter")
        assert head.get_attribute("aria-sort") == order
        at = page.evaluate("[...document.querySelectorAll('#results thead th')]"
                           ".findIndex((h) => h.textContent.includes('test accuracy'))")
        texts = page.locator(f"#results tbody tr > :nth-child({at + 1})").all_inner_texts()
        numbers = [float(text.split(" ")[0].replace("\N{MINUS SIGN}", "-")) for text in texts if text != "missing"]
        assert numbers == sorted(numbers, reverse=order == "descending")
        assert "missing" not in texts[:len(numbers)]
    page.close()


def test_panels_stand_under_their_share(browser: Any, tmp_path: Path) -> None:
    of = study(fractions=[0.1, 0.3, 1])
    holed = frame(of, lambda run, facts: None if run.label == "convnet:xs" and run.spec.share == "1"
                  else record(run, facts))
    path = tmp_path / "holed.html"
    path.write_text(html.page(holed, of), encoding="utf-8")
    page = Watched(browser, path, 1600).page
    word, share, model = (page.locator("#overview svg text", has_text=re.compile(f"^{t}$")).last.bounding_box()
                          for t in ("missing", "1", "convnet:xs"))
    heads = [box for box in (t.bounding_box() for t in page.locator(
        "#overview svg .column_header text, #overview svg .role-column-header text").all()) if box]
    last = max(heads, key=lambda box: box["x"]) if heads else share
    assert abs(word["x"] + word["width"] / 2 - last["x"] - last["width"] / 2) < 12
    assert abs(word["y"] - model["y"]) < 12
    page.close()
