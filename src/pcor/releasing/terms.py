"""Terms: what a guarantee asks of a release, what it costs, and what is drawn from.

Public: what is asked and its price. Private: the candidates. Under OCDP they are the valid
contexts, by utility; under pure DP all contexts that contain the record, by margin score
(docs/proofs/pure.md). The words of a guarantee are in ``pcor.public.guarantee``.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Protocol, TypeAlias

from pcor.detectors import CountDetector, Detector, Tail, get_detector
from pcor.errors import ParameterError, check_whole
from pcor.public.accounting import PrivacyCost, pure_dp_cost, release_cost
from pcor.public.guarantee import OCDP, Guarantee, PureDP
from pcor.public.schema import Schema
from pcor.public.unit import PrivacyUnit
from pcor.search import Search
from pcor.search.best_first import BestFirst
from pcor.search.margin import (
    LARGEST_FACTOR,
    MarginOrder,
    Requirement,
    default_steepness,
    needed,
    score_range,
)
from pcor.search.margin_first import margin_first
from pcor.search.registry import is_direct
from pcor.search.subtrees_first import valid_first
from pcor.search.utility import Utility, chosen_context, counts_rows, get_utility
from pcor.search.validity import Validity
from pcor.support.arrays import NDArray, np

if TYPE_CHECKING:
    from pcor.releasing.plan import Plan
    from pcor.releasing.settings import Settings

Weights: TypeAlias = "NDArray[np.int64]"


class Terms(Protocol):
    """The terms on which a guarantee is given."""

    def detector(self, given: str | Detector | None, schema: Schema) -> Detector:
        """Return the detector that was given, or the one to take where none was."""
        ...

    def admit(
        self, settings: Settings, schema: Schema, detector: Detector, utility: Utility
    ) -> str | Search:
        """Return the search to take, or refuse what the guarantee cannot be had with."""
        ...

    def steepness(self, settings: Settings, detector: Detector) -> int | None:
        """Return how many people of utility one person of margin is worth, where margins count."""
        ...

    def price(
        self, settings: Settings, search: Search, unit: PrivacyUnit, cost: tuple[Fraction, Fraction]
    ) -> PrivacyCost:
        """Return what each draw costs, of an epsilon and a delta; the settings are resolved."""
        ...

    def needed(self, plan: Plan, chance: float | Fraction) -> Requirement | None:
        """Return what a context needs to win over every invalid one, where any can be drawn."""
        ...

    def candidates(
        self, plan: Plan, validity: Validity, weights: Weights | None
    ) -> BestFirst | MarginOrder | None:
        """Return the candidates of the direct mechanism, best first. Private.

        ``weights`` are what each cell adds to a score. Without them there is no such order, and
        ``None``: the candidates are listed.
        """
        ...


class _OCDPTerms:
    """Any detector, search and utility; only valid contexts are drawn from."""

    def detector(self, given: str | Detector | None, schema: Schema) -> Detector:
        return get_detector(given, schema)

    def admit(
        self, settings: Settings, schema: Schema, detector: Detector, utility: Utility
    ) -> str | Search:
        del schema, detector, utility
        if settings.steepness is not None:
            raise ParameterError(f"steepness goes with guarantee={PureDP.name!r}; leave it out")
        return settings.search

    def steepness(self, settings: Settings, detector: Detector) -> int | None:
        del settings, detector
        return None

    def price(
        self, settings: Settings, search: Search, unit: PrivacyUnit, cost: tuple[Fraction, Fraction]
    ) -> PrivacyCost:
        epsilon, delta = cost
        utility = get_utility(settings.utility)
        return release_cost(search, utility, epsilon, settings.accounting, delta, unit)

    def needed(self, plan: Plan, chance: float | Fraction) -> Requirement | None:
        del plan, chance
        return None

    def candidates(
        self, plan: Plan, validity: Validity, weights: Weights | None
    ) -> BestFirst | MarginOrder | None:
        if weights is None:
            return None
        return valid_first(validity, weights, brevity=plan.brevity, memory=plan.search.memory)


class _PureDPTerms:
    """A detector that counts, one direct draw among all contexts, by margin score."""

    def detector(self, given: str | Detector | None, schema: Schema) -> Detector:
        chosen = get_detector(given, schema)
        # That of the dataset may not count; who names one learns that it does not.
        return Tail() if given is None and chosen.count_rule is None else chosen

    def admit(
        self, settings: Settings, schema: Schema, detector: Detector, utility: Utility
    ) -> str | Search:
        self._check_detector(detector)
        if not counts_rows(utility):
            raise ParameterError(
                f"guarantee {PureDP.name!r} takes the utility 'population' or "
                f"pcor.Overlap(context), not {type(utility).__name__}: its proof holds only for "
                f"counts of rows; use guarantee {OCDP.name!r}, which goes by the sensitivity that "
                "a utility declares"
            )
        if settings.accounting != "tight" or settings.delta is not None:
            raise ParameterError(
                f"guarantee {PureDP.name!r} is one draw with tight accounting and no delta"
            )
        search = "direct" if settings.search == "auto" else settings.search
        if not is_direct(search):
            raise ParameterError(
                f"guarantee {PureDP.name!r} draws once among all contexts: search must be 'auto' "
                "or 'direct'"
            )
        _check_names(schema)
        return search

    def steepness(self, settings: Settings, detector: Detector) -> int | None:
        rule, given = self._check_detector(detector), settings.steepness
        steepness = default_steepness(rule) if given is None else given
        check_whole("steepness", steepness)
        if steepness * rule.share_exact.denominator > LARGEST_FACTOR:
            raise ParameterError(
                f"detector {rule.name!r}: a share of {rule.share_exact} with steepness "
                f"{steepness:,} is too fine for guarantee {PureDP.name!r}; take a share with fewer "
                "digits, or a smaller steepness"
            )
        return steepness

    def price(
        self, settings: Settings, search: Search, unit: PrivacyUnit, cost: tuple[Fraction, Fraction]
    ) -> PrivacyCost:
        del search
        # What several rows change spans at most what each of them does, together.
        return pure_dp_cost(cost[0], score_range(*margin_of(settings)) * unit.row_changes)

    def needed(self, plan: Plan, chance: float | Fraction) -> Requirement | None:
        overlap = chosen_context(plan.utility) is not None
        rule, steepness = margin_of(plan.settings)
        return needed(
            plan.bill.eta,
            rule,
            steepness,
            plan.space,
            chance,
            overlap=overlap,
            brevity=plan.brevity,
        )

    def candidates(
        self, plan: Plan, validity: Validity, weights: Weights | None
    ) -> BestFirst | MarginOrder | None:
        if weights is None:  # listed candidates would be drawn by another mechanism than the proven
            raise ParameterError(f"guarantee {PureDP.name} needs a utility that counts rows")
        rule, steepness = margin_of(plan.settings)
        return margin_first(validity, rule, weights, steepness, plan.brevity)

    def _check_detector(self, detector: Detector) -> CountDetector:
        if detector.count_rule is not None:
            return detector.count_rule
        raise ParameterError(
            f"guarantee {PureDP.name!r} is not possible with detector {detector.name!r}: one "
            "person can turn its verdict in any context, by any amount. Use one that counts: "
            f"{', '.join(PureDP.detectors)}; or guarantee {OCDP.name!r}"
        )


def margin_of(settings: Settings) -> tuple[CountDetector, int]:
    """Return what margin scores are made with; of settings that pure DP has admitted."""
    detector, steepness = settings.detector, settings.steepness
    rule = detector.count_rule if isinstance(detector, Detector) else None
    if rule is None or steepness is None:
        raise ParameterError(
            f"guarantee {PureDP.name!r} goes with a detector that counts: tail, neighbourhood or "
            "rare_bin"
        )
    return rule, steepness


def _check_names(schema: Schema) -> None:
    """Refuse row numbers where everyone but the record is promised something."""
    if not schema.names_records:
        raise ParameterError(
            f"guarantee {PureDP.name!r} needs a schema with an id column: without one a record is "
            "a row number, and every row before it decides whose number that is. Declare the id; "
            "or, if anybody may know how many rows stand before a record, declare positions = "
            f'"public" under [dataset]; or take guarantee {OCDP.name!r}'
        )


_TERMS: dict[type[Guarantee], Terms] = {OCDP: _OCDPTerms(), PureDP: _PureDPTerms()}


def terms_of(guarantee: Guarantee) -> Terms:
    """Return the terms on which a guarantee is given."""
    return _TERMS[type(guarantee)]
