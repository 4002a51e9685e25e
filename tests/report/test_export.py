import csv
import io
import json
import sys
from dataclasses import replace

import pytest

from tests.report.factory import frame, record, study
from vitbench.cli.errors import explained
from vitbench.report import export
from vitbench.row import COLUMNS


def test_every_column_is_documented() -> None:
    docs = export.columns()
    assert tuple(doc.name for doc in docs) == COLUMNS
    assert all(doc.meaning for doc in docs)
    assert {doc.name: doc.type for doc in docs}["params"] == "integer"


def test_one_row_a_run_in_grid_order_whatever_the_frame_s() -> None:
    made = frame(study(seeds=2))
    turned = replace(made, rows=made.rows[::-1])
    assert export.csv(made) == export.csv(turned)
    lines = list(csv.DictReader(io.StringIO(export.csv(made))))
    assert [line["run_id"] for line in lines] == [run.spec.run_id for run in made.runs]
    assert lines[0]["shared_device"] == "false"
    assert lines[0]["reason"] == ""


def test_json_has_null_for_missing_and_six_digits() -> None:
    made = frame(study(), lambda run, facts: record(run, facts, test_accuracy=1 / 3))
    row = json.loads(export.json_text(made))[0]
    assert row["reason"] is None
    assert row["test_accuracy"] == 0.333333
    assert row["options"] == {}


def test_parquet_holds_the_same_rows_and_says_what_columns_mean() -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    table = pq.read_table(io.BytesIO(export.parquet(frame())))
    assert table.column_names == list(COLUMNS)
    assert table.num_rows == 12
    assert table.schema.field("seconds").metadata[b"unit"] == b"seconds"


def test_parquet_without_pyarrow_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(export.MissingLibrary, match=r"vitbench\[parquet\]") as caught:
        export.parquet(frame())
    assert explained(caught.value) is not None  # a message, not a traceback
