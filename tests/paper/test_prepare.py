"""The authors' tables from the files as published."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest
from pyarrow import parquet

import pcor
from pcor.errors import SourceError
from pcor.paper import measurement, tables
from pcor.paper.experiments import ExperimentRequest
from pcor.paper.prepare import prepare_homicide, prepare_salary
from pcor.paper.units import Unit
from pcor.paper.ways import paper
from tests.helpers.paper_units import pcor_

SALARY_2012 = """\
Sector,Last Name,First Name,Salary Paid,Taxable Benefits,Employer,Job Title,Calendar Year
Universities,A,A,"$150,000.50",$10.00,York University,Associate Professor,2012
Universities,B,B,"$120,000.00",,University of Ottawa / Universit\u00e9 d'Ottawa,"Dean, Law",2012
Universities,C,C,"$101,000.00",$10.00,Queen\u2019s University,Instructor,2012
Hospitals,D,D,"$180,000.00",$10.00,The Ottawa Hospital,Director,2012
Universities,E,E,"$130,000.00",$10.00,The University of Western Ontario,Vice-President,2012
"""
SALARY_2005 = """\
Sector,Last Name,First Name,Salary,Benefits,Employer,Position,Year
Universities,F,F,100000,1,Brock University,Professor,2005
Universities,G,G,100500,1,Brock University,Dean / Professor,2006
Universities,H,H,n/a,1,Brock University,Professor,2006
"""
HOMICIDE = """\
Record ID,Agency Code,Agency Type,City,State,Year,Victim Age,Perpetrator Age,Weapon
1,AK1,Municipal Police,Anchorage,Alaska,1980,14,15,Blunt Object
2,CA1,Sheriff,Kern,California,1980,34,,Handgun
3,CA2,Municipal Police,Los Angeles,California,1981,998,20,Knife
4,TX1,Tribal Police,Dallas,Texas,1981,40,20,Knife
5,TX2,State Police,Austin,Texas,1981,0,20,Rifle
6,NY1,County Police,Troy,New York,1990,50,20,Poison
"""


def raw(folder: Path, name: str, text: str, encoding: str = "utf-8") -> Path:
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


def test_salaries_are_filtered_and_grouped_as_described(tmp_path: Path) -> None:
    files = [
        raw(tmp_path, "2012.csv", SALARY_2012, "utf-8-sig"),
        raw(tmp_path, "2005.csv", SALARY_2005),
    ]
    path = prepare_salary(files, tmp_path / "out")
    assert sorted(map(tuple, (row.values() for row in parquet.read_table(path).to_pylist()))) == [
        ("Associate Professor", "York University", 2012, 150000.5),
        ("Dean", "University of Ottawa", 2012, 120000.0),
        ("Executive", "University of Western Ontario", 2012, 130000.0),
        ("Professor", "Brock University", 2006, 100500.0),
    ]
    schema = pcor.Schema.from_file(path.with_suffix(".toml"))
    assert [len(a.values) for a in schema.attributes] == [9, 8, 8]
    assert pcor.Table(path, schema).populations([(1 << schema.width) - 1]).tolist() == [4]


def test_older_files_are_in_an_older_encoding(tmp_path: Path) -> None:
    file = raw(tmp_path, "old.csv", SALARY_2012, "cp1252")
    assert len(parquet.read_table(prepare_salary([file], tmp_path))) == 3


def test_homicides_keep_known_ages_in_the_papers_domains(tmp_path: Path) -> None:
    path = prepare_homicide(raw(tmp_path, "database.csv", HOMICIDE), tmp_path)
    assert [tuple(row.values()) for row in parquet.read_table(path).to_pylist()] == [
        ("Sheriff", "California", "Handgun", 34.0),
        ("State Police", "Texas", "Rifle", 0.0),
    ]
    schema = pcor.Schema.from_file(path.with_suffix(".toml"))
    assert [len(a.values) for a in schema.attributes] == [4, 6, 6]
    pcor.Table(path, schema)


def test_a_missing_column_is_named_with_the_nearest_there_is(tmp_path: Path) -> None:
    file = raw(tmp_path, "new.csv", SALARY_2012.replace("Job Title", "Job Titel"))
    with pytest.raises(SourceError, match=r"no column 'Job Title' or 'Position'.*'Job Titel'"):
        prepare_salary([file], tmp_path)


def test_files_without_a_row_of_the_domains_are_refused(tmp_path: Path) -> None:
    file = raw(tmp_path, "none.csv", HOMICIDE.replace("California", "Ohio").replace("Texas", "X"))
    with pytest.raises(SourceError, match="no row of the raw files is one of homicide_110k"):
        prepare_homicide(file, tmp_path)


def test_prepared_tables_are_found_by_the_experiments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [raw(tmp_path, "a.csv", SALARY_2012), raw(tmp_path, "b.csv", SALARY_2005)]
    homicide = raw(tmp_path, "database.csv", HOMICIDE)
    code, said, err = pcor_(
        "prepare", "--salary", *files, "--homicide", homicide, "--out", tmp_path / "data"
    )
    assert code == 0, err
    assert "salary_51k.parquet" in said
    monkeypatch.setenv(tables.FOLDER, str(tmp_path / "data"))
    assert set(ExperimentRequest(("epsilon",)).chosen("epsilon")) == set(tables.LARGE)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("prepare",), "give --salary FILE"),
        (("prepare", "--homicide", "nowhere.csv"), "cannot read 'nowhere.csv'"),
        (("report", "--out", "nowhere"), "has no results; run 'pcor experiment all"),
    ],
)
def test_files_that_are_not_there_are_named(words: tuple[str, ...], message: str) -> None:
    code, out, err = pcor_(*words)
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.skipif(not os.environ.get("PCOR_DATA"), reason="PCOR_DATA names no folder of tables")
def test_on_the_authors_table_grubbs_at_a_tenth_gives_the_papers_utility() -> None:
    way = paper("breadth_first", "0.1", 50)
    found = [
        measurement.measure(Unit("releases", "authors_salary_11k", "grubbs", n, 0, (way.key,)))
        for n in range(40)
    ]
    mean = math.fsum(one[way.key]["many"]["utility"] for one in found) / len(found)
    # The mean of 500 is 0.86 (the paper's too), one release has a standard deviation of 0.125:
    # five standard errors of 40 are 0.1, so a false alarm comes once in a million seeds.
    assert mean == pytest.approx(0.86, abs=0.1)
