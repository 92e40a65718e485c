"""The site, built from the pages of this folder by `scripts/docs`. Nothing is fetched while it is built."""

import itertools
import logging
import re
import sys
from importlib.metadata import version as installed_version
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.util.images import get_image_size

project = "tilepath"
author = copyright = "The tilepath developers"
release = version = installed_version("tilepath")

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
extensions = [
    "commands",
    "glossary",
    "notebooks",
    "sought_words",
    "summaries",
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_click",
    "sphinx_copybutton",
    "sphinx_design",
]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
smartquotes = False  # which would turn --workers into a dash and a word
default_role = "literal"  # docstrings put names between single backticks
autosummary_generate = False  # tables only; the names are described below them
autodoc_typehints = "none"  # docstrings describe types
autodoc_member_order = "bysource"
# Members of Python's and scikit-learn's own classes are described elsewhere.
FOREIGN = ["BaseException", "tuple", "BaseEstimator", "ClassNamePrefixFeaturesOutMixin", "TransformerMixin"]
FOREIGN += ["ClassifierMixin", "_SetOutputMixin", "_MetadataRequester"]
autodoc_default_options = {"members": True, "inherited-members": ",".join(FOREIGN)}
toc_object_entries = False  # tables list the names
napoleon_use_param = napoleon_use_rtype = False
copybutton_selector = ":not(.highlight-text) > div.highlight pre"  # outputs are not typed
copybutton_prompt_text = ">>> |\\.\\.\\. |\\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "tilepath"
html_context = {"default_mode": "auto"}  # light or dark, as the reader's system
html_favicon = "_static/icon.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).parent / "_static/scorer.js")
html_copy_source = html_show_sourcelink = False
html_sidebars = {page: [] for page in ("index", "install", "gallery/index")}  # sections of one page
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": [], "documents": []},  # which has a wide table
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
}

WIDTH = 112  # of a docstring of a method, without its indentation

# Pages of the repository that lie outside of this folder, by the page of the site that shows them.
ROOT = Path(__file__).parents[1]
SHOWN = {"architecture": "ARCHITECTURE.md", "changelog": "CHANGELOG.md", "contributing": "CONTRIBUTING.md"}


def link_within_the_site(app, page, source):
    """Show pages of other folders, and turn links that work on the forge into links that work on the site."""
    text = source[0]
    if page in SHOWN:
        app.env.note_dependency(str(ROOT / SHOWN[page]))
        text = re.sub(r"\]\((?!https?:|#)", "](../", (ROOT / SHOWN[page]).read_text())
    text = re.sub(r"\]\((?:\.\./)+docs/", "](/", text)
    text = re.sub(r"\[[\w/-]+\.md\]\((?!https?:)", "[](", text)  # the title of the page in place of its file name
    for shown, file in SHOWN.items():
        text = re.sub(rf"\]\((?:\.\./)+{file}", f"](/{shown}.md", text)
    text = re.sub(r"\[([^]]+)\]\((?:\.\./)+[\w/-]+\)", r"\1", text)  # of a folder, the name alone
    source[0] = text


def add_example(_app, context, lines):
    """Show the example of a command below its usage, before the long list of its options."""
    if example := getattr(context.command, "example", ""):
        lines += [
            "",
            ".. rubric:: Example",
            "",
            ".. code-block:: sh",
            "",
            *(f"    {line}" for line in example.splitlines()),
        ]


def join_wrapped_types(_app, _kind, _name, _object, _options, lines):
    """Read the text after "name :" as the explanation of a parameter if it goes on in the next line.

    It does if the first word of the next line had no room in the line.
    """
    for i, (line, following) in enumerate(itertools.pairwise(list(lines))):
        found = re.match(r"(\*{0,2}\w+(?:, \w+)*) : (.+)", line)
        if found and re.match(r"    \S", following) and len(f"{line} {following.split()[0]}") > WIDTH:
            lines[i : i + 2] = [found[1], f"    {found[2]} {following.strip()}"]


def skip_member(_app, kind, name, member, _skip, _options):
    """Of modules, show the docstring alone. Leave out fields of named tuples, and the routing of scikit-learn."""
    if (
        kind == "module"
        or (member.__doc__ or "").startswith("Alias for field")
        or re.fullmatch(r"set_\w+_request", name)
    ):
        return True
    return None


def keep_links_of_classes(_app, doctree):
    """Of the words in types, link only names of classes: in "array (n, n)", n is no name of Python."""
    for link in list(doctree.findall(addnodes.pending_xref)):
        listed = link.get("reftype") == "obj"  # in a table of names
        if link.get("refdomain") == "py" and not listed and not link["reftarget"].rpartition(".")[2][:1].isupper():
            link.replace_self(link.children)


