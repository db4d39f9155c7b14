"""The letter: one page about a release for the person concerned or a regulator.

Public: everything here. A letter says what its certificate says, in plain words and nothing more;
its picture is drawn from released numbers. It comes from a template (Jinja2) that the owner may
replace or extend. Whatever a template is given is text and numbers, escaped wherever it stands, in
a sandbox: a template can call nothing and read no file. The certificate goes with every letter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pcor.errors import ParameterError, did_you_mean, sendable
from pcor.public import wording
from pcor.releasing.certificate import (
    NOT_PRIVATE,
    Release,
    carried,
    day_of,
    documented_rule,
    factor_in_words,
    plain_words,
)
from pcor.releasing.facts import Fact, counted_noun, is_rank, rank_side, rounding_in_words, spans
from pcor.releasing.plan import Plan
from pcor.releasing.quantile_bar import BarMark, BarPoint, quantile_bar
from pcor.releasing.signature import check_key, sign_page
from pcor.support.ed25519 import ALGORITHM, SigningKey

if TYPE_CHECKING:
    from jinja2 import Environment, Template, nodes

NAME = "letter.html"
BUILT_IN = Path(__file__).with_name(NAME)


@dataclass(frozen=True)
class LetterFact:
    """A released number as a letter writes it.

    Attributes:
        words: which number, such as "half are below".
        value: what it is, about.
        low: the true one is at least this,
        high: and at most this, as likely as the letter says.
        told: false where the interval rules nothing out; the value then says so in words.
    """

    words: str
    value: str
    low: str
    high: str
    told: bool = True


@dataclass(frozen=True)
class LetterWords:
    """Everything that a template may speak of; docs/how-to/letter.md lists it for owners.

    Attributes:
        record: the record's key.
        dataset: of which data.
        date: the day it was asked for, or of this letter.
        rows: what a row is called.
        headline: the sentence; a long list ends after some items.
        sentence: the whole sentence.
        comparison: what the numbers say, where only they tell how the record stands in the group.
        plain_words: what it means, and what it does not.
        rule: when a value is unusual by the rule that was used, a sentence; or nothing.
        group: attribute and values, for those that the group restricts.
        facts: the numbers that were paid for.
        confidence: in how many of 100 cases the true ones lie between theirs.
        rounding: what is first done to metrics for quantiles; or nothing.
        picture: the quantiles among them and the record's place, as SVG; or nothing.
        epsilon: the cost, exact.
        delta: the additive slack, exact; nothing where there is none.
        factor: exp(epsilon), rounded up.
        whose: what the promise compares with or without, of somebody: the row, or the rows.
        definition: the guarantee by its name.
        validity: what is promised of the group itself.
        not_protected: who or what the promise does not speak of.
        exceptions: the same in words for everybody, as ends of a sentence.
        warning: for draws that are for tests only.
        algorithm: of the signature.
        key: the public key that checks it; nothing where it is not signed.
        entry: of the ledger that paid for it; nothing where none did.
        detector: the rule's name.
        schema_sha256: the fingerprint of the schema.
        software: what made the certificate.
    """

    record: str
    dataset: str
    date: str
    rows: str
    headline: str
    sentence: str
    comparison: str
    plain_words: str
    rule: str
    group: tuple[tuple[str, str], ...]
    facts: tuple[LetterFact, ...]
    confidence: str
    rounding: str
    picture: str
    epsilon: str
    delta: str
    factor: str
    whose: str
    definition: str
    validity: str
    not_protected: tuple[str, ...]
    exceptions: tuple[str, ...]
    warning: str
    algorithm: str
    key: str
    entry: str
    detector: str
    schema_sha256: str
    software: str


# With these a template is tried before anything is paid for: all that there can be, and nothing.
_MADE_UP = LetterWords(
    **{field.name: field.name for field in fields(LetterWords)}  # type: ignore[arg-type]
    | {
        "group": (("region", "urban"),),
        "facts": (
            LetterFact("half are below", "800", "750", "900"),
            LetterFact("95 % are below", "could not be told", "0 or less", "9 or more", told=False),
        ),
        "not_protected": ("the record",),
        "exceptions": ("somebody with several rows",),
    }
)
_NOTHING = replace(
    _MADE_UP,
    group=(),
    facts=(),
    not_protected=(),
    exceptions=(),
    comparison="",
    rule="",
    rounding="",
    picture="",
    delta="",
    warning="",
    key="",
    entry="",
)


class LetterTemplate:
    """The template of a letter, tried when it is made.

    Args:
        path: a file of the owner's; by default our own. It may begin with
            ``{% extends "letter.html" %}`` and replace only some of its blocks.

    Raises:
        ParameterError: the file cannot be read or is no such template; or Jinja2 is missing.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self._name = NAME if path is None else str(path)
        self._template = _compiled(self._name, BUILT_IN if path is None else Path(path))
        for words in (_MADE_UP, _NOTHING):
            self._render(words)

    def write(self, release: Release, *, key: SigningKey | None = None) -> str:
        """Return the letter of a release, with its certificate inside; signed, with a key."""
        certificate = release.to_dict(key=key)
        signer = "" if key is None else str(check_key(key).public)
        page = self._render(letter_words(release, certificate, signer))
        # Whatever a template leaves out, the certificate is there for whoever verifies the letter.
        body, end, after = page.rpartition("</body>")
        body, after = (body, after) if end else (page, "")
        whole = sendable(f"{body}{carried(certificate)}\n{end}{after}".rstrip("\n") + "\n")
        return whole if key is None else sign_page(whole, key)

    def _render(self, words: LetterWords) -> str:
        from jinja2 import TemplateError
        from markupsafe import Markup

        given = {field.name: getattr(words, field.name) for field in fields(words)}
        try:
            # The picture is ours, and every text in it is escaped.
            return self._template.render(given | {"picture": Markup(words.picture)})  # noqa: S704
        except TemplateError as error:
            raise ParameterError(f"the template {self._name!r}: {error.message}") from None
        except Exception as error:
            raise ParameterError(
                f"the template {self._name!r} fails with a {type(error).__name__}"
            ) from None


