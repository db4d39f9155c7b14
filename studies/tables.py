"""Tables that nobody owns: made here, of the shape of those that people have."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

# How many values the attributes of the census-like table have.
CENSUS_SIZES = (16, 14, 7, 7, 5, 2, 2)


def census(rows: int = 46_000, seed: int = 0) -> pa.Table:
    """Return people with seven attributes, skewed and dependent, and the hours that they work."""
    numbers = np.random.default_rng(seed)
    columns: dict[str, np.ndarray] = {}
    before = np.zeros(rows, dtype=np.int64)
    for place, size in enumerate(CENSUS_SIZES):
        columns[f"a{place}"] = before = _leaning(before, size, numbers)
    hours = 40 + numbers.normal(0, 4, rows) + 3 * (columns["a1"] % 3) - 5 * (columns["a6"] == 1)
    odd = numbers.random(rows) < 0.01
    hours = np.where(odd, numbers.uniform(1, 99, rows), hours)
    return pa.table(columns | {"hours": np.round(np.clip(hours, 1, 99))})


def _leaning(before: np.ndarray, size: int, numbers: np.random.Generator) -> np.ndarray:
    """Draw an attribute that leans on the one before it.

    Frequent values are up to several hundred times as frequent as rare ones.
    """
    shares = 1.0 / np.arange(1, size + 1) ** 2.2
    drawn = numbers.choice(size, len(before), p=shares / shares.sum())
    return np.where(numbers.random(len(before)) < 0.35, (drawn + before) % size, drawn)


def wide(rows: int = 200_000, attributes: int = 20, values: int = 50, seed: int = 1) -> pa.Table:
    """Return a table of many attributes with many values each, and amounts with a long tail."""
    numbers = np.random.default_rng(seed)
    shares = 1.0 / np.arange(1, values + 1)
    columns = {
        f"a{n}": numbers.choice(values, rows, p=shares / shares.sum()) for n in range(attributes)
    }
    return pa.table(columns | {"amount": np.round(numbers.lognormal(10, 0.5, rows), 2)})


# The domains of the table of careers: as many values as the paper's salary table has.
TITLES, EMPLOYERS, YEARS = 9, 8, 8


def careers(rows: int = 51_000, seed: int = 0) -> pa.Table:
    """Return salaries of people, one row for each year of a career of up to eight.

    Careers are heavy-tailed: three in ten last one year, one in five all eight. A person
    keeps the employer, may change the title once, and earns a little more each year.
    """
    numbers = np.random.default_rng(seed)
    people = rows // 3  # more than enough: a career has 4 years on average
    shares = 1.0 / np.arange(1, YEARS + 1)
    shares[-1] += 0.5  # those who were there before, and still are after
    years = numbers.choice(np.arange(1, YEARS + 1), people, p=shares / shares.sum())
    first = numbers.integers(0, YEARS - years + 1)
    person = np.repeat(np.arange(people), years)
    since = np.arange(len(person)) - np.repeat(np.cumsum(years) - years, years)
    ranks = 1.0 / np.arange(1, TITLES + 1)
    title = numbers.choice(TITLES, people, p=ranks / ranks.sum())
    promoted = numbers.integers(1, 3 * YEARS, people)  # mostly after the end
    titles = (title[person] + (since >= promoted[person])) % TITLES
    employer = numbers.choice(EMPLOYERS, people)
    level = numbers.normal(0, 0.12, people) + numbers.standard_t(3, people) * 0.02
    growth = 1 + 0.025 * since + numbers.normal(0, 0.004, len(person))
    pay = 110_000 * (1 + 0.06 * titles) * np.exp(level[person]) * growth
    columns = {
        "employee": person,
        "job_title": titles,
        "employer": employer[person],
        "year": 2006 + first[person] + since,
        "salary": np.round(pay, 2),
    }
    return pa.table({name: column[:rows] for name, column in columns.items()})


# How many values the attributes of the table of many values have: 2^30 contexts for a record.
MANY_SIZES = (7, 6, 5, 5, 4, 4, 4, 3)


def many_values(rows: int = 100_000, seed: int = 0) -> pa.Table:
    """Return amounts by eight attributes, as skewed and dependent as the census-like table.

    Each value moves the amount by some percent; what is left has a long tail.
    """
    numbers = np.random.default_rng(seed)
    columns: dict[str, np.ndarray] = {}
    before, level = np.zeros(rows, dtype=np.int64), np.zeros(rows)
    for place, size in enumerate(MANY_SIZES):
        columns[f"a{place}"] = before = _leaning(before, size, numbers)
        level += numbers.normal(0, 0.08, size)[before]
    noise = numbers.normal(0, 0.15, rows) + numbers.standard_t(3, rows) * 0.03
    return pa.table(columns | {"amount": np.round(60_000 * np.exp(level + noise), 2)})
