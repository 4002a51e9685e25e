"""RunRecord: what one run left behind; the only source of tables, figures and verdicts."""

import base64
import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import AfterValidator, Field, ValidationError

from vitbench.spec import Frozen, RunSpec, canonical_json, sha256_json

SCHEMA = 1
Outcome = Literal["done", "diverged", "failed"]
Content = TypeVar("Content", bound=Frozen)
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Column = tuple[float | None, ...]
# Messages may quote file names that are not UTF-8, which JSON cannot hold.
Message = Annotated[str, AfterValidator(lambda text: text.encode("utf-8", "backslashreplace").decode())]


class DamagedRecord(ValueError):
    """A record whose text is not what was written. The message says what is wrong with it."""


class ForeignRecord(ValueError):
    """A whole record that another version of vitbench wrote: neither damage nor data for this one."""


def sealed(content: Frozen) -> str:
    """One line of canonical JSON with the SHA-256 of everything but itself; `unsealed` checks it."""
    values = content.model_dump(mode="json", exclude={"sha256"})
    return canonical_json({**values, "sha256": sha256_json(values)}) + "\n"


def unsealed(text: bytes, what: str) -> dict[str, Any]:
    """The content without its hash. Raises DamagedRecord where `text` is not what `sealed` wrote.

    Hashed as read, not as this version would write it: a field added later leaves old files valid.
    """
    try:
        content: dict[str, Any] = json.loads(text)
        claimed = content.pop("sha256")
        whole = _as_sealed(text, claimed) or claimed == sha256_json(content)
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
        raise DamagedRecord(f"not a whole {what}") from None
    if not whole:
        raise DamagedRecord("its content hash does not match its content")
    return content


def _as_sealed(text: bytes, claimed: str) -> bool:
    """True where `text` without its hash is the very text that was hashed, which saves writing it again."""
    before, mark, after = text.rstrip(b"\n").partition(b',"sha256":"' + claimed.encode() + b'"')
    return bool(mark) and hashlib.sha256(before + after).hexdigest() == claimed


def read_sealed(path: Path, name: str, of: type[Content], what: str, max_bytes: int) -> Content:
    """What `sealed` wrote to `path`. Raises FileNotFoundError, or DamagedRecord, which calls the file `name`, where it
    is not whole."""
    try:
        with path.open("rb") as file:
            text = file.read(max_bytes)
        unsealed(text, what)
        return of.model_validate_json(text)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DamagedRecord(f"{name}: {error.strerror}") from None
    except ValidationError:
        raise DamagedRecord(f"{name} is no {what} of this version") from None
    except DamagedRecord as error:
        raise DamagedRecord(f"{name}: {error}") from None


class Data(Frozen):
    """Which images the run saw: counts, and hashes that name them."""

    drawn_images: int
    train_images: int
    val_images: int
    test_images: int
    num_classes: int
    subset: Sha256  # of the drawn index list
    dataset_sha256: Sha256


class Cost(Frozen):
    """What the run took. Rates and seconds are of `device`, times with other runs beside it if `shared`."""

    params: int
    macs: int  # multiply-adds of one forward pass of one image, attention products counted
    activations: int  # numbers that the layers put out in one forward pass of one image
    train_images_per_second: float
    peak_memory_bytes: int
    train_seconds: float
    eval_seconds: float
    seconds: float  # the run from its start in the worker to its record
    shared: bool


class Curves(Frozen):
    """One column a quantity, one place a curve point. Losses in nats, accuracies as shares of images.

    Clean train, validation and test are measured in evaluation mode without augmentation, each on one fixed
    stratified sample of at most 1,000 images at every point (all of them where there are no more).
    """

    step: tuple[int, ...]
    images_seen: tuple[int, ...]
    learning_rate: Column
    gradient_norm: Column
    train_loss: Column
    train_accuracy: Column
    val_loss: Column | None = None
    val_accuracy: Column | None = None
    test_loss: Column
    test_accuracy: Column


