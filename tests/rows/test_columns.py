"""Files and frames: what is read, what is refused, and that no message quotes a cell."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from pcor import Schema, Table
from pcor.errors import ParameterError, PcorError, SourceError
from pcor.rows.snapshot import Snapshot
from tests.helpers.pay_tables import (
    MARK,
    MARKED_NUMBER,
    PAY,
    as_csv,
    as_parquet,
    counts,
    from_text,
    job_schema,
    people,
)

# -- CSV ------------------------------------------------------------------------------------------


def test_leading_zeros_of_a_csv_file_are_kept(tmp_path: Path) -> None:
    table = from_text(tmp_path, "key,job,pay\n1,007,1\n2,7,2\n3,7,3\n", job_schema(["007", "7"]))
    assert counts(table) == [1, 2]


def test_an_empty_cell_of_a_csv_file_is_missing(tmp_path: Path) -> None:
    schema = job_schema({"values": ["CEO"], "outside": "drop"}, missing="drop")
    text = 'key,job,pay\n1,CEO,1\n2,,2\n3,"",3\n4,CEO,\n'
    assert from_text(tmp_path, text, schema).distribution(1)[0].tolist() == [1.0]


@pytest.mark.parametrize("word", ["NA", "null", "None", "nan", "N/A"])
def test_no_word_of_a_csv_file_is_missing(tmp_path: Path, word: str) -> None:
    table = from_text(tmp_path, f"key,job,pay\n1,{word},1\n2,CEO,2\n", job_schema([word, "CEO"]))
    assert counts(table) == [1, 1]


def test_quoted_commas_quotes_and_line_breaks_are_part_of_a_cell(tmp_path: Path) -> None:
    domain = ["a, b", 'say "c"', "d\ne"]
    text = 'key,job,pay\r\n1,"a, b",1\r\n2,"say ""c""",2\r\n3,"d\ne",3\r\n'
    assert counts(from_text(tmp_path, text, job_schema(domain))) == [1, 1, 1]


def test_line_breaks_inside_cells_do_not_break_a_long_file(tmp_path: Path) -> None:
    # Longer than one block of the reader, so that a block ends inside a quoted cell.
    rows = "".join(f'{n},CEO,1,"{"x" * 50}\n{"y" * 50}"\n' for n in range(20_000))
    assert counts(from_text(tmp_path, "key,job,pay,note\n" + rows)) == [20_000, 0]


def test_a_byte_order_mark_is_not_part_of_a_name(tmp_path: Path) -> None:
    assert counts(from_text(tmp_path, "\ufeffkey,job,pay\n1,CEO,1\n")) == [1, 0]


@pytest.mark.parametrize("name", ["rows.CSV", "rows.PARQUET", "rows.pq"])
def test_the_ending_of_a_file_may_be_written_otherwise(tmp_path: Path, name: str) -> None:
    write = csv.write_csv if "CSV" in name else parquet.write_table
    write(people(), tmp_path / name)
    assert counts(Table(tmp_path / name, PAY)) == [2, 1]


@pytest.mark.parametrize("save", [as_csv, as_parquet])
def test_a_snapshot_of_a_file_is_read_as_the_file_is_and_stays_what_it_was(
    tmp_path: Path, save: Callable[[pa.Table, Path], Path]
) -> None:
    path = save(people(), tmp_path)
    snapshot = Snapshot(path)
    path.unlink()
    assert counts(Table(snapshot, PAY)) == [2, 1]
    assert repr(snapshot) == f"<Snapshot of {path.name!r}>"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"key;job;pay\n1;CEO;1\n", "semicolons"),
        (b"key,job,pay\n1,CEO\n", "as many cells in each row"),
        ("key,job,pay\n1,CEO,é\n".encode("latin-1"), "encoding windows-1252"),
    ],
)
def test_a_snapshot_that_cannot_be_read_is_refused_as_its_file_is(
    tmp_path: Path, content: bytes, words: str
) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(content)
    with pytest.raises(SourceError, match=words) as of_file:
        Table(path, PAY)
    with pytest.raises(SourceError, match=words) as of_snapshot:
        Table(Snapshot(path), PAY)
    assert str(of_snapshot.value) == str(of_file.value)
    assert getattr(of_snapshot.value, "__notes__", []) == getattr(of_file.value, "__notes__", [])


