"""PES: which rows are confident, what a batch costs, and which parts of the network change in which epoch."""

import math

import pytest
import torch
from hard_rows import HARD_CASES, hard_config
from small_runs import outcome, small_config, stop_after
from torch import nn

from postmax import losses
from postmax.errors import InputError
from postmax.methods import pes
from postmax.methods.parts.agreement import agreeing_rows, class_weights
from postmax.methods.pes import refining_rate, shared_batch, weighted_mean
from postmax.runs import execute
from postmax.train.build import build

DEEP = ("model.hidden=[6,4]", "model.batch_norm=true")
PHASES = ("method.warmup_epochs=2", "method.block_epochs=2", "method.layer_epochs=1")
ADAM = ("optimiser.name=adam", "optimiser.lr=0.02")
SEMI = "method.semi_supervised=true"


def trainer_of(*overrides):
    return build(small_config("method=pes", "epochs=8", "optimiser.lr=0.1", *DEEP, *PHASES, *overrides)).trainer


def weights_of(network):
    return {name: tensor.clone() for name, tensor in network.state_dict().items()}


def changed_parts(before, after):
    """The modules of which some weight or statistic has changed."""
    return {name.rpartition(".")[0] for name in before if not torch.equal(before[name], after[name])}


def test_rows_with_whose_label_the_network_agrees():
    generator = torch.Generator().manual_seed(0)
    predicted, labels = (torch.randint(4, (60,), generator=generator) for _ in range(2))
    predicted[labels == 2] = 3  # no row of class 2 agrees
    labels[labels == 1] = 0  # there is no row of class 1
    found = agreeing_rows(predicted, labels, 5)
    agree = [int(p) == int(y) for p, y in zip(predicted, labels, strict=True)]
    lost = [c for c in range(5) if not any(agree[row] for row in range(60) if labels[row] == c)]
    assert lost == [1, 2, 4]
    for row in range(60):
        assert found[row] == (predicted[row] == labels[row] or int(labels[row]) in lost)


@pytest.mark.parametrize(("agreeing", "is_lost"), [(0, True), (2, True), (3, False)])
def test_a_class_that_the_network_hardly_predicts_keeps_its_rows(agreeing, is_lost):
    labels = torch.tensor([0] * 100 + [1] * 20)
    predicted = torch.tensor([0] * (60 - agreeing) + [1] * (40 + agreeing) + [1] * agreeing + [0] * (20 - agreeing))
    found = agreeing_rows(predicted, labels, 2)  # 60 of 120 agree, so 10 of 20 would, and a quarter of that is 2.5
    assert int(found[100:].sum()) == (20 if is_lost else agreeing)
    assert int(found[:100].sum()) == 60 - agreeing


@pytest.mark.parametrize(("others", "share"), [(1, 0), (2, 0.5), (4, 1.0), (8, 1.0)])
def test_few_rows_without_labels_have_a_smaller_weight(monkeypatch, others, share):
    trainer = trainer_of(SEMI, *ADAM, "batch_size=32", "method.unlabelled_weight=6", "method.ramp_epochs=0")
    for epoch in range(5):
        trainer.epoch(epoch)
    monkeypatch.setattr(pes, "shared_batch", lambda *_: (32 - others, others if others > 1 else 0))
    value, (_, _, _, found) = mixmatch_value(monkeypatch, trainer, 5)
    labels, confident = trainer._truth.labels[0], trainer.method.learnt()["confident"]
    counts = found.targets[: len(found.labelled)] @ class_weights(labels[confident], 2)
    expected = (counts * found.labelled).sum() / counts.sum() + share * 6 * found.unlabelled
    torch.testing.assert_close(value, expected, rtol=1e-4, atol=0)


@pytest.mark.parametrize("predicted", [[1, 1, 1], [0, 1, 1]])
def test_a_single_row_is_never_left_alone(predicted):
    assert agreeing_rows(torch.tensor(predicted), torch.zeros(3, dtype=torch.int64), 2).all()


