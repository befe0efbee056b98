"""Imports: confined, each file once, every failure a diagnostic."""

from __future__ import annotations

from pathlib import Path

import pytest

from symdsl.diagnostics import Collector, SpecError
from symdsl.language.imports import LARGEST, read_file
from symdsl.spec import load, parse

REST = """
data digits
network n = p(classes)
"""
PART = "network p(c) {\n  input image(1, 8, 8)\n  flatten\n  layer h: FC -> c\n}\n"


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.sym"
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text, encoding="utf-8")
    return folder / "main.sym"


def codes(path: Path) -> list[str]:
    with pytest.raises(SpecError, match=r"error\[") as raised:
        load(path)
    return [one.code for one in raised.value.diagnostics]


def test_a_file_is_imported_from_a_folder_below(tmp_path: Path) -> None:
    spec = load(write(tmp_path, main='import "blocks/p.sym"' + REST, blocks__p=PART))
    assert spec.facts.network.nodes[-1].name == "h"
    assert parse(spec.text()).facts.network.name == "n"


def test_what_two_files_import_is_there_once(tmp_path: Path) -> None:
    main = write(tmp_path, main='import "a.sym"\nimport "b.sym"' + REST, a='import "p.sym"', b='import "p.sym"', p=PART)
    assert load(main).warnings == ()


def test_errors_in_an_imported_file_name_it(tmp_path: Path) -> None:
    main = write(tmp_path, main='import "p.sym"' + REST, p=PART.replace("FC", "KONV"))
    with pytest.raises(SpecError, match=r"--> .*p\.sym:4:12") as raised:
        load(main)
    assert [one.code for one in raised.value.diagnostics] == ["E302"]


@pytest.mark.parametrize("path", ["../p.sym", "/etc/hosts", "a/../../p.sym"])
def test_an_import_stays_in_its_folder(tmp_path: Path, path: str) -> None:
    write(tmp_path, p=PART)
    assert "E106" in codes(write(tmp_path / "inner", main=f'import "{path}"' + REST))


def test_a_link_out_of_the_folder_is_followed_before_the_check(tmp_path: Path) -> None:
    write(tmp_path, p=PART)
    main = write(tmp_path / "inner", main='import "p.sym"' + REST)
    (tmp_path / "inner" / "p.sym").symlink_to(tmp_path / "p.sym")
    assert "E106" in codes(main)


def test_a_circle_is_found(tmp_path: Path) -> None:
    found = codes(
        write(tmp_path, main='import "a.sym"' + REST, a='import "b.sym"', b='import "a.sym"\nimport "main.sym"')
    )
    assert found.count("E107") == 2


def test_a_file_does_not_import_itself(tmp_path: Path) -> None:
    assert "E107" in codes(write(tmp_path, main='import "main.sym"' + REST))


def test_a_link_to_itself_is_said_at_its_path(tmp_path: Path) -> None:
    (tmp_path / "loop.sym").symlink_to("loop.sym")
    (tmp_path / "main.sym").write_text('import "loop.sym"\n')
    collector = Collector()
    read_file(tmp_path / "main.sym", "main.sym", collector)
    assert [(one.code, one.span.line) for one in collector.diagnostics] == [("E101", 1)]


def test_a_missing_import_is_said_at_its_path(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"there is no file .*nowhere\.sym`\n  --> .*main\.sym:1:8"):
        load(write(tmp_path, main='import "nowhere.sym"' + REST))


@pytest.mark.parametrize(
    ("written", "near"),
    [
        ("nowhre.sym", "nowhere.sym"),
        ("block/nowhere.sym", "blocks/nowhere.sym"),
        ("blocks/nowere", "blocks/nowhere.sym"),
    ],
)
def test_a_missing_import_gets_a_suggestion_relative_to_the_file(tmp_path: Path, written: str, near: str) -> None:
    main = write(tmp_path / "in", main=f'import "{written}"' + REST, nowhere=PART, blocks__nowhere=PART)
    with pytest.raises(SpecError, match=f"did you mean `{near}`") as raised:
        load(main)
    (only,) = raised.value.diagnostics
    assert only.fix is not None
    assert only.fix.content == f'"{near}"'


def test_what_is_near_to_nothing_gets_no_suggestion(tmp_path: Path) -> None:
    (tmp_path / "a_folder.sym").mkdir()
    (tmp_path / "link.sym").symlink_to("nowhere.sym")
    for missing in (tmp_path / "none" / "at" / "all.sym", tmp_path / "link.sym", tmp_path / "folder.sym"):
        with pytest.raises(SpecError, match="there is no file") as raised:
            load(missing)
        assert raised.value.diagnostics[0].help == ""


def test_a_circle_shows_the_imports_that_close_it(tmp_path: Path) -> None:
    main = write(tmp_path, main='import "a.sym"' + REST, a='import "b.sym"', b='import "a.sym"')
    with pytest.raises(SpecError, match="imports itself by way of others") as raised:
        load(main)
    (only,) = raised.value.diagnostics
    assert only.place.line == 'import "a.sym"'
    assert [note.line for note in only.notes] == ['import "b.sym"']


def test_what_a_missing_import_may_hold_is_not_missed(tmp_path: Path) -> None:
    rest = "data digits(size)\nnetwork n = p(width, [kinds])\nsearch { epochs = epochs_of_b }\n"
    assert codes(write(tmp_path, main='import "b.sym"\n' + rest)) == ["E101"]


def test_a_text_cannot_import() -> None:
    with pytest.raises(SpecError, match=r"E106\]: a text that is not a file cannot import"):
        parse('import "p.sym"' + REST)


def test_a_path_with_a_null_character_is_no_path(tmp_path: Path) -> None:
    assert "E101" in codes(write(tmp_path, main='import "a\0b"' + REST))


def test_missing_files_folders_and_other_encodings(tmp_path: Path) -> None:
    (tmp_path / "latin.sym").write_bytes(b"// ok\nlet a = \xe9")
    assert codes(tmp_path / "none.sym") == ["E101"]
    assert codes(tmp_path) == ["E101"]
    with pytest.raises(SpecError, match="is not UTF-8: byte 14, on line 2"):
        load(tmp_path / "latin.sym")
    assert codes(tmp_path / "latin.sym") == ["E102"]


def test_a_file_below_a_file_cannot_be_read(tmp_path: Path) -> None:
    assert codes(write(tmp_path, main=REST) / "more.sym") == ["E101"]


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "huge.sym"
    with path.open("wb") as file:
        file.truncate(LARGEST + 1)
    assert codes(path) == ["E103"]


def test_text_without_a_final_newline_is_fine(tmp_path: Path) -> None:
    assert load(write(tmp_path, main=(PART + REST).rstrip("\n"))).warnings == ()


def test_carets_stand_right_after_a_byte_order_mark_and_before_windows_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "main.sym"
    path.write_bytes(b"\xef\xbb\xbf" + ("let a = b\n" + PART + REST).replace("\n", "\r\n").encode())
    with pytest.raises(SpecError, match=r"main\.sym:1:9\n   1 \| let a = b\n     \|         \^\Z"):
        load(path)


def test_a_byte_order_mark_and_windows_line_ends_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "main.sym"
    path.write_bytes(b"\xef\xbb\xbf" + (PART + REST).replace("\n", "\r\n").encode())
    assert load(path).name == "main"
