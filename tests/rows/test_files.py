"""Files as they arrive: other separators and encodings, packed ones, sheets of a workbook."""

from __future__ import annotations

import gzip
import io
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pcor
from pcor.errors import SourceError
from pcor.rows.files import file_kind, plain_name
from pcor.rows.snapshot import Snapshot
from tests.helpers.same_rows import cells

TEXT = "job;age;pay\nBäcker;30,5;1.200,50 €\nCEO;61;2.500 €\nBäcker;;7\n"
WRITTEN = {"separator": ";", "decimal": ",", "thousands": ".", "currency": "€"}


def schema(**written: str) -> pcor.Schema:
    age = {"edges": [0, 50, 99], "outside": "drop"}
    return pcor.Schema(
        metric="pay", attributes={"job": ["Bäcker", "CEO"], "age": age}, source=written
    )


def packed(name: str, content: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(name, content)
        archive.writestr("read me.txt", "hello")
        archive.writestr(f"__MACOSX/._{name}", "hello")
    return stream.getvalue()


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "rows.csv": bytes,
    "rows.csv.gz": gzip.compress,
    "rows.zip": lambda content: packed("export.CSV", content),
}
ENCODINGS = ["utf-8", "utf-8-sig", "latin-1", "windows-1252", "utf-16", "utf-16-le"]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("name", PACKERS)
def test_a_file_in_another_dialect_is_read_however_it_is_packed(
    tmp_path: Path, name: str, encoding: str
) -> None:
    text = TEXT if encoding != "latin-1" else TEXT.replace("€", "EUR")
    currency = "€" if encoding != "latin-1" else "EUR"
    path = tmp_path / name
    path.write_bytes(PACKERS[name](text.encode(encoding)))
    declared = schema(**WRITTEN | {"encoding": encoding, "currency": currency})
    sources: list[dict[str, Any]] = [{"source": path}, {"source": Snapshot(path)}]
    if name != "rows.zip":
        sources.append({"source": path, "memory": "1GiB"})
    for source in sources:
        table = pcor.Table(**source, schema=declared)
        assert cells(table) == {(0, 2): 1, (1, 3): 1}
        assert table.distribution((1 << 4) - 1)[0].tolist() == [1200.5, 2500.0]
        assert table.record(1).value == 2500.0


def test_a_folder_of_files_in_another_encoding_is_read_where_it_is(tmp_path: Path) -> None:
    for year in (2019, 2020):
        (tmp_path / f"year={year}").mkdir()
        (tmp_path / f"year={year}" / "part.csv").write_bytes(TEXT.encode("utf-16"))
    written = {**WRITTEN, "encoding": "utf-16"}
    table = pcor.Table(tmp_path, schema(**written))
    assert cells(table) == {(0, 2): 2, (1, 3): 2}
    by_year = pcor.Schema(metric="pay", attributes={"year": ["2019", "2020"]}, source=written)
    assert cells(pcor.Table(tmp_path, by_year)) == {(0,): 3, (1,): 3}


@pytest.mark.parametrize(
    ("declared", "said"),
    [({"separator": "tab"}, "semicolons"), ({"separator": ";"}, 'encoding = "windows-1252"')],
)
def test_a_file_that_is_read_where_it_is_is_told_how_it_is_written(
    declared: dict[str, str], said: str, tmp_path: Path
) -> None:
    (tmp_path / "rows.csv").write_bytes("jöb;age;pay\nBäcker;1;1\n".encode("windows-1252"))
    if declared == {"separator": "tab"}:
        (tmp_path / "rows.csv").write_text("job;age;pay\nCEO;1;1\n", encoding="utf-8")
    with pytest.raises(SourceError, match=said):
        pcor.Table(tmp_path / "rows.csv", schema(**declared), memory="1GiB")


@pytest.mark.parametrize("name", ["a.zip", "b.xlsx", "c.csv"])
def test_what_is_read_whole_is_not_read_where_it_is(tmp_path: Path, name: str) -> None:
    files = [tmp_path / name, tmp_path / ("b.parquet" if name == "c.csv" else name)]
    with pytest.raises(SourceError, match=r"files of one kind, .* alone and without --memory"):
        pcor.Table(files, schema())