def test_class_weights_are_the_published_ones_up_to_three():
    found = class_weights(torch.tensor([0] * 10 + [1] * 5 + [3]), 5)
    mean = 16 / 3
    torch.testing.assert_close(found, torch.tensor([mean / 10, mean / 5, 0, 3, 0]))
    assert mean / 1 > 3


def test_the_weighted_loss_is_that_of_torch():
    loss = losses.get("ce", reduction="none")
    logits, labels, weights = torch.randn(9, 3), torch.arange(9) % 3, torch.tensor([0.5, 2.0, 3.0])
    found = weighted_mean(loss, loss(logits, labels), weights[labels])
    torch.testing.assert_close(found, nn.CrossEntropyLoss(weight=weights)(logits, labels))


def test_the_parts_that_change_in_each_epoch():
    trainer, seen = trainer_of(), []
    for epoch in range(6):
        before = weights_of(trainer.method.answer)
        trainer.epoch(epoch)
        seen.append(changed_parts(before, weights_of(trainer.method.answer)))
    everything = {"body.0", "body.1", "body.3", "body.4", "fc"}
    block = {"body.3", "body.4", "fc"}
    assert seen == [everything, everything, block, block, {"fc"}, everything]


def test_parts_begin_with_new_random_weights_and_only_once():
    trainer = trainer_of("method.refine_lr=1e-12")
    first, fresh = trainer.resources.networks
    fresh = weights_of(fresh)
    for epoch in range(2):
        trainer.epoch(epoch)
    first.fc.weight.data.zero_()
    trainer.epoch(2)
    torch.testing.assert_close(first.fc.weight, fresh["fc.weight"])
    torch.testing.assert_close(first.body[3].weight, fresh["body.3.weight"])
    assert not torch.equal(first.body[0].weight, fresh["body.0.weight"])
    first.fc.weight.data.fill_(7.0)
    trainer.epoch(3)
    assert first.fc.weight.min() > 6.9  # the second epoch goes on from the first one
    first.body[3].weight.data.fill_(5.0)
    trainer.epoch(4)
    torch.testing.assert_close(first.fc.weight, fresh["fc.weight"])
    assert first.body[3].weight.min() > 4.9
    assert torch.equal(trainer.resources.networks[1].fc.weight, fresh["fc.weight"])


def test_the_last_phase_has_an_optimiser_without_the_momentum_of_the_first():
    trainer = trainer_of("optimiser.momentum=0.9")
    for epoch in range(5):
        trainer.epoch(epoch)
    assert not trainer.resources.optimisers["confident rows"].optimiser.state
    trainer.epoch(5)
    assert trainer.resources.optimisers["confident rows"].optimiser.state


@pytest.mark.parametrize(
    ("hidden", "expected"),
    [("[]", []), ("[4]", [(2, 3, 1)]), ("[6,4]", [(2, 4, 2), (4, 5, 1)])],
)
def test_a_part_is_only_trained_anew_if_an_earlier_one_stays(hidden, expected):
    method = trainer_of(f"model.hidden={hidden}").method
    assert [(one.start, one.end, len(one.parts)) for one in method._refinements] == expected


@pytest.mark.parametrize(
    ("epochs", "options", "expected"),
    [
        (212, (), (25, 32, 37)),
        (305, (SEMI,), (20, 25)),
        (1000, (), (118, 151, 175)),
        (3, (), (1, 2)),
        (2, (), (1,)),
        (1, (), (0,)),
    ],
)
def test_phases_are_shares_of_the_training_and_leave_an_epoch(epochs, options, expected):
    trainer = build(small_config("method=pes", f"epochs={epochs}", *DEEP, *options)).trainer
    method = trainer.method
    assert (method._warmup_epochs, *(one.end for one in method._refinements)) == expected


@pytest.mark.parametrize(("epochs", "rate"), [(7, 1e-4), (14, 5e-5), (1, 7e-4)])
def test_a_weight_can_move_as_far_as_published(epochs, rate):
    assert refining_rate(7 * 352 * 1e-4, epochs * 352) == pytest.approx(rate)