@pytest.mark.parametrize("name", ["a.b", 'a"b', "a b", "[0]", "job[0]", "🙂"])
@pytest.mark.parametrize("save", [as_csv, as_parquet])
def test_columns_of_files_may_have_any_name(
    tmp_path: Path, name: str, save: Callable[[pa.Table, Path], Path]
) -> None:
    schema = Schema(metric="pay", attributes={name: ["x", "y"]})
    path = save(pa.table({name: ["x", "y", "y"], "pay": [1, 2, 3]}), tmp_path)
    assert counts(Table(path, schema)) == [1, 2]


# -- what cannot be read --------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["Arrow", "pandas", "Polars", "CSV", "Parquet"])
def test_a_missing_column_is_refused_with_the_nearest_name(source: str, tmp_path: Path) -> None:
    rows = people().rename_columns(["key", "jbo", "pay"])
    given_as: dict[str, Callable[[], Any]] = {
        "Arrow": lambda: rows,
        "pandas": rows.to_pandas,
        "Polars": lambda: pl.DataFrame(rows),
        "CSV": lambda: as_csv(rows, tmp_path),
        "Parquet": lambda: as_parquet(rows, tmp_path),
    }
    with pytest.raises(SourceError, match="has no column 'job'") as refused:
        Table(given_as[source](), PAY)
    # A note is for the owner: the service sends the sentence alone, without words of the file.
    assert "jbo" not in str(refused.value)
    assert refused.value.__notes__ == ["it has: key, jbo, pay; did you mean 'jbo'?"]


def test_a_file_without_a_header_is_told_which_one_it_needs(tmp_path: Path) -> None:
    with pytest.raises(
        SourceError, match=r"none of the declared columns.*header with: pay, job, key"
    ):
        from_text(tmp_path, "1,CEO,10\n2,Lawyer,20\n")


def test_a_column_named_twice_in_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="has more than one column 'job'"):
        from_text(tmp_path, "key,job,job,pay\n1,CEO,CEO,1\n")


def test_a_column_named_twice_in_a_frame_is_refused() -> None:
    frame = pd.DataFrame([[1, "CEO", "CEO", 1.0]], columns=["key", "job", "job", "pay"])
    with pytest.raises(SourceError, match="two columns of the same name"):
        Table(frame, PAY)


def test_a_frame_whose_columns_are_numbered_is_refused() -> None:
    with pytest.raises(SourceError, match="none of the declared columns"):
        Table(pd.DataFrame([[1, "CEO", 1.0]]), PAY)


@pytest.mark.parametrize("source", [None, 5, {"pay": [1]}, [1, 2], b"rows.csv", pd.Series([1])])
def test_what_is_no_table_is_refused_with_what_would_be(source: Any) -> None:
    with pytest.raises(SourceError, match=r"cannot read rows from a .*; give a pandas, Polars"):
        Table(source, PAY)


@pytest.mark.parametrize("name", ["nowhere.csv", "nowhere.parquet"])
def test_a_file_that_is_not_there_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(SourceError, match=f"no such file: '.*{name}'"):
        Table(tmp_path / name, PAY)


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").mkdir()
    with pytest.raises(SourceError, match=r"rows.csv' is not a file"):
        Table(tmp_path / "rows.csv", PAY)


@pytest.mark.parametrize("name", ["rows.docx", "rows", "rows.gz"])
def test_an_unknown_ending_is_refused_with_the_known_ones(tmp_path: Path, name: str) -> None:
    with pytest.raises(SourceError, match=f"what '.*{name}' is.*allowed: .csv, .csv.gz, .zip, "):
        Table(tmp_path / name, PAY)


def test_a_file_that_may_not_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = as_csv(people(), tmp_path)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "open", refuse)  # the tests may run as root, who reads everything
    with pytest.raises(SourceError, match=r"rows.csv' may not be read by this user"):
        Table(path, PAY)


