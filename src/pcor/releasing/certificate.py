"""Release: the context that left, with the certificate that goes with it.

Public: everything here. A certificate holds the context, public parameters, the facts that were
paid for, and nothing else: no other population, score, number of contexts, time or draw (FINDINGS
11). ``certificate.schema.json`` beside this file describes it to programs.
"""

from __future__ import annotations

import copy
import html
import inspect
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pcor.errors import ParameterError, plain
from pcor.public import wording
from pcor.public.context import Context
from pcor.public.guarantee import Promise
from pcor.releasing.facts import (
    Fact,
    in_words,
    is_rank,
    numbers_in_words,
    rounding_in_words,
    spans,
    untold,
)
from pcor.releasing.plan import Plan
from pcor.releasing.signature import check_key, sign_page, signed, written
from pcor.support import markup
from pcor.support.ed25519 import ALGORITHM, SigningKey
from pcor.support.files import check_target, write_text
from pcor.support.version import pcor_version

if TYPE_CHECKING:
    from pcor.releasing.letter import LetterTemplate

FORMAT = "pcor-release/1"
JSON_SCHEMA = Path(__file__).with_name("certificate.schema.json")
# The factors of larger epsilons are not written out.
_LARGEST_WRITTEN = 10

NOT_PRIVATE = "NOT PRIVATE: drawn with a seeded generator, for tests only"


@dataclass(frozen=True)
class Receipt:
    """Where a ledger wrote a release down. It goes on the page, and is no part of the JSON.

    Attributes:
        entry: the hash of the entry that charged it. Not its number: how many entries lie between
            two charges tells roughly how long an answer took, which depends on private rows.
        date: the day it was asked for, in UTC; no time of day, for the same reason.
    """

    entry: str
    date: str