@pytest.mark.parametrize("extra", [(), (SEMI,)])
def test_confident_rows_are_those_of_the_present_network(monkeypatch, extra):
    trainer = trainer_of("loss=gan-pml", "noise=symmetric:0.4", *extra)
    for epoch in range(5):
        trainer.epoch(epoch)
    assert trainer.method.learnt()["confident"].all()
    outputs = trainer._all_outputs(trainer.method.answer.eval())
    labels = trainer._truth.labels[0]
    expected = trainer.method.loss.posterior(outputs).argmax(1) == labels
    assert 0 < expected.sum() < len(labels)
    seen, plain = {}, type(trainer.batches).epoch

    def spy(self, number, rows=None, **options):
        if rows is not None:
            seen[options["stream"].partition("/")[0]] = set(rows.tolist())  # a second turn is of the same rows
        return plain(self, number, rows, **options)

    monkeypatch.setattr(type(trainer.batches), "epoch", spy)
    list(trainer.steps(5))
    chosen, others = set(expected.nonzero()[:, 0].tolist()), set((~expected).nonzero()[:, 0].tolist())
    assert seen == ({"confident": chosen, "doubted": others} if extra else {"": chosen})
    assert torch.equal(trainer.method.learnt()["confident"], expected)


def test_the_loss_of_a_batch_of_confident_rows():
    trainer = trainer_of("loss=ce", "noise=symmetric:0.4", "batch_size=1000", "model.batch_norm=false")
    for epoch in range(5):
        trainer.epoch(epoch)
    outputs = trainer._all_outputs(trainer.method.answer.eval())
    labels, value = trainer._truth.labels[0], next(trainer.steps(5)).loss
    chosen = outputs.argmax(1) == labels
    counts = [int((labels[chosen] == c).sum()) for c in (0, 1)]
    total = weight_sum = 0.0
    for row in chosen.nonzero()[:, 0].tolist():
        weight = (sum(counts) / 2) / counts[int(labels[row])]
        total += weight * -math.log(outputs[row].softmax(0)[labels[row]])
        weight_sum += weight
    assert value.item() == pytest.approx(total / weight_sum, rel=1e-4)


def test_training_metrics_are_about_all_rows():
    trainer = trainer_of("noise=symmetric:0.4")
    for epoch in range(5):
        trainer.epoch(epoch)
    outputs = trainer._all_outputs(trainer.method.answer.eval())
    expected = (outputs.argmax(1) == trainer._truth.labels[0]).float().mean()
    (record,) = trainer.epoch(5)
    assert record["train_accuracy"] == pytest.approx(expected.item())
    assert record["method"]["confident"] == pytest.approx(expected.item())


def mixmatch_value(monkeypatch, trainer, epoch):
    """The first batch of an epoch: its loss, and everything that it is made of."""
    kept, plain = [], pes.mix_and_match

    def spy(loss, network, labelled, unlabelled, alpha, generator):
        kept.append((labelled, unlabelled, alpha, plain(loss, network, labelled, unlabelled, alpha, generator)))
        return kept[-1][-1]

    monkeypatch.setattr(pes, "mix_and_match", spy)
    steps = trainer.steps(epoch)
    return next(steps).loss, kept[0]


def test_the_loss_of_a_batch_with_mixmatch(monkeypatch):
    trainer = trainer_of(
        SEMI, "method.block_epochs=0", *ADAM, "loss=gan-pml", "epochs=20", "method.ramp_epochs=4",
        "method.unlabelled_weight=6", "model.batch_norm=false",
    )  # fmt: skip
    for epoch in range(4):
        trainer.epoch(epoch)
    network, loss = trainer.method.answer, trainer.method.loss
    before = weights_of(network)
    value, (labelled, unlabelled, alpha, found) = mixmatch_value(monkeypatch, trainer, 4)
    network.load_state_dict(before)
    confident = trainer.method.learnt()["confident"]
    weights = class_weights(trainer._truth.labels[0][confident], 2)
    assert alpha == 4.0
    assert labelled.targets.unique().tolist() == [0, 1]
    p = loss.posterior(network(unlabelled.views[0])).square()
    torch.testing.assert_close(unlabelled.targets, p / p.sum(1, keepdim=True))
    counts = [sum(float(t) * float(w) for t, w in zip(row, weights, strict=True)) for row in found.targets]
    first = 2 * len(labelled.targets)
    values, missed = found.labelled.tolist(), found.unlabelled.item()
    mean = sum(count * one for count, one in zip(counts[:first], values, strict=True)) / sum(counts[:first])
    expected = mean + 6 * (1 / 4) * missed  # one epoch of the ramp of four is over
    assert value.item() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(("epoch", "alpha"), [(3, 4.0), (4, 0.75)])