class Final(Frozen):
    """Metrics after the last step on all images; None where the run diverged or has no validation.

    Those on test come from the logits as they are stored, in float16.
    """

    train_loss: float | None = None
    train_accuracy: float | None = None
    val_loss: float | None = None
    val_accuracy: float | None = None
    test_loss: float | None = None
    test_accuracy: float | None = None


class Execution(Frozen):
    """Where and how a run was computed; recorded, not part of the run id."""

    device: str
    threads: int
    deterministic: bool
    environment: str  # environments/<this>.json beside the runs
    code_version: str


class RunRecord(Frozen):
    """One finished run. `sha256` guards every other field against a flipped bit."""

    schema_number: int = SCHEMA
    run_id: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    spec: RunSpec
    family: str
    outcome: Literal["done", "diverged"]
    reason: str | None = None
    data: Data
    card: dict[str, str | int | float | bool | None]  # stem, stride, patch, tokens, normalisation, regularisers
    cost: Cost
    curves: Curves
    final: Final
    test_correct: str | None = None  # base64 of one bit a test image, 1 where the prediction is right
    predictions_sha256: Sha256 | None = None
    weights_sha256: Sha256 | None = None  # of weights.safetensors, where the study keeps it
    execution: Execution
    started: str  # UTC, ISO 8601
    finished: str
    sha256: str = ""

    def to_json(self) -> str:
        """Compact JSON with the content hash set; `from_json` gives the same record back."""
        return sealed(self)

    @classmethod
    def from_json(cls, text: bytes) -> "RunRecord":
        """Parse and check a record. Raises DamagedRecord where anything is not as it was written, and
        ForeignRecord where it is, but not by this version."""
        content = unsealed(text, "record")
        _refuse_other_schema(content)
        try:
            record = cls.model_validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            raise ForeignRecord(f"run {content.get('run_id')} was written by another version of vitbench: "
                                f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
        if record.run_id != record.spec.run_id:
            raise DamagedRecord(f"its run id {record.run_id} does not follow from its configuration")
        return record

    def correct_I(self) -> npt.NDArray[np.bool_] | None:
        """Hits of the last point for each test image I, in the dataset's order; None where the run diverged."""
        if self.test_correct is None:
            return None
        bits = np.frombuffer(base64.b64decode(self.test_correct), dtype=np.uint8)
        return np.unpackbits(bits, count=self.data.test_images).astype(bool)


def pack_hits(correct_I: npt.NDArray[np.bool_]) -> str:
    """Base64 of one bit an image."""
    return base64.b64encode(np.packbits(correct_I).tobytes()).decode("ascii")


class Failure(Frozen):
    """A run that ended without a record of numbers: what happened, and how. `sha256` guards it as a record's does."""

    schema_number: int = SCHEMA
    run_id: str
    spec: RunSpec
    reason: Message
    traceback: Message = ""
    crash: bool = False  # the worker died: no result, so it counts as missing and is done again (protocol rule 13)
    started: str
    finished: str
    sha256: str = ""  # empty: written before failures had one

    def to_json(self) -> str:
        """Compact JSON with the content hash set; `from_json` gives the same failure back."""
        return sealed(self)

    @classmethod
    def from_json(cls, text: bytes) -> "Failure":
        """Parse and check a failure. Raises DamagedRecord, or ForeignRecord where another version wrote it."""
        try:
            content = json.loads(text)
        except (ValueError, RecursionError):
            raise DamagedRecord("the failure is not whole") from None
        if isinstance(content, dict):
            if "sha256" in content:
                unsealed(text, "failure")
            _refuse_other_schema(content)
        try:
            failure = cls.model_validate_json(text)
        except ValidationError:
            raise DamagedRecord("the failure is not whole") from None
        if failure.run_id != failure.spec.run_id:
            raise DamagedRecord(f"its run id {failure.run_id} does not follow from its configuration")
        return failure


def _refuse_other_schema(content: dict[str, Any]) -> None:
    found = content.get("schema_number")
    if isinstance(found, int) and found != SCHEMA:  # anything else is no schema number, and is refused as such
        raise ForeignRecord(f"run {content.get('run_id')} was written by another version of vitbench, in schema "
                            f"{found}; this version reads schema {SCHEMA}. Use that version, or another --results "
                            "folder")
