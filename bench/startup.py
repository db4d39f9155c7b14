"""``python -m bench.startup``: how long it takes to begin, in starts of a bare interpreter.

The unit is ``python -c pass``, measured in turn with the others so that a busy machine weighs on
all alike. CPU is user and system time together and hardly depends on what else runs; wall is what
a person waits. Medians of ten, five with ``QUICK=1``. The target is half a second, and one second
for a whole release whose kernels were compiled before. Where pandas is installed Arrow imports it:
that is a quarter of a second of such a release.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TIMES = 5 if os.environ.get("QUICK") else 10
PROGRAM = str(Path(sys.executable).with_name("pcor"))
BARE = "python -c pass"
RELEASE = "pcor release (51,000 rows)"

COMMANDS = {
    BARE: [sys.executable, "-c", "pass"],
    "import pcor": [sys.executable, "-c", "import pcor"],
    "import pcor; pcor.release": [sys.executable, "-c", "import pcor; pcor.release"],
    "import pcor.audit": [sys.executable, "-c", "import pcor.audit"],
    "pcor --version": [PROGRAM, "--version"],
    "pcor --help": [PROGRAM, "--help"],
    "pcor serve --help": [PROGRAM, "serve", "--help"],
    "pcor release --help": [PROGRAM, "release", "--help"],
    "pcor audit --help": [PROGRAM, "audit", "--help"],
    "pcor rel<TAB>": [PROGRAM],
    "pcor release --de<TAB>": [PROGRAM],
    RELEASE: [
        PROGRAM,
        *("release", "salaries.parquet", "--schema", "salaries.toml"),
        *("--record", "29876", "--epsilon", "0.2"),
    ],
}
COMPLETED = {
    "pcor rel<TAB>": {"COMP_WORDS": "pcor rel", "COMP_CWORD": "1"},
    "pcor release --de<TAB>": {"COMP_WORDS": "pcor release --de", "COMP_CWORD": "2"},
}


def once(what: str) -> tuple[float, float]:
    """Return the seconds of one start: CPU and wall."""
    env = dict(os.environ)
    if what in COMPLETED:
        env |= {"_PCOR_COMPLETE": "complete_bash", **COMPLETED[what]}
    began = time.perf_counter()
    with subprocess.Popen(  # noqa: S603 (our own program)
        COMMANDS[what], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as started:
        _, status, used = os.wait4(started.pid, 0)
        started.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - began
    if started.returncode:
        raise SystemExit(f"{what}: exit {started.returncode}")
    return used.ru_utime + used.ru_stime, wall


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        subprocess.run([PROGRAM, "demo", "--write", "."], check=True, capture_output=True)  # noqa: S603
        compare()
        os.chdir("/")  # whoever stands in a folder cannot remove it everywhere


def compare() -> None:
    """Measure each start in turn, and print one table."""
    for what in COMMANDS:
        once(what)  # compiles the modules and brings them into memory
    measured = [{what: once(what) for what in COMMANDS} for _ in range(TIMES)]
    bare = statistics.median(round_[BARE][0] for round_ in measured)
    print(f"{'what':<32}{'CPU s':>8}{'wall s':>8}{'starts':>8}")
    for what in COMMANDS:
        cpu, wall = (
            statistics.median(round_[what][kind] for round_ in measured) for kind in (0, 1)
        )
        print(f"{what:<32}{cpu:>8.3f}{wall:>8.3f}{cpu / bare:>8.1f}")


if __name__ == "__main__":
    main()
