"""The site builds without a warning and without a network, every link leads somewhere, and it has every name."""

import inspect
import json
import re
import runpy
import subprocess
import sys
from html import unescape
from pathlib import Path
from urllib.parse import quote, unquote

import click
import pages
import pytest
from browser import CHROMIUM, Browser, served
from docutils.nodes import make_id

import gpuops
import tilepath
import tilepath.csgraph
from tilepath.cli.command import tilepath as command

ESTIMATORS = ["SelfOrganizingMap", "SelfOrganizingMapClassifier"]
ROOT = Path(__file__).parents[1]


def build(folder: Path) -> Path:
    """Build the site in `folder`; fail on any warning."""
    run = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet"]
    run += ["--doctree-dir", str(folder / "doctrees"), str(ROOT / "docs"), str(folder / "site")]
    done = subprocess.run(run, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


def broken_links(site: Path) -> list[str]:
    """Links, images, scripts and style sheets that lead nowhere, and whatever would be fetched from elsewhere."""
    pages = {path: path.read_text() for path in site.rglob("*.html") if path.parent != site / "_static"}
    anchors = {path: set(re.findall(r'\sid="([^"]+)"', text)) for path, text in pages.items()}
    broken = []
    for path, text in pages.items():
        name = path.relative_to(site).as_posix()
        for tag, link in set(re.findall(r'<(\w+)\s[^>]*?(?:href|src)="([^"]*)"', text)):
            if re.match(r"\w+:|//", link):
                broken += [f"{name} fetches {link}"] if tag != "a" else []
                continue
            file, _, anchor = unquote(unescape(link)).partition("#")
            file = re.sub(r"\?.*", "", file)
            target = (path.parent / file).resolve() if file else path
            if not target.is_file() or (anchor and target in anchors and anchor not in anchors[target]):
                broken.append(f"{name}: {link}")
    return broken


def of_commands(words: list[str], found: click.Command):
    """The words of every command, and its options as the site names them."""
    if isinstance(found, click.Group):
        for name, each in found.commands.items():
            yield from of_commands([*words, name], each)
    else:
        options = {option for each in found.params if isinstance(each, click.Option) for option in each.opts}
        yield "-".join(words), options


def test_the_site(tmp_path):
    site = build(tmp_path)
    assert broken_links(site) == []
    images = re.findall(r"<img [^>]*>", "".join(path.read_text() for path in site.rglob("*.html")))
    assert len(images) > 40
    assert [image for image in images if ' width="' not in image] == []
    ids = set(re.findall(r'\sid="([^"]+)"', "".join(path.read_text() for path in site.rglob("reference/*/*.html"))))
    names = {f"tilepath.{name}" for name in tilepath.__all__} | {f"tilepath.sklearn.{name}" for name in ESTIMATORS}
    names |= {f"gpuops.{name}" for name in {*gpuops.__all__} - {*tilepath.__all__}}  # errors have the same names
    assert len(names) > 150
    assert names - ids == set()
    commands = dict(of_commands(["tilepath"], command))
    assert len(commands) > 25
    listed = (site / "reference/commands/index.html").read_text()
    for name, options in commands.items():
        assert name in ids
        assert f'.html#{name}"' in listed
        missing = {option for option in options if f"cmdoption-{name}-{option.lstrip('-')}" not in ids}
        assert not missing, name
    for tutorial in (ROOT / "docs/tutorials").glob("*.md"):
        notebook = json.loads((site / f"tutorials/{tutorial.stem}.ipynb").read_text())
        programs = [cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
        of_page = [(language, text) for language, text in pages.blocks(tutorial) if language != "text"]
        assert [text + "\n" for text in programs] == ["%%sh\n" * (kind == "sh") + text for kind, text in of_page]
    gpus = re.sub("</?span[^>]*>", "", (site / "gpus.html").read_text())
    assert "distances.zarr\n\n# Two of the GPUs." in gpus  # a comment belongs to the command below
    roads = re.sub(r"<[^>]+>", "", (site / "reference/commands/roads.html").read_text())
    assert "--within T[UNIT]" in re.sub(r"\s+", " ", roads)  # as in --help
    assert roads.count("Where to compute") == 2  # of hierarchy and od; folded up


@pytest.mark.parametrize("page", ["how-to.md", "notes.md", "tutorials.md"])
def test_lists_name_pages_by_their_titles(page):
    links = re.findall(r"^\* \[(.+)\]\((.+)\):", (ROOT / "docs" / page).read_text(), re.MULTILINE)
    titles = {file: (ROOT / "docs" / file).read_text().partition("\n")[0].removeprefix("# ") for _, file in links}
    assert len(links) >= 5
    assert {file: title for title, file in links} == titles


@pytest.mark.parametrize("module", [tilepath, gpuops, tilepath.csgraph], ids=lambda module: module.__name__)
def test_every_name_has_a_docstring(module):
    values = {name: getattr(module, name) for name in module.__all__} | {
        name: getattr(tilepath, name) for name in ESTIMATORS
    }
    assert [name for name, value in values.items() if not inspect.getdoc(value)] == []


# --- In a browser -----------------------------------------------------------------------------------------------------

# Images that cannot be shown, and by how much the page, its text, a program or an output is wider than the room it has.
# Tables may scroll.
SEEN = """Promise.all([...document.images].map(image => {
    image.loading = "eager";
    return image.decode().then(() => [], () => [image.src]);
})).then(broken => ({
    broken: broken.flat(),
    wider: Math.max(...[...document.querySelectorAll(
        "html, .bd-article-container, .bd-article, .bd-article div:not(.in-columns) > .highlight > pre"
        )].map(room => room.scrollWidth - room.clientWidth)),
}))"""
# The pages that a search finds, once it has ended.
FOUND = """new Promise(done => {
    const look = () => {
        const ended = /found|did not match/.test(document.querySelector("#search-results .search-summary")?.innerText);
        const links = [...document.querySelectorAll("#search-results li a")].map(link => link.href);
        ended ? done(links) : setTimeout(look, 50);
    };
    look();
})"""

# The text below the first page that a search finds.
TEXT = """new Promise(done => {
    const look = () => {
        const text = document.querySelector("#search-results li p.context")?.innerText;
        text ? done(text) : setTimeout(look, 50);
    };
    look();
})"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return build(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    opened = Browser(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


needs_a_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")


@pytest.mark.slow
@needs_a_browser
def test_every_page_in_a_browser(site, browser):
    wrong = []
    pages = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html") if "_static" not in path.parts)
    assert len(pages) > 40
    with served(site) as address:
        for width in 1280, 390:
            browser.window(width, 900)
            for page in pages:
                browser.open(f"{address}/{page}")
                seen = browser.value(SEEN)
                if browser.faults or seen["broken"] or seen["wider"] > 0:
                    wrong.append((page, width, browser.faults, seen))
    assert wrong == []


@pytest.mark.slow
@needs_a_browser
def test_a_copied_program_has_its_lines(site, browser):
    """Also where a telephone breaks them; by hand, and by the button, which takes the text of the element."""
    browser.window(390, 900)
    with served(site) as address:
        browser.open(f"{address}/tables.html")
        ((selected, text),) = browser.value("""[...document.querySelectorAll("pre")].map(program => {
            getSelection().selectAllChildren(program);
            return [getSelection().toString(), program.textContent];
        }).filter(([text]) => text.startsWith("tilepath od town.hierarchy.zarr times.csv"))""")
    assert text in (ROOT / "docs/tables.md").read_text()
    assert text == selected + "\n"


@pytest.mark.slow
@needs_a_browser
def test_how_fast_compares_all_columns_on_a_telephone(site, browser):
    browser.window(390, 900)
    with served(site) as address:
        browser.open(f"{address}/how-fast.html")
        hidden = browser.value("[...document.querySelectorAll('table')].map(t => t.scrollWidth - t.clientWidth)")
        tasks = browser.value("[...document.querySelectorAll('td:first-child')].map(task => task.clientWidth)")
    assert len(hidden) == 8
    assert set(hidden) == {0}
    assert min(tasks) > 300  # above the other cells of the row


@pytest.mark.slow
@needs_a_browser
@pytest.mark.parametrize(
    ("word", "page"), [("node", "glossary"), ("neuron", "glossary"), ("isochrone", "routes"), ("all_pairs", "paths")]
)
def test_a_search_finds_the_words_of_readers(site, browser, word, page):
    browser.window(1280, 900)
    with served(site) as address:
        browser.open(f"{address}/search.html?q={word}")
        found = browser.value(FOUND)
    assert any(f"/{page}.html" in link for link in found), found


@pytest.mark.slow
@needs_a_browser
@pytest.mark.parametrize("word", ["node", "neuron", "diameter", "isochrone", "arc", "unit", "verify"])
def test_a_search_shows_the_term_of_the_glossary_first(site, browser, word):
    with served(site) as address:
        browser.open(f"{address}/search.html?q={word}")
        found = browser.value(FOUND)
    assert found[0].endswith(f"/glossary.html#term-{word}"), found


@pytest.mark.slow
@needs_a_browser
@pytest.mark.parametrize(
    ("word", "page"),
    [
        ("CUDA", "install"),
        ("GeoPackage", "roads"),
        ("negative+weights", "limits"),
        ("how+fast", "how-fast"),
        ("reproducible", "reliability"),
        ("ferries+zebra", "roads"),  # no page has both words
    ],
)
def test_a_search_names_pages_for_users_first(site, browser, word, page):
    browser.window(1280, 900)
    with served(site) as address:
        browser.open(f"{address}/search.html?q={word}")
        found = browser.value(FOUND)
        text = browser.value(TEXT)
    assert f"/{page}.html" in found[0], found
    assert text
    assert "Previous" not in text
    assert "How-to" not in text.split()[:3]  # the titles above the page


@pytest.mark.slow
@needs_a_browser
def test_a_search_leads_each_sought_word_to_its_section(site, browser):
    sections = runpy.run_path(str(ROOT / "docs/_ext/sought_words.py"))["WORDS"]
    wrong = []
    with served(site) as address:
        for page, headings in sections.items():
            for heading, words in headings.items():
                for word in words:
                    browser.open(f"{address}/search.html?q={quote(word)}")
                    found = [link for link in browser.value(FOUND) if "/glossary.html" not in link]
                    if not found or not found[0].endswith(f"/{page}.html#{make_id(heading)}"):
                        wrong.append((word, found[:3]))
        for query, place in (
            ("can I run it without a GPU?", "choose.html#which-device"),  # further words
            ("GPU result", "doors.html#arrays-of-cupy-pytorch-jax-and-others"),  # another order
            ("service areas", "routes.html#isochrones"),  # another form
            ("plot u matrix", "maps.html#train-a-map-of-a-table"),
        ):
            browser.open(f"{address}/search.html?q={quote(query)}")
            found = browser.value(FOUND)
            assert found[0].endswith(f"/{place}"), (query, found[:3])
        browser.open(f"{address}/search.html?q=MPI")
        pages = {link.partition("#")[0] for link in browser.value(FOUND)}
        assert pages == {f"{address}/clusters.html", f"{address}/limits.html"}  # not words such as "compile"
        browser.open(f"{address}/search.html?q=turn+restrictions")
        browser.value(FOUND)
        assert browser.value('document.querySelector("#search-results li a").innerText') == "Roads > Turns"
    assert wrong == []


@pytest.mark.slow
@needs_a_browser
@pytest.mark.parametrize(("page", "table"), [("doors", "table"), ("reliability", "#the-same-bits table")])
def test_a_telephone_shows_all_columns(site, browser, page, table):
    browser.window(390, 900)
    with served(site) as address:
        browser.open(f"{address}/{page}.html")
        hidden = browser.value(f"(t => t.scrollWidth - t.clientWidth)(document.querySelector('{table}'))")
    assert hidden == 0
