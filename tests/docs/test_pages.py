"""The README and the documentation say what is so: their code runs, their links lead somewhere."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.helpers.doc_blocks import PageError, blocks
from tests.helpers.doc_pages import run_page

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
# Pages under docs/reference are compared with the code by tests/docs/test_reference_pages.py; those
# under docs/contributing change the code, and are followed by tests/docs/test_contributing.py.
ELSEWHERE = {ROOT / "docs" / "reference", ROOT / "docs" / "contributing"}
WRITTEN = [page for page in PAGES if not ELSEWHERE & {*page.parents}]

TESTS = ROOT / "tests"

# How many blocks are not run, by page and reason. It is here so that the list cannot grow unseen.
NOT_RUN = {
    ("docs/how-to/deploy.md", "a cluster"): 1,
    ("docs/how-to/engines.md", "a cluster and a database server"): 1,
    ("docs/how-to/page.md", "it is a test itself"): 1,
    ("docs/how-to/reproduce.md", "real downloads"): 1,
    ("docs/how-to/service.md", "containers"): 1,
    ("docs/how-to/spark.md", "a cluster"): 4,
}


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def prose(page: Path) -> str:
    """Return the page without its blocks."""
    lines = page.read_text(encoding="utf-8").splitlines()
    for block in blocks("\n".join(lines)):
        end = block.line + block.text.count("\n") + 1
        lines[block.line - 1 : end] = [""] * (end - block.line + 1)
    return "\n".join(lines)


@pytest.mark.parametrize("page", WRITTEN, ids=name)
def test_a_page_does_what_it_says_from_top_to_bottom(page: Path, tmp_path: Path) -> None:
    left_out = run_page(page, tmp_path)
    if left_out:
        pytest.skip("; ".join(left_out) + " (the other blocks passed)")


def test_the_blocks_that_are_not_run_are_these_and_no_others() -> None:
    found = Counter(
        (name(page), block.not_run)
        for page in WRITTEN
        for block in blocks(page.read_text(encoding="utf-8"))
        if block.not_run is not None
    )
    assert found == NOT_RUN


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose(page))
    missing = [
        t
        for t in targets
        if "://" not in t and not t.startswith("mailto:") and not (page.parent / t).exists()
    ]
    assert missing == []


# Plain differential privacy is what guarantee="dp" promises; every mention of it must say for whom,
# or be of another notion, or say that something is not it.
MENTION = re.compile(r"differential(?:ly)?[ -]priva(?:cy|te)")
PAPERS = re.compile(
    r"^- (?:[A-Z]\. )+[A-Z].*(?:\n  .*)*"  # - F. McSherry, K. Talwar, ...
    r"|(?<!\*)\*(?!\*)[^*\n]+(?:\n[^*\n]+)*\*(?= \()"  # *Title* (SIGMOD 2021)
    r"|^ +title += \{.*\},$",  # BibTeX
    re.MULTILINE,
)
QUALIFIED = re.compile(
    r"(?:output constrained|concentrated|approximate|weaker than|not) \0"
    r"|\0(?: with this epsilon,)? for every(?:one|body) (?:but|who is not)"
)


def unqualified(text: str) -> list[str]:
    """Return the sentences of a text that speak of differential privacy without saying whose."""
    sentences = re.split(r"(?<=[.!?])\s+|\n\s*\n|\n(?=[|#>-])", PAPERS.sub("", text))
    found = []
    for sentence in (" ".join(one.replace("*", "").lower().split()) for one in sentences):
        left = QUALIFIED.sub("", MENTION.sub("\0", sentence))
        of_dp = 'guarantee="dp"' in sentence and "ocdp" not in sentence
        if "\0" in left and not of_dp:
            found.append(sentence)
    return found


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_docs_never_call_the_relaxed_guarantee_plain_differential_privacy(page: Path) -> None:
    assert unqualified(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "sentence",
    [
        "OCDP is differential privacy.",
        "The answers are differentially private.",
        "A release is epsilon-differentially private.",
        "It gives you\ndifferential privacy at epsilon 0.2.",
        'OCDP is differential privacy, as `guarantee="dp"` is.',
        "Differential privacy for everyone, by default.",
        "Every *answer* is differentially private. It is weaker than differential privacy.",
        "- **Answers** are differentially private.",
    ],
)
def test_a_sentence_that_promises_plain_differential_privacy_is_found(sentence: str) -> None:
    assert len(unqualified(f"# A page\n\nOne sentence. {sentence} Another.")) == 1


@pytest.mark.parametrize(
    "sentence",
    [
        "OCDP is weaker than differential privacy.",
        "OCDP is a relaxed guarantee, and not differential privacy.",
        "OCDP: output constrained differential privacy.",
        'With `guarantee="dp"` it is differentially private.',
        "The draw is differentially\nprivate for everyone but the record.",
        "*PCOR: Private Contextual Outlier Release\nvia Differentially Private Search* (2021).",
        "\n\n- C. Dwork, The algorithmic foundations of\n  differential privacy, 2014.",
    ],
)
def test_a_sentence_that_is_true_is_let_be(sentence: str) -> None:
    assert unqualified(f"One sentence. {sentence}") == []


@pytest.mark.parametrize("page", WRITTEN, ids=name)
def test_the_tests_that_a_page_points_to_exist(page: Path) -> None:
    text = prose(page)
    files = set(re.findall(r"\btests/[\w/]+\.py", text))
    named = set(re.findall(r"`(test_\w+)`", text))
    code = {name(path): path.read_text(encoding="utf-8") for path in TESTS.rglob("*.py")}
    missing = files - code.keys()
    missing |= {test for test in named if not any(f"def {test}(" in c for c in code.values())}
    assert missing == set()


# The reader itself: a page that is right passes, and each kind of mistake is reported.

RIGHT = """
# A page