@pytest.mark.parametrize(
    ("encoding", "declared", "said"),
    [
        ("utf-8", "utf-16", 'not text in utf-16; declare encoding = "utf-8"'),
        ("utf-16", "windows-1252", 'not text in cp1252; declare encoding = "utf-16"'),
        ("windows-1252", "utf-8", 'not text in utf-8; declare encoding = "windows-1252"'),
        ("windows-1252", "euc-jp", "not text in euc_jp"),
    ],
)
def test_a_file_that_is_not_in_the_declared_encoding_is_refused(
    tmp_path: Path, encoding: str, declared: str, said: str
) -> None:
    (tmp_path / "rows.csv").write_bytes(TEXT.encode(encoding))
    with pytest.raises(SourceError, match=f"cannot be read as CSV: it is {said}") as caught:
        pcor.Table(tmp_path / "rows.csv", schema(**WRITTEN, encoding=declared))
    assert "cker" not in str(caught.value)


def test_a_file_with_commas_that_was_declared_otherwise_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("job,age,pay\nCEO,5,1\n", encoding="utf-8")
    with pytest.raises(SourceError, match='separated by commas; declare separator = "comma"'):
        pcor.Table(tmp_path / "rows.csv", schema(separator=";"))


def test_the_ragged_lines_of_a_packed_file_are_told_to_its_owner(tmp_path: Path) -> None:
    content = "job;age;pay\nCEO;5;1\nCEO;5\n".encode("utf-16")
    (tmp_path / "rows.csv.gz").write_bytes(gzip.compress(content))
    with pytest.raises(SourceError, match="UTF-16 text, separated by ';', with as many") as caught:
        pcor.Table(tmp_path / "rows.csv.gz", schema(separator=";", encoding="utf-16"))
    assert caught.value.__notes__ == ["the header has 3 cells, line 3 has 2"]


@pytest.mark.parametrize(
    ("names", "said", "notes"),
    [
        (["a.csv", "b/c.csv"], "more than one CSV file", ["it holds: a.csv, b/c.csv"]),
        (["a.txt"], "no CSV file", []),
    ],
)
def test_a_zip_file_must_hold_one_csv_file(
    tmp_path: Path, names: list[str], said: str, notes: list[str]
) -> None:
    with zipfile.ZipFile(tmp_path / "rows.zip", "w") as archive:
        for name in names:
            archive.writestr(name, TEXT)
    with pytest.raises(SourceError, match=f"has {said} in it; pack exactly one") as caught:
        pcor.Table(tmp_path / "rows.zip", schema(**WRITTEN))
    assert getattr(caught.value, "__notes__", []) == notes


@pytest.mark.parametrize("name", ["rows.csv.gz", "rows.zip"])
@pytest.mark.parametrize("cut", [0.5, 0.9])
def test_a_packed_file_that_is_cut_off_is_refused(tmp_path: Path, name: str, cut: float) -> None:
    content = PACKERS[name](TEXT.encode() * 500)
    (tmp_path / name).write_bytes(content[: int(len(content) * cut)])
    with pytest.raises(SourceError, match="cannot be unpacked: it is damaged, cut off"):
        pcor.Table(tmp_path / name, schema(**WRITTEN))


def test_the_kind_of_a_file_is_told_by_all_of_its_ending() -> None:
    assert [file_kind(Path(name)) for name in ("a.CSV.GZ", "a.gz", "a.b.pq", "csv")] == [
        "csv",
        "",
        "parquet",
        "",
    ]
    assert plain_name(Path("in/claims.2020.csv.gz")) == "claims.2020"


# -- workbooks ------------------------------------------------------------------------------------

SHEET = """<?xml version="1.0"?><worksheet
 xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>{}</sheetData></worksheet>"""
PARTS = {
    "[Content_Types].xml": """<?xml version="1.0"?><Types
 xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels"
 ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml"
 ContentType="application/xml"/></Types>""",
    "_rels/.rels": """<?xml version="1.0"?><Relationships
 xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r"
 Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
 Target="xl/workbook.xml"/></Relationships>""",
}


