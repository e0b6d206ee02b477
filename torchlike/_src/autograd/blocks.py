"""Loops whose length varies: the walk is cut where the forward was, and each turn runs one known program.

An episode that reads each action, a decoder that reads each token: the forward ran as one program per turn. Its
gradient would be one trace as long as the episode, new for each length. Cut at the same places, it is the same few
operations again and again."""

from typing import Any

from torchlike._src.engine import current, flush
from torchlike._src.engine.record import user_line

SHORTEST = 12
"""Operations in a block: a launch for fewer costs more than it saves."""
DIFFERENT = 3
"""Different numbers of turns that one call of backward must have had before it is cut."""
MAX_SITES = 1000

_turns: dict[str, set[int]] = {}
"""User line of a call of backward -> how often its walks crossed a place where the forward was cut."""


class Blocks:
    """The places where the forward of one walk was cut, newest first."""

    __slots__ = ("crossed", "line", "marks", "position", "varies")

    def __init__(self, marks: Any) -> None:
        self.marks = marks
        self.position = len(marks) - 1
        self.crossed = 0
        self.line = ""
        self.varies = False

    def bound(self) -> int:
        """Nodes with smaller numbers were made before the place that comes next."""
        return self.marks[self.position] if self.position >= 0 else -1

    def cross(self, number: int) -> int:
        """The walk has come to node `number`, beyond the bound: maybe compute what is pending. The next bound."""
        while self.position >= 0 and number < self.marks[self.position]:
            self.position -= 1
        if not self.crossed:
            self.line = user_line()
            self.varies = len(_turns.get(self.line, ())) >= DIFFERENT
        self.crossed += 1
        if self.varies:
            trace = current()
            if trace.node.depth >= SHORTEST:
                backwards = trace.backwards
                flush(trace, "one turn of a loop in backward()")
                trace.taped, trace.backwards = True, backwards
        return self.bound()

    def end(self) -> None:
        """Remember how many turns there were."""
        if self.crossed > 1 and not self.varies:
            if len(_turns) > MAX_SITES:
                _turns.clear()
            _turns.setdefault(self.line, set()).add(self.crossed)
