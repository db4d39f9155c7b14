"""The results as a page of the documentation. Private where the table is; nothing is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pcor.paper.layout import grids
from pcor.paper.reasons import REASONS
from pcor.paper.store import NOT_PRIVATE

_INTRODUCTION = """# The paper's experiments again

{note} The tables are public ones that anybody may look at.

```sh
PCOR_DATA=... {command}
PCOR_DATA=... pcor experiment report
```

{machine}. {run} Every repetition is a release that was really drawn; how many there are stands
beside each group of records (the paper has 200, and 100 records for COE match). *Utility* is the
population of the released context over that of the largest valid one; in brackets the 90 %
interval of the mean (bootstrap). *Paper* in a row's name means the paper's search, samples and
price list; *ours* is what the library does by itself: the direct mechanism, tight price list.
Starts are drawn uniformly from the valid contexts. Times are processor time on one core, not
waiting time; the paper's were taken on a machine of 132 cores.

The authors asked only about records with more than 500 valid contexts (100 or 125 on the reduced
homicide table); *any outliers* leaves that out, and *as the authors' program asked* also takes its
way to pick a record and a start. *Against the paper* compares the first group with the paper's
number where it belongs to that reading: *within* its interval or 0.03 of it. `salary_51k`,
`salary_52k_sparse` and `homicide_110k` have the shape of the paper's tables and not their rows,
which were not published; `authors_salary_11k` and `authors_homicide_28k` are the authors' own
reduced tables. The numbers behind this page are in [paper](paper), as JSON and CSV; `pcor
experiment report` draws them.
"""


def written(summaries: Sequence[dict[str, Any]]) -> str:
    """Write the page."""
    first = summaries[0]
    parts = [
        _INTRODUCTION.format(
            note=NOT_PRIVATE,
            command=first["command"],
            machine=first["about"]["machine"],
            run=_run(first["run"]),
        )
    ]
    parts += [_section(summary) for summary in summaries]
    return "\n".join(parts)


def _run(run: dict[str, Any]) -> str:
    """Say how long it took, or how far it got."""
    missing, earlier = run["units_missing"], run["units_from_earlier_runs"]
    everything = missing + earlier + run["units_measured"]
    if missing:
        return (
            f"Of {everything:,} units of work {everything - missing:,} are done; the same command "
            "goes on with the rest."
        )
    if earlier:
        return f"All {everything:,} units of work were done, in more than one run."
    return (
        f"All of it took {run['seconds'] / 60:.0f} minutes with {run['processes']} processes "
        f"(load {run['load_before']} before, {run['load_after']} after) and "
        f"{run['processor_seconds'] / 60:.0f} minutes of processor time."
    )


def _section(summary: dict[str, Any]) -> str:
    lines = [f"## {summary['title']}", "", f"{summary['source']}.", ""]
    lines += [f"- {remark}" for remark in summary["remarks"]]
    for grid in grids(summary):
        lines += ["", f"### `{grid.title}`", "", grid.markdown()]
    reasons = REASONS.get(summary["experiment"], ())
    if reasons:
        lines += ["", "**Where we differ, and why.**", "", *(f"- {reason}" for reason in reasons)]
    return "\n".join([*lines, ""])