def test_mixup_changes_in_the_second_half(monkeypatch, epoch, alpha):
    trainer = trainer_of(SEMI, "method.block_epochs=0", "method.warmup_epochs=1")
    assert mixmatch_value(monkeypatch, trainer, epoch)[1][2] == alpha


@pytest.mark.parametrize("chosen", range(0, 400, 13))
def test_shares_of_a_batch(chosen):
    for others in (0, 1, 2, 50, 1000):
        for size in (1, 2, 3, 16, 128):
            if chosen + others == 0:
                continue
            mine, rest = shared_batch(chosen, others, size)
            assert mine + rest == size
            assert mine >= size / 2
            assert rest == 0 or (rest >= 2 and others >= 2)
            if 2 <= rest < size // 2:
                assert rest / size == pytest.approx(others / (chosen + others), abs=0.5 / size)


@pytest.mark.parametrize("confident", [0, 1, 2, 455, 456])
@pytest.mark.parametrize("extra", [(), (SEMI,)])
def test_few_and_many_confident_rows(monkeypatch, confident, extra):
    trainer = trainer_of("batch_size=32", *extra)

    def pretend(predicted, labels, classes):
        wrong = torch.where(torch.arange(len(labels)) < confident, labels, (labels + 1) % classes)
        return agreeing_rows(wrong, labels, classes)

    monkeypatch.setattr(pes, "agreeing_rows", pretend)
    found = [step.loss.item() for step in trainer.steps(5)]
    assert found
    assert all(math.isfinite(value) for value in found)


@pytest.mark.parametrize("case", HARD_CASES)
def test_hard_rows_with_mixmatch(tmp_path, case):
    trainer = build(hard_config(HARD_CASES[case], tmp_path, "pes", SEMI, "method.warmup_epochs=1")).trainer
    for number in range(trainer._config.epochs):
        (record,) = trainer.epoch(number)
        assert math.isfinite(record["loss"])
    assert all(tensor.isfinite().all() for tensor in trainer.weights(0).values())


def test_it_continues_exactly_with_mixmatch_and_two_refined_parts(tmp_path):
    config = small_config("method=pes", SEMI, "epochs=8", *DEEP, *PHASES, "optimiser.momentum=0.9", "ema=0.9")
    execute(config, tmp_path / "whole")
    for epochs in (2, 3, 4, 5, 6):
        folder = tmp_path / str(epochs)
        stop_after(config, folder, epochs)
        execute(config, folder)
        assert outcome(folder) == outcome(tmp_path / "whole")


def test_a_loss_of_a_whole_batch():
    trainer = trainer_of("loss=dmi", "loss.start=0.1", "optimiser.name=adam", "optimiser.lr=0.001")
    for epoch in range(7):
        (record,) = trainer.epoch(epoch)
        assert math.isfinite(record["loss"])


@pytest.mark.parametrize(
    "option",
    [
        "warmup_epochs=-1",
        "block_epochs=0.5",
        "layer_epochs=-1",
        "refine_lr=0",
        "temperature=0",
        "alpha=0",
        "late_alpha=-1",
        "unlabelled_weight=-1",
        "ramp_epochs=-1",
        "semi_supervised=perhaps",
    ],
)
def test_options_that_cannot_be(option):
    with pytest.raises(InputError, match=rf"method\.{option.partition('=')[0]} must be"):
        trainer_of(f"method.{option}")