@dataclass(frozen=True)
class Release:
    """A released context.

    Attributes:
        record: the queried record's key.
        context: where the record is an outlier.
        plan: what was done and what it cost.
        private: false for seeded runs, which are for tests.
        stored: the certificate as it was written down, for a release that is repeated.
        engine: what held the rows, with its version.
        receipt: where it is in a ledger, if one paid for it.
        metric_value: the record's own metric, where the settings show it.
        facts: numbers about the context, with noise, where they were asked for.
    """

    record: int | str
    context: Context
    plan: Plan
    private: bool
    stored: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)
    engine: str = field(default="unknown", compare=False)
    receipt: Receipt | None = field(default=None, repr=False, compare=False)
    metric_value: float | None = None
    facts: list[Fact] = field(default_factory=list, hash=False)

    @classmethod
    def from_dict(cls, certificate: Mapping[str, Any], plan: Plan | None = None) -> Release:
        """Return the release that a certificate speaks of, which was drawn by this plan.

        The certificate stays as it is, word for word, also under a newer version of pcor.

        Raises:
            ParameterError: the certificate is not one, or was not made by this plan.
        """
        if not isinstance(certificate, Mapping) or certificate.get("format") != FORMAT:
            raise ParameterError(
                "this is no certificate of a release; give what Release.to_dict() returned"
            )
        if not isinstance(plan, Plan):
            raise ParameterError(
                "a certificate does not hold its schema: also give the plan of the release, "
                "pcor.plan(schema, epsilon, ...) with the same options"
            )
        try:
            same = (
                certificate["schema_sha256"] == plan.schema.sha256
                and certificate["promise"]["epsilon"] == plain(plan.bill.epsilon)
                and certificate["promise"]["delta"] == plain(plan.bill.delta)
                and certificate["guarantee"] == plan.guarantee.name
            )
            told = [Fact.from_dict(one) for one in certificate.get("facts", ())]
            if same and [fact.name for fact in told] == [fact.name for fact in plan.facts]:
                context = Context.from_bits(plan.schema, certificate["bits"])
                record, private = certificate["record"], certificate["private"]
                engine = certificate.get("engine", "unknown")
                value = certificate.get("metric_value")
                if value is not None and not plan.settings.show_metric:
                    # Told once, and not to be told again: the rest of the sentence keeps its words,
                    # by which a ledger finds it (ledger/inclusion.py).
                    hidden = cls(record, context, plan, private, engine=engine, facts=told)
                    dropped = ("metric_value", "signature")
                    kept = {name: one for name, one in certificate.items() if name not in dropped}
                    sentence = without_metric(certificate, value) or str(hidden)
                    return replace(hidden, stored=kept | {"sentence": sentence})
                return cls(
                    record,
                    context,
                    plan,
                    private,
                    stored=certificate,
                    engine=engine,
                    metric_value=value,
                    facts=told,
                )
        except (KeyError, TypeError, AttributeError, ValueError):
            raise ParameterError(
                "this certificate is incomplete; give what Release.to_dict() returned"
            ) from None
        raise ParameterError("the certificate was not made by this plan")

    @property
    def epsilon(self) -> float:
        """The total epsilon, as the nearest float; ``promise.epsilon`` is exact."""
        return float(self.plan.bill.epsilon)

    @property
    def promise(self) -> Promise:
        """What is protected."""
        return self.plan.promise

    def explain(self) -> str:
        """Return what was done in numbered steps, with the cost of each."""
        return self.plan.explain()

    def __str__(self) -> str:
        # What was written down keeps its words.
        return self._sentence() if self.stored is None else str(self.stored["sentence"])

    @property
    def headline(self) -> str:
        """The sentence as a page shows it: a long list ends after a few items."""
        return self._sentence(most=wording.SHOWN)

    def _sentence(self, *, most: int | None = None) -> str:
        """Return the release as a sentence; with ``most``, its lists end after so many items."""
        rows, metric = self._group(most=most), self.plan.schema.metric.spoken
        what = "an outlier by" if self._side is None else f"unusually {self._side} in"
        stands_out = f"{self._who} is {what} {metric} ({self.plan.detector.name})"
        sentence = f"Record {stands_out} among {rows}."
        wanted = self.plan.needed()
        if wanted is not None:
            sentence = (
                f"If record {stands_out} {wanted.condition} (if not, this says nothing), "
                f"then with a chance of at least {plain(wanted.chance)} also among {rows}."
            )
        return sentence if self.private else f"{sentence} [{NOT_PRIVATE}]"

    @property
    def comparison(self) -> str:
        """What the numbers say, where only they tell how the record stands in the group.

        Under a guarantee that does not tell whether it is an outlier there (``plan.needed``); empty
        where no rank was paid for.
        """
        ranked = any(is_rank(fact.name) for fact in self.facts)
        if self.plan.needed() is None or not ranked:
            return ""
        return f"Record {self._who} was compared with {self._group(most=wording.SHOWN)}."

    def _group(self, *, most: int | None) -> str:
        """Return the rows of the context in words, with the numbers about them."""
        schema = self.plan.schema
        rows = wording.among(schema, self.context.mask, most=most)
        numbers = in_words(self.facts, schema, self.plan.detector)
        return f"{rows}: {numbers}" if numbers else rows

    @property
    def _who(self) -> str:
        """The record, with its metric where that is shown."""
        if self.metric_value is None:
            return str(self.record)
        return f"{self.record} ({wording.amount(self.metric_value, self.plan.schema.metric.unit)})"

    @property
    def _side(self) -> str | None:
        """On which side the record lies, as the detector's settings say; never as the rows do."""
        return None if self.metric_value is None else self.plan.detector.side

    def __repr__(self) -> str:
        return f"<Release: {self} {self.promise.claim}>"

    def _repr_html_(self) -> str:
        sentence = markup.paragraph(self.headline, "sentence")
        return markup.fragment(sentence, _unabridged(self), _sections(self, "h4"))

    def to_dict(self, *, key: SigningKey | None = None) -> dict[str, Any]:
        """Return the certificate: the context, public parameters, what was paid for.

        With a key, it is signed.
        """
        if key is not None:
            return signed(self.to_dict(), key)
        if self.stored is not None:
            return copy.deepcopy(dict(self.stored))
        planned = self.plan.to_dict()
        # The schema's own numbers, of which its fingerprint says it all; and what was to be heard
        # before.
        for left_out in ("attributes", "values", "possible_contexts", "note"):
            planned.pop(left_out, None)
        return {
            "format": FORMAT,
            "record": self.record,
            "context": self.context.values,
            "bits": self.context.bits,
            "where": self.context.where(),
            "sentence": str(self),
            **({} if self.metric_value is None else {"metric_value": self.metric_value}),
            **planned,
            **({"facts": [fact.to_dict() for fact in self.facts]} if self.facts else {}),
            "private": self.private,
            "engine": self.engine,
            "software": _software(),
        }

    def to_json(self, *, key: SigningKey | None = None) -> str:
        """Return the certificate as JSON; signed, with a key."""
        return written(self.to_dict(key=key)).removesuffix("\n")

    def to_html(self, *, key: SigningKey | None = None) -> str:
        """Return the certificate as one HTML page that needs nothing else; signed, with a key."""
        if key is None:
            return _page(self, self.to_dict(), {})
        by = {"signed with": f"the {ALGORITHM} key {check_key(key).public}"}
        return sign_page(_page(self, self.to_dict(key=key), by), key)

    def to_letter(
        self, template: LetterTemplate | str | Path | None = None, *, key: SigningKey | None = None
    ) -> str:
        """Return one HTML page for the person concerned or a regulator; signed, with a key.

        Args:
            template: the file of a template of your own (Jinja2); by default ours.
            key: signs it.

        Raises:
            ParameterError: the template or the key is not one, or Jinja2 is not installed.
        """
        try:
            from pcor.releasing.letter import template_of  # brings a template engine along
        except ModuleNotFoundError:
            raise ParameterError(
                "pcor-client writes no letters: pip install 'pcor[letter]', or take \"Download a "
                'letter" on the page of the service'
            ) from None
        return template_of(template).write(self, key=key)

    def save(
        self,
        path: str | Path,
        *,
        key: SigningKey | None = None,
        letter: LetterTemplate | str | Path | bool = False,
    ) -> None:
        """Write the certificate as ``.json`` or ``.html``, whole or not at all; or a letter.

        A file of this name is replaced; the command line asks for ``--force`` before it does that.

        Args:
            path: where to.
            key: signs it, so that ``pcor verify`` finds any byte that is changed.
            letter: write the letter in its place; true, or the file of a template of your own.

        Raises:
            WriteError: the file cannot be written, or its name ends in neither.
            ParameterError: the key or the template is not one.
        """
        if letter is not False:
            check_target(Path(path), (".html", ".htm"), "the letter")
            write_text(path, self.to_letter(None if letter is True else letter, key=key))
            return
        check_target(Path(path), (".json", ".html", ".htm"), "the certificate")
        as_html = Path(path).suffix.lower() != ".json"
        write_text(path, self.to_html(key=key) if as_html else self.to_json(key=key) + "\n")


