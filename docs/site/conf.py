"""The site, by Sphinx: `make site`. Its pages are the clone's own Markdown files, at their own paths.

So a link that leads somewhere in the clone leads to the same place on the site. The API reference and the list of all
modules are made of the docstrings. Warnings are errors: a link to a page or a heading that is not there fails the
build.
"""

from __future__ import annotations

import ast
import re
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx

CLONE = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(CLONE))  # the API reference is that of this clone, whatever is installed

import py_backends  # noqa: E402  # after the line above
from py_backends import registry  # noqa: E402

API = "docs/site/api"
HOUSE = "docs/site/house"
CONTENTS = {
    "Learn": (
        "docs/walk",
        "docs/patterns",
        "docs/steps",
        "docs/steps_cuda",
        "docs/pictures",
        "docs/lecture",
        "docs/glossary",
    ),
    "Look up": (
        "docs/choose",
        "docs/reference",
        API,
        "docs/performance",
        "docs/predict",
        "docs/clusters",
        "docs/conformance",
        "docs/mutants",
    ),
    "Extend": ("docs/own-code", "docs/write-a-backend", "docs/write-a-kernel", "docs/write-a-kernel-of-steps"),
    "Develop": (
        "CONTRIBUTING",
        "docs/develop/house",
        HOUSE,
        "docs/develop/building",
        "docs/develop/command",
        "docs/develop/backend",
        "docs/develop/kernel",
        "docs/develop/step",
        "docs/develop/number-format",
        "docs/develop/first-program",
        "docs/develop/testing",
        "docs/develop/surroundings",
        "docs/develop/instruments",
        "docs/develop/documents",
        "docs/develop/releasing",
    ),
}
"""The contents, in the order of reading. A page that is not named here stands below the others."""
MODULES = {".py", ".pyi", ".cpp"}
"""Endings of files of the package with a line that says what they are: the first of their docstring or comment."""
KOREAN = ".ko"
"""How the name of a page in Korean ends."""

project = "py-backends"
copyright = "the py-backends developers"  # noqa: A001  # Sphinx's name
version = release = py_backends.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "README"
include_patterns = ["*.md", "docs/**.md", "docs/site/*.rst", "examples/*/*.md"]
exclude_patterns = [".*", "build", "dist"]

myst_heading_anchors = 4
smartquotes = False
default_role = "literal"  # in docstrings names stand in single backticks, as in Markdown
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = project
html_copy_source = False
html_use_index = False  # it is wider than a screen, and the search finds the same


def setup(app: Sphinx) -> None:
    """What Sphinx calls to hear of extensions."""
    app.connect("env-get-outdated", read_again)
    app.connect("source-read", add_contents)
    app.connect("source-read", add_kernels)
    app.connect("source-read", add_modules)
    app.connect("doctree-read", resolve_folders)
    app.connect("autodoc-process-docstring", as_restructured_text)
    app.connect("html-page-context", set_language)
    app.connect("build-finished", add_index)


def read_again(_app: Sphinx, _env: Any, added: set[str], _changed: set[str], removed: set[str]) -> list[str]:
    """The list of modules, and README where a page is new or gone: its contents are others then."""
    return [HOUSE, root_doc] if added or removed else [HOUSE]


def add_contents(app: Sphinx, page: str, source: list[str]) -> None:
    """Append the contents to README, which as a page of GitHub has none."""
    if page != root_doc:
        return
    named = {name for names in CONTENTS.values() for name in names} | {root_doc}
    others = sorted(app.env.found_docs - named)
    parts = {
        **CONTENTS,
        "More": tuple(name for name in others if not name.endswith(KOREAN)),
        "한국어": tuple(name for name in others if name.endswith(KOREAN)),
    }
    for caption, names in parts.items():
        if names:
            lines = ["```{toctree}", ":hidden:", ":maxdepth: 2", f":caption: {caption}", ""]
            source[0] += "\n\n" + "\n".join([*lines, *(f"/{name}" for name in names), "```"])


def add_kernels(_app: Sphinx, page: str, source: list[str]) -> None:
    """Append the module of each kernel's problem to the API reference: kernels are found, no list names them."""
    if page == API:
        for kernel in registry.kernel_names():
            name = type(registry.problem(kernel)).__module__
            source[0] += f"\n{name}\n{'-' * len(name)}\n\n.. automodule:: {name}\n   :members:\n"


