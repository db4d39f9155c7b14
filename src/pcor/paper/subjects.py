"""Which records are asked about, and where their searches start.

Private: all of it. A random context, one of the records that are outliers in it, and a start drawn
uniformly from the contexts that are valid for it. The paper's authors kept only records with many
valid contexts. Here every repetition looks at the first record met ("all"), and at the first one
with many ("many"); mostly that is the same record, and then it is measured once.

On the authors' own tables a third group asks as their program did ("program"): the first outlier in
row order of a random context that has not all values of any attribute, started from that context.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass

import numpy as np

from pcor.audit.tradeoff import flagged_contexts
from pcor.errors import NoValidContext
from pcor.mechanism.randomness import RandomSource
from pcor.paper.tables import REDUCED, load, many
from pcor.paper.ways import authors_detector
from pcor.public.context import Context
from pcor.search.blocks import block, block_size, blocks
from pcor.search.validity import Validity
from pcor.testing import seeded

GROUPS = ("many", "all", "program")

# Random contexts to look into before a repetition is given up: in some tables hardly any record
# has many valid contexts.
_LOOKS = 400
_START_TRIES = 1 << 18


@dataclass(frozen=True, repr=False)
class Subject:
    """A record to be asked about. Private.

    Attributes:
        validity: the record with its table and detector; knows nothing yet.
        start: a context drawn uniformly from the valid ones.
        groups: which groups it stands for.
    """

    validity: Validity
    start: Context
    groups: tuple[str, ...]


def seed_of(*parts: object) -> int:
    """Return a seed derived from the parts by a hash.

    >>> seed_of("lof", 1) == seed_of("lof", 1), seed_of("lof", 1) == seed_of("lof", 2)
    (True, False)
    """
    text = "/".join(map(str, parts))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def subjects(table: str, detector: str, number: int, seed: int) -> list[Subject]:
    """Return the records of one repetition: one for both groups, or one for each."""
    rows, rule, enough = load(table), authors_detector(detector), many(table, detector)
    numbers = random.Random(seed_of(seed, "subject", table, detector, number))  # noqa: S311
    found: list[Subject] = []
    for _, flagged in flagged_contexts(rows, rule, numbers, _LOOKS):
        validity = Validity(rows, rows.record(numbers.choice(flagged)), rule)
        plenty = has_more_than(validity, enough)
        groups = (*(("many",) if plenty else ()), *(() if found else ("all",)))
        if groups:
            start = _start(validity, numbers.getrandbits(64))
            found.append(Subject(Validity(rows, validity.record, rule), start, groups))
        if plenty:
            break
    return found


def one_subject(table: str, detector: str, number: int, seed: int, group: str = "all") -> Subject:
    """Return the record of one repetition in a group; the first one met if the group has none."""
    found = subjects(table, detector, number, seed)
    if not found:
        raise NoValidContext(
            f"no outlier by {detector} was found in random contexts of table {table}"
        )
    return next((subject for subject in found if group in subject.groups), found[0])


def as_the_program_did(table: str, detector: str, number: int, seed: int) -> list[Subject]:
    """Return the record of one repetition by the authors' program; on their own tables only."""
    if table not in REDUCED:
        return []
    rows, rule, enough = load(table), authors_detector(detector), many(table, detector)
    numbers = random.Random(seed_of(seed, "program", table, detector, number))  # noqa: S311
    for context, flagged in flagged_contexts(rows, rule, numbers, _LOOKS):
        whole = any(context.mask & own == own for own in rows.schema.attribute_masks)
        if not whole:
            validity = Validity(rows, rows.record(flagged[0]), rule)
            if has_more_than(validity, enough):
                return [Subject(validity, context, ("program",))]
    return []


def has_more_than(validity: Validity, enough: int) -> bool:
    """Tell whether a record has more valid contexts than so many, looking no further than needed.

    Blocks are judged in a scattered order: valid contexts lie close together.
    """
    space = validity.record.space
    firsts = np.arange(0, space.size, block_size(space))
    count = 0
    for first in np.random.default_rng(0).permutation(firsts):
        count += int(block(validity, space, int(first)).valid.sum())
        if count > enough:
            return True
    return False


def valid_context(validity: Validity, chooser: RandomSource, tries: int) -> Context | None:
    """Draw a valid context, each with the same chance; ``None`` where so many tries miss all."""
    space = validity.record.space
    found = chooser.sample(
        space.size,
        lambda tried: validity([space.mask(index) for index in tried]),
        wanted=1,
        cap=tries,
    )
    return Context.from_mask(space.schema, space.mask(found[0])) if found else None


def _start(validity: Validity, seed: int) -> Context:
    chooser = seeded(seed)
    start = valid_context(validity, chooser, _START_TRIES)
    if start is not None:
        return start
    # So few that random tries miss them: list them.
    space, parts = validity.record.space, blocks(validity)
    valid = np.concatenate([part.indices[part.valid] for part in parts])
    return Context.from_mask(space.schema, space.mask(int(valid[chooser.uniform(len(valid))])))
