"""How long the supervisor has watched something, counted only while it really watched."""

from __future__ import annotations

from dataclasses import dataclass, field

from platform_core.control.owners import Owner


@dataclass
class UnresponsiveTimers:
    """A supervisor that was stopped, or could not see the control store for a minute, has not watched for that minute:
    drivers that lost their leases in it get the full time to renew them. So a round counts `most` seconds at most."""

    most: float
    watched: float = 0.0
    _last: float | None = None
    _silent: dict[Owner, float] = field(default_factory=dict[Owner, float])
    _asked: dict[Owner, float] = field(default_factory=dict[Owner, float])

    def tick(self, now: float) -> None:
        """A round in which all was seen."""
        self.watched += 0.0 if self._last is None else min(self.most, max(0.0, now - self._last))
        self._last = now

    def blind(self) -> None:
        """A round in which the control store did not answer: silence is counted from the next look on."""
        self._silent.clear()
        self._last = None

    def silent_for(self, living: frozenset[Owner], held: bool) -> float:
        if held:
            for owner in living:
                self._silent.pop(owner, None)
            return 0.0
        return max((self.watched - self._silent.setdefault(owner, self.watched) for owner in living), default=0.0)

    def asked(self, owner: Owner) -> None:
        self._asked.setdefault(owner, self.watched)

    def stopping_for(self, living: frozenset[Owner]) -> float | None:
        """None until each of them was asked."""
        if not living <= self._asked.keys():
            return None
        return max((self.watched - self._asked[owner] for owner in living), default=None)

    def forget_all_but(self, living: frozenset[Owner]) -> None:
        for memory in (self._silent, self._asked):
            for owner in memory.keys() - living:
                del memory[owner]