@cache
def built_in() -> LetterTemplate:
    """Return our own template."""
    return LetterTemplate()


def template_of(given: LetterTemplate | str | Path | None) -> LetterTemplate:
    """Return a template: ours, or that of a file."""
    if isinstance(given, LetterTemplate):
        return given
    return built_in() if given is None else LetterTemplate(given)


def _compiled(name: str, path: Path) -> Template:
    try:
        from jinja2 import DictLoader, StrictUndefined, TemplateError
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ModuleNotFoundError:
        raise ParameterError(
            "a letter needs jinja2, which is not installed: pip install 'pcor[letter]'"
        ) from None
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ParameterError(f"the template {name!r} cannot be read: no such file") from None
    except (OSError, UnicodeDecodeError):
        raise ParameterError(
            f"the template {name!r} cannot be read: it must be a text in UTF-8"
        ) from None
    environment = ImmutableSandboxedEnvironment(
        loader=DictLoader({NAME: BUILT_IN.read_text(encoding="utf-8")}),  # no other file is read
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    try:
        _check_blocks(name, environment.parse(text), environment)
        return environment.from_string(text)
    except TemplateError as error:
        line = getattr(error, "lineno", None)
        where = "" if line is None else f", line {line}"
        raise ParameterError(f"the template {name!r}{where}: {error.message}") from None


def _check_blocks(name: str, page: nodes.Template, environment: Environment) -> None:
    """Refuse a block that ours does not have, in a template that extends it: it would be lost."""
    from jinja2 import nodes

    extended = [one.template for one in page.find_all(nodes.Extends)]
    if not any(isinstance(one, nodes.Const) and one.value == NAME for one in extended):
        return
    ours = environment.get_template(NAME).blocks
    blocks = list(page.find_all(nodes.Block))
    within = {inner for block in blocks for inner in block.find_all(nodes.Block)}
    for block in blocks:
        if block.name not in ours and block not in within:
            near = did_you_mean(block.name, ours)
            raise ParameterError(
                f"the template {name!r}, line {block.lineno}: unknown block {block.name!r}"
                f"{near or '; the blocks are: ' + ', '.join(ours)}"
            )


# -- what a letter says ----------------------------------------------------------------------------


def letter_words(release: Release, certificate: Mapping[str, Any], key: str) -> LetterWords:
    """Return all that a letter says of a release, from its certificate and its plan."""
    schema, promise = release.plan.schema, certificate["promise"]
    facts = certificate.get("facts", ())
    counted = any(fact["name"] == "count" for fact in facts)
    return LetterWords(
        record=str(release.record),
        dataset=str(certificate["dataset"]),
        date=day_of(release),
        rows=schema.noun,
        headline=release.headline,
        sentence=str(release),
        comparison=release.comparison,
        plain_words=plain_words(release),
        rule=_rule(release.plan),
        group=tuple(wording.clauses(schema, release.context.mask, most=wording.SHOWN)),
        facts=tuple(_fact(release, fact, counted=counted) for fact in facts),
        confidence=f"{100 * min((fact['confidence'] for fact in facts), default=1):g}",
        rounding=rounding_in_words([Fact.from_dict(fact) for fact in facts], schema),
        picture=_picture(release, facts),
        epsilon=str(promise["epsilon"]),
        delta="" if release.plan.bill.delta == 0 else str(promise["delta"]),
        factor=factor_in_words(release.epsilon),
        whose=schema.unit.whose,
        definition=str(promise["definition"]),
        validity=str(promise["validity"]),
        not_protected=tuple(promise["not_protected"]),
        exceptions=release.promise.exceptions,
        warning="" if release.private else NOT_PRIVATE,
        algorithm=ALGORITHM,
        key=key,
        entry="" if release.receipt is None else release.receipt.entry,
        detector=release.plan.detector.name,
        schema_sha256=str(certificate["schema_sha256"]),
        software=str(certificate["software"]),
    )


def _rule(plan: Plan) -> str:
    """Say in a sentence when a value is unusual by the rule: in its own words, or as documented."""
    detector = plan.detector
    words = detector.in_words if "in_words" in vars(type(detector)) else ""
    if words:
        return f"By the rule that was used ({detector.name}), a value is unusual if {words}."
    documented = documented_rule(plan)
    return f"The rule that was used ({detector.name}): {documented}" if documented else ""


def _fact(release: Release, fact: Mapping[str, Any], *, counted: bool) -> LetterFact:
    value, high = (_written(release, fact, fact[part]) for part in ("value", "high"))
    low = _written(release, fact, fact["low"], unit=False)  # "between 750 and 900 dollars"
    told = _tells(release, fact)
    value = value if told else "could not be told"
    words = _fact_words(release, fact, counted=counted)
    return LetterFact(words, value, low, high, told)


def _tells(release: Release, fact: Mapping[str, Any]) -> bool:
    """Tell whether a fact says anything: not one whose interval has the whole grid in it."""
    return not spans(Fact.from_dict(fact), release.plan.schema.metric.grid)


def _written(release: Release, fact: Mapping[str, Any], number: float, *, unit: bool = True) -> str:
    metric = release.plan.schema.metric
    if _share(fact["name"]) is None:
        return wording.amount(number, None)
    beyond = "" if metric.grid is None else metric.grid.beyond(number)
    return wording.amount(number, metric.unit if unit else None) + beyond


def _fact_words(release: Release, fact: Mapping[str, Any], *, counted: bool = False) -> str:
    """Say which number a fact is; one of a kind that is not known here keeps its name.

    Args:
        release: gives the words.
        fact: as the certificate has it.
        counted: whether a count has said before who they are.
    """
    name = str(fact["name"])
    share = _share(name)
    if share is not None:
        return "half are below" if share == 0.5 else f"{100 * share:g} % are below"
    noun = counted_noun(fact.get("counts") == "people", release.plan.schema)
    if name == "count":
        return f"number of {noun}"
    if is_rank(name):
        side = rank_side(name, release.plan.detector)
        return f"{'of them' if counted else noun} at least as {side}, this one included"
    return name


def _share(name: str) -> float | None:
    """Return which quantile a fact is, if it is one.

    >>> _share("median"), _share("quantile:0.95"), _share("count")
    (0.5, 0.95, None)
    """
    if name == "median":
        return 0.5
    return float(name.partition(":")[2]) if name.startswith("quantile:") else None


def _picture(release: Release, facts: Sequence[Mapping[str, Any]]) -> str:
    """Draw the quantiles that say something, and the record where its metric is shown."""
    points = [
        BarPoint(
            _fact_words(release, fact),
            float(fact["value"]),
            float(fact["low"]),
            float(fact["high"]),
            _written(release, fact, fact["value"]),
        )
        for fact in facts
        if _share(fact["name"]) is not None and _tells(release, fact)
    ]
    value, unit = release.metric_value, release.plan.schema.metric.unit
    mark = None if value is None else BarMark(value, f"this record: {wording.amount(value, unit)}")
    return quantile_bar(points, mark)