def test_a_name_that_no_file_can_have_is_refused() -> None:
    # From Python 3.14 on, a path that cannot be looked at does not exist.
    with pytest.raises(SourceError, match=r"^(the file|no such file)"):
        Table("x" * 5000 + ".csv", PAY)


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_an_empty_file_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(SourceError, match=f"{name}' is empty"):
        Table(tmp_path / name, PAY)


def test_a_file_of_a_header_alone_is_called_that_by_release_check_and_draft(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"rows.csv' has a header and no rows"):
        from_text(tmp_path, "key,job,pay\n")
    with pytest.raises(SourceError, match=r"rows.csv' has a header and no rows"):
        PAY.check(tmp_path / "rows.csv")
    with pytest.raises(SourceError, match=r"rows.csv' has a header and no rows"):
        Schema.draft(tmp_path / "rows.csv", metric="pay")


@pytest.mark.parametrize("content", [b"PAR1garbagePAR1", b"key,job,pay\n1,CEO,1\n", b"\x00" * 100])
def test_garbage_is_not_parquet(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "rows.parquet").write_bytes(content)
    with pytest.raises(SourceError, match=r"rows.parquet' cannot be read as Parquet"):
        Table(tmp_path / "rows.parquet", PAY)


@pytest.mark.parametrize(
    "content",
    [b"key,job,pay\n1,CEO\n", b"key,job,pay\n1,\xff\xfe,1\n", b"\xff\xfe,job,pay\n1,CEO,1\n"],
)
def test_garbage_is_not_csv(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "rows.csv").write_bytes(content)
    with pytest.raises(SourceError, match=r"rows.csv' cannot be read as CSV"):
        Table(tmp_path / "rows.csv", PAY)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("1,CEO,1\n2,CEO\n", "line 3 has 2"),
        ('1,"C\nE\nO",1\n\n2,CEO,1,1\n3,CEO\n', "line 6 has 4, line 7 has 2"),
    ],
)
def test_the_owner_is_told_which_lines_are_ragged(tmp_path: Path, rows: str, said: str) -> None:
    with pytest.raises(SourceError, match="as many cells in each row as names") as refused:
        from_text(tmp_path, f"key,job,pay\n{rows}")
    assert "line" not in str(refused.value)
    assert refused.value.__notes__ == [f"the header has 3 cells, {said}"]


def test_a_header_in_another_case_is_told_apart_from_none() -> None:
    for frame in ({"KEY": [1], "JOB": ["CEO"], "PAY": [1.0]}, {"Pay ": [1.0], " JOB": ["CEO"]}):
        with pytest.raises(SourceError, match="has no column 'pay'") as refused:
            Table(pa.table(frame), PAY)
        near = next(name for name in frame if "pay" in name.lower())
        assert refused.value.__notes__[0].endswith(f"did you mean {near!r}?")


@pytest.mark.parametrize(("mark", "name"), [(";", "semicolons"), ("\t", "tabs"), ("|", "bars")])
def test_a_csv_file_with_another_separator_is_told_so(tmp_path: Path, mark: str, name: str) -> None:
    for row in ("1,CEO,1", "1,CEO,1.5"):
        text = f"key,job,pay\n{row}\n".replace(",", mark).replace(".", ",")
        said = rf"cannot be read as CSV: .*separated by {name}; declare separator = \"{name[:-1]}"
        with pytest.raises(SourceError, match=said):
            from_text(tmp_path, text)


@pytest.mark.parametrize(
    ("encoding", "said"),
    [("latin-1", "windows-1252"), ("utf-16", "utf-16"), ("utf-16-le", "utf-16-le")],
)
def test_a_csv_file_that_is_not_utf_8_is_told_what_to_declare(
    tmp_path: Path, encoding: str, said: str
) -> None:
    (tmp_path / "rows.csv").write_bytes("key,job,pay\n1,Bäcker,1\n".encode(encoding))
    with pytest.raises(SourceError, match=f'not text in utf-8; .*encoding = "{said}"') as caught:
        Table(tmp_path / "rows.csv", PAY)
    assert "cker" not in str(caught.value)


