"""`probe`: measure a mechanism, or what it became in trained runs."""

import sys
from collections import Counter
from pathlib import Path

from vitbench.cli.app import BadInput
from vitbench.cli.errors import Terminated
from vitbench.config import BadStudy, Mistake
from vitbench.config.strict_yaml import YamlRefused, parse
from vitbench.environment import set_switches
from vitbench.measurement import Measurement
from vitbench.options import BadOption
from vitbench.probes import PROBES
from vitbench.probes._figure import FORMATS, drawing
from vitbench.probes._measure import Question
from vitbench.probes._target import Target, choose
from vitbench.registry import UnknownName, load_plugin
from vitbench.report.render import Column, Entry, Table, rounded
from vitbench.spec import named_version
from vitbench.store import WEIGHTS
from vitbench.study.folder import StudyFolder
from vitbench.units import duration


def question(name: str, arguments: list[str], only: str | None, results: Path, *, plugin: Path | None,
             allow_plugins: bool) -> Question:
    """What NAME [STUDY|RUN] [KEY=VALUE ...] asks; loads plug-ins where that was allowed. Raises what is wrong."""
    named = arguments[:1] if arguments and "=" not in arguments[0] else []
    target = Target.named(named[0], results) if named else None
    if plugin is not None:
        load_plugin(plugin)
    if target is not None and allow_plugins:
        target.folder.load_plugins()
    if target is not None and name in target.folder.resolved.plugins and name not in PROBES.names():
        raise _code(target.folder)
    _known(name)
    given = _options(name, arguments[len(named):])
    if target is None:
        if only:
            raise BadInput("--only chooses runs of a study; name a study before it")
        return Question(name, given, results)
    Question(name, given, results, target.folder)  # refuses a study that the probe does not take, before its runs
    runs, remarks = choose(name, target, only)
    if "runs" in PROBES.get(name).meta.looks_at and not allow_plugins and any(run.spec.plugins for run in runs):
        raise _code(target.folder)
    for remark in remarks:
        print(remark, file=sys.stderr)
    return Question(name, given, results, target.folder, runs)


def _code(folder: StudyFolder) -> BadStudy:
    where = folder.store.folder / "plugins"
    return BadStudy(folder.name, [Mistake("plugins", "this runs plug-ins of the study, which are code; read them in "
                                          f"{where}, then add --allow-plugins")])


def _known(name: str) -> None:
    try:
        PROBES.get(name)
    except UnknownName as error:
        raise UnknownName(f"{error} `vitbench list probes` tells what each measures") from None


def _options(name: str, arguments: list[str]) -> dict[str, object]:
    try:
        given: dict[str, object] = parse("{}", arguments)
    except YamlRefused as error:
        allowed = ", ".join(PROBES.get(name).meta.options.model_fields) or "none"
        raise BadOption(f"{error}; NAME [STUDY|RUN] [KEY=VALUE ...], options of {name!r}: {allowed}") from None
    return given


def answer(asked: Question, *, again: bool) -> Measurement:
    """From its file where it is there, else computed; says which on standard error."""
    found = None if again else asked.answered()
    if found is not None:
        print(f"read from {asked.path}, measured before; --again measures anew", file=sys.stderr)
        return found
    _foretell(asked)
    set_switches(threads=1)  # before torch is loaded
    try:
        found = asked.measured(lambda line: print(line, file=sys.stderr))
    except SystemExit as end:
        if isinstance(end, Terminated):
            raise
        raise KeyboardInterrupt from end  # Lightning makes an exit of Ctrl-C
    print(f"wrote {asked.path} and {asked.path.with_suffix('.svg').name} beside it", file=sys.stderr)
    return found


def _foretell(asked: Question) -> None:
    """How much must be trained again."""
    if asked.folder is None or "runs" not in PROBES.get(asked.name).meta.looks_at:
        return
    look, store = asked.look(), asked.folder.store
    bare = [run for run in asked.runs if not (store.runs / run.spec.run_id / WEIGHTS).exists()]
    seconds = sum(look.record(run).cost.seconds for run in bare)
    if bare:
        print(f"{len(bare)} of {len(asked.runs)} runs keep no weights; trained again, one after the other, they take "
              f"about {duration(seconds)} by their records. `keep: [weights]` in a study spares that", file=sys.stderr)


def figure_format(path: Path) -> str:
    """'svg' of 'shift.svg'. Raises BadInput for a name that ends in no known form."""
    form = path.suffix.removeprefix(".")
    if form not in FORMATS:
        raise BadInput(f"--figure: should end in {', '.join(f'.{each}' for each in FORMATS)}; found {path.name!r}")
    return form


def write_figure(found: Measurement, path: Path) -> None:
    """Draw it once more where a user wants it. Raises BadInput."""
    try:
        path.write_bytes(drawing(found, figure_format(path)))
    except OSError as error:
        raise BadInput(f"--figure: cannot write {path}: {error.strerror}") from None


def table(found: Measurement) -> Table:
    """The rows for readers, with the sentence and what it rests on below."""
    columns = tuple(Column(column.name, f"{column.name}, {column.unit}" if column.unit else column.name,
                           numeric=not any(isinstance(row[column.name], str) for row in found.rows),
                           shown=_has(found, column.name)) for column in found.columns)
    rows = tuple(tuple(Entry(row[column.key], _text(row[column.key])) for column in columns) for row in found.rows)
    return Table(f"Probe {named_version(found.probe, found.version)}: {found.statement}", columns, rows, (),
                 tuple(_footer(found)))


def _has(found: Measurement, column: str) -> bool:
    """False for a column that has no value: of runs, where there is none."""
    return any(row[column] is not None for row in found.rows)


def _text(value: object) -> str:
    if value is None:
        return "—"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(rounded(value))  # type: ignore[arg-type]


def _footer(found: Measurement) -> list[str]:
    options = ", ".join(f"{key} {value}" for key, value in found.options.items()) or "none"
    meanings = [f"{column.name}: {column.meaning}" for column in found.columns if _has(found, column.name)]
    lines = [found.summary, *meanings, f"Source: {found.source}", f"Options: {options}"]
    if found.run_ids:
        told = "".join(f"; {count} {how}" for how, count in sorted(Counter(found.weights.values()).items()))
        lines.append(f"Study {found.study}, {len(found.run_ids)} runs{told}. Content SHA-256 {found.records_sha256}")
    return [*lines, f"vitbench {found.code_version}"]
