"""Commands around studies: what editors and authors need, and care for folders and machine."""

from pathlib import Path
from typing import Annotated

import typer

from vitbench.cli.app import (
    RESULTS,
    AllowPlugins,
    AsJson,
    BadInput,
    DataDir,
    Results,
    StudyArgument,
    Workers,
    app,
    choose,
    use_data_dir,
)


@app.command()
def doctor(results: Results = RESULTS, data_dir: DataDir = None, as_json: AsJson = False,
           quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Only what is not OK.")] = False) -> None:
    """Tell what this machine has, what is missing and what to do."""
    import json
    from dataclasses import asdict

    from vitbench.cli.doctor import examine, show

    use_data_dir(data_dir)
    findings = list(examine(results))
    if as_json:
        print(json.dumps([asdict(finding) for finding in findings], indent=1, ensure_ascii=False))
    else:
        show(findings, quiet=quiet)
    raise typer.Exit(any(finding.state == "broken" for finding in findings))


@app.command()
def schema() -> None:
    """Print the JSON Schema of study files, for editors."""
    import json

    from vitbench.study.json_schema import study_schema

    print(json.dumps(study_schema(), indent=1))


@app.command()
def new(kind: Annotated[str, typer.Argument(metavar="KIND", help="study, model or claim.")],
        name: Annotated[str, typer.Argument(metavar="NAME", help="Its name, without .yaml or .py.")],
        folder: Annotated[Path, typer.Option(metavar="DIR", help="Where to write the file.")] = Path()) -> None:
    """Write a first file of a study, a model or a claim, ready to run."""
    from vitbench.cli.scaffold import KINDS, write_new

    choose("KIND", kind, KINDS)
    write_new(kind, name, folder)


@app.command()
def check(file: Annotated[Path, typer.Argument(metavar="FILE", help="A model's or a claim's .py file. Its code is "
                                               "run.")]) -> None:
    """Hold a model or a claim of your own to what every one promises."""
    from vitbench.cli.check import check_file

    raise typer.Exit(check_file(file))


@app.command()
def prune(study: Annotated[str | None, typer.Argument(metavar="[STUDY]", help="Default: all in the results "
                                                      "folder.")] = None,
          results: Results = RESULTS,
          yes: Annotated[bool, typer.Option("--yes", help="Remove it; without, only show it.")] = False,
          logits: Annotated[bool, typer.Option("--logits", help="Test logits of the study's runs too: a metric added "
                                               "later cannot be had of these runs.")] = False,
          weights: Annotated[bool, typer.Option("--weights", help="Kept weights too: probes train these runs "
                                                "again.")] = False,
          quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Only the total.")] = False) -> None:
    """Show what nothing needs any more and how much disk it takes; with --yes remove it."""
    from vitbench.cli import prune
    from vitbench.cli.commands import output
    from vitbench.study.folder import StudyFolder

    if not results.is_dir():
        raise BadInput(f"--results: {results} is no folder")
    folders = list(prune.studies(results)) if study is None else [StudyFolder.open(study, results)]
    prune.prune(output(), folders, logits=logits, weights=weights, really=yes, quiet=quiet)


@app.command()
def verify(study: StudyArgument, results: Results = RESULTS,  # noqa: PLR0917 - one argument an option
           rerun: Annotated[int, typer.Option(metavar="N", min=0, help="Train this many runs again and compare.")] = 0,
           seed: Annotated[int, typer.Option(min=0, help="Draws the runs to train again.")] = 0,
           workers: Workers = None, data_dir: DataDir = None, allow_plugins: AllowPlugins = False) -> None:
    """Hold what a study's folder has to what it follows from; exit status 1 where something differs."""
    from vitbench.cli.commands import output
    from vitbench.cli.verify import Again, verify_study
    from vitbench.study.folder import StudyFolder

    use_data_dir(data_dir)
    raise typer.Exit(verify_study(output(), StudyFolder.open(study, results), Again(rerun, seed, workers),
                                  allow_plugins=allow_plugins))


@app.command()
def probe(  # noqa: PLR0913, PLR0917 - one argument an option
          name: Annotated[str, typer.Argument(metavar="NAME", help="A name of `vitbench list probes`, or of a file of "
                                              "your own.")],
          arguments: Annotated[list[str] | None, typer.Argument(metavar="[STUDY|RUN] [KEY=VALUE ...]", help="A study "
                               "or one of its runs by its id, and options of the probe.")] = None,
          only: Annotated[str | None, typer.Option(metavar="KEY=VALUE,...", help="Only these runs, e.g. "
                                                   "model=token_transformer:s,fraction=1.")] = None,
          results: Results = RESULTS,
          form: Annotated[str, typer.Option("--format", metavar="FORMAT", help="md, csv or json.")] = "md",
          figure: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the figure here, too: .svg, .png or "
                                                      ".html.")] = None,
          again: Annotated[bool, typer.Option("--again", help="Measure anew what was measured before.")] = False,
          data_dir: DataDir = None,
          plugin: Annotated[Path | None, typer.Option(metavar="FILE", help="A probe of your own; its code "
                                                      "runs.")] = None,
          allow_plugins: AllowPlugins = False) -> None:
    """Measure a mechanism of a model, or what it became in a study's trained runs: table, figure and a JSON file."""
    from vitbench.cli import probe as probes
    from vitbench.report import render

    forms = {"md": render.markdown, "csv": render.csv, "json": render.json}
    choose("--format", form, tuple(forms))
    if figure is not None:
        probes.figure_format(figure)
    use_data_dir(data_dir)
    asked = probes.question(name, arguments or [], only, results, plugin=plugin, allow_plugins=allow_plugins)
    found = probes.answer(asked, again=again)
    print(forms[form](probes.table(found)), end="")
    if figure is not None:
        probes.write_figure(found, figure)


metrics = typer.Typer(help="Metrics of runs that ended, computed from their stored predictions.")
app.add_typer(metrics, name="metrics")


@metrics.command(name="add")
def metrics_add(name: Annotated[str, typer.Argument(metavar="NAME", help="A name of `vitbench list metrics`, or of "
                                                    "--plugin's file.")],
                study: StudyArgument, results: Results = RESULTS, data_dir: DataDir = None,
                plugin: Annotated[Path | None, typer.Option(metavar="FILE", help="A metric of your own; its code "
                                                            "runs.")] = None,
                allow_plugins: AllowPlugins = False) -> None:
    """Compute a metric for all runs of a study from their stored predictions; nothing is trained."""
    from vitbench.cli.metrics import add
    from vitbench.study.folder import StudyFolder

    use_data_dir(data_dir)
    raise typer.Exit(add(StudyFolder.open(study, results), name, plugin, allow_plugins=allow_plugins))