def workbook(path: Path, sheets: dict[str, list[list[Any]]]) -> Path:
    """Write the little of an Excel file that its readers need."""
    links, named = "", ""
    relation = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    with zipfile.ZipFile(path, "w") as archive:
        for number, (name, rows) in enumerate(sheets.items()):
            target = f"worksheets/sheet{number}.xml"
            links += f'<Relationship Id="s{number}" Type="{relation}/worksheet" Target="{target}"/>'
            named += f'<sheet name="{name}" sheetId="{number + 1}" r:id="s{number}"/>'
            lines = "".join("<row>" + "".join(map(_cell, row)) + "</row>" for row in rows)
            archive.writestr(f"xl/{target}", SHEET.format(lines))
        archive.writestr(
            "xl/workbook.xml",
            '<?xml version="1.0"?><workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/'
            f'2006/main" xmlns:r="{relation}"><sheets>{named}</sheets></workbook>',
        )
        archive.writestr(
            "xl/_rels/workbook.xml.rels",
            '<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/'
            f'2006/relationships">{links}</Relationships>',
        )
        for name, content in PARTS.items():
            archive.writestr(name, content)
    return path


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return f'<c t="inlineStr"><is><t>{value}</t></is></c>'
    return "<c/>" if value is None else f"<c><v>{value}</v></c>"


ROWS: list[list[Any]] = [
    ["job", "age", "pay"],
    ["Bäcker", 30.5, "1.200,50 €"],
    ["CEO", 61, 2500],
    ["CEO", None, 7],
]


def test_a_sheet_is_read_as_the_file_of_its_texts_is(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine", reason="needs python-calamine")
    path = workbook(tmp_path / "rows.xlsx", {"Sheet1": ROWS})
    for source in (path, Snapshot(path)):
        table = pcor.Table(source, schema(**WRITTEN))
        assert cells(table) == {(0, 2): 1, (1, 3): 1}
        assert table.distribution((1 << 4) - 1)[0].tolist() == [1200.5, 2500.0]


def test_a_workbook_is_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calamine = pytest.importorskip("python_calamine", reason="needs python-calamine")
    path = workbook(tmp_path / "rows.xlsx", {"Sheet1": ROWS})
    opened: list[int] = []
    plain = calamine.CalamineWorkbook

    class Counted:
        @staticmethod
        def from_filelike(stream: Any) -> Any:
            opened.append(1)
            return plain.from_filelike(stream)

    monkeypatch.setattr(calamine, "CalamineWorkbook", Counted)
    declared = schema(**WRITTEN)
    ways: list[Callable[[], object]] = [
        lambda: pcor.Table(path, declared),
        lambda: declared.check(path),
        lambda: pcor.Schema.draft(path, metric="pay"),
    ]
    for way in ways:
        opened.clear()
        way()
        assert opened == [1]


def test_a_workbook_of_several_sheets_asks_which_one(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine", reason="needs python-calamine")
    path = workbook(tmp_path / "rows.xlsx", {"Notes": [["hello"]], "Pay": ROWS})
    with pytest.raises(SourceError, match=r"several sheets; say which .* --sheet") as caught:
        pcor.Table(path, schema(**WRITTEN))
    assert caught.value.__notes__ == ["it has: Notes, Pay"]
    with pytest.raises(SourceError, match="has no sheet 'Pya'") as caught:
        pcor.Table(path, schema(**WRITTEN, sheet="Pya"))
    assert caught.value.__notes__ == ["it has: Notes, Pay; did you mean 'Pay'?"]
    assert cells(pcor.Table(path, schema(**WRITTEN, sheet="Pay"))) == {(0, 2): 1, (1, 3): 1}


def test_a_file_that_is_no_workbook_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine", reason="needs python-calamine")
    (tmp_path / "rows.xlsx").write_text(TEXT, encoding="utf-8")
    with pytest.raises(SourceError, match="cannot be read as an Excel file"):
        pcor.Table(tmp_path / "rows.xlsx", schema(**WRITTEN))


def test_a_workbook_is_refused_with_the_extra_that_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    path = workbook(tmp_path / "rows.xlsx", {"Sheet1": ROWS})
    with pytest.raises(SourceError, match=r"pip install 'pcor\[excel\]'; or save the sheet as CSV"):
        pcor.Table(path, schema(**WRITTEN))