def test_the_columns_of_a_file_are_a_note_for_the_owner_and_no_part_of_the_message(
    tmp_path: Path,
) -> None:
    with pytest.raises(SourceError) as caught:
        from_text(tmp_path, "key,pay,town\n1,2,Rome\n")
    assert str(caught.value).endswith("it needs the columns: pay, job, key")
    assert caught.value.__notes__ == ["it has: key, pay, town"]


# -- no message quotes a cell ---------------------------------------------------------------------


def text_file(text: str) -> Callable[[Path], Table]:
    return lambda folder: from_text(folder, text)


BAD_TABLES: dict[str, Callable[[Path], Table]] = {
    "outside the domain": lambda _: Table(people(job=["CEO", MARK, "CEO"]), PAY),
    "outside whole numbers": lambda _: Table(people(job=["1", MARK, "2"]), job_schema([1, 2])),
    "outside the bins": lambda _: Table(
        people(job=[1.0, MARKED_NUMBER, 2.0]), job_schema({"edges": [0, 5]})
    ),
    "text in bins": lambda _: Table(people(job=["1", MARK, "2"]), job_schema({"edges": [0, 5]})),
    "text as metric": lambda _: Table(people(pay=["1", MARK, "2"]), PAY),
    "a huge metric": lambda _: Table(people(pay=[1.0, MARKED_NUMBER * 1e100, 2.0]), PAY),
    "a missing metric": lambda _: Table(people(key=[MARK, "b", "c"], pay=[None, 1.0, 2.0]), PAY),
    "mixed objects": lambda _: Table(
        pd.DataFrame(
            {"key": [1, 2], "job": ["CEO", "CEO"], "pay": pd.Series([1, MARK], dtype=object)}
        ),
        PAY,
    ),
    "a mixed attribute": lambda _: Table(
        pd.DataFrame({"key": [1, 2], "job": pd.Series([1, MARK], dtype=object), "pay": [1, 2]}), PAY
    ),
    "a lazy frame that fails": lambda _: Table(
        pl.LazyFrame({"key": [1], "job": ["CEO"], "pay": [MARK]}).cast({"pay": pl.Int64}), PAY
    ),
    "a query that fails": lambda _: Table(
        duckdb.from_arrow(people(pay=["1", MARK, "2"])).project(
            "key, job, CAST(pay AS INTEGER) AS pay"
        ),
        PAY,
    ),
    "a nested attribute": lambda _: Table(people(job=[[MARK]] * 3), PAY),
    "no header": text_file(f"1,{MARK},5\n2,CEO,6\n"),
    "a ragged line": text_file(f"key,job,pay\n1,{MARK}\n"),
    "text as metric in a file": text_file(f"key,job,pay\n1,CEO,{MARK}\n"),
    "outside the domain in a file": text_file(f"key,job,pay\n1,{MARK},1\n"),
    "an unknown record": lambda _: unknown_record(people(job=["CEO"] * 3, key=[MARK, MARK, "x"])),
}


def unknown_record(rows: pa.Table) -> Table:
    table = Table(rows, PAY)
    table.record("somebody else")
    return table


@pytest.mark.parametrize("bad", BAD_TABLES)
def test_no_refusal_quotes_a_cell(bad: str, tmp_path: Path) -> None:
    with pytest.raises(PcorError) as refused:
        BAD_TABLES[bad](tmp_path)
    printed = "".join(traceback.format_exception(refused.value)) + repr(refused.value)
    assert (MARK in printed, "73917391" in printed.replace(".", "")) == (False, False)


@pytest.mark.parametrize(
    ("source", "schema"),
    [(PAY, pa.table({"pay": [1.0]})), (PAY, "rows.csv"), (PAY, PAY), ({"pay": [1.0]}, {"pay": 1})],
)
def test_arguments_in_the_wrong_order_are_told_so(source: Any, schema: Any) -> None:
    with pytest.raises(ParameterError, match=r"rows come first .* pcor\.Table\(rows, schema\)"):
        Table(source, schema)
