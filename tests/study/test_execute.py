"""Which runs a study lacks: decided without torch and without an engine."""

import json
from pathlib import Path

import pytest

from tests.report.factory import failure, record, resolved, study
from vitbench.expansion import expand
from vitbench.grid import distinct
from vitbench.record import ForeignRecord
from vitbench.spec import canonical_json, sha256_json
from vitbench.store import ResultStore
from vitbench.study.engines.local import imports_of
from vitbench.study.execute import to_do


def in_a_later_schema(text: str) -> str:
    content = {k: v for k, v in json.loads(text).items() if k != "sha256"} | {"schema_number": 2, "host_class": "new"}
    return canonical_json({**content, "sha256": sha256_json(content)})


@pytest.fixture
def store(tmp_path: Path) -> ResultStore:
    made = ResultStore(tmp_path / "study")
    made.prepare()
    return made


def test_labels_of_one_specification_share_a_run(store: ResultStore) -> None:
    of = study(models=["linear", {"name": "linear", "label": "again"}], fractions=[0.1], seeds=2)
    runs = expand(of, resolved(of))
    assert len(runs) == 4
    once = distinct(runs)
    assert [(run.label, run.spec.seed) for run in once] == [("linear", 0), ("linear", 1)]
    assert to_do(once, store, retry_failed=False)[0] == once


@pytest.mark.parametrize("name", ["record.json", "failure.json"])
def test_a_record_of_another_version_is_neither_data_nor_set_aside(store: ResultStore, name: str) -> None:
    of = study(fractions=[0.1], seeds=1)
    runs = expand(of, resolved(of))
    run_id = runs[0].spec.run_id
    if name == "record.json":
        store.write(record(runs[0], resolved(of)), None)
    else:
        store.write_failure(failure(runs[0]))
    path = store.runs / run_id / name
    path.write_text(in_a_later_schema(path.read_text()))
    with pytest.raises(ForeignRecord, match=f"{run_id} was written by another version of vitbench, in schema 2"):
        to_do(runs, store, retry_failed=False)
    assert path.exists()


def test_failed_runs_are_done_again_only_when_asked_and_what_they_left_is_kept(store: ResultStore) -> None:
    of = study(fractions=[0.1], seeds=1)
    runs = expand(of, resolved(of))
    store.write_failure(failure(runs[0]))
    assert runs[0] not in to_do(runs, store, retry_failed=False)[0]
    assert runs[0] in to_do(runs, store, retry_failed=True)[0]
    assert len(list((store.folder / "replaced").iterdir())) == 1


def test_workers_import_timm_once_for_all_runs_and_only_where_a_model_needs_it() -> None:
    of = study(models=["linear", "timm/resnet18"], fractions=[0.1], seeds=1)
    runs = expand(of, resolved(of))
    assert imports_of(runs) == ["vitbench.nn.timm_model"]
    assert imports_of(run for run in runs if run.label == "linear") == []
