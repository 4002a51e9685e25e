import pytest

from tests.boundaries.probe import HEAVY, ROOT, Step, after_each, loads, loads_torch
from tests.report import factory
from vitbench.store import ResultStore
from vitbench.study.folder import StudyFolder

LIGHT = ["spec", "streams", "regimes", "registry", "row", "record", "store", "live", "config", "grid", "environment",
         "subset", "stats", "verdicts", "metrics", "claims", "datasets", "models", "report", "study", "measurement",
         "probes", "cli"]


def modules() -> list[str]:
    """Every module of the light packages."""
    files = [path for part in LIGHT for path in ([ROOT / "vitbench" / f"{part}.py"]
                                                 if (ROOT / "vitbench" / f"{part}.py").exists()
                                                 else sorted((ROOT / "vitbench" / part).rglob("*.py")))]
    return [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in files]


def test_no_light_module_loads_torch_or_scipy_stats_on_import() -> None:
    told = after_each([(name, f"import {name}") for name in modules()], [*HEAVY, "scipy.stats"])  # that one takes 0.9 s
    assert len(told) > 30
    assert {name: step for name, step in told.items() if step.loaded or step.error} == {}


def test_listing_models_and_reading_their_cards_does_not_load_torch() -> None:
    assert not loads("from vitbench.models import MODELS, resolve\n"
                     "for name in MODELS.names():\n"
                     "    inner = MODELS.open_names(name)\n"
                     "    for one in [f'{name}/{inner[0]}', f'{name}/{inner[-1]}'] if inner else [name]:\n"
                     "        meta = MODELS.get(one).meta\n"
                     "        for size in meta.sizes or (None,): resolve(one, size, {})", "torch", "timm")


def test_commands_that_draw_nothing_do_not_load_the_library_that_draws() -> None:
    """Every command imports one of these first; it would take a third of a second of each."""
    assert not loads("import vitbench.cli.commands, vitbench.cli.claims, vitbench.cli.plan", "altair")
    assert loads("import vitbench.cli.probe", "altair")


def test_the_probe_can_fail() -> None:
    assert loads_torch("import vitbench.nn.convnet")


def test_the_probe_tells_of_code_that_fails() -> None:
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        loads_torch("1 / 0")


COMMANDS = {  # arguments, and a word of what each prints here
    "help": (["--help"], "Usage"), "version": (["--version"], "vitbench 0"),
    "list models": (["list", "models"], "convnet"), "list datasets": (["list", "datasets"], "digits"),
    "list studies": (["list", "studies"], "quick"), "status": (["status", "trial"], "12"),
    "plan": (["plan", "quick"], "convnet"),
    "plan with timm": (["plan", "quick", "models=[timm/resnet18]"], "timm/resnet18"),
    "tables": (["tables", "trial"], "convnet"),
    "tables as csv": (["tables", "trial", "--format", "csv"], "convnet"),
    "crossovers": (["tables", "trial", "crossovers"], "convnet"), "curves": (["tables", "trial", "curves"], "convnet"),
    "efficiency": (["tables", "trial", "efficiency"], "convnet"),
    "export": (["export", "trial"], "run_id"), "report": (["report", "trial"], "report.html"),
    "claims": (["claims", "trial"], "blocked"), "list claims": (["list", "claims"], "attention_overtakes"),
    "list probes": (["list", "probes"], "position_shift"),
    "schema": (["schema"], "convnet:xs"),
    "prune": (["prune", "trial"], "prune"), "status as json": (["status", "trial", "--json"], "totals"),
    "verify": (["verify", "trial"], "predictions"), "list metrics": (["list", "metrics"], "top5_accuracy"),
    "metrics": (["metrics", "add", "balanced_accuracy", "trial"], "computed"),
    "logs": (["logs", "{run_id}"], "done"), "run with nothing to do": (["run", "trial"], "nothing to do"),
}


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Step]:
    """All commands that only read, in one fresh process, over a study that is done."""
    folder = tmp_path_factory.mktemp("commands")
    study = factory.study(claims=["attention_overtakes_with_enough_data"])
    store = ResultStore(folder / "results" / "trial")
    store.prepare()
    trial = StudyFolder("trial", study, factory.resolved(study), store)
    trial.write({})
    for run in trial.runs:
        store.write(factory.record(run, trial.resolved), None)
    run_id = trial.runs[0].spec.run_id
    steps = []
    for name, (arguments, _) in COMMANDS.items():
        argv = [argument.format(run_id=run_id) for argument in ["vitbench", *arguments]]
        steps.append((name, f"import sys; sys.argv = {argv!r}\nfrom vitbench.cli import main\nmain()"))
    return after_each(steps, [*HEAVY, "scipy.stats"], cwd=folder)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_only_reads_does_not_load_torch(commands: dict[str, Step], name: str) -> None:
    step = commands[name]
    assert step.error is None, step.error
    assert set(step.loaded) <= {"scipy.stats"}
    word = COMMANDS[name][1]
    assert word in step.printed  # it did its work, and did not just fail early


def test_reading_tables_and_verdicts_does_not_load_scipy_stats(commands: dict[str, Step]) -> None:
    """It takes 0.9 s of each; what loads it, such as metrics of scikit-learn, comes behind these in the one process."""
    for name in ("tables", "crossovers", "efficiency", "curves", "export", "report", "claims", "status"):
        assert commands[name].loaded == [], name