# What follows the record's metric in a sentence: its unit, and on which side it lies.
_AFTER_METRIC = re.compile(r"(?: .*?)?\) is (?:an outlier by|unusually \w+ in) ", re.DOTALL)


def without_metric(certificate: Mapping[str, Any], metric: float) -> str | None:
    """Return its sentence as it is where the metric is not told; none if this cannot be seen."""
    sentence = str(certificate.get("sentence"))
    for head in (f"Record {certificate['record']}", f"If record {certificate['record']}"):
        opening = f"{head} ({wording.amount(metric, None)}"
        after = _AFTER_METRIC.match(sentence, len(opening))
        if sentence.startswith(opening) and after is not None:
            return f"{head} is an outlier by {sentence[after.end() :]}"
    return None


def _software() -> str:
    return f"pcor {pcor_version()}"


_PAGE_STYLE = """
:root { color-scheme: light dark }
body { font: 1rem/1.5 system-ui, sans-serif; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.3rem } h2 { font-size: 1.05rem; margin-top: 2rem }
@media print {
  :root { color-scheme: light }
  body { margin: 0; padding: 0; font-size: 10.5pt }
  h1, h2 { break-after: avoid }
}
"""


def carried(certificate: Mapping[str, Any]) -> str:
    """Return a certificate as an element of a page, from which programs read it."""
    # "<" cannot occur inside the JSON block, so no value can end the script element.
    embedded = json.dumps(certificate, ensure_ascii=True).replace("<", "\\u003c")
    return f'<script type="application/json" id="certificate">{embedded}</script>'