```console
$ cat > note.txt <<'EOF'
two words
EOF
$ cat note.txt
two
  words
$ echo one \\
  two   # a comment
one two
$ ls nowhere # exit 2
...
$ printf 'first\\nsecond\\nthird\\n'
first
...
third
$ export WHO=you && mkdir inside && cd inside
$ basename $PWD
inside
```

```python
import os
from pathlib import Path

answer = 42
assert os.environ["WHO"] == "you" and Path.cwd().name == "inside"
Path("made-by-python").touch()
```

```console
$ ls
made-by-python
$ (sleep 0.1; echo ready; sleep 60) &
ready
$ until test -e made-by-python; do sleep 0.2; done
```

```console
$ printf 'among rows where any job except cook; city is Oslo.\\nnext: 12 rows, key_17\\n'
among rows where job is cook;
city is Rome.
next: ... rows, key_...
```

```python
assert answer == 42
print("among rows where b is 1 or 2.", 42, sep="\\n")
```

prints, for example (the context is drawn):

```text
among rows where a is 3.
42
```

```text
a picture, because it follows no Python
```

<!-- not run: it needs another planet -->

```console
$ false
```

```toml
[metric]
column = "amount"

[attributes.region]
values = ["north", "south"]
```

```sql
SELECT * FROM claims WHERE region IN ('north')
```

```json
{"a": 1}
```

```yaml
a: 1
```

```sh
make test  # the target exists
PCOR_DATA=... pcor experiment all --seed 0
```

