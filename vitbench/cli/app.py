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
Overrides = Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE ...]",
                                                       help="Change values of the study file.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Runs at a time; default: one a core, on CUDA one a device.")]
RunsPerDevice = Annotated[int, typer.Option(min=1, help="Runs at a time on each CUDA device.")]
AllowPlugins = Annotated[bool, typer.Option("--allow-plugins", help="Run plug-in files from outside the study's own "
                                            "folder.")]
AllowSlow = Annotated[bool, typer.Option("--allow-slow", help="Do runs that take longer than the limit for one run, "
                                         "4 hours.")]
DataDir = Annotated[Path | None, typer.Option("--data-dir", metavar="DIR", exists=True, file_okay=False,
                                              help="Folder with the files of the dataset.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Only the last lines.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
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
        overrides: Overrides = None, results: Results = RESULTS, workers: Workers = None,
        runs_per_device: RunsPerDevice = 1,
        only: Annotated[str | None, typer.Option(metavar="KEY=VALUE,...", help="Only these runs, e.g. "
                                                 "model=convnet:s,fraction=0.1.")] = None,
        time_limit: Annotated[str | None, typer.Option(metavar="2h", help="Start no run after this time: 2h, 30m, "
                                                       "90s.")] = None,
        max_failures: Annotated[int | None, typer.Option(min=1, help="Stop when this many runs failed.")] = None,
        retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Do failed runs again.")] = False,
        data_dir: DataDir = None,
        allow_slow: AllowSlow = False, allow_plugins: AllowPlugins = False,
        quiet: Quiet = False) -> None:
    """Do the runs that a study lacks, then show its table."""
    from vitbench.cli.commands import run_study
    from vitbench.study.drive import Options

    use_data_dir(data_dir)
    options = Options(workers, runs_per_device, seconds(time_limit), max_failures, retry_failed, allow_slow)
    raise typer.Exit(run_study(study, results, overrides or [], only, options,
                               allow_plugins=allow_plugins, quiet=quiet))


@app.command()
def plan(study: StudyArgument,  # noqa: PLR0913, PLR0917 - one argument an option
         overrides: Overrides = None, results: Results = RESULTS, workers: Workers = None,
         runs_per_device: RunsPerDevice = 1,
         probe: Annotated[bool, typer.Option("--probe", help="Measure what was never measured here: a few steps of "
                                             "each kind of run.")] = False,
         deviation: Annotated[float | None, typer.Option(min=0, max=1, help="Deviation over seeds of a paired "
                                                         "difference of test accuracy, as a share: 0.015.")] = None,
         data_dir: DataDir = None, allow_slow: AllowSlow = False, allow_plugins: AllowPlugins = False,
         as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Show what a study will take: runs to do, seconds, memory, and which differences its seeds can show."""
    from vitbench.cli.plan import plan_study, show_plan
    from vitbench.study.drive import Options

    use_data_dir(data_dir)
    options = Options(workers, runs_per_device, allow_slow=allow_slow)
    folder, found = plan_study(study, results, overrides or [], options, probe=probe, deviation=deviation,
                               allow_plugins=allow_plugins)
    show_plan(folder, found, as_json=as_json, quiet=quiet, allow_slow=allow_slow)


@app.command()
def status(study: StudyArgument, results: Results = RESULTS, as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Show how far a study is: done, running, failed, to do."""
    from vitbench.cli.commands import show_status

    show_status(_folder(study, results), as_json=as_json, quiet=quiet)


@app.command()
def tables(study: StudyArgument,
           name: Annotated[str, typer.Argument(metavar="[NAME]", help="summary; budgets, regimes, settings: does the "
                                               "ranking change with them; tuning; controls; anchors; crossovers; "
                                               "efficiency; curves; trials.")] = "summary",
           form: Annotated[str, typer.Option("--format", metavar="FORMAT", help="md, csv, json or html.")] = "md",
           mixed_devices: Annotated[bool, typer.Option("--mixed-devices", help="Allow runs of several devices in "
                                                       "one table.")] = False,
           results: Results = RESULTS) -> None:
    """Print a table of a study."""
    from vitbench.report import render
    from vitbench.report.catalogue import BESIDE, WITHOUT
    from vitbench.report.tables import refuse_mixed, summary

    forms = {"md": render.markdown, "csv": render.csv, "json": render.json, "html": render.html}
    choose("--format", form, tuple(forms))
    choose("NAME", name, ("summary", *BESIDE))
    frame = _frame(_folder(study, results))
    if not mixed_devices:
        refuse_mixed(frame)
    table = summary(frame, mixed_devices=True) if name == "summary" else BESIDE[name](frame)
    if table is None:
        raise BadInput(f"NAME: this study has no table {name!r}: {WITHOUT[name]}")
    sys.stdout.write(forms[form](table))


@app.command()
def trials(study: StudyArgument,
           form: Annotated[str, typer.Option("--format", metavar="FORMAT", help="md, csv, json or html.")] = "md",
           results: Results = RESULTS) -> None:
    """List every trial of a study's tuning."""
    tables(study, "trials", form, mixed_devices=True, results=results)


@app.command()
def export(study: StudyArgument,
           form: Annotated[str, typer.Option("--format", metavar="FORMAT", help="csv, json or parquet.")] = "csv",
           output: Annotated[Path | None, typer.Option("-o", "--output", help="File to write.")] = None,
           columns: Annotated[bool, typer.Option("--columns", help="Tell what each column means, added metrics "
                                                 "included, and stop.")] = False,
           results: Results = RESULTS) -> None:
    """Write the tidy frame: one row a run."""
    from vitbench.cli.metrics import columns_in, columns_of
    from vitbench.report import export as frames

    if columns:
        for column in frames.columns(columns_of(study, results)):
            print(f"{column.name}\t{column.type}\t{column.unit}\t{column.meaning}")
        return
    choose("--format", form, frames.FORMATS)
    if form == "parquet" and output is None and sys.stdout.isatty():
        raise BadInput("--format parquet is binary: name a file with -o")
    folder = _folder(study, results)
    frame = _frame(folder)
    added = columns_in(folder, frame)
    data = frames.parquet(frame, added) if form == "parquet" else \
        (frames.csv if form == "csv" else frames.json_text)(frame, added).encode()
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
def claims(studies: Annotated[list[str] | None, typer.Argument(metavar="[STUDY ...]", help="Default: all in the "
                                                               "results folder.")] = None,
           form: Annotated[str, typer.Option("--format", metavar="FORMAT", help="md, json or csv.")] = "md",
           results: Results = RESULTS,
           allow_plugins: Annotated[bool, typer.Option("--allow-plugins", help="Run claims of the study's own: its "
                                                       "plug-in files are code.")] = False,
           expect: Annotated[Path | None, typer.Option("--expect", metavar="FILE", help="Exit with 1 where a verdict "
                                                       "differs from this file's, {STUDY: {CLAIM: OUTCOME}}.")
                             ] = None) -> None:
    """Judge the claims that studies name: verdict, effect with its interval, reason, controls and runs."""
    from vitbench.cli import expect as expectation
    from vitbench.cli.claims import judged
    from vitbench.cli.prune import studies as all_of
    from vitbench.report import verdicts

    forms = {"md": verdicts.markdown, "json": verdicts.json, "csv": verdicts.csv}
    choose("--format", form, tuple(forms))
    folders = [_folder(study, results) for study in dict.fromkeys(studies)] if studies else list(all_of(results))
    expected = {} if expect is None else expectation.read(expect, [name for of in folders for name in of.study.claims])
    silent = [folder.name for folder in folders if not folder.study.claims]
    found = [each for folder in folders for each in judged(folder, allow_plugins=allow_plugins)]
    sys.stdout.write(forms[form](found))
    if silent or not folders:
        print(f"no claims are named by: {', '.join(silent)}; `claims: [NAME]` in a study's file names them (vitbench "
              "list claims)" if silent else f"no study in {results}", file=sys.stderr)
    others = list(expectation.differences(found, expected))
    for line in others:
        print(line, file=sys.stderr)
    if others:
        raise typer.Exit(1)


@app.command()
def logs(run_id: Annotated[str, typer.Argument(metavar="RUN", help="A run id, or its first characters.")],
         results: Results = RESULTS) -> None:
    """Show what a run left: the traceback of a failed one, the outcome of another."""
    from vitbench.cli.commands import show_logs

    show_logs(run_id, results)


@app.command(name="list")
def list_kind(kind: Annotated[str, typer.Argument(metavar="KIND", help="models, datasets, metrics, studies, "
                                                  "claims or probes.")],
              results: Results = RESULTS) -> None:
    """List what there is, one line an entry, the name first."""
    from vitbench.cli.commands import LISTS

    choose("KIND", kind, tuple(LISTS))
    for line in LISTS[kind](results):
        print(line)


@app.command()
def show(kind: Annotated[str, typer.Argument(metavar="KIND", help="model")],
         name: Annotated[str, typer.Argument(metavar="NAME[:SIZE]", help="As a study names it: resnet:s, "
                                             "timm/resnet18.")],
         options: Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE ...]",
                                                             help="Options of the model.")] = None,
         dataset: Annotated[str, typer.Option(metavar="NAME[:KEY=VALUE,...]", help="Whose images it is to "
                                              "take: far_pairs:canvas=32.")] = "digits",
         plugin: Annotated[Path | None, typer.Option(metavar="FILE", help="A model of your own; its code runs.")
                           ] = None,
         as_json: Annotated[bool, typer.Option("--json", help="An array of objects, one a size.")] = False) -> None:
    """Show a model's card: what it is made of at a dataset's image size, and what it costs."""
    from vitbench.cli.commands import show_model

    choose("KIND", kind, ("model",))
    show_model(name, dataset, options or [], plugin, as_json=as_json)


def choose(what: str, value: str, allowed: tuple[str, ...]) -> None:
    """Raises BadInput where `value` is not one of `allowed`; `what` names the argument."""
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


def use_data_dir(folder: Path | None) -> None:
    """Workers inherit it."""
    if folder:
        os.environ["VITBENCH_DATA"] = str(folder)


def _folder(study: str, results: Path) -> "StudyFolder":
    from vitbench.study.folder import StudyFolder

    return StudyFolder.open(study, results)


def _frame(folder: "StudyFolder") -> "Frame":
    return folder.frame()
