"""How numbers are written: the sign before decimals, the one between thousands, and per cent signs.

A column is read in a notation only if all its cells can be, and no other notation gives other numbers. "1,234" alone
may be 1234 or 1.234; beside "12.5" it is 1234, beside "0,5" it is 1.234.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

# Non-breaking, narrow and thin spaces, and the typographic apostrophe.
_ALIKE = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2009": " ", "’": "'"})
_FIRST = frozenset("0123456789+-.,")


def _usual(text: str) -> str:
    """With the usual spaces and apostrophes."""
    return text if text.isascii() else text.translate(_ALIKE)


@dataclass(frozen=True)
class Notation:
    """One way to write numbers; ``thousands`` is empty where nothing stands between them."""

    decimal: str = "."
    thousands: str = ""
    percent: bool = False

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        decimal, thousands = re.escape(self.decimal), re.escape(self.thousands)
        whole = rf"(?:[1-9]\d{{0,2}}(?:{thousands}\d{{3}})+|\d+)" if thousands else r"\d+"
        number = rf"[-+]?(?:{whole}(?:{decimal}\d*)?|{decimal}\d+)"
        # In a column of percentages, 0 may stand without its sign.
        return re.compile(rf"{number} ?%|0+(?:{decimal}0+)?" if self.percent else number, re.ASCII)

    def fits(self, text: str) -> bool:
        """Whether a cell is a number in this notation."""
        return self.pattern.fullmatch(_usual(text)) is not None

    def plain(self, text: str) -> str:
        """The number as Python writes it, 45 for 45%; "" for what is none in this notation."""
        text = _usual(text)
        if self.pattern.fullmatch(text) is None:
            return ""
        text = text.rstrip("% ")
        return (text.replace(self.thousands, "") if self.thousands else text).replace(self.decimal, ".")

    def within(self, separators: set[str]) -> tuple[str, ...]:
        """What it takes these separators for; two notations that agree on those in use give the same numbers."""
        return tuple(mark if mark in separators else "" for mark in (self.decimal, self.thousands))


NOTATIONS = tuple(
    Notation(decimal, thousands, percent)
    for percent in (False, True)
    for decimal, others in ((".", ", '"), (",", ". '"))
    for thousands in ("", *others)
)


class PossibleNotations:
    """The notations in which all texts of a column so far are numbers."""

    def __init__(self) -> None:
        self._left = NOTATIONS
        self._separators: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._left)

    def add(self, texts: Sequence[str]) -> None:
        """Look at more texts."""
        usual = [_usual(text) for text in texts]
        self._left = tuple(notation for notation in self._left if all(map(notation.pattern.fullmatch, usual)))
        self._separators |= {mark for mark in ".,' " if any(mark in text.removesuffix(" %") for text in usual)}

    def first(self) -> Notation | None:
        """Any that is left."""
        return self._left[0] if self._left else None

    def only(self, decimal: str) -> Notation | None:
        """The one that is left, or the one without thousands and with the usual decimals; None if there are several."""
        usual = [notation for notation in self._left if (notation.decimal, notation.thousands) == (decimal, "")]
        if usual:
            return usual[0]
        readings = {notation.within(self._separators) for notation in self._left}
        return self._left[0] if len(readings) == 1 else None


_ANY = re.compile("|".join(notation.pattern.pattern for notation in NOTATIONS), re.ASCII)


def is_number_like(text: str) -> bool:
    """Whether a cell is a number in some notation."""
    return text[:1] in _FIRST and _ANY.fullmatch(_usual(text)) is not None


def are_number_like(texts: Sequence[str]) -> list[bool]:
    """Which cells are numbers in some notation."""
    return [is_number_like(text.strip()) for text in texts]