```text
anything at all
```
"""


def test_a_page_that_is_right_passes(tmp_path: Path) -> None:
    page = tmp_path / "right.md"
    page.write_text(RIGHT, encoding="utf-8")
    assert run_page(page, tmp_path) == []


WRONG = {
    "output": ("```console\n$ echo one\ntwo\n```", ["line 4", "$ echo one", "two", "--- got\none"]),
    "a longer number": (
        "```console\n$ echo claims: epsilon 1 left of 17 xyz\n"
        "claims: epsilon 1 left of 1\n...\n```",
        ["something else", "--- got\nclaims: epsilon 1 left of 17"],
    ),
    "a number that begins before": (
        "```console\n$ echo so: 1343 contexts with 2\n...\n343 contexts with ...\n```",
        ["something else"],
    ),
    "a line after a context": (
        "```console\n$ printf 'among rows where a is c.\\nSECRET population 17\\n'\n"
        "among rows where a is b.\n```",
        ["something else", "--- got\namong rows where a is c.\nSECRET"],
    ),
    "a sentence after a context": (
        "```console\n$ echo among rows where a is c. SECRET 17.\namong rows where a is b.\n```",
        ["something else"],
    ),
    "a context of something else": (
        "```console\n$ echo 'among rows where a is c; any d.'\namong rows where a is b.\n```",
        ["something else"],
    ),
    "output of Python": (
        "```python\nprint(1)\n```\n\n```text\n2\n```",
        ["line 7", "the Python above prints something else", "--- expected\n2\n--- got\n1"],
    ),
    "output that is announced": (
        "```python\nprint(17)\n```\n\nprints, for example (it is drawn):\n\n```text\n1\n```",
        ["line 9", "prints something else"],
    ),
    "output that goes on": ("```console\n$ echo one more\none\n```", ["printed something else"]),
    "the end after dots": ("```console\n$ echo one two\n... one\n```", ["something else"]),
    "exit code": ("```console\n$ exit 3\n```", ["line 4", "ended with exit code 3"]),
    "no failure": ("```console\n$ true # exit 4\n```", ["exit code 0", "expected (exit code 4)"]),
    "a server that ends": ("```console\n$ echo gone &\nready\n```", ["--- got\ngone"]),
    "no command": ("```console\nready\n```", ["line 4", "begins with a `$ ` line"]),
    "a text without end": ("```console\n$ cat <<EOF\nready\n```", ["no line EOF"]),
    "language": ("```cobol\nSTOP RUN\n```", ["line 3", "cobol", "known are python"]),
    "no language": ("```\nSTOP RUN\n```", ["line 3", "no language"]),
    "no end": ("```python\npass\n", ["line 3", "never ends"]),
    "python": ("```python\nx = 1\nassert x == 2\n```", ["wrong.md", "line 5", "AssertionError"]),
    "toml": ("```toml\n[metric\n```", ["line 3", "toml"]),
    "schema": ("```toml\n[metric]\ncolumn = 'a'\n[attributes.b]\n```", ["line 3", "values"]),
    "json": ("```json\n{'a': 1}\n```", ["line 3", "json"]),
    "yaml": ("```yaml\n'a': [\n```", ["line 3", "yaml"]),
    "sql": ("```sql\nSELEKT 1\n```", ["line 3", "sql"]),
    "make": ("```sh\nmake happy\n```", ["line 4", "there is no happy"]),
    "command": ("```sh\npcor nonsense\n```", ["there is no nonsense"]),
    "experiment": ("```sh\nX=1 pcor experiment nonsense --seed 0\n```", ["there is no nonsense"]),
    "option": ("```sh\npcor experiment all --nonsense 1\n```", ["there is no --nonsense"]),
    "module": ("```sh\npython -m studies.nothing\n```", ["there is no studies.nothing"]),
    "extra": ("```sh\npip install 'pcor[nonsense]'\n```", ["there is no 'pcor[nonsense]'"]),
    "package": ("```sh\npip install nonsense\n```", ["there is no nonsense"]),
    "program": ("```sh\nrm -r .\n```", ["there is no rm"]),
}


@pytest.mark.parametrize(("page", "said"), WRONG.values(), ids=WRONG.keys())
def test_a_page_that_is_wrong_is_reported_with_its_line(
    page: str, said: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "wrong.md"
    path.write_text(f"# A page\n\n{page}\n", encoding="utf-8")
    with pytest.raises(PageError) as caught:
        run_page(path, tmp_path)
    assert str(caught.value).startswith("wrong.md, line")
    assert [words for words in said if words not in str(caught.value)] == []