def write_dashes(_app, doctree, _page):
    """Write the dash that Napoleon puts between a parameter and its explanation."""
    for text in list(doctree.findall(nodes.Text)):
        if " -- " in text and isinstance(text.parent, nodes.paragraph):
            text.parent.replace(text, nodes.Text(text.replace("--", "\N{EN DASH}", 1)))


def break_names(_app, _page, _template, context, _doctree):
    """Let a browser break a long name after an underscore, a point, a bracket or a slash.

    An option is not broken after "--", and a number in a table is not separated from its unit. Words in brackets after
    a number may be broken.
    """

    def breakable(name):
        return re.sub(r"(?<=[A-Za-z0-9])([_./([])(?=[A-Za-z])", r"\1<wbr>", name[0])

    if "body" in context:
        body = re.sub(r'(?<=<span class="pre">)[^<]{12,}', breakable, context["body"])
        body = re.sub('<span class="pre">(?=-)', '<span class="pre option">', body)
        body = re.sub(r'(?<=<td class="text-right"><p>)([^<(]+?)( \([^<]+\))(?=</p>)', r"\1<span>\2</span>", body)
        context["body"] = re.sub(r'(?<=<td class="text-right"><p>)((?:<strong>)?[0-9.,]+) ', r"\1&nbsp;", body)


def part_commands(_app, doctree):
    """In programs of a shell, put an empty line before a comment, which explains the command below it."""
    for block in doctree.findall(nodes.literal_block):
        if block.get("language") in ("sh", "bash"):
            block.rawsource = re.sub(r"^(?!#)(.+)\n(?=# )", r"\1\n\n", block.astext(), flags=re.MULTILINE)
            block.children = [nodes.Text(block.rawsource)]


def mark_columns(_app, doctree):
    """Mark outputs whose lines fit a wide window: site.css keeps their columns, where it breaks lines of messages."""
    for block in doctree.findall(nodes.literal_block):
        if block.get("language") == "text" and max(map(len, block.astext().splitlines()), default=0) <= 100:
            block["classes"].append("in-columns")


def part_lines(_app, _page, _template, context, _doctree):
    """Make each line of a program or an output an element: site.css breaks long lines, and indents what follows.

    A line may be broken after a bracket, but not at the hyphens of an option or of a file.
    """

    def whole(part):
        return part[0] if part[0][0] == "<" else f'<span class="option">{part[0]}</span>'

    def parted(program):
        text = re.sub(r"<[^>]+>|(?<![\w./=-])[\w./=-]*-[\w./=-]*(?![\w./=-])", whole, program[2])
        text = re.sub(r"(?<=[\[(]</span>)(?!\n)", "<wbr>", text)
        lines = text.splitlines(keepends=True)
        return program[1] + "".join(f'<span class="line">{line}</span>' for line in lines) + "</pre>"

    if "body" in context:
        block = r'(<div class="highlight"><pre>(?:<span></span>)?)(.*?)</pre>'
        context["body"] = re.sub(block, parted, context["body"], flags=re.DOTALL)


def load_images_late(app, page, _template, context, _doctree):
    """Let a browser load a picture only when it comes into view. A click on a picture of the gallery shows it alone."""

    def with_size(image):
        """Name the size of a picture, so that the text stays where it is when the picture comes."""
        file = next(path for path, (_, name) in app.env.images.items() if name == Path(image[1]).name)
        width, height = get_image_size(app.srcdir / file)
        return f'<img loading="lazy" width="{width}" height="{height}" {image[0][5:]}'

    if "body" in context:
        context["body"] = re.sub(r'<img [^>]*?src="([^"]+)"', with_size, context["body"])
    if page == "gallery/index":
        context["body"] = re.sub(r'(<img [^>]*src="([^"]+)"[^>]*>)', r'<a href="\2">\1</a>', context["body"])


def setup(app):
    app.connect("doctree-resolved", write_dashes)
    app.connect("autodoc-process-docstring", join_wrapped_types, priority=400)  # before Napoleon
    # A section may have no pages yet.
    empty = logging.getLogger("sphinx.sphinx.directives.other")
    empty.addFilter(lambda record: getattr(record, "subtype", "") != "empty_glob")
    app.connect("autodoc-skip-member", skip_member)
    app.connect("doctree-read", keep_links_of_classes)
    app.connect("doctree-read", part_commands)
    app.connect("doctree-read", mark_columns)
    app.connect("source-read", link_within_the_site)
    app.connect("html-page-context", break_names)
    app.connect("html-page-context", part_lines)
    app.connect("html-page-context", load_images_late)
    app.connect("sphinx-click-process-usage", add_example)
