"""Words that drafts know: those that mean no value, and those that people put in an order.

Public. Months, sizes, school years and age groups are declared in their order, so that contexts can
have ranges of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pcor.public.spellings import BLANKS

# Words that mean no value, in small letters. "None" and "unknown" are not among them: they can be
# what somebody answered.
_NO_VALUE = {"?", "-", "--", ".", "n/a", "#n/a", "na", "nan", "null", "nil", "missing"}

# One order after the other, each ended by a semicolon; what means the same is parted by "=".
_WRITTEN = """
january=jan, february=feb, march=mar, april=apr, may, june=jun, july=jul, august=aug,
september=sep=sept, october=oct, november=nov, december=dec;
monday=mon, tuesday=tue, wednesday=wed, thursday=thu, friday=fri, saturday=sat, sunday=sun;
xxs, xs=extra small, s=small, m=medium, l=large, xl=extra large, xxl, xxxl;
very low, low, moderate=medium=middle=normal, high, very high, urgent, critical;
trivial, minor, moderate=medium, major, severe, critical;
never, rarely=seldom, sometimes, often, always;
strongly disagree, disagree, neutral, agree, strongly agree;
very poor, poor, fair, good, very good, excellent;
none, mild, moderate, severe;
infant, child, teenager=adolescent, adult, senior;
preschool, 1st-4th, 5th-6th, 7th-8th, 9th, 10th, 11th, 12th, hs-grad, some-college, assoc-voc,
assoc-acdm, bachelors, masters, prof-school, doctorate;
no schooling, primary=primary school=elementary, secondary=secondary school=high school,
college=vocational, bachelor=bachelors=bachelor's, master=masters=master's,
doctorate=phd=doctor
"""
_ORDERS = [
    [entry.strip().split("=") for entry in order.replace("\n", " ").split(",")]
    for order in _WRITTEN.split(";")
]
_FEWEST = 3
_BELOW = ("<", "≤", "<=", "under", "below", "up to", "less than", "at most")
_ABOVE = (">", "≥", ">=", "over", "above", "more than", "at least")
_NUMBERED = re.compile(
    rf"({'|'.join(map(re.escape, sorted(_BELOW + _ABOVE, key=len)[::-1]))})?[{BLANKS}$€£]*(\d+)",
    re.ASCII,
)


def means_no_value(text: str) -> bool:
    """Tell whether a text, without blanks at its ends, is a word for "nothing here".

    >>> means_no_value("N/A"), means_no_value("none")
    (True, False)
    """
    return text.lower() in _NO_VALUE


def in_order(words: Sequence[str]) -> list[str] | None:
    """Return words in the order that people know of them; ``None`` if there is none.

    >>> in_order(["Feb", "Dec", "Jan"])
    ['Jan', 'Feb', 'Dec']
    >>> in_order(["25-34", "65+", "under 25", "35-64"])
    ['under 25', '25-34', '35-64', '65+']
    """
    if len(words) < _FEWEST:
        return None
    small = {word: " ".join(word.lower().split()) for word in words}
    for order in _ORDERS:
        places = {name: place for place, names in enumerate(order) for name in names}
        if all(text in places for text in small.values()):
            return sorted(words, key=lambda word: (places[small[word]], word))
    return _by_number([(text, word) for word, text in small.items()])


def _by_number(words: Sequence[tuple[str, str]]) -> list[str] | None:
    """Order words that all begin with a number: "1st-4th", "10th", "under 25", "65+"."""
    keys: dict[str, tuple[int, int]] = {}
    for text, word in words:
        found = _NUMBERED.match(text)
        if found is None:
            return None
        sign = found.group(1) or ""
        keys[word] = int(found.group(2)), -1 if sign in _BELOW else int(sign in _ABOVE)
    if len(set(keys.values())) < len(words):
        return None  # one number begins two of them: codes, and not amounts
    return sorted(keys, key=lambda word: keys[word])