def _page(release: Release, certificate: Mapping[str, Any], by: Mapping[str, object]) -> str:
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>PCOR certificate: record {html.escape(str(release.record))}</title>
<style>{_PAGE_STYLE}{markup.STYLE}</style></head><body class="pcor">
<h1>{html.escape(release.headline)}</h1>
{_unabridged(release)}
{markup.named_rows({**_origin(release), **by})}
{_sections(release, "h2")}
{carried(certificate)}
</body></html>
"""


def _unabridged(release: Release) -> str:
    """Return the sentence as it was written down, folded, where the page has a shorter one."""
    whole = str(release)
    return "" if whole == release.headline else markup.folded("The whole sentence", whole)


def day_of(release: Release) -> str:
    """Return the day that a release was asked for, if a ledger noted it; else today, in UTC."""
    return str(datetime.now(UTC).date()) if release.receipt is None else release.receipt.date


def _origin(release: Release) -> dict[str, object]:
    """Return of which table the sentence is, since when, and where it is written down."""
    rows: dict[str, object] = {"dataset": release.plan.schema.name}
    if release.receipt is None:
        return rows | {"date": f"{day_of(release)} (when this page was written)"}
    return rows | {"date": day_of(release), "ledger entry": release.receipt.entry}


def _sections(release: Release, heading: str) -> str:
    """Write everything but the sentence; a notebook has headings of its own, so ours are small."""
    certificate = release.to_dict()
    warning = "" if release.private else f'<p class="warning" role="alert">{NOT_PRIVATE}</p>'
    where = f"<pre>{html.escape(certificate['where'])}</pre>"
    values = wording.marked(release.plan.schema, release.context.mask)
    facts = {"Numbers about the group": _numbers(release)} if release.facts else {}
    parts = {
        "The context": markup.chips(values) + where,
        **facts,
        "How to read it": markup.listed(_legend(release.plan)),
        "What is promised": release.promise.to_html(),
        "What was done, and its cost": release.plan.cost_html(),
        "Settings": markup.named_rows(_settings(certificate, release.plan)),
    }
    return f"{warning}{markup.paragraph(plain_words(release))}\n" + "\n".join(
        f"<{heading}>{title}</{heading}>\n{part}" for title, part in parts.items()
    )


def plain_words(release: Release) -> str:
    """Say what the sentence means and what it does not, for whoever the letter is sent to."""
    metric = release.plan.schema.metric.spoken
    unusual = "unusual" if release._side is None else f"unusually {release._side}"
    said = f"compared with the others in this group, the {metric} of this record is {unusual}."
    wanted = release.plan.needed()
    if wanted is not None:
        said = (
            f"if the {metric} of this record is clearly {unusual} in some large group (at least "
            f"{wanted.rows_in_words}, a margin of at least {wanted.margin:,}), "
            "it likely is, "
            "compared with the others in this one; if not, this group says nothing about it."
        )
    told = "Who is in the group, and how many, is not told."
    if release.facts:
        told = "Who is in the group is not told, and its numbers only roughly."
    if not _side_is_told(release):
        told += f" Nor is it told whether this {metric} is high or low there."
    return (
        f"In plain words: {said} {told} That a record stands out does not mean that anything is "
        "wrong with it."
    )


def _side_is_told(release: Release) -> bool:
    """Tell whether a reader can see on which side of the others the record lies, about."""
    schema, facts = release.plan.schema, release.facts
    ranked = any(is_rank(fact.name) for fact in facts)
    between = release.metric_value is not None and any(
        fact.name != "count" and not spans(fact, schema.metric.grid) for fact in facts
    )
    return release.plan.detector.side is not None or ranked or between


def _numbers(release: Release) -> str:
    """Write the facts as a table, and what their intervals mean."""
    schema, rows = release.plan.schema, []
    for fact in release.facts:
        value, low, high = numbers_in_words(fact, schema)
        rows.append((fact.label, value, f"{low} to {high}", plain(fact.epsilon)))
    rounding = rounding_in_words(release.facts, schema)
    chance = f"{100 * release.facts[0].confidence:g}"
    return markup.table(("number", "about", "between", "epsilon"), rows) + markup.paragraph(
        f"Each was made uncertain on purpose. The true number lies in its interval in at least "
        f"{chance} of 100 cases: that follows from how the noise is made, and from nothing else. "
        f"The record itself is counted.{rounding and ' '}{rounding}{_nothing(release)}"
    )


def _nothing(release: Release) -> str:
    """Say which of the numbers say nothing, and why."""
    said = untold(release.facts, release.plan.schema)
    return f" {said[0].upper()}{said[1:]}: the interval rules nothing out." if said else ""


def _legend(plan: Plan) -> list[str]:
    """Explain the symbols and terms of a certificate to a layman."""
    items = [
        "The group is every row that has, for each attribute, one of the values that are not "
        "struck through."
    ]
    rule = documented_rule(plan)
    if rule:
        items.append(f"{plan.detector.name} is the rule that decides what is unusual: {rule}")
    epsilon = float(plan.bill.epsilon)
    factor = f", here at most {factor_in_words(epsilon)}" if epsilon <= _LARGEST_WRITTEN else ""
    slack = ", apart from the slack delta" if plan.bill.delta else ""
    items.append(
        f"epsilon is the cost in privacy. With or without {plan.schema.unit.whose} of somebody "
        "whom the promise covers, the chance of an answer differs by a factor of at most "
        f"exp(epsilon){factor}{slack}."
    )
    return items


def factor_in_words(epsilon: float) -> str:
    """Write exp(epsilon), never as less than it is.

    >>> factor_in_words(0.5), factor_in_words(1), factor_in_words(10), factor_in_words(50)
    ('1.65', '2.72', '22,027', 'exp(50)')
    """
    if epsilon > _LARGEST_WRITTEN:
        return f"exp({epsilon:g})"
    factor = math.exp(epsilon)
    return f"{math.ceil(factor):,}" if factor > 100 else f"{math.ceil(100 * factor) / 100:g}"


def documented_rule(plan: Plan) -> str:
    """Return the first sentence of the detector's documentation with its settings put in."""
    # The adapter's own documentation does not say what the thing inside it does.
    documented = type(plan.detector).__doc__ if plan.detector.documents_its_rule else None
    line = inspect.cleandoc(documented or "").split("\n\n")[0]
    if line.startswith(f"{type(plan.detector).__name__}("):  # what dataclass writes where none is
        return ""

    def setting(found: re.Match[str]) -> str:
        value = getattr(plan.detector, found[1], None)
        return str(value) if isinstance(value, int | float | str) else found[1]

    return re.sub(r"``(\w+)``", setting, " ".join(line.split()))


def _settings(certificate: dict[str, Any], plan: Plan) -> dict[str, object]:
    """Return the public parameters by name; a detector and a search bring their own."""
    rows: dict[str, object] = {}
    for name in ("dataset", "metric", *plan.settings.described()):
        setting = certificate.get(name)
        if setting is None or isinstance(setting, list):  # facts have a table of their own
            continue
        if isinstance(setting, dict):
            rest = ", ".join(f"{key} {value}" for key, value in setting.items() if key != "name")
            setting = f"{setting['name']} ({rest})" if rest else setting["name"]
        rows[name] = setting
    if plan.schema.unit.is_person:
        rows["protected"] = plan.schema.unit.summary.strip().removeprefix("Protected: ").rstrip(".")
    rows["schema"] = certificate["schema_sha256"]
    # A stored certificate may be of a version that did not name the engine.
    return rows | {
        name: certificate[name] for name in ("engine", "software") if name in certificate
    }