def add_modules(_app: Sphinx, page: str, source: list[str]) -> None:
    """Append a table of modules for each room of the package. No module is imported: importing some of them acts."""
    if page == HOUSE:
        package = CLONE / "py_backends"
        for room in rooms(package):
            title = f"``{room.relative_to(CLONE)}/``"
            source[0] += f"\n{title}\n{'-' * len(title)}\n\n{with_marks(first_line(room / '__init__.py'))}\n"
            lines = [
                f"   * - ``{path.relative_to(room)}``\n     - {with_marks(first_line(path))}\n"
                for path in sorted(room.glob("*") if room == package else room.rglob("*"))
                if path.suffix in MODULES and path.stem != "__init__"
            ]
            source[0] += "\n.. list-table::\n   :widths: 30 70\n\n" + "".join(lines) if lines else ""


def rooms(package: Path) -> list[Path]:
    """The folders of a package, in the order of the layers that import-linter holds; the ground, and what has none."""
    settings = tomllib.loads((CLONE / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = next(each["layers"] for each in settings["contracts"] if each["type"] == "layers")
    ordered = [package / name.strip().rpartition(".")[2] for layer in layers for name in layer.split("|")]
    there = sorted(folder for folder in package.iterdir() if any(folder.glob("*.py")))
    return [*(room for room in ordered if room in there), package, *(room for room in there if room not in ordered)]


def first_line(path: Path) -> str:
    """Of a module's docstring, or of its first comment; empty if it has neither, or is not there."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    said = ast.get_docstring(ast.parse(text)) if path.suffix.startswith(".py") else None
    return (said or text.lstrip("#/ ")).partition("\n")[0]


def resolve_folders(app: Sphinx, tree: nodes.document) -> None:
    """Links to folders of the clone: to the folder's README, or to nothing where it has none."""
    here = Path(app.env.doc2path(app.env.docname)).parent
    for link in list(tree.findall(pending_xref)):
        folder = (here / link["reftarget"]).resolve()
        if link["reftype"] != "myst" or link.get("refdomain") or not folder.is_dir():
            continue
        page = app.env.path2doc(folder / "README.md")
        if page in app.env.found_docs:
            link.attributes.update(refdomain="doc", reftarget=page, reftargetid=None)
        else:
            link.replace_self(link.children)


def as_restructured_text(_app: Sphinx, _kind: str, _name: str, _it: Any, _options: Any, lines: list[str]) -> None:
    """Make lines `name: what it is` of a docstring a list, and what is indented below a paragraph code."""
    made = [""]
    code = False
    for plain, marked in zip(lines, with_marks("\n".join(lines)).split("\n"), strict=False):
        before, indented = made[-1], plain.startswith("    ")
        described = re.fullmatch(r"(\w+(?:, \w+)*): (.+)", marked) if made[1:] else None
        begins = described and before and not before.startswith(" ")
        ends = plain and not indented and before.startswith(" ")
        if begins or ends:
            made.append("")
        if plain and not indented:
            code = False
        elif indented and not before and not made[-2].startswith(" "):
            code = True
            made += ["::", ""]
        made += [f"**{described[1]}**", f"    {described[2]}"] if described else [plain if code else marked]
    lines[:] = made[1:]


def with_marks(text: str) -> str:
    """Prose in Markdown as reStructuredText: of its marks both have only backticks in common, as they are used here."""
    names = text.split("`")[1::2]
    prose = [re.sub(r"([|*\\])", r"\\\1", part) for part in text.split("`")[::2]]
    ended = [rf"\ {part}" if part[:1].isalnum() else part for part in prose[1:]]  # as the plural in `Device`s
    return prose[0] + "".join(f"`{name}`{part}" for name, part in zip(names, ended, strict=True))


def set_language(_app: Sphinx, page: str, _template: str, context: dict[str, Any], _tree: Any) -> None:
    """Tell browsers and readers of screens in which language a page is."""
    context["language"] = "ko" if page.endswith(KOREAN) else "en"


def add_index(app: Sphinx, error: Exception | None) -> None:
    """A folder that is opened in a browser shows its index."""
    if error is None and app.builder.name == "html":
        shutil.copy(app.outdir / f"{root_doc}.html", app.outdir / "index.html")
