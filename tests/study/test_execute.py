"""Which runs a study lacks: decided without torch and without an engine."""

import json
from pathlib import Path

import pytest

from tests.report.factory import failure, record, resolved, study
from vitbench.grid import distinct, expand
from vitbench.record import ForeignRecord
from vitbench.spec import canonical_json, sha256_json
from vitbench.store import ResultStore
from vitbench.study.execute import to_do


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


def test_a_record_of_another_version_is_neither_data_nor_set_aside(store: ResultStore) -> None:
    of = study(fractions=[0.1], seeds=1)
    runs = expand(of, resolved(of))
    made = record(runs[0], resolved(of))
    store.write(made, None)
    path = store.runs / made.run_id / "record.json"
    content = {k: v for k, v in json.loads(path.read_text()).items() if k != "sha256"} | {"schema_number": 2}
    path.write_text(canonical_json({**content, "sha256": sha256_json(content)}))
    with pytest.raises(ForeignRecord, match=made.run_id):
        to_do(runs, store, retry_failed=False)
    assert path.exists()


def test_failed_runs_are_done_again_only_when_asked_and_what_they_left_is_kept(store: ResultStore) -> None:
    of = study(fractions=[0.1], seeds=1)
    runs = expand(of, resolved(of))
    store.write_failure(failure(runs[0]))
    assert runs[0] not in to_do(runs, store, retry_failed=False)[0]
    assert runs[0] in to_do(runs, store, retry_failed=True)[0]
    assert len(list((store.folder / "replaced").iterdir())) == 1
