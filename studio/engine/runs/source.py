"""The provenance of a run, stored in the files made by its model: run, checkpoint, sprites, licence."""

import dataclasses

import studio
from studio.data.rights import Rights
from studio.engine.runs.folder import RECORD_FILE, RunDir, wrap_read_errors
from studio.exports.model_cards import ModelSource, sha256_of


def provenance_at(run: RunDir, step: int, weights_sha256: str = "") -> ModelSource:
    """Return the provenance to store in files made by a run's model at `step`. Raises RunError."""
    record = run.record()
    rights = Rights.from_origin(record.data_origin)
    with wrap_read_errors(run.path / RECORD_FILE):
        run_sha256 = sha256_of(run.path / RECORD_FILE)
    return ModelSource(
        made_by=f"Sprite Training Studio {studio.__version__}", run=record.name, recipe=record.recipe, step=step,
        run_sha256=run_sha256, weights_sha256=weights_sha256, data=record.data_title, data_count=record.data_count,
        data_fingerprint=record.data_fingerprint, licence=rights.licence, credits=rights.credits,
        started_from=tuple(dataclasses.asdict(one) for one in record.ancestors),
    )  # fmt: skip
