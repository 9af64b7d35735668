"""What a fitted `FPMLClassifier` keeps in a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from postmax import plugins
from postmax.data.row_form import RowForm
from postmax.data.table_encoder import CategoryColumn, NumberColumn, TableEncoder
from postmax.data.table_reading import TableReading
from postmax.errors import InputError
from postmax.losses import Loss
from postmax.tabular.columns import Encoder, Numbers
from postmax.tabular.committee import Committee
from postmax.tabular.learning import Learnt, MadeLoss
from postmax.tabular.preparation import Preparation
from postmax.tabular.saved import SavedClassifier

_CANNOT = "this classifier cannot be saved"


def saved_classifier(
    learnt: Learnt, encoder: Encoder, classes: tuple[str, ...], rows: RowForm, about: Mapping[str, Any]
) -> SavedClassifier:
    """Return what is kept of a classifier.

    Args:
        learnt: What it has learnt.
        encoder: How it encodes rows.
        classes: The names of the classes.
        rows: What its rows are, and how they are read.
        about: More for people, plain values.

    Raises:
        InputError: If it has a part that cannot be made again from a file.
    """
    committee = learnt.fit.model
    assert isinstance(committee, Committee)  # noqa: S101  (all strategies make one)
    Preparation(encoder, one_hot=rows.table is not None)  # a category that cannot be kept is found now
    return SavedClassifier(
        classes=classes,
        rows=rows,
        encoder=encoder,
        parts=[_form(network) for network in committee.networks],
        weights=dict(committee.state_dict()),
        loss=_loss(learnt.loss),
        transition=None if learnt.loss.removed is None else learnt.loss.removed.matrix,
        undone=None if learnt.undone is None else learnt.undone.matrix,
        about={"plugins": list(plugins.described()), **about},
    )


def row_form(encoder: Encoder, count: int, *, named: bool) -> RowForm:
    """Return what the rows of a classifier are that was fitted to rows in memory.

    Args:
        encoder: How it encodes rows.
        count: The number of columns.
        named: Whether the columns have names.
    """
    if not named:
        return RowForm((count,), missing="median")
    columns = tuple(
        # A missing number stays missing until the classifier fills it in.
        NumberColumn(name, float("nan")) if isinstance(column, Numbers) else CategoryColumn(name, column.names)
        for column, name in zip(encoder.columns, encoder.plain_names, strict=True)
    )
    table = TableEncoder(columns)
    return RowForm((len(table.features),), TableReading("", (), table, {}), missing="median")


def _form(network: Any) -> Mapping[str, Any]:
    """Return what is needed to make networks again."""
    if network.form is None:
        raise InputError(f"{_CANNOT}: {network.why_not}.")
    form: Mapping[str, Any] = network.form
    return form


def _loss(made: MadeLoss) -> Mapping[str, Any]:
    choice = made.choice
    if isinstance(choice.loss, Loss):
        raise InputError(f"{_CANNOT}, because its loss was given as an object. Give its name: loss='sl-pml'.")
    found = {
        "loss": choice.loss,
        "divergence": choice.divergence,
        "options": dict(choice.options),
        "correction": made.correction,
    }
    try:
        json.dumps(found, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{_CANNOT}, because an option of its loss is no plain value ({error}). Give divergences and links by name."
        ) from None
    return found
