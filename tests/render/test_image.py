import shutil
import stat
import subprocess
import sys

import pytest

from symdsl.diagnostics import RunError
from symdsl.render import image
from symdsl.render.image import render

GRAPH = "digraph { a -> b }"


@pytest.fixture
def without_dot(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)


@pytest.fixture
def fake_dot(monkeypatch, tmp_path):
    """Puts a program of our own on the path as `dot`."""

    def install(body: str) -> None:
        program = tmp_path / "dot"
        program.write_text(f"#!{sys.executable}\n{body}")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    return install


def test_dot_is_the_text_itself():
    assert render("digraph { ä }", "dot") == "digraph { ä }".encode()


def test_unknown_format():
    with pytest.raises(ValueError, match=r"`format` \(='gif'\) must be one of dot, svg, png, pdf"):
        render(GRAPH, "gif")


@pytest.mark.parametrize(("format", "start"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_wheel_draws_where_there_is_no_dot(without_dot, format, start):
    assert render(GRAPH, format).startswith(start)


def test_system_dot_is_preferred(fake_dot):
    fake_dot("import sys\nsys.stdout.write(' '.join(sys.argv[1:]) + '|' + sys.stdin.read())")
    assert render(GRAPH, "svg") == b"-Kdot -Tsvg|" + GRAPH.encode()


def test_error_of_system_dot_is_told(fake_dot):
    fake_dot("import sys\nsys.stderr.write('first\\nno such font\\n')\nsys.exit(3)")
    with pytest.raises(RunError, match="cannot draw the picture: Graphviz says no such font"):
        render(GRAPH, "svg")


def test_error_of_the_wheel_is_told(without_dot):
    with pytest.raises(RunError, match=r"cannot draw the picture: .*install Graphviz"):
        render("digraph { a -> ", "svg")


def test_missing_wheel_is_told(without_dot, monkeypatch):
    monkeypatch.setattr(image, "_BY_WHEEL", "import no_such_module")
    with pytest.raises(RunError, match=r"No module named 'no_such_module'; install Graphviz"):
        render(GRAPH, "svg")


def test_drawing_that_never_ends_is_told(without_dot, monkeypatch):
    monkeypatch.setattr(image, "_BY_WHEEL", "import time; time.sleep(60)")
    monkeypatch.setattr(image, "SECONDS", 0.2)
    with pytest.raises(RunError, match=r"Graphviz took more than 0.2 s"):
        render(GRAPH, "svg")


def test_drawing_prints_nothing(without_dot):
    code = f"from symdsl.render.image import render; render({GRAPH!r}, 'png')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")
