"""What verifying reads, once, and what it finds."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property

from vitbench.datasets import DatasetError
from vitbench.record import DamagedRecord, Failure, ForeignRecord, RunRecord
from vitbench.study.folder import StudyFolder
from vitbench.subset import EmptyClass

SHOWN = 5


class NotKept(ValueError):
    """What cannot be looked at because it was not kept, or is of another version: no fault."""


@dataclass
class Check:
    """One kind of check: how many things were looked at, each fault with what to do, and what was not looked at."""

    kind: str
    checked: int = 0
    faults: list[str] = field(default_factory=list)
    unchecked: dict[str, list[str]] = field(default_factory=dict)  # why -> what
    blocked: bool = False  # a dataset was needed that is not at hand

    def fault(self, where: str, what: str, to_do: str) -> None:
        """Note 'run 0123456789abcdef: logits.npy does not ...; do this'."""
        self.faults.append(f"{where}: {what}; {to_do}")

    def skip(self, where: str, why: str) -> None:
        """Note that something was not looked at."""
        self.unchecked.setdefault(why, []).append(where)

    def judge(self, where: str, look: Callable[[], str | None], to_do: str) -> None:
        """Look, and note what came of it: nothing, a fault, or that what is needed is not there."""
        try:
            why = look()
        except DatasetError as error:
            self.skip(where, str(error))
            self.blocked = True
            return
        except NotKept as error:
            self.skip(where, str(error))
            return
        except (DamagedRecord, EmptyClass) as error:  # what was read asks for what cannot be
            why = str(error)
        self.checked += 1
        if why:
            self.fault(where, why, to_do)


@dataclass(frozen=True)
class Stored:
    """Everything that ended in a study's store, orphans included, as it was read once."""

    folder: StudyFolder
    found: dict[str, RunRecord | Failure | DamagedRecord | ForeignRecord]

    @classmethod
    def of(cls, folder: StudyFolder) -> "Stored":
        """Reads every record and failure."""
        found: dict[str, RunRecord | Failure | DamagedRecord | ForeignRecord] = {}
        for run_id in sorted(folder.store.ids()):
            try:
                found[run_id] = folder.store.read(run_id)
            except (DamagedRecord, ForeignRecord) as error:
                found[run_id] = error
            except KeyError:  # a file of that name, or a driver that moved it away
                found[run_id] = DamagedRecord("is no folder")
        return cls(folder, found)

    @cached_property
    def records(self) -> dict[str, RunRecord]:
        """Those that are whole, by run id."""
        return {run_id: ended for run_id, ended in self.found.items() if isinstance(ended, RunRecord)}

    @cached_property
    def predicted(self) -> dict[str, RunRecord]:
        """Those of runs that kept test logits at their end."""
        return {run_id: record for run_id, record in self.records.items() if record.predictions_sha256 is not None}

    def read(self, run_id: str) -> RunRecord | Failure:
        """As ResultStore.read does."""
        ended = self.found[run_id]
        if isinstance(ended, ValueError):
            raise ended
        return ended

    @property
    def redo(self) -> str:
        """What to do about a run whose files cannot be trusted."""
        return f"move its folder out of runs/ and `vitbench run {self.folder.name}` does it again"


def listed(names: Iterable[str]) -> str:
    """'a, b' or 'a, b, c, d, e and 7 others'."""
    found = list(names)
    rest = f" and {len(found) - SHOWN} others" if len(found) > SHOWN else ""
    return ", ".join(found[:SHOWN]) + rest
