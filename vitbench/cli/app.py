"""All commands. Each imports what it needs when it is called: `--help` stays quick and reading stays light."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from vitbench.report.frame import Frame
    from vitbench.study.folder import StudyFolder

app = typer.Typer(name="vitbench", no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None,
                  context_settings={"help_option_names": ["-h", "--help"]},
                  help="How much data does attention need? Run studies, read their tables and pages.")

Results = Annotated[Path, typer.Option("--results", metavar="DIR", help="Folder of all studies' results.")]
StudyArgument = Annotated[str, typer.Argument(metavar="STUDY", help="A .yaml file, a results folder or a name.")]
RESULTS = Path("results")


class BadInput(ValueError):
    """An argument that cannot be meant; the message names the value and what is allowed."""


def _version(wanted: bool) -> None:
    if wanted:
        from vitbench.environment import code_version

        print(f"vitbench {code_version()}")
        raise typer.Exit


@app.callback()
def _root(version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True,
                                                help="Show the version and stop.")] = False) -> None:
    pass


@app.command()
def run(study: StudyArgument,  # noqa: PLR0913, PLR0917 - one argument an option
        overrides: Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE ...]",
                                                              help="Change values of the study file.")] = None,
        results: Results = RESULTS,
        workers: Annotated[int | None, typer.Option(min=1, help="Runs at a time; default: one a core.")] = None,
        only: Annotated[str | None, typer.Option(metavar="KEY=VALUE,...", help="Only these runs, e.g. "
                                                 "model=convnet:s,fraction=0.1.")] = None,
        time_limit: Annotated[str | None, typer.Option(metavar="2h", help="Start no run after this time: 2h, 30m, "
                                                       "90s.")] = None,
        max_failures: Annotated[int | None, typer.Option(min=1, help="Stop when this many runs failed.")] = None,
        retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Do failed runs again.")] = False,
        allow_plugins: Annotated[bool, typer.Option("--allow-plugins", help="Run plug-in files from outside the "
                                                    "study's own folder.")] = False,
        quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Only the last lines.")] = False) -> None:
    """Do the runs that a study lacks, then show its table."""
    from vitbench.cli.commands import run_study
    from vitbench.study.execute import Options

    options = Options(workers or _cores(), seconds(time_limit), max_failures, retry_failed)
    raise typer.Exit(run_study(study, results, overrides or [], only, options,
                               allow_plugins=allow_plugins, quiet=quiet))


@app.command()
def plan(study: StudyArgument,
         overrides: Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE ...]",
                                                               help="Change values of the study file.")] = None,
         results: Results = RESULTS) -> None:
    """Show which runs a study has and which are done. Starts nothing."""
    from vitbench.cli.commands import plan_study

    plan_study(study, results, overrides or [])


@app.command()
def status(study: StudyArgument, results: Results = RESULTS) -> None:
    """Show how far a study is: done, running, failed, to do."""
    from vitbench.cli.commands import show_status

    show_status(_folder(study, results))


@app.command()
def tables(study: StudyArgument,
           form: Annotated[str, typer.Option("--format", metavar="FORMAT", help="md, csv, json or html.")] = "md",
           mixed_devices: Annotated[bool, typer.Option("--mixed-devices", help="Allow runs of several devices in "
                                                       "one table.")] = False,
           results: Results = RESULTS) -> None:
    """Print the table of a study."""
    from vitbench.report import render
    from vitbench.report.tables import summary

    forms = {"md": render.markdown, "csv": render.csv, "json": render.json, "html": render.html}
    _choose("--format", form, tuple(forms))
    sys.stdout.write(forms[form](summary(_frame(_folder(study, results)), mixed_devices=mixed_devices)))


@app.command()
def export(study: StudyArgument,
           form: Annotated[str, typer.Option("--format", metavar="FORMAT", help="csv, json or parquet.")] = "csv",
           output: Annotated[Path | None, typer.Option("-o", "--output", help="File to write.")] = None,
           columns: Annotated[bool, typer.Option("--columns", help="Tell what each column means, and stop.")] = False,
           results: Results = RESULTS) -> None:
    """Write the tidy frame: one row a run."""
    from vitbench.report import export as frames

    if columns:
        for column in frames.columns():
            print(f"{column.name}\t{column.type}\t{column.unit}\t{column.meaning}")
        return
    _choose("--format", form, frames.FORMATS)
    if form == "parquet" and output is None and sys.stdout.isatty():
        raise BadInput("--format parquet is binary: name a file with -o")
    frame = _frame(_folder(study, results))
    data = frames.parquet(frame) if form == "parquet" else \
        (frames.csv if form == "csv" else frames.json_text)(frame).encode()
    if output is None:
        sys.stdout.buffer.write(data)
    else:
        try:
            output.write_bytes(data)
        except OSError as error:
            raise BadInput(f"--output: cannot write {output}: {error.strerror}") from None


@app.command()
def report(study: StudyArgument, results: Results = RESULTS) -> None:
    """Write results/<study>/report.html: one self-contained page with the table and the curves."""
    from vitbench.cli.commands import write_report

    folder = _folder(study, results)
    print(write_report(folder, _frame(folder)))


@app.command()
def logs(run_id: Annotated[str, typer.Argument(metavar="RUN", help="A run id, or its first characters.")],
         results: Results = RESULTS) -> None:
    """Show what a run left: the traceback of a failed one, the outcome of another."""
    from vitbench.cli.commands import show_logs

    show_logs(run_id, results)


@app.command(name="list")
def list_kind(kind: Annotated[str, typer.Argument(metavar="KIND", help="models, datasets or studies.")],
              results: Results = RESULTS) -> None:
    """List what there is, one line an entry, the name first."""
    from vitbench.cli.commands import LISTS

    _choose("KIND", kind, tuple(LISTS))
    for line in LISTS[kind](results):
        print(line)


@app.command()
def show(kind: Annotated[str, typer.Argument(metavar="KIND", help="model")],
         name: Annotated[str, typer.Argument(metavar="NAME[:SIZE]", help="As a study names it: resnet:s, "
                                             "timm/resnet18.")],
         options: Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE ...]",
                                                             help="Options of the model.")] = None,
         dataset: Annotated[str, typer.Option(metavar="NAME", help="Whose images it is to take.")] = "digits",
         plugin: Annotated[Path | None, typer.Option(metavar="FILE", help="A model of your own; its code runs.")
                           ] = None,
         as_json: Annotated[bool, typer.Option("--json", help="An array of objects, one a size.")] = False) -> None:
    """Show a model's card: what it is made of at a dataset's image size, and what it costs."""
    from vitbench.cli.commands import show_model

    _choose("KIND", kind, ("model",))
    show_model(name, dataset, options or [], plugin, as_json=as_json)


def _choose(what: str, value: str, allowed: tuple[str, ...]) -> None:
    from vitbench.registry import nearest

    if value not in allowed:
        raise BadInput(f"{what}: should be one of {', '.join(allowed)}; found {value!r}.{nearest(value, allowed)}")


def seconds(text: str | None) -> float | None:
    """'1h30m' as 5400.0. Raises BadInput."""
    import re

    if text is None:
        return None
    match = re.fullmatch(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?", text.strip())
    if not match or not any(match.groups()):
        raise BadInput(f"--time-limit: should be a time like 2h, 90m, 1h30m or 45s; found {text!r}")
    return sum(float(part or 0) * unit for part, unit in zip(match.groups(), (3600, 60, 1), strict=True))


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _folder(study: str, results: Path) -> "StudyFolder":
    from vitbench.study.folder import StudyFolder

    return StudyFolder.open(study, results)


def _frame(folder: "StudyFolder") -> "Frame":
    from vitbench.cli.commands import frame_of

    return frame_of(folder)
