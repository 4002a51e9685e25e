"""The tidy frame as CSV, JSON or Parquet: one row a run that ended, and what each column means."""

import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from io import BytesIO
from typing import Any

from vitbench.report.added import AddedColumn
from vitbench.report.cells import ordered_rows
from vitbench.report.frame import Frame
from vitbench.report.render import csv_text, rounded
from vitbench.row import COLUMNS, Row
from vitbench.spec import canonical_json

FORMATS = ("csv", "json", "parquet")


class MissingLibrary(ValueError):
    """A format that needs a library which is not installed. The message says how to get it."""


@dataclass(frozen=True)
class ColumnDoc:
    """One column of the tidy frame. `type` is text, integer, number, truth, object or numbers (a list, one a class);
    `unit` may be empty."""

    name: str
    type: str
    unit: str
    meaning: str


_TYPES = {"str": "text", "int": "integer", "float": "number", "bool": "truth", "dict[str, Any]": "object"}
_MEANING: dict[str, tuple[str, str]] = {
    "run_id": ("", "names the run: hash of everything that decides its numbers"),
    "study": ("", "study that asked for the run"),
    "label": ("", "the model's name in the study"),
    "dataset": ("", "dataset with its version and options"),
    "model": ("", "model and its version"),
    "family": ("", "attention, convolution, hybrid or control"),
    "size": ("", "xs, s, m, l or xl; missing for models without sizes"),
    "options": ("", "options that differ from the size's own"),
    "share": ("", "the fraction as the study writes it, or 'N a class'"),
    "fraction": ("share of the training split", "drawn images over all training images"),
    "drawn_images": ("images", "drawn from the training split, validation included"),
    "train_images": ("images", "trained on, after validation was carved out"),
    "val_images": ("images", "held out of the drawn ones; 0 where a class would have none"),
    "test_images": ("images", "in the test set"),
    "seed": ("", "of subset, initialisation, order and augmentation"),
    "regime": ("", "augmentation level: none, light or strong"),
    "budget_unit": ("", "epochs, steps or flops"),
    "budget_amount": ("budget_unit", "how long the run trained"),
    "setting": ("", "default or tuned"),
    "control": ("", "the study's control that asked for the run, 'anchor', or empty for the grid itself"),
    "init_seed": ("", "of the initialisation; the run's seed but in controls of streams"),
    "order_seed": ("", "of the order; the run's seed but in controls of streams"),
    "pixels": ("", "as_is, or shuffled by one fixed permutation"),
    "label_noise": ("share of images", "training labels replaced by another class's"),
    "refit": ("", "whether the validation part was trained on, too"),
    "steps": ("steps", "of the optimiser"),
    "early_stopped_accuracy": ("share of images", "test accuracy at the onset, on the curve's sample of test images"),
    "precision": ("", "fp32 or bf16"),
    "outcome": ("", "done, diverged or failed"),
    "reason": ("", "why it diverged or failed"),
    "test_accuracy": ("share of images", "after the last step, all test images"),
    "test_loss": ("nats", "after the last step, all test images"),
    "val_accuracy": ("share of images", "after the last step; missing without validation"),
    "val_loss": ("nats", "after the last step; missing without validation"),
    "clean_train_accuracy": ("share of images", "after the last step, training part without augmentation"),
    "clean_train_loss": ("nats", "after the last step, training part without augmentation"),
    "gap": ("share of images", "test error minus clean-train error: descriptive"),
    "time_harm": ("share of images", "test error at the end minus at the onset"),
    "onset_step": ("steps", "curve point of lowest validation loss"),
    "matched_loss_step": ("steps", "first curve point with a clean-train loss of .05 nats or less"),
    "matched_loss_accuracy": ("share of images", "test accuracy there, on the curve's sample of test images"),
    "rise": ("nats", "last validation loss minus lowest"),
    "fit_state": ("", "underfit, fit, overfit or unknown: a label, never a test"),
    "over_confident": ("", "whether test loss grew past the study's ratio since the onset"),
    "chance_accuracy": ("share of images", "what a diverged or failed run counts as"),
    "params": ("", "parameters"),
    "macs": ("multiply-adds", "of one forward pass of one image, attention products counted"),
    "activations": ("", "numbers that the layers put out in one forward pass of one image"),
    "train_images_per_second": ("images/s", "while training"),
    "peak_memory_bytes": ("bytes", "largest memory in use"),
    "seconds": ("seconds", "from the run's start in its worker to its record"),
    "shared_device": ("", "whether other runs were computed beside it"),
    "device": ("", "what computed it"),
    "threads": ("", "threads a run"),
    "subset": ("", "SHA-256 of the drawn indices"),
    "numerics": ("", "raised by every change of vitbench that moves losses"),
    "code_version": ("", "vitbench that computed it"),
}


def columns(added: Sequence[AddedColumn] = ()) -> tuple[ColumnDoc, ...]:
    """Every column of the export, in its order, with type, unit and meaning; added metrics last."""
    own = (ColumnDoc(field.name, _TYPES[_written(field.type)], *_MEANING[field.name]) for field in fields(Row))
    return (*own, *(ColumnDoc(column.name, "numbers" if column.per_class else "number", column.unit,
                              column.meaning + ("; only in JSON" if column.per_class else "")) for column in added))


def _written(annotation: Any) -> str:
    """`int | None` as 'int': every column may be missing."""
    text = annotation.__name__ if isinstance(annotation, type) and not hasattr(annotation, "__args__") else annotation
    return str(text).removesuffix(" | None").replace("typing.", "")


def csv(frame: Frame, added: Sequence[AddedColumn] = ()) -> str:
    """One line a run; options as JSON, missing as empty. Numbers of classes are left out."""
    header, rows = _lines(frame, _scalar(added))
    return csv_text(header, [[_flat(value) for value in row] for row in rows])


def json_text(frame: Frame, added: Sequence[AddedColumn] = ()) -> str:
    """An array of objects, null for missing."""
    header, rows = _lines(frame, added)
    return json.dumps([dict(zip(header, map(_rounded, row), strict=True)) for row in rows],
                      indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _scalar(added: Sequence[AddedColumn]) -> list[AddedColumn]:
    return [column for column in added if not column.per_class]


def _lines(frame: Frame, added: Sequence[AddedColumn]) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Header, and one line a run."""
    return ([*COLUMNS, *(column.name for column in added)],
            [(*astuple(row), *(column.values.get(row.run_id) for column in added)) for row in ordered_rows(frame)])


def parquet(frame: Frame, added: Sequence[AddedColumn] = ()) -> bytes:
    """A Parquet file; options as JSON. Numbers of classes are left out. Raises MissingLibrary without pyarrow."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingLibrary("Parquet needs pyarrow: install vitbench[parquet], or export csv or json") from None
    kinds = {"text": pa.string(), "object": pa.string(), "integer": pa.int64(), "number": pa.float64(),
             "truth": pa.bool_()}
    docs = columns(_scalar(added))
    schema = pa.schema([pa.field(doc.name, kinds[doc.type], metadata={"unit": doc.unit, "meaning": doc.meaning})
                        for doc in docs])
    header, rows = _lines(frame, _scalar(added))
    lines = [dict(zip(header, map(_flat, row), strict=True)) for row in rows]
    out = BytesIO()
    pq.write_table(pa.Table.from_pylist(lines, schema=schema), out)
    return out.getvalue()


def _rounded(value: Any) -> Any:
    if isinstance(value, tuple):
        return [rounded(number) for number in value]
    return value if isinstance(value, dict) else rounded(value)


def _flat(value: Any) -> Any:
    return canonical_json(value) if isinstance(value, dict) else rounded(value)
