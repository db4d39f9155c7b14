"""``pcor experiment``: the tables and figures of the paper again, and a report of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from pcor.cli import options
from pcor.cli.output import check_plots, guarded, progress_bar, say, say_json, tell
from pcor.errors import ParameterError
from pcor.support.files import check_target, write_text

NAMES = {
    "sampling": "Compare the searches: tables 'Sampling Methods Comparison', Figure 1.",
    "overlap": "Another utility: tables 'Intersection Overlap Utility', Figure 2.",
    "detectors": "Other detectors: tables 'Outlier Detection Algorithms', Figure 3.",
    "epsilon": "What an epsilon buys: tables 'Effect of privacy parameter', Figure 4.",
    "samples": "More samples: tables 'Effect of # of samples', Figure 5.",
    "coe_match": "Does a person change the valid contexts? Tables 'COE Match'.",
    "ratio": "Ratios of chances where the valid contexts differ (Section 6.7).",
    "locality": "Outliers assigned at random: breadth-first search finds nothing.",
}

app = typer.Typer(
    help="""Run the paper's experiments again. NOT PRIVATE: seeded, and for the owner's eyes.

Real tables come from the folder that PCOR_DATA names ('pcor experiment prepare' makes two of them
from public files); without one, on synthetic salaries.

Example: pcor experiment all --quick
""",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Out = Annotated[Path, typer.Option("--out", help="The folder for results; a rerun goes on there.")]
Tables = Annotated[
    list[str] | None,
    typer.Option("--table", help="A table by name, for example salary_51k; may be repeated."),
]
Quick = Annotated[bool, typer.Option("--quick", help="A few repetitions: minutes, not half hours.")]
Seed = Annotated[int, typer.Option("--seed", help="Of the records and of every decision.")]
Workers = Annotated[
    int | None, typer.Option("--workers", help="How many processes; by default one per core.")
]

SoFar = Annotated[
    bool, typer.Option("--so-far", help="Sum up what earlier runs measured; measure nothing.")
]

_RESULTS = Path("pcor-results")


def _command(names: tuple[str, ...]) -> Callable[..., None]:
    """Return the command that runs these experiments."""

    @guarded
    def experiment(
        out: Out = _RESULTS,
        tables: Tables = None,
        quick: Quick = False,
        seed: Seed = 0,
        workers: Workers = None,
        so_far: SoFar = False,
        as_json: options.AsJson = False,
    ) -> None:
        from pcor.paper.experiments import ExperimentRequest, conduct

        request = ExperimentRequest(names, tuple(tables or ()), quick, seed, workers, so_far)
        with progress_bar(f"experiment {', '.join(names)}") as progress:
            summaries = conduct(request, out, progress)
        if as_json:
            say_json({"owner_only": summaries[0]["owner_only"], "experiments": summaries})
            return
        _say(summaries)
        tell(
            f"Written to {out}: a .json and .csv file each. "
            f"Then: pcor experiment report --out {out}"
        )

    return experiment


def _say(summaries: Sequence[dict[str, Any]]) -> None:
    from pcor.paper.layout import grids
    from pcor.paper.store import NOT_PRIVATE

    say(max((s["owner_only"] for s in summaries), key=lambda note: note.startswith("OWNER")))
    say(NOT_PRIVATE)
    for summary in summaries:
        say(f"\n{summary['title']} ({summary['source']})")
        for grid in grids(summary):
            say(f"\n{grid.title}\n{grid.text()}")


app.command("all", help="Run all experiments; what they share is done once.")(
    _command(tuple(NAMES))
)
for _name, _help in NAMES.items():
    app.command(_name, help=_help)(_command((_name,)))


@app.command("report")
@guarded
def report(
    out: Out = _RESULTS,
    markdown: Annotated[
        Path | None, typer.Option(help="Also write the tables as a .md file.")
    ] = None,
) -> None:
    """Write one page, report.html, from the results of a folder. It needs no network.

    Example: pcor experiment report --out pcor-results
    """
    if markdown is not None:
        check_target(markdown, (".md",), "--markdown")
    check_plots("the report")
    from pcor.paper.markdown import written
    from pcor.paper.report import page
    from pcor.paper.store import read_summaries

    summaries = read_summaries(out)
    target = out / "report.html"
    write_text(target, page(summaries))
    tell(f"Written to {target}")
    if markdown is not None:
        write_text(markdown, written(summaries))
        tell(f"Written to {markdown}")


@app.command("prepare")
@guarded
def prepare(
    more: Annotated[
        list[Path] | None, typer.Argument(help="More files for --salary.", metavar="FILE...")
    ] = None,
    salary: Annotated[
        list[Path] | None,
        typer.Option(help="A yearly CSV of Ontario's disclosure; may be repeated."),
    ] = None,
    homicide: Annotated[
        Path | None, typer.Option(help="The Homicide Reports, database.csv.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder for the tables.")] = Path("pcor-data"),
) -> None:
    """Make the paper's tables from public raw files: Parquet, with a schema beside each.

    Sources: the Province of Ontario's 'Public sector salary disclosure' (a CSV file for each year),
    and 'Homicide Reports' of the Murder Accountability Project (database.csv, on Kaggle).

    Example: pcor experiment prepare --salary 2006.csv 2007.csv 2008.csv --out pcor-data
    """
    from pcor.paper.prepare import prepare_homicide, prepare_salary

    if not salary and (more or homicide is None):
        raise ParameterError("give --salary FILE... (one for each year), or --homicide FILE")
    written = [prepare_salary([*salary, *(more or ())], out)] if salary else []
    written += [prepare_homicide(homicide, out)] if homicide is not None else []
    for path in written:
        say(f"{path} and {path.with_suffix('.toml').name}")
    tell(f"Then: PCOR_DATA={out} pcor experiment all")
