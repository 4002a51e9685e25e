"""`claims`: the verdicts on the claims that studies name."""

from collections.abc import Iterator
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

from vitbench import measurement
from vitbench.claims import CLAIMS, judge
from vitbench.config import BadStudy
from vitbench.measurement import Measurement
from vitbench.record import DamagedRecord
from vitbench.registry import load_plugin, plugin_sha256
from vitbench.report.evidence import evidence_of
from vitbench.report.frame import Frame
from vitbench.report.notes import identity
from vitbench.report.verdicts import Judged
from vitbench.spec import split_version
from vitbench.store import StoreError
from vitbench.study.folder import StudyFolder
from vitbench.verdicts import Blocked, Evidence, Verdict


def judged(folder: StudyFolder, *, allow_plugins: bool) -> Iterator[Judged]:
    """A verdict for each claim that the study names, in its order. Raises PluginError or ClaimError for wrong code."""
    frame = folder.frame()
    evidence, of = _evidence(folder, frame), identity(frame)
    for name in folder.study.claims:
        yield Judged(frame.study, name, _verdict(name, folder, evidence, allow_plugins), of)


def _evidence(folder: StudyFolder, frame: Frame | None = None) -> Evidence:
    study = folder.study
    return evidence_of(frame or folder.frame(), looks=len(study.looks), measured=partial(_measured, folder),
                       space=study.tuning.space if study.tuning else {}, pairs=study.comparisons,
                       elsewhere=cache(partial(_elsewhere, folder)))


def _elsewhere(folder: StudyFolder, dataset: str) -> tuple[Evidence, ...]:
    """The results folder's other studies on a dataset, by name; one that cannot be read counts as missing."""
    home = folder.store.folder.parent
    found = []
    for path in sorted(home.glob("*/study.yaml")):
        if path.parent != folder.store.folder:
            with suppress(BadStudy, StoreError):
                other = StudyFolder.open(str(path.parent), home)
                if split_version(other.resolved.dataset)[0] == dataset:
                    found.append(_evidence(other))
    return tuple(found)


def _measured(folder: StudyFolder, probe: str) -> Iterator[Measurement]:
    """What is kept of a probe, the study's own first; what is damaged or of another definition counts as missing."""
    from vitbench.probes import PROBES

    plugin = folder.resolved.plugins.get(probe)
    for path in (path for home in (folder.store.folder, folder.store.folder.parent)
                 for path in measurement.files(home, probe)):
        with suppress(DamagedRecord, FileNotFoundError):
            found = measurement.read(path)
            current = PROBES.get(probe).meta.version if probe in PROBES.shipped() else found.version
            if (found.version, found.plugin_sha256) == (current, plugin):
                yield found


def _verdict(name: str, folder: StudyFolder, evidence: Evidence, allow_plugins: bool) -> Verdict:
    try:
        if name not in CLAIMS.shipped():
            _load(name, folder, allow_plugins)
        return judge(name, evidence)
    except Blocked as why:
        return Verdict(outcome="blocked", sentence=str(why))


def _load(name: str, folder: StudyFolder, allowed: bool) -> None:
    """Import the study's own file of a claim. Raises Blocked, saying why, where it is not to be had or run."""
    path: Path = folder.store.folder / "plugins" / f"{name}.py"
    if not path.is_file():
        raise Blocked("This version has no claim of this name, and the study's results no file of it")
    if not allowed:
        raise Blocked(f"It is code of the study's own, which runs only when asked for: read {path}, then add "
                      "--allow-plugins")
    digest = plugin_sha256(path)
    if digest != folder.resolved.plugins.get(name):
        raise Blocked(f"{path} is not the file that the study was run with; vitbench run takes the new one")
    if name in CLAIMS.names() and CLAIMS.get(name).plugin_sha256 != digest:
        raise Blocked("Another study has another file of this name, and one process runs one of them: judge each study "
                      "alone")
    load_plugin(path)
    if name not in CLAIMS.names():
        raise Blocked(f"{path} registers no claim of this name")
