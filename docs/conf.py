"""How Sphinx builds the site: `sphinx-build -W --keep-going docs site`.

The pages are Markdown that reads the same in the repository. Python is described from docstrings, and LaTeX becomes
MathML, which browsers draw without a script. A warning of any kind fails the build: a link without a target, a page
outside the navigation, a formula that cannot be read, a public name without a docstring or left out of `docs/api.md`.
"""

from __future__ import annotations

import inspect
import posixpath
import re
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING

from latex2mathml.converter import convert
from sphinx.util import logging

import symdsl
from symdsl.highlight.lexer import SymLexer

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx
    from sphinx.writers.html5 import HTML5Translator

ROOT = Path(__file__).parents[1]

project = "symdsl"
version = release = symdsl.__version__
author = copyright = "The symdsl developers"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["examples", "site"]
html_theme = "furo"
html_title = f"symdsl {version}"
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_math_renderer = "mathml"

myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 4
myst_all_links_external = False
suppress_warnings = ["myst.header"]  # a page may begin below the first level

autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
napoleon_numpy_docstring = False
napoleon_use_ivar = True
default_role = "literal"  # docstrings write code in single backticks

BROUGHT = {
    "README.md": "index",
    "CHANGELOG.md": "changelog",
    "CONTRIBUTING.md": "contributing",
    "editors/vscode/README.md": "editors",
}
"""Files from outside this folder, and the page that shows each of them."""

_LINK = re.compile(r"\]\((?!https?:|#)([^)\s#]+)")
_DESCRIBED = re.compile(r"^\.\. auto\w+:: (\S+)$", re.MULTILINE)
_SPACELESS = re.compile(r"(<mi>log</mi>)(?=<mi>)")
_METHODS = (FunctionType, property, classmethod, staticmethod)
_LOG = logging.getLogger(__name__)


def setup(app: Sphinx) -> None:
    """Registers the lexer of the language, the pages from elsewhere, the check of public names and MathML."""
    app.add_lexer("sym", SymLexer)
    app.connect("source-read", bring)
    app.connect("source-read", check_public_names)
    app.add_html_math_renderer("mathml", (draw_inline, None), (draw_block, None))


# ---------------------------------------------------------------- pages


def bring(app: Sphinx, page: str, content: list[str]) -> None:
    """Replaces a page's reference to a file from outside this folder by that file, with links to the same places."""
    for source, shown_by in BROUGHT.items():
        if shown_by == page:
            text = moved((ROOT / source).read_text(encoding="utf-8"), source)
            content[0] = content[0].replace(f"See [{source}](../{source}).\n", text)


def moved(text: str, source: str) -> str:
    """The text of a file of the project with its links as they are from this folder."""

    def place(match: re.Match[str]) -> str:
        file = posixpath.normpath(posixpath.join(posixpath.dirname(source), match[1]))
        return f"]({BROUGHT[file]}.md" if file in BROUGHT else f"]({posixpath.relpath(file, 'docs')}"

    return _LINK.sub(place, text)


# ---------------------------------------------------------------- public names


def check_public_names(app: Sphinx, page: str, content: list[str]) -> None:
    """Warns of public names that the page on Python leaves out, and of those without a docstring."""
    if page == "api":
        for fault in faults(content[0]):
            _LOG.warning(fault, location=page)


def faults(page: str) -> Iterator[str]:
    """What is wrong with a page as a description of all public names."""
    described = set(_DESCRIBED.findall(page))
    yield from (f"`{name}` is public, but not described" for name in sorted(public_names() - described))
    for name in sorted(described):
        yield from (f"`{one}` has no docstring" for one in undocumented(name))


def public_names() -> set[str]:
    """Full names of all that `symdsl` exports; of a module, what that exports."""
    names = set()
    for name in set(symdsl.__all__) - {"__version__"}:
        value = getattr(symdsl, name)
        inner = [f"{name}.{one}" for one in value.__all__] if isinstance(value, ModuleType) else [name]
        names |= {f"symdsl.{one}" for one in inner}
    return names


def undocumented(name: str) -> Iterator[str]:
    """The name of a function or class if it has no docstring, and those of its public methods that have none."""
    try:
        value = attrgetter(name.removeprefix("symdsl."))(symdsl)
    except AttributeError:
        return  # autodoc says so
    if not (inspect.isroutine(value) or inspect.isclass(value)):
        return
    if not value.__doc__:
        yield name
    for member, one in vars(value).items() if inspect.isclass(value) else ():
        if not member.startswith("_") and isinstance(one, _METHODS) and not inspect.getdoc(getattr(value, member)):
            yield f"{name}.{member}"


# ---------------------------------------------------------------- mathematics


def draw_inline(writer: HTML5Translator, node: nodes.math) -> None:
    """Writes a formula within a line."""
    _draw(writer, node, "inline")


def draw_block(writer: HTML5Translator, node: nodes.math_block) -> None:
    """Writes a formula that stands by itself."""
    _draw(writer, node, "block")


def _draw(writer: HTML5Translator, node: nodes.math | nodes.math_block, display: str) -> None:
    """Writes a formula as MathML, and ends the visit: a formula has no children to be written."""
    from docutils.nodes import SkipNode

    try:
        markup = convert(node.astext(), display=display)
    except Exception as error:  # the converter raises whatever a formula makes it stumble on
        _LOG.warning("no formula: %s: %r", node.astext(), error, location=node)
        raise SkipNode from error
    if "\\" in markup:
        _LOG.warning("no formula: %s: a command is unknown", node.astext(), location=node)
    formula = _SPACELESS.sub(r'\1<mspace width="0.17em"/>', markup)
    writer.body.append(formula if display == "inline" else f'<div class="formula">{formula}</div>')
    raise SkipNode
