"""How many values a sentence names, listed and in short. NOT PRIVATE: seeded, and it reads rows.

For random LOF outliers of the paper's salary table, the context of one release each: named were all
values of every attribute that is restricted; now it is what ``pcor.public.phrase`` says. The same
contexts are counted both ways, so the difference is the wording's alone. Then the same records in
the family whose contexts have unbroken runs of years.

    PCOR_DATA=... python -m studies.words
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
from contextlib import suppress
from pathlib import Path

from pyarrow import parquet

import pcor
from bench.__main__ import random_outliers

TABLE = "salary_51k"
EPSILON = "0.2"


def listed(context: pcor.Context) -> int:
    """Return how many values a sentence names that lists all values of a restricted attribute."""
    chosen = context.values
    return sum(
        len(chosen[attribute.name])
        for attribute in context.schema.attributes
        if len(chosen[attribute.name]) < len(attribute.values)
    )


def with_ranges(schema: pcor.Schema) -> pcor.Schema:
    """Return the schema with unbroken runs of years."""
    declared = schema.to_dict()
    years = schema.attribute("year").values
    declared["attributes"]["year"] = {"values": list(years), "contexts": "range"}
    return pcor.Schema.from_dict(declared)


def released(table: pcor.Table, records: list[int]) -> list[pcor.Context]:
    """Return the context of one release of each record that is an outlier in some."""
    found = []
    for record in records:
        with suppress(pcor.errors.NoValidContext):
            seeded = pcor.testing.seeded(record)
            found.append(pcor.release(table, record, EPSILON, chooser=seeded).context)
    return found


def main() -> None:
    """Print the mean, median and largest number of named items, and the longest sentence."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--records", type=int, default=100)
    count = parser.parse_args().records
    path = Path(os.environ["PCOR_DATA"]) / f"{TABLE}.parquet"
    table = pcor.Table(parquet.read_table(path), pcor.Schema.from_file(path.with_suffix(".toml")))
    records = random_outliers(table, random.Random(0), count)  # noqa: S311 (which records)
    contexts = released(table, records)
    ranges = released(table.in_family(with_ranges(table.schema)), records)
    print(f"{TABLE}, {len(contexts)} random LOF outliers, epsilon {EPSILON}: named in a sentence")
    for name, counts in (
        ("every value", [listed(context) for context in contexts]),
        ("in short", [context.named for context in contexts]),
        ("years as ranges", [context.named for context in ranges]),
    ):
        mean, median = statistics.mean(counts), statistics.median(counts)
        print(f"{name:>16}: mean {mean:.2f}, median {median:g}, most {max(counts)}")
    print(f"{len(contexts) - len(ranges)} of them are outliers in no context with years as ranges")
    longest = max(contexts, key=lambda context: context.named)
    print(f"most: {longest}")


if __name__ == "__main__":
    main()
